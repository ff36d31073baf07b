"""One test for each kind of table that a call takes."""

from __future__ import annotations

import datetime
import decimal
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Callable
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
from volery._data import table

THEIRS = ["bea", "cal", "dan"]
TABLE: dict[str, Any] = {"id": [1, 2, 3], "key": ["ann", "bea", "dan"]}


def matches(data: Any, **options: Any) -> volery.Table:
    """What the receiver of `data` gets; rows 2 and 3 have to match."""
    _, receiver = volery.run_local(
        lambda session: session.psi(role="sender", data=THEIRS),
        lambda session: session.psi(role="receiver", data=data, key="key", **options),
    )
    assert receiver.rows is not None
    rows: volery.Table = receiver.rows
    assert rows.num_rows == len(rows) == 2
    assert column(receiver) == ["bea", "dan"]
    return rows


def test_path_of_a_csv_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.csv"
    pa.csv.write_csv(pa.table(TABLE), path)
    assert matches(path).columns == ["id", "key"]
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


DAY, MOMENT = datetime.date(1969, 12, 31), datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)
PRICE, NUMBER = decimal.Decimal("-1.50"), uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([DAY, None, datetime.date(2026, 11, 28)], pa.date32()),
        ([MOMENT, datetime.datetime(1969, 1, 1)], pa.timestamp("us")),
        ([MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))], pa.timestamp("us", "UTC")),
        ([PRICE, None, decimal.Decimal("1E+3"), decimal.Decimal(7)], pa.decimal128(38, 2)),
        ([decimal.Decimal("-" + "1234567890" * 3 + "123456.78")], pa.decimal128(38, 2)),
        (np.array(["2026-01-02", "NaT"], "datetime64[D]"), pa.date32()),
        (np.array(["2026-01-02T03:04:05.123456"], "datetime64[ns]"), pa.timestamp("us")),
        ([b"\0", None], pa.large_binary()),
    ],
)
def test_lists_of_values_of_python(values: Any, expected: pa.DataType) -> None:
    _, source, _ = table(values)
    made = pa.table(source).column("key")
    assert made.type == expected
    assert made.to_pylist() == pa.array(values).cast(expected).to_pylist()


def test_values_of_python_are_keys() -> None:
    for key, other in [(DAY, datetime.date(2026, 1, 1)), (PRICE, decimal.Decimal(0)), (MOMENT, datetime.datetime.min)]:
        # The peer's table has the type from elsewhere.
        _, receiver = psi(pa.table({"key": [key]}), [other, key], key="key")
        assert receiver.indices is not None and receiver.indices.tolist() == [1]
    _, receiver = psi([str(NUMBER)], [uuid.uuid4(), NUMBER])
    assert column(receiver) == [str(NUMBER)]


def test_values_keep_their_types_in_a_lookup() -> None:
    zoned = MOMENT.replace(tzinfo=datetime.timezone.utc)
    sent: dict[str, Any] = {
        "date": pa.array([DAY], pa.date32()),
        "date64": pa.array([DAY], pa.date64()),
        "decimal": pa.array([PRICE]),
        "uuid": pa.array([NUMBER.bytes], pa.uuid()),
        "zoned": pa.array([zoned], pa.timestamp("us", "Europe/Berlin")),
        "seconds": pa.array([MOMENT], pa.timestamp("s")),
        "large": pa.array([2**64 - 1], pa.uint64()),
        "half": pa.array([1.5], pa.float16()),
    }
    data = pa.table({"key": ["k"], **sent})
    _, receiver = volery.run_local(
        lambda session: session.lookup(role="sender", data=data, key="key", value=list(sent)),
        lambda session: session.lookup(role="receiver", data=data, key="key"),
    )
    assert receiver.rows is not None
    found = receiver.rows.to_arrow()
    for name, column in sent.items():
        for one in (name, name + "_sender"):
            assert (found[one].type, found[one].to_pylist()) == (column.type, column.to_pylist()), one


@pytest.mark.parametrize(
    "keys",
    [
        lambda: (key for key in TABLE["key"]),
        lambda: iter(TABLE["key"]),
        lambda: dict.fromkeys(TABLE["key"]).keys(),
        lambda: {"key": (key for key in TABLE["key"])},
        lambda: {"key": map(str, TABLE["key"]), "id": range(3)},
    ],
)
def test_iterators(keys: Callable[[], Any]) -> None:
    _, receiver = psi(THEIRS, keys(), key="key")
    assert column(receiver) == ["bea", "dan"]


