"""Makes tests/samples/*.parquet: files written by pyarrow, with types that the tests of this crate do not write; and
tests/samples/delta: a Delta table written by delta-rs, with a checkpoint and without the commits before it.

Run with pyarrow and deltalake installed: python3 make_samples.py
"""

import datetime as dt
import decimal
import pathlib
import shutil

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).parent / "samples"
UTC = dt.timezone.utc
MOMENT = dt.datetime(2021, 3, 4, 5, 6, 7, 891000)


def column(kind, *values):
    return pa.array(values, kind)


COLUMNS = {
    "id": column(pa.int32(), 1, 2, 3),
    "large": column(pa.large_string(), "a", "é", None),
    "view": column(pa.string_view(), "a string that is longer than a view holds", "", None),
    "dictionary": column(pa.string(), "x", "y", "x").dictionary_encode(),
    "large_binary": column(pa.large_binary(), b"\x00\xff", b"", None),
    "fixed": column(pa.binary(3), b"abc", b"\x01\x02\x03", None),
    "int8": column(pa.int8(), -128, 127, None),
    "uint8": column(pa.uint8(), 0, 255, None),
    "int16": column(pa.int16(), -32768, 32767, None),
    "uint16": column(pa.uint16(), 0, 65535, None),
    "uint32": column(pa.uint32(), 0, 2**32 - 1, None),
    "uint64": column(pa.uint64(), 0, 2**64 - 1, None),
    "boolean": column(pa.bool_(), True, False, None),
    "date": column(pa.date32(), dt.date(1969, 12, 31), dt.date(2024, 2, 29), None),
    "half": column(pa.float32(), 1.5, -2.0, None).cast(pa.float16()),
    "float": column(pa.float32(), 0.1, 1e20, None),
    "double": column(pa.float64(), 0.1, 1e-7, None),
    "decimal": column(pa.decimal128(9, 2), decimal.Decimal("-0.05"), decimal.Decimal("1234567.89"), None),
    "wide": column(pa.decimal256(50, 3), decimal.Decimal("-1.234"), decimal.Decimal(10**46), None),
    "seconds": column(pa.timestamp("s"), MOMENT.replace(microsecond=0), dt.datetime(1969, 1, 1), None),
    "millis": column(pa.timestamp("ms"), MOMENT, dt.datetime(1969, 1, 1), None),
    "zoned": column(pa.timestamp("us", "Europe/Vienna"), MOMENT.replace(tzinfo=UTC), dt.datetime(1969, 1, 1, tzinfo=UTC), None),
    "nanos": pa.array([1, 10**9, None], pa.int64()).cast(pa.timestamp("ns")),
    "time_ms": column(pa.time32("ms"), dt.time(1, 2, 3), dt.time(23, 59, 59, 999000), None),
    "time_us": column(pa.time64("us"), dt.time(1, 2, 3, 4), dt.time(0), None),
    "time_ns": pa.array([1, 0, None], pa.int64()).cast(pa.time64("ns")),
    "null": column(pa.null(), None, None, None),
}
NESTED = {
    "id": column(pa.string(), "a", "b", "c", "d"),
    "list": column(pa.list_(pa.int64()), [1, None], None, [], [2, 3]),
    "struct": column(
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
        {"a": 1, "b": ["x", "y"]},
        {"a": None, "b": None},
        None,
        {"a": 4, "b": [None]},
    ),
    "map": column(pa.map_(pa.string(), pa.float64()), [("k", 1.0)], [], None, [("l", None)]),
    "deep": column(pa.list_(pa.list_(pa.int8())), [[1], []], [[2, 3], None], None, [[]]),
}

FOLDER.mkdir(exist_ok=True)
pq.write_table(pa.table(COLUMNS), FOLDER / "types.parquet")
pq.write_table(
    pa.table({name: COLUMNS[name] for name in ["id", "large", "millis", "nanos"]}),
    FOLDER / "int96.parquet",
    use_deprecated_int96_timestamps=True,
    version="1.0",
)
pq.write_table(
    pa.table({name: COLUMNS[name] for name in ["id", "large", "fixed", "uint64", "double", "boolean"]}),
    FOLDER / "version2.parquet",
    data_page_version="2.0",
    use_dictionary=False,
    column_encoding={
        "id": "DELTA_BINARY_PACKED",
        "large": "DELTA_BYTE_ARRAY",
        "fixed": "BYTE_STREAM_SPLIT",
        "uint64": "DELTA_BINARY_PACKED",
        "double": "BYTE_STREAM_SPLIT",
        "boolean": "RLE",
    },
    compression="zstd",
)
pq.write_table(pa.table(NESTED), FOLDER / "nested.parquet", compression="gzip", row_group_size=3)


def delta(folder):
    """Version 4 has the ids 1, 3, 4 and 6; the files of ids 2 and 5 are still there."""
    def rows(ids, zone, **more):
        zones = pa.array([zone] * len(ids), pa.string())
        names = [f"n{i}" for i in ids]
        return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "zone": zones, **more})

    shutil.rmtree(folder, ignore_errors=True)
    deltalake.write_deltalake(folder, rows([1, 2, 3], "b/c 100%"), partition_by=["zone"])
    deltalake.write_deltalake(folder, rows([4, 5], None), mode="append")
    deltalake.DeltaTable(folder).delete("id = 2")
    deltalake.DeltaTable(folder).create_checkpoint()
    born = pa.array([0], pa.date32())
    deltalake.write_deltalake(folder, rows([6], "x", born=born), mode="append", schema_mode="merge")
    deltalake.DeltaTable(folder).delete("id = 5")
    for version in range(3):
        (folder / f"_delta_log/{version:020}.json").unlink()


delta(FOLDER / "delta")
