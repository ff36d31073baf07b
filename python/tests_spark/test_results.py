"""What a match finds, beside plain joins and plain Python."""

from __future__ import annotations

import datetime
import decimal
import random
from typing import Any

import pyarrow as pa
import pytest
from both import Both, finish

SIZES = [(5_000, 7_000, 6_000), (40, 3_000, 50), (3, 5, 4), (1, 1, 1), (0, 50, 20), (50, 0, 20), (0, 0, 1)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_rows_equal_a_plain_join(both: Both, sizes: tuple[int, int, int]) -> None:
    left, right, keys = sizes
    random.seed(f"{sizes}")
    run = "join-" + "-".join(map(str, sizes))
    # One key in many rows, at both sides.
    def draw(size: int) -> list[str]:
        return [f"k{random.randrange(keys)}" if random.random() < 0.9 else "often" for _ in range(size)]

    tables = {
        "sender": both.table(f"{run}-s", {"key": pa.array(draw(left), pa.string())}),
        "receiver": both.table(f"{run}-r", {"key": pa.array(draw(right), pa.string()), "row": pa.array(range(right), pa.int64())}),
    }
    sender, receiver = finish(both.start(run, tables, other=tables["sender"]))
    assert sorted(receiver["rows"]) == sorted(receiver["joined"])
    assert sender["hash"] == receiver["hash"]
    assert sender["hash"] in sender["text"]
    assert sender["report"]["bytes_sent"] == receiver["report"]["bytes_received"]
    assert sender["report"]["result"]["rows"] == left


def rows(both: Both, run: str) -> tuple[dict[str, str], list[Any], list[Any]]:
    random.seed(run)

    def mail() -> str:
        return f"u{random.randrange(400)}@example.org"

    def phone() -> str:
        return f"+4930{random.randrange(100000, 100300)}"

    def maybe(value: Any) -> Any:
        return value if random.random() < 0.8 else None

    theirs = [(maybe(mail()), maybe(phone()), maybe(f"s{i % 7}"), maybe(i), i) for i in range(500)]
    mine = [(maybe(mail()), maybe(phone()), i) for i in range(700)]
    columns = zip(*theirs)
    names = [("email", pa.string()), ("phone", pa.string()), ("segment", pa.string()), ("n", pa.int64()), ("id", pa.int32())]
    sender = {name: pa.array(column, kind) for (name, kind), column in zip(names, columns)}
    receiver = {name: pa.array(column, kind) for (name, kind), column in zip([*names[:2], names[4]], zip(*mine))}
    # Written otherwise at the other side: the normalisers meet.
    receiver["email"] = pa.array([one and one.upper() + " " for one, _, _ in mine])
    tables = {"sender": both.table(f"{run}-s", sender), "receiver": both.table(f"{run}-r", receiver)}
    return tables, theirs, mine


SKIP = {"empty_keys": "skip", "malformed": "skip"}


@pytest.mark.parametrize("left", [False, True])
def test_rules_and_payload(both: Both, left: bool) -> None:
    run = f"rules-{left}"
    tables, theirs, mine = rows(both, run)
    keys = {"key": "email:email", "or_": ["phone:e164=DE"], **SKIP}
    plan = {
        "sender": {**keys, "payload": ["segment", "n", "id"]},
        "receiver": {**keys, "payload": True, "left": left, "rule_column": "rule"},
    }
    _, receiver = finish(both.start(run, tables, plan=plan))
    # The name `id` is taken.
    assert receiver["columns"] == ["email", "phone", "id", "segment", "n", "id_sender", "rule"]
    found = {row[2]: row for row in receiver["rows"]}
    assert len(found) == len(receiver["rows"])
    chosen: dict[Any, Any] = {}
    for email, phone, number in mine:
        values, rule = [], None
        for at, key in enumerate([email, phone]):
            values = [list(row[2:]) for row in theirs if key is not None and row[at] == key]
            if values:
                rule = at + 1
                break
        if rule is None:
            assert (number in found) == left
            assert not left or found[number][3:] == [None] * 4
            continue
        assert found[number][3:6] in values
        assert found[number][6] == rule
        # Of several rows of the sender the same one each time.
        assert chosen.setdefault((rule, email if rule == 1 else phone), found[number][3:6]) == found[number][3:6]


def test_types_of_the_payload(both: Both) -> None:
    now = datetime.datetime(2026, 5, 3, 12, 30, 1, 250, tzinfo=datetime.timezone.utc)
    values: dict[str, Any] = {
        "key": ["a", "b", "c"],
        "flag": [True, False, None],
        "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-3.00")], pa.decimal128(9, 2)),
        "day": [datetime.date(2026, 1, 2), None, datetime.date(1969, 1, 1)],
        "at": pa.array([now, None, now], pa.timestamp("us", "UTC")),
        "data": [b"\0\1", b"", None],
        "a, name": ["x", "", None],
        "f": [0.5, None, -1e300],
    }
    tables = {"sender": both.table("types-s", values), "receiver": both.table("types-r", {"key": ["c", "a", "b", "d"]})}
    names = list(values)[1:]
    plan = {"sender": {"payload": names}, "receiver": {"payload": True, "value_name": [f"their {name}" for name in names]}}
    _, receiver = finish(both.start("types", tables, plan=plan))
    assert receiver["columns"] == ["key", *(f"their {name}" for name in names)]
    assert receiver["types"][1:] == ["boolean", "decimal(38,2)", "date", "timestamp", "binary", "string", "double"] or receiver["types"][
        1:
    ] == ["boolean", "decimal(9,2)", "date", "timestamp", "binary", "string", "double"]
    found = {row[0]: row[1:] for row in receiver["rows"]}
    assert sorted(found) == ["a", "b", "c"]
    assert found["a"][:3] == [True, "1.10", "2026-01-02"]
    assert found["b"] == [False, None, None, None, found["b"][4], "", None]
    assert found["c"][5:] == [None, -1e300]


def test_keys_of_several_columns_and_odd_names(both: Both) -> None:
    sender = {"first name": ["Ann", "bea", "Cal"], "b.orn": ["1990", "1991", "1992"], "other": [1, 2, 3]}
    receiver = {"first name": ["ANN", "Bea", "cal"], "b.orn": ["1990", "1900", "1992"], "x`y": [7, 8, 9]}
    tables = {"sender": both.table("odd-s", sender), "receiver": both.table("odd-r", receiver)}
    plan = {"key": ["first name:name", "b.orn"]}
    _, found = finish(both.start("odd", tables, plan=plan))
    assert sorted(row[2] for row in found["rows"]) == [7, 9]


def test_memory_of_a_worker(both: Both) -> None:
    keys = 1 << 20
    tables = {}
    for role, first in [("sender", 0), ("receiver", keys // 2)]:
        tables[role] = both.table(f"memory-{role}", {"key": pa.array(range(first, first + keys), pa.int64())})
    # One shard, of the size that is the default for large tables.
    match = {"workers": 1, "shards": 1}
    plan = {"key": "key"}
    answers = {}
    for role in ("sender", "receiver"):
        told = both.told(role, "memory", tables[role], match, plan)
        told["sql"] = "select * from input"
        answers[role] = both.driver(role).start(told)
    sender, receiver = finish(answers, 400)
    assert len(receiver["rows"]) == keys // 2
    for one in (sender, receiver):
        assert one["report"]["peak_rss_bytes"] < 250 << 20
