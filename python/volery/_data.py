"""Tables as callers have them, in the form that the extension reads."""

from __future__ import annotations

import datetime
import decimal
import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy

from volery import _volery
from volery._calls import quoted
from volery._errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


class ArrowStream(Protocol):
    """Anything with Arrow's stream interface: polars, pyarrow, DuckDB, pandas 3, arro3."""

    def __arrow_c_stream__(self, requested_schema: object = None, /) -> object: ...


#: The table of a side: a path or several; an object with Arrow's stream interface; a pandas frame;
#: lists by the names of their columns; the values of one column, which is called ``key``. A list has
#: values of one kind and None: str, bytes, int, float, bool, Decimal, date, datetime or UUID.
Data = Union[
    str,
    "os.PathLike[str]",
    "Sequence[os.PathLike[str]]",
    ArrowStream,
    "Mapping[str, Iterable[Any]]",
    "Iterable[Any]",
    "numpy.ndarray[Any, Any]",
    Any,
]

#: The column of a list.
KEY = "key"


def table(data: object) -> tuple[list[str], Any, str | None]:
    """Paths, or an object for the extension, and its column if that can only be the key."""
    if data is None:
        raise UsageError("data: required", "a path, a table, or a list of keys")
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)], None, None
    if isinstance(data, Mapping):
        lists = [(str(name), values) for name, values in data.items()]
        only = quoted(lists[0][0]) if len(lists) == 1 else None
        return [], _columns(lists), only
    _refuse_no_table(data)
    if isinstance(data, (Iterator, Set, ValuesView, range)) and not hasattr(data, "__arrow_c_stream__"):
        data = list(data)
    if isinstance(data, (list, tuple)):
        if data and all(isinstance(one, os.PathLike) for one in data):
            return [os.fspath(one) for one in data], None, None
        if data and len(data) < 1000 and all(map(_is_file, data)):
            raise UsageError(
                "data: a list of str is a list of keys, and these are names of files",
                "give pathlib.Path(..) for each file",
            )
        return [], _columns([(KEY, data)]), KEY
    if isinstance(data, numpy.ndarray):
        if data.ndim != 1:
            raise UsageError(f"data: an array of {data.ndim} dimensions; give one, or a table")
        return [], _columns([(KEY, _listed(data))]), KEY
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):
        # A series of polars or pandas, or an index of pandas.
        name = str(getattr(data, "name", None) or KEY)
        series = data.to_series() if hasattr(data, "to_series") else data
        frame = series.to_frame(name)
        if hasattr(frame, "reset_index"):
            frame = frame.reset_index(drop=True)
        return [], _arrow(frame), quoted(name)
    if type(data).__module__.startswith("pyarrow") and not hasattr(data, "schema"):
        import pyarrow

        return [], _arrow(pyarrow.table({KEY: data})), KEY
    return [], _arrow(data), None


def _is_file(name: object) -> bool:
    return isinstance(name, str) and "\0" not in name and os.path.isfile(name)


#: Objects of polars, pandas and DuckDB that are no tables, and what makes one of them.
_NO_TABLES = {
    "LazyFrame": "data=frame.collect()",
    "Expr": "data=frame.select(..), with the expression in it",
    "GroupBy": "data=frame, or the table that .agg(..) makes",
    "DuckDBPyConnection": 'data=connection.sql("SELECT ..")',
}


def _refuse_no_table(data: object) -> None:
    name, package = type(data).__name__, type(data).__module__.partition(".")[0]
    # Such as DataFrameGroupBy and LazyGroupBy.
    hint = _NO_TABLES.get("GroupBy" if name.endswith("GroupBy") else name)
    if hint is not None and package in ("polars", "pandas", "duckdb", "_duckdb"):
        raise DataError(f"data: {name} is no table: it has no rows yet", hint)


def _arrow(data: Any) -> Any:
    # polars hands on the addresses of Python objects as if they were values.
    for name, dtype in _polars_schema(data):
        if _has_objects(dtype):
            raise DataError(
                f"data: column {name!r} has the dtype Object: polars has no values of it, only objects",
                "cast it, such as df.with_columns(pl.Series(name, [str(one) for one in df[name]]))",
            )
    failed = None
    if hasattr(data, "__arrow_c_stream__"):
        try:
            # Taken here, so that what follows knows whether there is one.
            taken = _Taken(data.__arrow_c_stream__())
        except Exception as error:
            # pandas makes its stream by pyarrow, which may be missing, or refuse a column. The text
            # of the error may hold a value.
            failed = type(error).__name__
        else:
            try:
                return _volery.Batches(taken)
            except ValueError as error:
                raise DataError(_unknown_type(data, error), "cast it, or leave it out") from None
    if hasattr(data, "columns") and hasattr(data, "items"):
        return _columns([(str(name), _plain(column)) for name, column in data.items()])
    if failed is not None:
        raise DataError(f"data: {type(data).__name__} gave no Arrow stream: {failed}")
    raise UsageError(
        f"data: {type(data).__name__} is no table",
        "a path, a list of keys, or a table of polars, pyarrow, DuckDB or pandas",
    )