def test_list_of_other_things() -> None:
    too_long = decimal.Decimal(10**38)
    nanoseconds = np.array(["2026-01-02T03:04:05.123456789"], "datetime64[ns]")
    for wrong in [[1.5], ["a", b"b"], nanoseconds, [object()], 7, [DAY, MOMENT], [MOMENT, DAY], [DAY, "x"], [PRICE, 0.5], [too_long], [decimal.Decimal("1E+999999")],
                  [decimal.Decimal("NaN")], [MOMENT, MOMENT.replace(tzinfo=datetime.timezone.utc)]]:
        with pytest.raises((TypeError, volery.Error)):
            table(wrong)
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
        with pytest.raises(volery.DataError, match="DuckDBPyConnection is no table"):
            volery.lint(data=database, key="key")


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
assert got.count == 2 and got.rows.columns == ["id", "when", "key"], got
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_own_object_with_a_stream() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table(TABLE).__arrow_c_stream__(requested_schema)

    assert matches(Stream()).num_rows == 2


def test_types_of_columns_stay() -> None:
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
    given = pa.table({name: pa.array(values, type) for name, (type, values) in types.items()})
    rows = matches(given).to_arrow()
    assert rows.to_pylist() == given.slice(1).to_pylist()


def test_rows_are_a_table_for_others() -> None:
    rows = matches(TABLE)
    assert pa.table(rows).equals(rows.to_arrow())
    assert pl.DataFrame(rows).equals(rows.to_polars())
    pd.testing.assert_frame_equal(pd.DataFrame(rows), pd.DataFrame(rows.to_arrow().to_pydict()))
    assert pa.schema(rows).names == rows.columns
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
        (pd.DataFrame({"key": ["ann", "bea"], "mixed": ["1", 2]}), 'column "mixed": int in row 2'),
        ({"key": ["ann", "bea"], "n": [1]}, "has 1 values"),
        (np.zeros((2, 2)), "2 dimensions"),
        (7, "int is no table"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, message: str) -> None:
    with pytest.raises(volery.UsageError, match=message):
        volery.plan(role="receiver", data=data, key="key")


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (pl.LazyFrame({"key": ["ann"]}), "collect"),
        (pl.col("key"), "select"),
        (pl.DataFrame({"key": ["ann"]}).group_by("key"), "agg"),
        (pd.DataFrame({"key": ["ann"]}).groupby("key"), "agg"),
    ],
)
def test_a_query_is_no_table(data: Any, hint: str) -> None:
    with pytest.raises(volery.DataError, match="is no table") as caught:
        volery.plan(role="receiver", data=data, key="key")
    assert caught.value.hint is not None and hint in caught.value.hint


def test_a_delta_table_is_its_newest_version() -> None:
    sample = pathlib.Path(__file__).parents[2] / "crates/tables/tests/samples/delta"
    assert volery.lint(data=sample, key="id").n == 4
    _, receiver = volery.run_local(
        lambda session: session.psi(role="sender", data=[1, 2, 5, 6]),
        lambda session: session.psi(role="receiver", data=sample, key="id"),
    )
    # The rows of 2 and 5 were deleted; their files are still there.
    assert receiver.rows is not None
    assert sorted(receiver.rows.to_arrow()["id"].to_pylist()) == [1, 6]


@pytest.mark.parametrize(
    "data",
    [
        pl.DataFrame({"k": ["a"], "v": pl.Series([object()], dtype=pl.Object)}),
        pl.DataFrame({"k": ["a"], "v": pl.Series([1], dtype=pl.Int128)}),
        pl.Series("v", [uuid.uuid4()], dtype=pl.Object),
    ],
)
def test_a_dtype_without_values_for_others_is_refused(data: Any) -> None:
    with pytest.raises(volery.DataError, match="column 'v' has"):
        volery.plan(role="sender", data=data, key="k")
    with pytest.raises(volery.DataError, match="column 'v' has"):
        volery.lint(data=data, key="k")


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
