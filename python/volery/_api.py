"""The functions of the package. Each is a subcommand of the program, with the same options."""

from __future__ import annotations

import decimal
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

import numpy

from volery import _volery
from volery._calls import Here, ProgressOption, Time, Watch, key_words, listed, named
from volery._data import Data, table
from volery._errors import Error, NetworkError, UsageError
from volery._results import Cot, Match, Matvec, Ope, Plan, Report, Shares, Table, Vole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Role = Literal["sender", "receiver"]
Security = Literal["malicious", "semi-honest"]
Verb = Literal["psi", "lookup"]
Path = Union[str, "os.PathLike[str]"]

#: A decimal number: exact as text, or as a ``decimal.Decimal``.
Number = Union[int, float, str, decimal.Decimal]

#: One column, or several that together form one key, each ``NAME`` or ``NAME:SPEC``.
Key = Union[str, Sequence[str]]

_CONNECTION = ("listen", "connect", "identity", "peer", "wait", "allow_group_readable_identity")


class Session(Here):
    """A connection on which several protocols run, one after the other.

    Both sides make the same calls in the same order, with the other role. A call that fails
    closes the session. Every call has a handshake and fresh randomness of its own.

    Exactly one of ``listen`` and ``connect`` is ``"HOST:PORT"``. Off the loopback interface
    ``identity``, a folder made by :func:`keygen`, and ``peer``, the fingerprint of the other side,
    are required. ``wait`` is how long to wait for the peer to be there, ``timeout`` how long it may
    show no sign of life afterwards.

    Raises:
        UsageError, NetworkError, PeerError: as :func:`psi`.
    """

    def __init__(
        self,
        *,
        listen: str | None = None,
        connect: str | None = None,
        identity: Path | None = None,
        peer: Path | None = None,
        wait: Time | None = None,
        timeout: Time | None = None,
        allow_group_readable_identity: bool = False,
        cancel: threading.Event | None = None,
    ) -> None:
        options = locals()
        super().__init__()
        given = {name: options[name] for name in (*_CONNECTION, "timeout")}
        with Watch(None, cancel) as watch:
            self._connection: _volery.Connection = _volery.open(named(given), watch)

    @classmethod
    def _of(cls, connection: _volery.Connection) -> Session:
        session = cls.__new__(cls)
        Here.__init__(session)
        session._connection = connection
        return session

    def psi(self, **options: Any) -> Match:
        """:func:`volery.psi` over this connection."""
        return psi(session=self, **options)

    def lookup(self, **options: Any) -> Match:
        """:func:`volery.lookup` over this connection."""
        return lookup(session=self, **options)

    def cot(self, **options: Any) -> Cot:
        """:func:`volery.cot` over this connection."""
        return cot(session=self, **options)

    def cot_stream(self, **options: Any) -> Stream[Cot]:
        """:func:`volery.cot_stream` over this connection."""
        return cot_stream(session=self, **options)

    def vole(self, **options: Any) -> Vole:
        """:func:`volery.vole` over this connection."""
        return vole(session=self, **options)

    def vole_stream(self, **options: Any) -> Stream[Vole]:
        """:func:`volery.vole_stream` over this connection."""
        return vole_stream(session=self, **options)

    def ope(self, **options: Any) -> Ope:
        """:func:`volery.ope` over this connection."""
        return ope(session=self, **options)

    def matvec(self, **options: Any) -> Matvec:
        """:func:`volery.matvec` over this connection."""
        return matvec(session=self, **options)

    def close(self) -> None:
        """Close the connection. A call that uses it fails; the peer sees that."""
        self._connection.close()

    @property
    def is_open(self) -> bool:
        """Whether another call can use the session."""
        return self._connection.is_open

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<volery.Session: {'open' if self.is_open else 'closed'}>"


def _connection(session: Session | None, options: dict[str, Any]) -> _volery.Connection | None:
    """The connection of a session; options that a session has already are refused."""
    if session is None:
        return None
    session._check_fork()
    for name in _CONNECTION:
        if options.get(name):
            raise UsageError(f"{name}: the session is connected already", f"remove {name}")
    return session._connection


