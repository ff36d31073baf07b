"""`psi` and `lookup` beside sets and SQL, for tables that hypothesis makes."""

from __future__ import annotations

import pathlib
import re
import sqlite3
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import volery
from hypothesis import given, settings
from hypothesis import strategies as st
from parties import column, psi

few = settings(deadline=None, max_examples=15)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
# Few different values, so that there are matches and duplicates.
names = st.sampled_from(["ann", "bea", "cal", "dan", "eve", "Ann", "ann ", "é"])
numbers = st.integers(-3, 3)


@few
@given(st.lists(texts | names, min_size=1), st.lists(texts | names, min_size=1))
def test_texts_beside_a_set(left: list[str], right: list[str]) -> None:
    sender, receiver = psi(left, right)
    expected = [key for key in right if key in set(left)]
    assert column(receiver) == expected
    assert receiver.count == len(expected)
    assert sender.rows is None


@few
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | numbers, min_size=1), st.lists(numbers, min_size=1))
def test_integers_beside_a_set(left: list[int], right: list[int]) -> None:
    _, receiver = psi(left, right)
    assert column(receiver) == [key for key in right if key in set(left)]


@few
@given(st.lists(st.binary(min_size=1, max_size=3), min_size=1), st.lists(st.binary(min_size=1, max_size=2), min_size=1))
def test_bytes_beside_a_set(left: list[bytes], right: list[bytes]) -> None:
    _, receiver = psi(left, right)
    assert column(receiver) == [key for key in right if key in set(left)]


@few
@given(st.lists(names, min_size=1), st.lists(names, min_size=1))
def test_indices_and_both(left: list[str], right: list[str]) -> None:
    sender, receiver = psi(left, right, both=True, output="indices")
    for match, mine, other in [(sender, left, right), (receiver, right, left)]:
        assert match.rows is None
        assert match.indices is not None
        assert match.indices.dtype == np.uint64
        assert match.indices.tolist() == [at for at, key in enumerate(mine) if key in set(other)]
        assert match.count == len(match.indices)


def table(name: str, rows: list[tuple[Any, ...]], database: sqlite3.Connection) -> pa.Table:
    """The rows as an Arrow table, and as a table of the data base."""
    database.execute(f"create table {name} (name text, number integer, value text)")
    database.executemany(f"insert into {name} values (?, ?, ?)", rows)
    columns = [pa.array([row[at] for row in rows], type) for at, type in enumerate([pa.string(), pa.int64(), pa.string()])]
    return pa.table(columns, names=["name", "number", "value"])


rows = st.lists(st.tuples(names, numbers, texts | st.none()), min_size=1, max_size=12)


