"""Tables as callers have them, in the form that the extension reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy

from volery import _volery
from volery._calls import quoted
from volery._errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


class ArrowStream(Protocol):
    """Anything with Arrow's stream interface: polars, pyarrow, DuckDB, pandas 3, arro3."""

    def __arrow_c_stream__(self, requested_schema: object = None, /) -> object: ...


#: The table of a side: a path or several; an object with Arrow's stream interface; a pandas frame;
#: lists by the names of their columns; one list, which becomes the column ``key``. A list has str,
#: bytes, int, float or bool, and None.
Data = Union[
    str,
    "os.PathLike[str]",
    "Sequence[str] | Sequence[os.PathLike[str]]",
    ArrowStream,
    "Mapping[str, Sequence[Any]]",
    "Sequence[str | None]",
    "Sequence[bytes | None]",
    "Sequence[int | None]",
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


def _arrow(data: Any) -> Any:
    if type(data).__name__ == "LazyFrame":
        raise UsageError("data: a LazyFrame has no rows yet", "data=frame.collect()")
    failed = None
    if hasattr(data, "__arrow_c_stream__"):
        try:
            # Taken here, so that what follows knows whether there is one.
            return _Taken(data.__arrow_c_stream__())
        except Exception as error:
            # pandas makes its stream by pyarrow, which may be missing, or refuse a column. The text
            # of the error may hold a value.
            failed = type(error).__name__
    if hasattr(data, "columns") and hasattr(data, "items"):
        return _columns([(str(name), _plain(column)) for name, column in data.items()])
    if failed is not None:
        raise DataError(f"data: {type(data).__name__} gave no Arrow stream: {failed}")
    raise UsageError(
        f"data: {type(data).__name__} is no table",
        "a path, a list of keys, or a table of polars, pyarrow, DuckDB or pandas",
    )


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


def _listed(array: numpy.ndarray[Any, Any]) -> list[object]:
    """The values of an array; NaN among objects means that one is missing."""
    values: list[object] = array.tolist()
    if array.dtype == object:
        return [None if isinstance(one, float) and one != one else one for one in values]
    return values


def _columns(lists: list[tuple[str, Any]]) -> Any:
    if not lists:
        raise UsageError("data: it has no column")
    for name, values in lists:
        if isinstance(values, (str, bytes)):
            raise UsageError(f"data: column {name!r} is one {type(values).__name__}, not a list")
    lists = [
        (name, _listed(values) if isinstance(values, numpy.ndarray) else values)
        for name, values in lists
    ]
    try:
        return _volery.columns(lists)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"data: {error}") from None
