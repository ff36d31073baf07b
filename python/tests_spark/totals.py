"""Tables with values and groups, and what SQL says of them."""

from __future__ import annotations

import decimal
import random
import sqlite3
from typing import Any

from both import ROLES, Both

#: Key, value in cents, group; of a key in several rows one group.
Row = tuple[str, int, str]

#: What most of these matches have.
OPTIONS: dict[str, Any] = {"bound": "200", "decimals": 2, "minimum": 0, "to": "both"}
KINDS = ("count", "sum", "mean", "sum-product")


def draw(name: str, left: int = 3_000, right: int = 4_000, keys: int = 2_500) -> dict[str, list[Row]]:
    """Rows of both sides; some keys are in many rows, some rows have no key."""
    random.seed(name)

    def row() -> Row:
        key = random.randrange(keys) if random.random() < 0.95 else 7
        # The sum of a key stays within the bound.
        return (f"k{key}", random.randrange(-60, 60), ["x", "y", "z, w", "none"][key % 4])

    return {"sender": [row() for _ in range(left)], "receiver": [row() for _ in range(right)]}


def table(both: Both, name: str, rows: list[Row]) -> str:
    keys, cents, groups = ([one[at] for one in rows] for at in range(3))
    values = [decimal.Decimal(one).scaleb(-2) for one in cents]
    return both.table(name, {"key": keys, "v": [str(one) for one in values], "group, of": groups, "idle": [1] * len(rows)})


def tables(both: Both, name: str, rows: dict[str, list[Row]]) -> dict[str, str]:
    return {role: table(both, f"{name}-{role}", rows[role]) for role in ROLES}


def sql(rows: dict[str, list[Row]], what: str, group: str = "1") -> tuple[int, int]:
    """Number of common keys, and the sum of `what`, in which `s` and `r` are the values of the two sides in cents."""
    database = sqlite3.connect(":memory:")
    for role in ROLES:
        database.execute(f"create table {role}_rows (k text, v integer, g text)")
        database.executemany(f"insert into {role}_rows values (?, ?, ?)", rows[role])
        keys = f"select k, sum(v) as v, max(g) as g from {role}_rows group by k"
        database.execute(f"create table {role} as {keys}")
    names = "(select s.k, s.v as s, r.v as r, s.g as g from sender s join receiver r on s.k = r.k)"
    found = database.execute(f"select count(*), coalesce(sum({what}), 0) from {names} where {group}").fetchone()
    return int(found[0]), int(found[1])


def results(kind: str, holder: str = "sender") -> dict[str, dict[str, Any]]:
    """The argument `result` of each side."""
    if kind in ("count", "sum-product"):
        return {role: {"result": kind + ("=v,v" if kind == "sum-product" else "")} for role in ROLES}
    return {role: {"result": f"{kind}=v" if role == holder else kind} for role in ROLES}


def matches(kind: str, holder: str = "sender", **more: Any) -> dict[str, dict[str, Any]]:
    """The arguments of `Match` of each side."""
    options = {**OPTIONS, **more}
    if kind == "count":
        del options["bound"], options["decimals"]
    return {role: {**one, **options} for role, one in results(kind, holder).items()}


def check(rows: dict[str, list[Row]], kind: str, holder: str, found: dict[str, Any], group: str = "1") -> None:
    """The numbers of a side that gets them."""
    what = {"sum-product": "s * r"}.get(kind, holder[0])
    count, units = sql(rows, what, group)
    expected = decimal.Decimal(units).scaleb(-4 if kind == "sum-product" else -2)
    assert found["count"] == (count if kind in ("count", "mean") else None)
    assert found["sum"] == (None if kind == "count" else str(expected))
    if kind == "mean" and count:
        assert abs(found["mean"] - float(expected) / count) < 1e-9
