"""What calls return."""

from __future__ import annotations

import dataclasses
import decimal
import html
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

import numpy

from volery import _volery
from volery._calls import Here

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray
    from typing_extensions import Self

    Words = NDArray[numpy.uint64]
    Bits = NDArray[numpy.uint8]


#: Rows and characters of a value that a notebook shows.
_SHOWN = 10
_LONG = 100


def _html_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    def line(cells: Iterable[object], tag: str) -> str:
        texts = (html.escape("" if one is None else str(one)[:_LONG]) for one in cells)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>"


class _Rows:
    """Rows, each a dictionary by the names of the columns; a table in a notebook."""

    __slots__ = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""
        raise NotImplementedError

    def _some(self, first: int, after: int) -> list[dict[str, Any]]:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, len(self), 1000):
            yield from self._some(first, first + 1000)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        places = range(len(self))[at]
        if isinstance(places, int):
            return self._some(places, places + 1)[0]
        return [self[place] for place in places]

    def _repr_html_(self) -> str:
        rows = (one.values() for one in itertools.islice(self, _SHOWN))
        more = f", the first {_SHOWN}" if len(self) > _SHOWN else ""
        return f"<p>{len(self)} rows{more}</p>{_html_table(self.columns, rows)}"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, numpy.ndarray) or isinstance(other, numpy.ndarray):
        return numpy.array_equal(one, other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other)