def _polars_schema(data: Any) -> list[tuple[str, Any]]:
    """Names and dtypes of a frame of polars, nothing of other tables."""
    polars = sys.modules.get("polars")
    if polars is None or not isinstance(data, polars.DataFrame):
        return []
    return list(data.schema.items())


def _has_objects(dtype: Any) -> bool:
    if str(dtype) == "Object":
        return True
    inner = [getattr(dtype, "inner", None)]
    inner += [field.dtype for field in getattr(dtype, "fields", None) or []]
    return any(_has_objects(one) for one in inner if one is not None)


def _unknown_type(data: Any, error: Exception) -> str:
    """Which column of a table has a type that the extension does not know."""
    for name in getattr(data, "columns", None) or []:
        try:
            _volery.Batches(data.select([name]))
        except ValueError:
            dtype = f" {data[name].dtype}" if hasattr(data[name], "dtype") else ""
            return f"data: column {name!r} has a type{dtype} that cannot be read"
        except Exception:  # noqa: BLE001
            # A table whose columns cannot be had alone.
            break
    return f"data: a column has a type that cannot be read: {error}"


class _Taken:
    """A stream that was taken from its object already."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsule


def _plain(column: Any) -> list[object]:
    """The values of a column of pandas, None where one is missing."""
    if getattr(column.dtype, "kind", "O") in "Mm":
        raise UsageError(
            f"data: column {column.name!r} has dates: pandas hands them on by pyarrow only",
            "install pyarrow, or write them as text: column.dt.strftime(..)",
        )
    missing = column.isna()
    values: list[object] = column.astype(object).where(~missing, None).tolist()
    return values


def _listed(values: Any) -> Sequence[object]:
    """The values of a column as a list; NaN among objects of an array means that one is missing."""
    if not isinstance(values, numpy.ndarray):
        return values if isinstance(values, (list, tuple, range)) else list(values)
    if values.dtype.kind == "M" and numpy.datetime_data(values.dtype)[0] != "D":
        # Python has no nanoseconds: as they are, they would become integers.
        rounded = values.astype("datetime64[us]")
        if not numpy.array_equal(rounded.astype(values.dtype), values, equal_nan=True):
            raise DataError(
                "data: an array has fractions of a microsecond, which Python's datetime has not",
                "give it as a column of a table of pyarrow or polars",
            )
        values = rounded
    listed: list[object] = values.tolist()
    if values.dtype == object:
        return [None if isinstance(one, float) and one != one else one for one in listed]
    return listed


_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)


def _number(value: Any, first: Any, places: int) -> int:
    """A date or decimal number as a whole number: see `Kind` of the extension."""
    if isinstance(first, decimal.Decimal):
        # Before it becomes an integer, which may be too large for the memory.
        if value.adjusted() + places >= 38:
            raise ValueError("a decimal number has more than 38 digits")
        return int(value.scaleb(places, decimal.Context(prec=38)))
    if not isinstance(first, datetime.datetime):
        if isinstance(value, datetime.datetime):
            raise TypeError("a date with a time is among dates")
        return int(value.toordinal()) - _EPOCH.toordinal()
    epoch = _EPOCH if first.tzinfo is None else _EPOCH.replace(tzinfo=datetime.timezone.utc)
    return int((value - epoch) // _MICROSECOND)


def _typed(name: str, values: Sequence[Any]) -> tuple[str, Sequence[object], tuple[str, int] | None]:
    """A column as the extension takes it: values of Python's own types are whole numbers or text."""
    first = next((one for one in values if one is not None), None)
    places = 0
    if isinstance(first, uuid.UUID):
        return name, [one and str(one) for one in values], None
    if isinstance(first, datetime.datetime):
        kind = "datetime" if first.tzinfo is None else "timestamp"
    elif isinstance(first, datetime.date):
        kind = "date"
    elif isinstance(first, decimal.Decimal):
        kind = "decimal"
    else:
        return name, values, None
    try:
        if kind == "decimal":
            places = max(-one.as_tuple().exponent for one in values if one is not None)
            places = max(0, places)
        numbers = [None if one is None else _number(one, first, places) for one in values]
    except (AttributeError, ArithmeticError, TypeError, ValueError) as error:
        raise UsageError(
            f"data: column {name!r} has {kind} values and one that does not fit them: "
            f"{type(error).__name__}"
        ) from None
    return name, numbers, (kind, places)


def _columns(lists: list[tuple[str, Any]]) -> Any:
    if not lists:
        raise UsageError("data: it has no column")
    for name, values in lists:
        if isinstance(values, (str, bytes)):
            raise UsageError(f"data: column {name!r} is one {type(values).__name__}, not a list")
    try:
        return _volery.columns([_typed(name, _listed(values)) for name, values in lists])
    except (TypeError, ValueError, OverflowError) as error:
        raise error if isinstance(error, UsageError) else UsageError(f"data: {error}") from None
