"""One test for each kind of table that a call takes."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import volery
from parties import column, psi

THEIRS = ["bea", "cal", "dan"]
TABLE = {"id": [1, 2, 3], "key": ["ann", "bea", "dan"]}


def matches(data: Any, **options: Any) -> volery.Table:
    """What the receiver of `data` gets; rows 2 and 3 have to match."""
    _, receiver = volery.run_local(
        lambda session: session.psi(role="sender", data=THEIRS),
        lambda session: session.psi(role="receiver", data=data, key="key", **options),
    )
    assert receiver.rows is not None
    assert receiver.rows.num_rows == len(receiver.rows) == 2
    assert column(receiver) == ["bea", "dan"]
    return receiver.rows


def test_path_of_a_csv_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.csv"
    pa.csv.write_csv(pa.table(TABLE), path)
    assert matches(path).column_names == ["id", "key"]
    assert matches(str(path)).to_arrow()["id"].to_pylist() == ["2", "3"]


def test_path_of_a_parquet_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table(TABLE), path)
    assert matches(path).to_arrow()["id"].to_pylist() == [2, 3]


def test_list_of_paths(tmp_path: pathlib.Path) -> None:
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    table = pa.table(TABLE)
    pa.parquet.write_table(table.slice(0, 2), paths[0])
    pa.parquet.write_table(table.slice(2), paths[1])
    assert matches(paths).to_arrow()["id"].to_pylist() == [2, 3]


def test_list_of_texts() -> None:
    assert column(psi(THEIRS, ["dan", "ann"])[1]) == ["dan"]


def test_list_of_bytes() -> None:
    assert column(psi([b"\0\xff", b"a"], [b"a", b"\0\xff", b"\0"])[1]) == [b"a", b"\0\xff"]


def test_list_of_integers() -> None:
    assert column(psi([-1, 2**63 - 1, 0], [2**63 - 1, 7, -1])[1]) == [2**63 - 1, -1]


def test_list_of_other_things() -> None:
    for wrong in [[1.5], ["a", b"b"], [object()], 7]:
        with pytest.raises((TypeError, volery.Error)):
            psi(["a"], wrong)


def test_dict_of_lists() -> None:
    assert matches(TABLE).to_arrow().to_pydict() == {"id": [2, 3], "key": ["bea", "dan"]}


def test_polars_frame() -> None:
    rows = matches(pl.DataFrame(TABLE))
    assert rows.to_polars().equals(pl.DataFrame(TABLE)[1:])


def test_pyarrow_table() -> None:
    table = pa.table(TABLE, metadata={"of": "the sender"})
    assert matches(table).to_arrow().to_pydict() == {"id": [2, 3], "key": ["bea", "dan"]}


def test_pyarrow_record_batch_reader() -> None:
    batches = pa.table(TABLE).to_batches(max_chunksize=2)
    assert matches(pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))).num_rows == 2


def test_duckdb_relation() -> None:
    with duckdb.connect() as database:
        relation = database.sql("select * from (values (1, 'ann'), (2, 'bea'), (3, 'dan')) t(id, key) order by id")
        assert matches(relation).to_arrow()["id"].to_pylist() == [2, 3]


def test_pandas_frame() -> None:
    rows = matches(pd.DataFrame(TABLE))
    assert rows.to_pandas()["id"].tolist() == [2, 3]


def test_pandas_frame_of_numpy_arrays() -> None:
    frame = pd.DataFrame({"id": np.array([1, 2, 3], np.int16), "key": np.array(TABLE["key"], object)})
    assert matches(frame).to_arrow()["id"].to_pylist() == [2, 3]


def test_pandas_without_pyarrow() -> None:
    # As pandas 2 usually is: its frames have the method for Arrow, which fails.
    code = """
import sys
sys.modules["pyarrow"] = None
import pandas, volery
frame = pandas.DataFrame({"id": [1, 2, 3], "when": [1.5, None, 2.5], "key": pandas.Series(["ann", "bea", "dan"], dtype=object)})
_, got = volery.run_local(
    lambda session: session.psi(role="sender", data=["bea", "cal", "dan"]),
    lambda session: session.psi(role="receiver", data=frame, key="key"),
)
assert got.count == 2 and got.rows.column_names == ["id", "when", "key"], got
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_own_object_with_a_stream() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(TABLE).__arrow_c_stream__(requested_schema)

    assert matches(Stream()).num_rows == 2