def _matching(verb: Verb, options: dict[str, Any]) -> dict[str, Any]:
    data = options.pop("data")
    session = options.pop("session")
    watch = Watch(options.pop("progress"), options.pop("cancel"))
    output = options.pop("output", "rows")
    if output not in ("rows", "indices"):
        raise UsageError("output: give 'rows' or 'indices'")
    paths, source, only = table(data)
    key = options["key"]
    options["key"] = only if key is None else key_words(key)
    if not options["key"]:
        raise UsageError("key: required", "the name of the key column, or of several")
    for name in ("value", "value_name", "groups"):
        options[name] = listed(name, options.get(name))
    for name in ("bound", "epsilon", "delta"):
        # A decimal number, of any type that prints as one.
        value = options.get(name)
        options[name] = None if value is None else str(value)
    connection = _connection(session, options)
    given = named({"input": paths, **options})
    with watch:
        return _volery.matching(verb, given, source, output == "rows", connection, watch)


def _match(verb: Verb, options: dict[str, Any]) -> Match:
    role = options["role"]
    found = _matching(verb, options)
    rows, shares = found["rows"], found["shares"]
    report = Report.from_json(found["report"])
    if report.result.get("kind") not in (None, "shares"):
        return Match._of_totals(role, report)
    return Match(
        role=role,
        count=found["count"],
        rows=None if rows is None else Table(rows),
        indices=found["indices"],
        rules=found["rules"],
        shares=None if shares is None else Shares.of(shares),
        report=report,
    )


