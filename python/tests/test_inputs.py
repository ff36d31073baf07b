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