def test_types_of_columns_stay() -> None:
    import datetime
    import decimal

    types = {
        "key": (pa.string(), ["ann", "bea", "dan"]),
        "flag": (pa.bool_(), [True, None, False]),
        "small": (pa.int8(), [1, -2, None]),
        "real": (pa.float64(), [1.5, None, 3.5]),
        "day": (pa.date32(), [None, datetime.date(1990, 5, 3), datetime.date(2026, 1, 1)]),
        "moment": (pa.timestamp("us", "UTC"), [None, datetime.datetime(1990, 5, 3, tzinfo=datetime.timezone.utc), None]),
        "price": (pa.decimal128(10, 2), [None, decimal.Decimal("1.25"), decimal.Decimal("-3.00")]),
        "bytes": (pa.binary(), [b"", b"\0", None]),
        "long": (pa.large_string(), ["", "x" * 1000, None]),
        "list": (pa.list_(pa.int32()), [[], [1, 2], None]),
        "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["x", "y", "x"]),
    }
    table = pa.table({name: pa.array(values, type) for name, (type, values) in types.items()})
    rows = matches(table).to_arrow()
    assert rows.to_pylist() == table.slice(1).to_pylist()


def test_rows_are_a_table_for_others() -> None:
    rows = matches(TABLE)
    assert pa.table(rows).equals(rows.to_arrow())
    assert pl.DataFrame(rows).equals(rows.to_polars())
    assert pa.schema(rows).names == rows.column_names
    with duckdb.connect() as database:
        database.register("found", rows)
        assert database.execute("select sum(id) from found").fetchone() == (5,)


def test_rows_of_no_match_have_columns() -> None:
    _, receiver = psi(["x"], {"id": [1], "key": ["y"]}, key="key")
    assert receiver.rows is not None
    assert receiver.rows.num_rows == 0
    assert receiver.rows.to_arrow().column_names == ["id", "key"]


@pytest.mark.parametrize(
    "keys",
    [
        pl.Series("mail, first", ["ann", "bea", "dan"]),
        pd.Series(["ann", "bea", "dan"], index=[7, 8, 9], name="mail"),
        pd.Index(["ann", "bea", "dan"]),
        pa.array(["ann", "bea", "dan"]),
        pa.chunked_array([["ann"], ["bea", "dan"]]),
        np.array(["ann", "bea", "dan"]),
        {"mail": np.array(["ann", "bea", "dan"], dtype=object)},
    ],
    ids=lambda keys: f"{type(keys).__module__}.{type(keys).__name__}",
)
def test_one_column_needs_no_name(keys: Any) -> None:
    _, receiver = psi(THEIRS, keys)
    assert receiver.indices is not None
    assert receiver.indices.tolist() == [1, 2]


def test_an_element_of_a_list_of_keys_is_one_column() -> None:
    table = {"name, full": ["ann", "Bea "], "n": [1, 2]}
    report = volery.lint(data=table, key=["name, full:trim+lower", "n"])
    assert report.result["rules"][0]["distinct"] == 2
    with pytest.raises(volery.DataError, match='no column "name"'):
        volery.lint(data=table, key="name, full:trim+lower")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"key": "ann"}, "is one str, not a list"),
        ({}, "has no column"),
        ([__file__], "names of files"),
        (pl.LazyFrame({"key": ["ann"]}), "LazyFrame has no rows"),
        (pd.DataFrame({"key": ["ann", "bea"], "mixed": ["1", 2]}), 'column "mixed": int in row 2'),
        ({"key": ["ann", "bea"], "n": [1]}, "has 1 values"),
        (np.zeros((2, 2)), "2 dimensions"),
        (7, "int is no table"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with pytest.raises(volery.UsageError, match=message):
        volery.plan(role="receiver", data=data, key="key")


def test_a_field_that_is_not_utf_8_is_found_before_the_run(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("key,name\nann,Zoe\nbea,Zo\u00eb\n".encode("latin-1"))
    with pytest.raises(volery.DataError, match="column 2 of row 2 is not UTF-8"):
        # Nobody listens: the table is read first.
        volery.psi(role="receiver", data=path, key="key", connect="127.0.0.1:9", wait=1)
    _, receiver = volery.run_local(
        lambda session: session.psi(role="sender", data=THEIRS),
        lambda session: session.psi(role="receiver", data=path, key="key", encoding="latin1"),
    )
    assert receiver.rows is not None
    assert receiver.rows.to_arrow()["name"].to_pylist() == ["Zo\u00eb"]


def test_a_table_without_rows_and_a_run_without_matches_are_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, receiver = psi([], ["ann"])
    assert receiver.count == 0
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert any("there is no row" in line for line in warnings)
    assert any("no row matches" in line and "volery.lint" in line for line in warnings)