def psi(
    *,
    role: Role,
    data: Data,
    key: Key | None = None,
    or_: Key = (),
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    protocol: str | None = None,
    filter: Path | None = None,
    refresh: bool = False,
    link: str | None = None,
    both: bool = False,
    result: str | None = None,
    to: Literal["receiver", "sender", "both"] | None = None,
    bound: Number | None = None,
    decimals: int | None = None,
    minimum: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    group_by: str | None = None,
    groups: Key | None = None,
    row_order: bool = False,
    duplicates: Literal["keep", "error", "dedup"] | None = None,
    empty_keys: Literal["error", "skip"] | None = None,
    malformed: Literal["error", "skip"] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: Literal["csv", "tsv", "parquet", "arrow"] | None = None,
    memory: str | int | None = None,
    resume: Path | None = None,
    buckets: int | None = None,
    rule_column: str | None = None,
    out: Path | None = None,
    force: bool = False,
    html: Path | None = None,
    report: Path | None = None,
    output: Literal["rows", "indices"] = "rows",
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Match:
    """Find the rows of a table whose keys are also in the peer's table.

    The receiver gets its own matching rows. Each side also learns how many distinct keys the other
    has, and the number and types of its key columns; ``report.revealed`` says it for the run. The
    run is secure against a malicious peer, except that a malicious receiver can test somewhat more
    keys than it states. With ``both`` on both sides the sender gets its own matching rows too, and
    the run is secure against a semi-honest peer.

    Args:
        role: ``"receiver"`` gets the result.
        data: a path, or a list of ``pathlib.Path``; a folder of Parquet files; anything with
            ``__arrow_c_stream__`` (polars, pyarrow, DuckDB, pandas 3); a pandas frame; a dictionary
            of lists; or one list of str, bytes or int.
            Messages count rows from 1.
        key: the key column, or several that together form one key. ``"mail:email"`` cleans the
            column ``mail`` by the normaliser ``email``, see :func:`lint`. Not needed for one list.
        or_: further keys, by which rows match that do not match by the keys before. Both sides
            give as many keys, in the same order.
        listen, connect: ``"HOST:PORT"``; one side listens, the other one connects.
        identity, peer: this side's folder from :func:`keygen`, and the fingerprint of the other
            side; required off the loopback interface.
        wait, timeout: time to wait for the peer, and for its signs of life: seconds or ``"2h"``.
        session: a connection that is open already.
        security, protocol, link, both: the same on both sides; as in the program.
        filter, refresh: with ``protocol="served"``, queries to a ``volery serve``: a file that keeps
            the server's filter between calls, and whether it is fetched again.
        result: in place of ``"rows"``, one number about the keys that both sides have:
            ``"count"``; ``"sum=COL"`` and ``"mean=COL"`` at the side with the column, ``"sum"`` and
            ``"mean"`` at the other; ``"sum-product=SENDER_COL,RECEIVER_COL"``. Neither side learns
            which keys are common; the run is secure against a semi-honest peer. Or
            ``"shares=COL,COL"``: shares of which keys are common and of these columns of this side,
            in :attr:`Match.shares`.
        to: the side that gets the number, ``"receiver"`` by default; the same on both sides.
        bound, decimals: the most that a value of a key may be, without its sign, and the decimal
            places of values; the same on both sides, of shares each side's own.
        minimum: the fewest common keys of which anything is opened: 50 by default, 0 for a count
            without groups; the same on both sides.
        epsilon, delta: adds noise, so that the number is differentially private; the same on both
            sides.
        group_by, groups: the column of one side, and at both sides the groups: one number for each.
        row_order: shares in the order of the receiver's rows; on both sides.
        duplicates: ``"keep"`` (default): all rows of a key match or none, and the value of a key is
            the sum of theirs; ``"error"``; ``"dedup"``: only the first.
        empty_keys, malformed: ``"error"`` (default) or ``"skip"`` for rows whose key is empty or
            does not fit.
        memory: bytes or ``"2GiB"``: keeps the keys on disk.
        resume: a folder for the progress of the run: the same call goes on with a run that broke.
        rule_column: appends a column with the number of the key by which a row matched.
        out: a file for the matching rows, in place of ``rows``.
        html, report: files for a page about the run and for its report.
        output: ``"indices"`` leaves ``rows`` out.
        threads: of this side's computation; by default one a core.
        progress: True for a bar by tqdm, or a function of one :class:`Progress`, called on this
            thread.
        cancel: an event that ends the call with :class:`Cancelled`; Ctrl-C ends it anyway.

    Returns:
        The matching rows, their numbers, and the report; with ``result`` its numbers.

    Raises:
        UsageError: an argument is wrong.
        DataError: a file or table cannot be used.
        PeerError: the peer broke the protocol, or has another identity.
        NetworkError: the peer is not there, went away, or was silent for too long.
        SettingsDifferError: the two sides differ in a setting.
    """
    return _match("psi", dict(locals()))


def lookup(
    *,
    role: Role,
    data: Data,
    key: Key | None = None,
    value: Key | None = None,
    value_name: Key | None = None,
    left: bool = False,
    or_: Key = (),
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    protocol: str | None = None,
    link: str | None = None,
    both: bool = False,
    duplicates: Literal["keep", "error", "dedup"] | None = None,
    empty_keys: Literal["error", "skip"] | None = None,
    malformed: Literal["error", "skip"] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: Literal["csv", "tsv", "parquet", "arrow"] | None = None,
    memory: str | int | None = None,
    resume: Path | None = None,
    buckets: int | None = None,
    rule_column: str | None = None,
    out: Path | None = None,
    force: bool = False,
    html: Path | None = None,
    report: Path | None = None,
    output: Literal["rows", "indices"] = "rows",
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Match:
    """Look the keys of a table up in the peer's table.

    The receiver gets its own matching rows, each with columns of the sender. Of several rows of
    the sender with one key the first counts. The receiver also learns the length of the longest
    payload of all. A sender may give any values, also in malicious security.

    Args:
        value: sender: the columns that the receiver gets, together at most 16 KB a row.
        value_name: receiver: names for them, in their order.
        left: receiver: keeps the rows without a match, with empty columns of the sender;
            ``rule_column`` is null there, also if the sender's values are null elsewhere.

    All else is as in :func:`psi`.
    """
    return _match("lookup", dict(locals()))


def plan(
    verb: Verb = "psi",
    *,
    role: Role,
    data: Data,
    key: Key | None = None,
    value: Key | None = None,
    or_: Key = (),
    peer_rows: int | None = None,
    security: Security | None = None,
    protocol: str | None = None,
    link: str | None = None,
    both: bool = False,
    result: str | None = None,
    to: Literal["receiver", "sender", "both"] | None = None,
    bound: Number | None = None,
    decimals: int | None = None,
    minimum: int | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    group_by: str | None = None,
    groups: Key | None = None,
    row_order: bool = False,
    duplicates: Literal["keep", "error", "dedup"] | None = None,
    empty_keys: Literal["error", "skip"] | None = None,
    malformed: Literal["error", "skip"] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: Literal["csv", "tsv", "parquet", "arrow"] | None = None,
    memory: str | int | None = None,
    buckets: int | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Plan:
    """Say what a run of :func:`psi` or :func:`lookup` would cost and reveal; nothing is sent.

    Args:
        peer_rows: rows of the peer; by default as many as here.
        link: the network as ``"RATE,RTT"`` such as ``"100Mbit,20ms"``.
        result, bound, decimals, row_order: as in :func:`psi`.
    """
    options = dict(locals())
    del options["verb"]
    found = _matching(verb, {**options, "session": None, "output": "indices", "dry_run": True})
    report = Report.from_json(found["report"])
    names = ("protocol", "bytes", "seconds", "memory_bytes", "buckets", "reveals")
    return Plan(**{name: report.result[name] for name in names}, report=report)


def lint(
    *,
    data: Data,
    key: Key | None = None,
    or_: Key = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    threads: int | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Report:
    """Count the empty, malformed, duplicate and changed keys of a table, without showing one.

    Returns:
        A report with ``n`` rows and, in ``result["rules"]``, the findings for each key.
    """
    paths, source, only = table(data)
    given = [value for _, value in named({"key": only if key is None else key_words(key)})]
    if not given:
        raise UsageError("key: required", "the name of the key column, or of several")
    # One option, where the columns of a key are one.
    options = {
        "key": ",".join(given),
        "or_": or_,
        "delimiter": delimiter,
        "encoding": encoding,
        "threads": threads,
    }
    with Watch(progress, cancel) as watch:
        return Report.from_json(_volery.lint(paths, named(options), source, watch))


T = TypeVar("T", Cot, Vole)


class Stream(Here, Iterator[T]):
    """The parts of a stream of correlations, in memory for a part at a time.

    ``report`` is there after the last part. A stream that is not read to its end is ended by
    ``close()``, or by leaving its ``with`` block: the peer then fails with a network error.
    """

    def __init__(self, parts: _volery.Stream, kind: type[T], watch: Watch) -> None:
        super().__init__()
        self._parts = parts
        self._kind: type[T] = kind
        self._watch = watch
        self.report: Report | None = None

    def __next__(self) -> T:
        self._check_fork()
        arrays = self._parts.next(self._watch)
        if arrays is not None:
            return self._kind(arrays, None)
        self._watch.close()
        text = self._parts.report
        if text is not None:
            self.report = Report.from_json(text)
        raise StopIteration

    def close(self) -> None:
        """End the stream."""
        self._parts.close()
        self._watch.close()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stream(kind: type[T], options: dict[str, Any]) -> Stream[T]:
    chunk = options.pop("chunk", None)
    delta = options.pop("delta", None)
    session = options.pop("session")
    watch = Watch(options.pop("progress"), options.pop("cancel"))
    if chunk is not None and chunk < 1:
        raise UsageError("chunk: give at least 1")
    if delta is not None:
        array = numpy.asarray(delta, dtype=numpy.uint64).reshape(-1)
        if options["role"] != "sender" or array.shape != (2,) or not array.any():
            raise UsageError(
                "delta: only for the sender, two words of 64 bits, random and not zero"
            )
        delta = [int(word) for word in array]
    verb: Literal["cot", "vole"] = "cot" if kind is Cot else "vole"
    width = 2 if verb == "cot" or options.get("ring") == "gf128" else 1
    connection = _connection(session, options)
    parts = _volery.stream(verb, named(options), delta, width, chunk, connection)
    return Stream(parts, kind, watch)


def _whole(kind: type[T], options: dict[str, Any]) -> T:
    with _stream(kind, options) as stream:
        part: T = next(stream)
        # The end of the run: only then both sides have all.
        for _ in stream:
            raise Error("internal error in volery: a second part of a whole")
        part.report = stream.report
        return part


def cot(
    *,
    role: Role,
    n: int,
    delta: ArrayLike | None = None,
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    noise: Literal["regular", "uniform"] | None = None,
    set: str | None = None,
    parameters: str | None = None,
    protocol: str | None = None,
    link: str | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Cot:
    """Make ``n`` correlated OTs ``w = v + u*delta`` with a peer.

    The sender gets ``delta`` and random ``v``, the receiver random bits ``u`` and ``w``; neither
    learns the other's part. The arrays take 16 bytes a correlation, at the receiver 17;
    :func:`cot_stream` takes memory for a part at a time.

    Args:
        role: ``"sender"`` or ``"receiver"``.
        n: number of correlations.
        delta: sender: that of an earlier run, uint64 of shape (1, 2). The receiver learns the
            position of one of its set bits.
        security, noise, set, parameters, protocol, link: the same on both sides; as in the program.

    All else, and what is raised, is as in :func:`psi`.
    """
    return _whole(Cot, dict(locals()))


def cot_stream(
    *,
    role: Role,
    n: int,
    chunk: int = 1_000_000,
    delta: ArrayLike | None = None,
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    noise: Literal["regular", "uniform"] | None = None,
    set: str | None = None,
    parameters: str | None = None,
    protocol: str | None = None,
    link: str | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Stream[Cot]:
    """Make ``n`` correlated OTs in parts of ``chunk``, as :func:`cot` does all at once.

    A part is computed while the one before is used. The sender's parts all have the same
    ``delta``.
    """
    return _stream(Cot, dict(locals()))


def vole(
    *,
    role: Role,
    n: int,
    ring: Literal["fp61", "z64", "gf128"] = "fp61",
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    noise: Literal["regular", "uniform"] | None = None,
    set: str | None = None,
    parameters: str | None = None,
    protocol: str | None = None,
    link: str | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Vole:
    """Make ``n`` vector OLEs ``w = u*x + v`` over a ring with a peer.

    The sender gets random ``u`` and ``v``, the receiver a random ``x`` and ``w``; neither learns
    the other's part. Over ``z64`` security is semi-honest.

    Args:
        role: ``"sender"`` or ``"receiver"``.
        n: number of correlations.
        ring: ``"fp61"``, the integers modulo 2^61 - 1; ``"z64"``, modulo 2^64; ``"gf128"``, binary
            polynomials modulo X^128 + X^7 + X^2 + X + 1.

    All else is as in :func:`cot`.
    """
    return _whole(Vole, dict(locals()))


def vole_stream(
    *,
    role: Role,
    n: int,
    chunk: int = 1_000_000,
    ring: Literal["fp61", "z64", "gf128"] = "fp61",
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    noise: Literal["regular", "uniform"] | None = None,
    set: str | None = None,
    parameters: str | None = None,
    protocol: str | None = None,
    link: str | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Stream[Vole]:
    """Make ``n`` vector OLEs in parts of ``chunk``, as :func:`vole` does all at once."""
    return _stream(Vole, dict(locals()))


def _numbers(name: str, given: ArrayLike, real: bool) -> Any:
    """An array of uint64, or of float64 where reals are allowed."""
    array = numpy.asarray(given)
    if array.dtype == numpy.uint64 or (real and array.dtype == numpy.float64):
        return numpy.ascontiguousarray(array)
    if array.dtype == object or array.dtype.kind in "iu":
        try:
            return numpy.array(array.tolist(), dtype=numpy.uint64)
        except (OverflowError, ValueError, TypeError):
            raise UsageError(f"{name}: a number is negative, or not below 2^64") from None
    if real and array.dtype.kind == "f":
        return array.astype(numpy.float64)
    kinds = "uint64 or float64" if real else "uint64"
    raise UsageError(f"{name}: an array of {array.dtype}; give {kinds}")


def _only(role: str, name: str, **both: object) -> Any:
    """The argument of this role; the other one must be absent."""
    for other, value in both.items():
        if other != name and value is not None:
            raise UsageError(f"{other}: not for the {role}; remove it")
    if both[name] is None:
        raise UsageError(f"{name}: required at the {role}")
    return both[name]


def ope(
    *,
    role: Role,
    coefficients: ArrayLike | None = None,
    points: ArrayLike | None = None,
    max_degree: int | None = None,
    max_points: int | None = None,
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Ope:
    """Evaluate the sender's polynomial at the receiver's points, modulo 2^61 - 1.

    The receiver learns the degree and the values at its points, the sender the number of points.
    The values at (degree + 1) points determine the polynomial: see ``max_points``.

    Args:
        coefficients: sender: uint64, the constant one first, each below 2^61 - 1.
        points: receiver: uint64, each below 2^61 - 1.
        max_degree: receiver: the largest degree accepted.
        max_points: sender: the most points accepted; by default the degree, at most 65536.

    All else is as in :func:`psi`.
    """
    options = dict(locals())
    del options["coefficients"], options["points"]
    name = "coefficients" if role == "sender" else "points"
    given = _only(role, name, coefficients=coefficients, points=points)
    connection = _connection(options.pop("session"), options)
    data = _numbers(name, given, real=False).reshape(-1)
    with Watch(options.pop("progress"), options.pop("cancel")) as watch:
        text, values = _volery.ope(named(options), data, connection, watch)
    return Ope(values, Report.from_json(text))


def matvec(
    *,
    role: Role,
    matrix: ArrayLike | None = None,
    vector: ArrayLike | None = None,
    ring: Literal["fp61", "z64", "real"] | None = None,
    result: Literal["receiver", "sender", "shared"] | None = None,
    fraction_bits: int | None = None,
    matrix_bound: float | None = None,
    vector_bound: float | None = None,
    max_rows: int | None = None,
    listen: str | None = None,
    connect: str | None = None,
    identity: Path | None = None,
    peer: Path | None = None,
    wait: Time | None = None,
    allow_group_readable_identity: bool = False,
    session: Session | None = None,
    security: Security | None = None,
    report: Path | None = None,
    threads: int | None = None,
    timeout: Time | None = None,
    progress: ProgressOption = None,
    cancel: threading.Event | None = None,
) -> Matvec:
    """Multiply the sender's matrix by the receiver's vector.

    Each side learns the shape of the other's input; who gets the product says ``result``. The
    product is not authenticated; over ``z64`` and for real numbers security is semi-honest.

    Args:
        matrix: sender: uint64 or float64 of shape (rows, columns).
        vector: receiver: as the matrix, of shape (columns,).
        ring: of uint64: ``"fp61"`` (default) or ``"z64"``; of float64: ``"real"``.
        result: who gets the product; ``"shared"``: each side a uint64 share, and the shares add up
            to it in the ring.
        fraction_bits, matrix_bound, vector_bound: real numbers: fraction bits, and bounds on the
            absolute values of the entries.
        max_rows: receiver: the most rows accepted.

    All else is as in :func:`psi`.
    """
    options = dict(locals())
    del options["matrix"], options["vector"]
    name = "matrix" if role == "sender" else "vector"
    given = _only(role, name, matrix=matrix, vector=vector)
    connection = _connection(options.pop("session"), options)
    data = _numbers(name, given, real=True)
    with Watch(options.pop("progress"), options.pop("cancel")) as watch:
        text, values = _volery.matvec(named(options), data, connection, watch)
    return Matvec(values, Report.from_json(text))


def keygen(
    *, out: Path, name: str | None = None, days: int | None = None, token: bool = False
) -> str:
    """Make an identity in the folder ``out`` and return its fingerprint.

    Give the fingerprint to the other party over a channel that cannot be forged.

    Args:
        out: a folder that does not exist, or is empty. Only its owner can read what is in it.
        name: in the certificate; it proves nothing, and is not secret.
        days: validity from now, by default 365.
        token: make an access token for a browser instead, a secret in the file ``out``.
    """
    options = {"out": out, "name": name, "days": days, "token": token}
    with Watch() as watch:
        return _volery.keygen(named(options), watch)


def verify(
    sender: Path, receiver: Path, *, ring: Literal["fp61", "z64", "gf128"] | None = None
) -> Report:
    """Check that two output folders of the program's ``cot`` or ``vole`` are correlated.

    It needs both parties' secrets: for tests on one machine.

    Raises:
        Error: they are not.
    """
    folders = (os.fspath(sender), os.fspath(receiver))
    with Watch() as watch:
        return Report.from_json(_volery.verify(folders, named({"ring": ring}), watch))


A = TypeVar("A")
B = TypeVar("B")


def run_local(
    first: Callable[[Session], A], second: Callable[[Session], B], *, timeout: float = 60.0
) -> tuple[A, B]:
    """Run two parties in two threads of this process, for notebooks and tests.

    Each function gets a :class:`Session` that is connected to the other's. Whoever runs both
    parties sees all secrets. The threads are ``volery first`` and ``volery second``, as
    ``%(threadName)s`` of a log shows. ``timeout``: seconds without a sign of life of the other party.

    Raises:
        What one of the functions raises: the cause, if the other one failed because of it.
    """
    sessions = [Session._of(one) for one in _volery.pair(timeout)]
    results: list[Future[Any]] = [Future(), Future()]

    def party(place: int, work: Callable[[Session], Any]) -> None:
        try:
            results[place].set_result(work(sessions[place]))
        except BaseException as error:
            results[place].set_exception(error)
        finally:
            sessions[place].close()

    threads = [
        threading.Thread(target=party, args=(place, work), name=f"volery {name}", daemon=True)
        for place, (name, work) in enumerate([("first", first), ("second", second)])
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            # In small steps, so that Ctrl-C is noticed.
            while thread.is_alive():
                thread.join(0.1)
    except BaseException:
        for session in sessions:
            session.close()
        raise
    errors = [one.exception() for one in results]
    for error in sorted(filter(None, errors), key=lambda one: isinstance(one, NetworkError)):
        raise error
    return results[0].result(), results[1].result()