@few
@given(rows, rows)
def test_a_compound_key_beside_sql(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> None:
    database = sqlite3.connect(":memory:")
    tables = table("l", left, database), table("r", right, database)
    _, receiver = psi(*tables, key="name,number")
    expected = database.execute(
        """select name, number, value from r
        where exists (select * from l where l.name = r.name and l.number = r.number) order by rowid"""
    ).fetchall()
    assert receiver.rows is not None
    assert [tuple(row.values()) for row in receiver.rows.to_arrow().to_pylist()] == expected


def test_further_keys_are_written_as_the_first() -> None:
    sender = {"id": [1, 2, 3], "first": ["a", "b", "c"], "last": ["x", "y", "z"], "mail,work": ["p", "q", "r"]}
    receiver = {"id": [9, 8, 7], "first": ["a", "b", "n"], "last": ["x", "n", "z"], "mail,work": ["n", "q", "n"]}

    def found(or_: object) -> list[tuple[int, int]]:
        _, result = psi(sender, receiver, key="id", or_=or_, output="indices")
        assert result.indices is not None and result.rules is not None
        return list(zip(result.indices.tolist(), result.rules.tolist()))

    assert found([["first", "last"]]) == found("first,last") == [(0, 2)]
    assert found([["first"], ["last"]]) == [(0, 2), (1, 2), (2, 3)]
    assert found(["first"]) == found("first") == [(0, 2), (1, 2)]
    assert found(["last", ["first", "mail,work"]]) == [(0, 2), (1, 3), (2, 2)]
    with pytest.raises(volery.UsageError, match="may mean one key of 2 columns, or 2 keys") as refused:
        found(["first", "last"])
    assert refused.value.hint == "one key: or_=[['first', 'last']]; 2 keys: or_=[['first'], ['last']]"


@few
@given(rows, rows)
def test_rules_beside_sql(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> None:
    database = sqlite3.connect(":memory:")
    tables = table("l", left, database), table("r", right, database)
    _, receiver = psi(*tables, key="name", or_=[["number"]], output="indices")
    expected = database.execute(
        """select at, rule from (select rowid - 1 as at, case
            when name in (select name from l) then 1 when number in (select number from l) then 2 end as rule from r)
        where rule is not null order by at"""
    ).fetchall()
    assert receiver.indices is not None and receiver.rules is not None
    assert receiver.rules.dtype == np.uint32
    assert list(zip(receiver.indices.tolist(), receiver.rules.tolist())) == expected


@few
@given(rows, rows, st.booleans())
def test_lookup_beside_sql(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], keep: bool) -> None:
    database = sqlite3.connect(":memory:")
    tables = table("l", left, database), table("r", right, database)
    _, receiver = volery.run_local(
        lambda session: session.lookup(role="sender", data=tables[0], key="name", value=["value", "number"]),
        lambda session: session.lookup(
            role="receiver", data=tables[1], key="name", left=keep, value_name=["theirs", "count"]
        ),
    )
    # Of several rows of the sender with one key the first counts.
    expected = database.execute(
        f"""select r.name, r.number, r.value, f.value, f.number from r {'left' if keep else ''} join
        (select * from l where rowid in (select min(rowid) from l group by name)) f on f.name = r.name
        order by r.rowid"""
    ).fetchall()
    assert receiver.rows is not None
    assert receiver.rows.columns == ["name", "number", "value", "theirs", "count"]
    assert [tuple(row.values()) for row in receiver.rows.to_arrow().to_pylist()] == expected


@pytest.mark.parametrize(("duplicates", "expected"), [(None, [3, 1]), ("keep", [3, 1]), ("dedup", [])])
def test_a_lookup_warns_of_rows_that_it_does_not_send(
    duplicates: Literal["keep", "dedup"] | None, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    shop = {"key": ["a", "b", "a", "a", "b"], "other": [1, 1, 2, 3, 4], "n": [1, 2, 3, 4, 5]}
    table = {"key": ["a", "x", "a"], "other": [9, 8, 7]}
    _, receiver = volery.run_local(
        lambda session: session.lookup(role="sender", data=shop, key="key", or_=["other"], value="n", duplicates=duplicates),
        lambda session: session.lookup(role="receiver", data=table, key="key", or_=["other"]),
    )
    assert column(receiver, "n") == [1, 1]
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    told = [line for line in warnings if "an earlier row has the same key" in line]
    assert [int(found[1]) for line in told if (found := re.search(r"columns of (\d+) rows? ", line))] == expected


def test_rows_go_to_a_file(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "common.csv"
    _, receiver = volery.run_local(
        lambda session: session.psi(role="sender", data=["ann", "bea"]),
        lambda session: session.psi(role="receiver", data=["bea", "cal"], out=out),
    )
    assert receiver.rows is None
    assert out.read_text() == "key\nbea\n"


@pytest.mark.parametrize("protocol", ["vole", "dh", "kkrt"])
def test_protocols(protocol: str) -> None:
    security = "semi-honest" if protocol == "kkrt" else "malicious"
    left, right = list(range(0, 3000, 2)), list(range(0, 3000, 3))
    _, receiver = psi(left, right, protocol=protocol, security=security)
    assert column(receiver) == list(range(0, 3000, 6))
    assert receiver.report.security == security


def test_a_table_in_buckets() -> None:
    left, right = list(range(0, 60_000, 2)), list(range(0, 60_000, 3))
    _, receiver = psi(left, right, buckets=3)
    assert column(receiver) == list(range(0, 60_000, 6))


def test_normalisers() -> None:
    _, receiver = psi({"mail": ["Ada@Example.org"]}, {"mail": ["ada@example.org ", "x@example.org"]}, key="mail:email")
    assert column(receiver, "mail") == ["ada@example.org "]


def test_empty_keys() -> None:
    with pytest.raises(volery.DataError, match="row"):
        psi(["ann"], {"key": ["ann", None]}, key="key")
    _, receiver = psi(["ann"], {"key": [None, "ann"]}, key="key", empty_keys="skip")
    assert column(receiver) == ["ann"]