class _Result:
    """Equality of dataclasses with arrays."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(self.__dict__, other.__dict__)


class Table(_Rows):
    """Rows in memory. Anything that reads Arrow takes it: ``polars.DataFrame(table)``.

    ``table[0]`` is a row as a dictionary, ``table[:5]`` a list of rows, and a loop goes over all of
    them; that needs pyarrow or polars. A notebook shows the first rows, with their values.
    """

    __slots__ = ("_table",)

    def __init__(self, table: _volery.Table) -> None:
        self._table = table

    @classmethod
    def _of_bytes(cls, data: bytes) -> Table:
        return cls(_volery.Table.of_bytes(data))

    def __reduce__(self) -> Any:
        return Table._of_bytes, (self._table.to_bytes(),)

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._table == other._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self._table)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""
        return [name for name, _ in self._table.columns()]

    def _some(self, first: int, after: int) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = self.to_arrow().slice(first, after - first).to_pylist()
        except ImportError:
            rows = self.to_polars().slice(first, after - first).to_dicts()
        return rows

    def to_polars(self) -> polars.DataFrame:
        """The rows as a frame of polars; strings and numbers are not copied."""
        import polars

        return polars.DataFrame(self)

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a table of pyarrow, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a frame of pandas, by pyarrow, or by polars where there is no pyarrow."""
        try:
            frame: pandas.DataFrame = self.to_arrow().to_pandas()
            return frame
        except ImportError:
            import pandas

            columns = self.to_polars()
            return pandas.DataFrame({name: columns[name].to_list() for name in columns.columns})

    def __repr__(self) -> str:
        return f"<volery.Table: {len(self)} rows, columns {', '.join(self.columns)}>"


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds; None where a call has no such part."""

    setup: float | None = None
    extend: float | None = None
    online: float | None = None
    total: float | None = None


@dataclass(frozen=True, repr=False)
class Report:
    """What a call did and cost: the fields of ``--report``, in ``result`` those of the command."""

    command: str = ""
    role: str | None = None
    n: int | None = None
    ring: str | None = None
    security: str | None = None
    noise: str | None = None
    parameters: str | None = None
    assumption: str | None = None
    version: str = ""
    bytes_sent: int | None = None
    bytes_received: int | None = None
    messages: int | None = None
    seconds: Seconds = field(default_factory=Seconds)
    peak_rss_bytes: int | None = None
    result: dict[str, Any] = field(default_factory=dict)
    date: str = ""
    commit: str | None = None
    status: int = 0
    error: str | None = None
    identity: str | None = None
    peer: str | None = None
    phases: list[dict[str, Any]] = field(default_factory=list)
    revealed: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a report, of this package or of the program."""
        values = json.loads(text)
        values["seconds"] = Seconds(**values["seconds"])
        names = {one.name for one in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    @property
    def protocol(self) -> str | None:
        """The protocol that ran, such as ``"vole"``; None where none did."""
        return self.result.get("protocol")

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary."""
        return dataclasses.asdict(self)

    def to_json(self) -> str:
        """The fields as the JSON text that ``--report`` writes."""
        return json.dumps(self.to_dict(), indent=2)

    def __repr__(self) -> str:
        known = {
            name: getattr(self, name)
            for name in ("protocol", "role", "n", "security", "bytes_sent", "bytes_received", "error")
            if getattr(self, name) is not None
        }
        told = ", ".join(f"{name}={value}" for name, value in known.items())
        return f"<volery.{type(self).__name__}: {self.command}, {told}>"

    def _repr_html_(self) -> str:
        rows = []
        for name, value in self.to_dict().items():
            if value in (None, "", [], {}):
                continue
            text = json.dumps(value, indent=1) if isinstance(value, (dict, list)) else str(value)
            rows.append(f"<tr><th>{name}</th><td><pre>{html.escape(text)}</pre></td></tr>")
        return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True, repr=False)
class Findings(_Rows, Report):
    """The report of :func:`volery.lint`, which is also a table: one row of counts for each key."""

    @property
    def columns(self) -> list[str]:
        """Names of the counts."""
        return list(self[0])

    def _some(self, first: int, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.result["rules"][first:after]
        return found

    def __len__(self) -> int:
        return len(self.result["rules"])


#: A sum: exact, with its decimal places if it has any.
Sum = Union[int, decimal.Decimal]


@dataclass(frozen=True)
class Total:
    """The numbers of a group. None where they are not asked for, or below the minimum."""

    #: Whether the number of common keys, with its noise, is below ``minimum``.
    below_minimum: bool
    #: Number of common keys.
    count: int | None = None
    sum: Sum | None = None
    #: ``sum`` divided by ``count``; None also if the count, with its noise, is not above zero.
    mean: float | None = None

    @classmethod
    def _of(cls, result: dict[str, Any]) -> Total:
        text = result.get("sum")
        total: Sum | None = None
        if text is not None:
            total = decimal.Decimal(text) if "." in text else int(text)
        return cls(
            below_minimum=bool(result.get("below_minimum")),
            count=result.get("count"),
            sum=total,
            mean=result.get("mean"),
        )


@dataclass(frozen=True, repr=False, eq=False)
class Shares(_Result):
    """One side's shares of matching rows, for each place. Whoever has those of both sides has the
    matching rows' values.
    """

    #: 0 or 1: the XOR with the peer's says whether the key of the place is common. uint8.
    match: Bits
    #: The columns of the sender, ``"sender_1"`` and so on, then those of the receiver: uint64. The
    #: sum with the peer's, modulo 2^64, is the value, as in two's complement: ``(a + b).view("i8")``
    #: in units of the last decimal place. It is 0 where the key is not common.
    columns: dict[str, Words]
    #: At the receiver: the number of the first row of the key, from 0, or -1: int64.
    rows: NDArray[numpy.int64] | None
    #: Session, order, and the name, decimals and bound of each column, as in ``shares.json``.
    description: dict[str, Any]

    @classmethod
    def of(cls, found: dict[str, Any]) -> Shares:
        """From what a run gives."""
        return cls(
            match=found["match"],
            columns=found["columns"],
            rows=found["rows"],
            description=json.loads(found["description"]),
        )

    def __len__(self) -> int:
        return len(self.match)

    def __repr__(self) -> str:
        names = ", ".join(self.columns)
        return f"<volery.Shares: {self.description['role']}, {len(self)} places, columns {names}>"


@dataclass(frozen=True, repr=False, eq=False)
class Match(_Result):
    """The result of :func:`volery.psi` or :func:`volery.lookup` on this side.

    ``count``, ``indices``, ``rules`` and ``rows`` are None on a side that gets no rows. With
    another ``result`` than rows, ``count``, ``sum``, ``mean`` and ``groups`` have what it asks for,
    on a side that gets it.
    """

    role: str
    #: Number of matching rows of this side; with ``result``, of common keys.
    count: int | None
    #: The matching rows, in the order of ``data``; None also with ``out`` or ``output="indices"``.
    rows: Table | None
    #: Numbers of the matching rows in ``data``, from 0, ascending: uint64, shape (count,).
    indices: Words | None
    #: By which key each of them matched: 1 for ``key``, 2 for the first of ``or_``. uint32.
    rules: NDArray[numpy.uint32] | None
    report: Report
    #: With ``result="shares"`` and without ``out``: this side's.
    shares: Shares | None = None
    #: The sum over the common keys: an integer, or a decimal number with all its places.
    sum: Sum | None = None
    #: The mean over the common keys.
    mean: float | None = None
    #: With ``groups``: the numbers of each, in their order.
    groups: dict[str, Total] | None = None
    #: With ``result``: whether the number of common keys is below ``minimum``, of any group. Both
    #: sides know that.
    below_minimum: bool | None = None

    @classmethod
    def _of_totals(cls, role: str, report: Report) -> Match:
        result = report.result
        groups = result.get("groups")
        gets = result.get("to") in (role, "both")
        total = Total._of(result)
        return cls(
            role=role,
            count=total.count,
            rows=None,
            indices=None,
            rules=None,
            report=report,
            sum=total.sum,
            mean=total.mean,
            groups={one["group"]: Total._of(one) for one in groups} if groups and gets else None,
            below_minimum=total.below_minimum,
        )

    def _told(self) -> str:
        kind = self.report.result.get("kind")
        if kind == "shares":
            places = self.report.result.get("shares", {}).get("places")
            return f"shares of {places} places"
        if kind is not None:
            names = ("count", "sum", "mean", "groups")
            numbers = [(name, getattr(self, name)) for name in names]
            told = [f"{name} {value}" for name, value in numbers if value is not None]
            if self.below_minimum and self.groups is None:
                told = [f"fewer than {self.report.result.get('minimum')} common keys"]
            return ", ".join(told) or f"{kind} for the peer"
        rows = self.report.result.get("rows")
        if self.count is None:
            return f"{rows} {'row' if rows == 1 else 'rows'} offered"
        return f"{self.count} of {rows} rows match"

    def __repr__(self) -> str:
        kind, report = type(self).__name__, self.report
        return f"<volery.{kind}: {report.command} by {report.protocol}, {self.role}, {self._told()}>"

    def _repr_html_(self) -> str:
        revealed = "".join(f"<li>{html.escape(line)}</li>" for line in self.report.revealed)
        return (
            f"<p>{self.report.command}, {self.role}: <b>{html.escape(self._told())}</b></p>"
            f"<ul>{revealed}</ul>"
            f"<details><summary>report</summary>{self.report._repr_html_()}</details>"
        )


@dataclass(frozen=True, repr=False, eq=False)
class MatchIndices(Match):
    """The result at a side that gets its matching rows by their numbers, or in a file."""

    count: int
    indices: Words
    rules: NDArray[numpy.uint32]


@dataclass(frozen=True, repr=False, eq=False)
class MatchRows(MatchIndices):
    """The result at a side that gets its matching rows."""

    rows: Table


@dataclass(frozen=True, repr=False)
class Plan:
    """What a run would cost and reveal; nothing was sent."""

    #: The protocol that ``auto`` would choose, or the named one.
    protocol: str
    #: In both directions.
    bytes: int
    #: Predicted for ``link``, without reading and writing files.
    seconds: float
    #: Of this side.
    memory_bytes: int
    buckets: int
    #: What the peer learns and what the receiver learns, in sentences.
    reveals: list[str]
    report: Report

    def __repr__(self) -> str:
        return (
            f"<volery.Plan: {self.protocol}, {self.bytes / 1e6:.1f} MB, {self.seconds:.1f} s, "
            f"{self.memory_bytes / 1e6:.0f} MB of memory>"
        )

    def _repr_html_(self) -> str:
        reveals = "".join(f"<li>{html.escape(line)}</li>" for line in self.reveals)
        return (
            f"<p>{html.escape(repr(self)[1:-1])}</p><ul>{reveals}</ul>"
            f"<details><summary>report</summary>{self.report._repr_html_()}</details>"
        )


class _Correlations(Here):
    """Arrays of one side; they are secret."""

    _pickled = "it holds secrets, of which there must be no copy"

    def __init__(self, arrays: dict[str, Any], report: Report | None) -> None:
        super().__init__()
        #: Number of the first correlation: 0, or that of a part of a stream.
        self.first: int = arrays.pop("first")
        self._arrays = arrays
        #: Of the whole run; None in a part of a stream.
        self.report = report

    def _array(self, letter: str) -> Any:
        if letter not in self._arrays:
            has = " and ".join(self._arrays)
            raise AttributeError(f"{letter}: this side has {has}")
        return self._arrays[letter]

    def __len__(self) -> int:
        return len(next(self._arrays[name] for name in ("v", "w", "m0", "m") if name in self._arrays))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {one.dtype}{one.shape}" for name, one in self._arrays.items())
        return f"<volery.{type(self).__name__}: {shapes}>"


class Cot(_Correlations):
    """Correlated OTs, ``w = v + u*delta`` in GF(2)^128; ``+`` is XOR of words.

    The sender has ``delta`` and ``v``, the receiver ``u`` and ``w``. One bit of every ``w`` is
    the choice bit: hash blocks before they become keys. With ``hashed`` the sender has ``m0`` and
    ``m1`` instead, the receiver ``u`` and ``m``: the message of the sender that ``u`` chooses.

    With a card as the device the arrays but ``delta`` are on the card: ``torch.from_dlpack(part.v)``
    or ``cupy.from_dlpack(part.v)`` takes one without a copy, ``part.v.numpy()`` copies it.
    """

    @property
    def delta(self) -> Words:
        """Sender: uint64 of shape (1, 2), low word first."""
        return self._array("delta")  # type: ignore[no-any-return]

    @property
    def v(self) -> Words:
        """Sender: uint64 of shape (n, 2), low word first."""
        return self._array("v")  # type: ignore[no-any-return]

    @property
    def u(self) -> Bits:
        """Receiver: choice bits, uint8 of shape (n,), 0 or 1. On a card only ``u_packed``."""
        return self._array("u")  # type: ignore[no-any-return]

    @property
    def u_packed(self) -> Any:
        """Receiver: choice bits, 32 a word, lowest first: uint32 of shape (n/32 rounded up,)."""
        if "u_packed" in self._arrays:
            return self._arrays["u_packed"]
        bits = self._array("u")
        padded = numpy.zeros(-(-len(bits) // 32) * 32, numpy.uint8)
        padded[: len(bits)] = bits
        return numpy.packbits(padded, bitorder="little").view("<u4")

    @property
    def m0(self) -> Words:
        """Sender, hashed: uint64 of shape (n, 2), low word first."""
        return self._array("m0")  # type: ignore[no-any-return]

    @property
    def m1(self) -> Words:
        """Sender, hashed: uint64 of shape (n, 2), low word first."""
        return self._array("m1")  # type: ignore[no-any-return]

    @property
    def m(self) -> Words:
        """Receiver, hashed: uint64 of shape (n, 2), low word first."""
        return self._array("m")  # type: ignore[no-any-return]

    @property
    def w(self) -> Words:
        """Receiver: uint64 of shape (n, 2), low word first."""
        return self._array("w")  # type: ignore[no-any-return]


class Vole(_Correlations):
    """Vector OLE, ``w = u*x + v`` over a ring. The sender has ``u`` and ``v``, the receiver ``x``
    and ``w``.

    ``fp61`` (integers modulo 2^61 - 1) and ``z64`` (modulo 2^64): uint64 of shape (n,), ``x`` of
    shape (1,). ``gf128``: shape (n, 2) and (1, 2), low word first, bit i the coefficient of X^i.
    """

    @property
    def u(self) -> Words:
        """Sender."""
        return self._array("u")  # type: ignore[no-any-return]

    @property
    def v(self) -> Words:
        """Sender."""
        return self._array("v")  # type: ignore[no-any-return]

    @property
    def x(self) -> Words:
        """Receiver: one value."""
        return self._array("x")  # type: ignore[no-any-return]

    @property
    def w(self) -> Words:
        """Receiver."""
        return self._array("w")  # type: ignore[no-any-return]


#: None on a side that gets no values.
V = TypeVar("V", covariant=True)


@dataclass(frozen=True, eq=False)
class Ope(_Result, Generic[V]):
    """The values of the sender's polynomial at the receiver's points."""

    #: Receiver: uint64, in the order of the points.
    values: V
    report: Report

    def __repr__(self) -> str:
        return f"<volery.Ope: role={self.report.role}, {self.report.result.get('points')} points>"


@dataclass(frozen=True, eq=False)
class Matvec(_Result, Generic[V]):
    """The product of the sender's matrix and the receiver's vector."""

    #: On the side or sides that get it: uint64 or float64, shape (rows,); with ``result="shared"``
    #: this side's share, uint64.
    values: V
    report: Report

    def __repr__(self) -> str:
        return f"<volery.Matvec: role={self.report.role}>"
