"""Numbers over the common keys, beside SQL."""

from __future__ import annotations

import decimal
import sqlite3
from typing import Any, Literal

import pytest
import volery
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(deadline=None, max_examples=12)
Rows = list[tuple[str, str, str]]
cents = st.integers(-9999, 9999).map(lambda number: str(decimal.Decimal(number).scaleb(-2)))
rows = st.lists(st.tuples(st.sampled_from("abcdefgh"), cents, st.sampled_from("xyz")), max_size=8, unique_by=lambda row: row[0])


def both(left: Rows, right: Rows, sender: dict[str, Any], receiver: dict[str, Any]) -> tuple[volery.Match, volery.Match]:
    def party(role: Literal["sender", "receiver"], rows: Rows, options: dict[str, Any]) -> Any:
        data = {name: [row[at] for row in rows] for at, name in enumerate(("k", "v", "g"))}
        return lambda session: session.psi(role=role, data=data, key="k", **options)

    return volery.run_local(party("sender", left, sender), party("receiver", right, receiver))


def sql(left: Rows, right: Rows, what: str, group: str) -> Any:
    database = sqlite3.connect(":memory:")
    for name, all_rows in (("l", left), ("r", right)):
        database.execute(f"create table {name} (k text, v integer, g text)")
        scaled = [(key, int(decimal.Decimal(value).scaleb(2)), group) for key, value, group in all_rows]
        database.executemany(f"insert into {name} values (?, ?, ?)", scaled)
    found = database.execute(f"select count(*), coalesce(sum({what}), 0) from l join r on l.k = r.k where {group}").fetchone()
    return found[0], found[1]


@few
@given(rows, rows, st.sampled_from(["receiver", "sender", "both"]))
def test_sums_beside_sql(left: Rows, right: Rows, to: str) -> None:
    shared: dict[str, Any] = {"to": to, "bound": "99.99", "decimals": 2, "minimum": 0}
    count, cents = sql(left, right, "l.v", "1")
    expected = decimal.Decimal(cents).scaleb(-2)
    for kind in ("sum", "mean"):
        sides = both(left, right, {"result": f"{kind}=v", **shared}, {"result": kind, **shared})
        for match in sides:
            gets = to in (match.role, "both")
            assert match.sum == (expected if gets else None)
            assert match.count == (count if gets and kind == "mean" else None)
            if gets and kind == "mean" and count:
                assert match.mean == pytest.approx(float(expected) / count)
            assert match.rows is None and match.below_minimum is False
    _, square = sql(left, right, "l.v * r.v", "1")
    product = {"result": "sum-product=v,v", **shared, "to": "both"}
    for match in both(left, right, product, product):
        assert match.sum == decimal.Decimal(square).scaleb(-4)


@few
@given(rows, rows)
def test_groups_beside_sql(left: Rows, right: Rows) -> None:
    shared: dict[str, Any] = {"groups": ["y", "x"], "minimum": 2}
    _, receiver = both(left, right, {"result": "count", **shared}, {"result": "count", "group_by": "g", **shared})
    assert receiver.groups is not None and list(receiver.groups) == ["y", "x"]
    for group, total in receiver.groups.items():
        count, _ = sql(left, right, "1", f"r.g = '{group}'")
        assert total == volery.Total(count < 2, None if count < 2 else count)


def test_numbers_have_a_repr() -> None:
    data: Rows = [(f"k{at}", str(at), "x") for at in range(60)]
    shared: dict[str, Any] = {"bound": 60}
    sender, receiver = both(data, data[:55], {"result": "sum=v", **shared}, {"result": "sum", **shared})
    assert receiver.sum == sum(range(55)) and isinstance(receiver.sum, int)
    assert repr(receiver) == "<volery.Match: psi by circuit, receiver, sum 1485>"
    assert repr(sender) == "<volery.Match: psi by circuit, sender, sum for the peer>"
    assert "sum 1485" in receiver._repr_html_()
    sender, receiver = both(data, data[:49], {"result": "sum=v", **shared}, {"result": "sum", **shared})
    assert sender.below_minimum is True and receiver.below_minimum is True and receiver.sum is None
    assert repr(receiver) == "<volery.Match: psi by circuit, receiver, fewer than 50 common keys>"


def test_noise_is_in_the_report() -> None:
    data: Rows = [(f"k{at}", "1", "x") for at in range(40)]
    options = {"result": "count", "epsilon": 0.5, "delta": 1e-9, "to": "both"}
    sender, receiver = both(data, data, options, options)
    assert sender.count == receiver.count is not None
    noise = receiver.report.result["noise"]["count"]
    assert noise["mechanism"].startswith("discrete Gaussian noise") and noise["added_by"] == ["sender", "receiver"]
    assert any("differentially private with epsilon 1/2 and delta" in line for line in receiver.report.revealed)


def test_settings_that_differ_and_wrong_arguments() -> None:
    data: Rows = [("a", "1", "x")]
    with pytest.raises(volery.SettingsDifferError, match="differ in minimum"):
        both(data, data, {"result": "count", "minimum": 1}, {"result": "count", "minimum": 2})
    with pytest.raises(volery.UsageError, match="bound"):
        volery.psi(role="sender", listen="127.0.0.1:0", data={"k": ["a"], "v": [1]}, key="k", result="sum=v")
    with pytest.raises(volery.DataError, match='column "v" of row 2 is beyond'):
        volery.psi(role="sender", listen="127.0.0.1:0", data={"k": ["a", "b"], "v": [1, 9]}, key="k", result="sum=v", bound=8)


def test_a_plan_of_a_sum() -> None:
    plan = volery.plan(role="sender", data={"k": ["a", "b"], "v": [1.5, -2.25]}, key="k", result="sum=v", bound="2.25",
                       decimals=2, peer_rows=1000)
    assert plan.protocol == "circuit" and plan.bytes > 10_000
    assert any("the sum of the sender's column" in line for line in plan.reveals)
