"""Matches from Ray, with Ray and with Spark at the other side."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from both import ROLES, Both, Driver, finish, until
from totals import OPTIONS, check, draw, matches, table, tables

KEYS = {"sender": range(0, 200_000), "receiver": range(190_000, 390_000)}


@pytest.fixture(scope="module")
def rays(both: Both) -> Iterator[dict[str, Driver]]:
    """A driver with a Ray of its own for each side."""
    found = {role: both.driver(role, ray=4) for role in ROLES}
    yield found
    for one in found.values():
        one.kill()


@pytest.mark.parametrize("engines", ["ray-ray", "spark-ray", "ray-spark"])
def test_rows(both: Both, rays: dict[str, Driver], engines: str) -> None:
    mine = [(f"k{at % 700}", f"p{at % 900}", at) for at in range(2_000)]
    # Rows of this key are left out, but for what they match by the other one.
    mine += [("k2", f"p{at}", at) for at in range(5_000, 5_005)]
    theirs = [(f"k{2 * at}", f"p{3 * at}", at) for at in range(400)] * 2
    names = ("key", "other", "id")
    tables = {
        role: both.table(f"{engines}-{role}", dict(zip(names, map(list, zip(*rows)))))
        for role, rows in [("sender", theirs), ("receiver", mine)]
    }
    keys = {"key": "key", "or_": ["other"]}
    plan: dict[str, dict[str, Any]] = {"sender": {**keys, "payload": "id"}, "receiver": {**keys, "payload": True, "rule_column": "rule", "drop_repeated": 4}}
    answers = {}
    for role, engine in zip(ROLES, engines.split("-")):
        driver = rays[role] if engine == "ray" else both.driver(role)
        answers[role] = driver.start(both.told(role, engines, tables[role], {}, plan[role]))
    _, receiver = finish(answers)
    assert receiver["columns"] == ["key", "other", "id", "id_sender", "rule"]
    expected = []
    for key, other, at in mine:
        first, second = (int(one[1:]) for one in (key, other))
        if first % 2 == 0 and first < 800 and first != 2:
            expected.append([key, other, at, first // 2, 1])
        elif second % 3 == 0 and second < 1200:
            expected.append([key, other, at, second // 3, 2])
    assert sorted(receiver["rows"]) == sorted(expected)


@pytest.mark.parametrize("parents", [False, True])
def test_a_killed_worker(both: Both, rays: dict[str, Driver], parents: bool) -> None:
    run = f"ray-kill-{parents}"
    tables = {role: both.table(f"{run}-{role}", {"key": pa.array(keys, pa.int64())}) for role, keys in KEYS.items()}
    answers = {role: rays[role].start(both.told(role, run, tables[role], {}, {})) for role in ROLES}
    begun = both.work("receiver", run) / "begun"
    until(lambda: begun.exists() and len(list(begun.iterdir())) >= 2)
    victims = rays["receiver"].workers(parents)
    if not victims:
        pytest.skip("the workers had finished")
    os.kill(victims[0], signal.SIGKILL)
    _, receiver = finish(answers)
    assert sorted(row[0] for row in receiver["rows"]) == list(range(190_000, 200_000))
    assert max(receiver["report"]["result"]["attempts"]) > 1


@pytest.mark.parametrize(
    ("engines", "kind", "holder"), [("ray-ray", "mean", "sender"), ("ray-ray", "sum-product", "sender"), ("spark-ray", "sum", "receiver"), ("ray-spark", "count", "sender")]
)
def test_numbers_beside_sql(both: Both, rays: dict[str, Driver], engines: str, kind: str, holder: str) -> None:
    run = f"ray-total-{engines}-{kind}"
    rows = draw(run)
    some = tables(both, run, rows)
    groups = ["y", "z, w", "empty"]
    match = matches(kind, holder, groups=groups, minimum=5)
    match["receiver"]["group_by"] = "group, of"
    answers = {}
    for role, engine in zip(ROLES, engines.split("-")):
        driver = rays[role] if engine == "ray" else both.driver(role)
        answers[role] = driver.start(both.told(role, run, some[role], match[role], {}))
    sides = finish(answers)
    for answer in sides:
        assert list(answer["numbers"]["groups"]) == groups
        for group, numbers in answer["numbers"]["groups"].items():
            assert numbers["below_minimum"] == (group == "empty")
            if group != "empty":
                check(rows, kind, holder, numbers, f"g = '{group}'")
    assert sides[1]["report"]["result"]["rows_in_no_group"] == sum(one[2] in ("x", "none") for one in rows["receiver"])
    assert sides[0]["hash"] == sides[1]["hash"]


def test_a_minimum_that_is_not_reached_opens_nothing(both: Both, rays: dict[str, Driver]) -> None:
    run = "ray-total-minimum"
    rows: dict[str, Any] = {role: [(f"k{at}", 100, "x") for at in some] for role, some in zip(ROLES, (range(0, 60), range(40, 90)))}
    some, match = tables(both, run, rows), matches("sum", minimum=21)
    answers = {role: rays[role].start(both.told(role, run, some[role], match[role], {})) for role in ROLES}
    for answer in finish(answers):
        assert answer["numbers"] == {"count": None, "sum": None, "mean": None, "groups": None, "below_minimum": True}


@pytest.mark.parametrize("parents", [False, True])
def test_a_killed_worker_of_a_number(both: Both, rays: dict[str, Driver], parents: bool) -> None:
    run = f"ray-total-kill-{parents}"
    keys = {"sender": range(0, 60_000), "receiver": range(40_000, 100_000)}
    some = {role: both.table(f"{run}-{role}", {"key": pa.array(keys[role], pa.int64()), "v": pa.array(keys[role], pa.int64())}) for role in ROLES}
    match = matches("mean", bound=100_000, decimals=0)
    answers = {role: rays[role].start(both.told(role, run, some[role], match[role], {})) for role in ROLES}
    begun = both.work("receiver", run) / "begun"
    until(lambda: begun.exists() and len(list(begun.iterdir())) >= 3)
    victims = rays["receiver"].workers(parents)
    if victims:
        os.kill(victims[0], signal.SIGKILL)
    for answer in finish(answers):
        assert (answer["numbers"]["count"], answer["numbers"]["sum"]) == (20_000, str(sum(range(40_000, 60_000))))
    if not victims:
        pytest.skip("the workers had finished")


def test_rows_that_are_refused(both: Both, rays: dict[str, Driver]) -> None:
    match = {**OPTIONS, "result": "sum=v", "group_by": "group, of", "groups": ["x", "y"]}
    for name, rows, said in [
        ("large", [("a", 1, "x"), ("b", 20_001, "x")], 'column "v" of row'),
        ("sum", [("a", 20_000, "x"), ("a", 1, "x"), ("b", 1, "x")], "the rows of 1 key have values whose sum is beyond bound"),
        ("group", [("a", 1, "x"), ("a", 1, "y"), ("b", 1, "x"), ("b", 1, "")], "the rows of 2 keys are in different groups"),
    ]:
        told = both.told("sender", f"ray-refused-{name}", table(both, f"ray-refused-{name}", rows), match, {})
        answer = rays["sender"].start(told).result(120)
        assert answer["error"] == "DataError" and said in answer["message"], answer


def test_a_refused_plan_takes_the_earlier_one_away(both: Both, rays: dict[str, Driver]) -> None:
    match = {**OPTIONS, "result": "sum=v"}
    some = table(both, "ray-planned", [("a", 1, "x")])
    large = table(both, "ray-replanned", [("a", 20_000, "x"), ("a", 1, "x")])
    told = {**both.told("sender", "ray-replanned", some, match, {}), "refused": large}
    answer = rays["sender"].start(told).result(120)
    assert answer["error"] == "UsageError" and "call plan()" in answer["message"], answer
