"""Tables as callers have them, in the form that the extension reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy

from volery import _volery
from volery._calls import quoted
from volery._errors import UsageError

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
        return [], _columns([(str(name), values) for name, values in data.items()]), None
    if isinstance(data, (list, tuple)):
        if data and all(isinstance(one, os.PathLike) for one in data):
            return [os.fspath(one) for one in data], None, None
        return [], _columns([(KEY, data)]), KEY
    if hasattr(data, "to_frame") and not hasattr(data, "columns"):
        # A series of polars or pandas.
        name = str(getattr(data, "name", None) or KEY)
        return [], _arrow(data.to_frame(name)), quoted(name)
    if isinstance(data, numpy.ndarray):
        if data.ndim != 1:
            raise UsageError(f"data: an array of {data.ndim} dimensions; give one, or a table")
        return [], _columns([(KEY, data.tolist())]), KEY
    return [], _arrow(data), None


def _arrow(data: Any) -> Any:
    if hasattr(data, "__arrow_c_stream__"):
        try:
            # Taken here, so that what follows knows whether there is one.
            return _Taken(data.__arrow_c_stream__())
        except ImportError:
            # pandas 2 makes its stream by pyarrow.
            pass
    if hasattr(data, "columns") and hasattr(data, "items"):
        return _columns([(str(name), _plain(column)) for name, column in data.items()])
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


def _columns(lists: list[tuple[str, Any]]) -> Any:
    try:
        return _volery.columns(lists)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"data: {error}") from None
