"""The functions of the package. Each is a command of the program, with the same options."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy

from volery import _volery
from volery._calls import Here, Watch, key_words, listed, named, or_words
from volery._data import table
from volery._errors import Error, NetworkError, UsageError
from volery._options import (
    CotOptions,
    CotStreamOptions,
    LintOptions,
    LookupArguments,
    LookupOptions,
    MatvecArguments,
    MatvecOptions,
    OpeArguments,
    OpeOptions,
    PeerOptions,
    PlanOptions,
    PsiArguments,
    PsiOptions,
    SessionOptions,
    VoleOptions,
    VoleStreamOptions,
    call,
    names,
)
from volery._results import (
    Cot,
    Findings,
    Match,
    MatchIndices,
    MatchRows,
    Matvec,
    Ope,
    Plan,
    Report,
    Shares,
    Table,
    Vole,
)

from volery._transport import ByteStream

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from volery._data import Data
    from volery._options import Path, Verb
    from volery._results import Words


T = TypeVar("T", Cot, Vole)


class _Lent:
    """The connection of a call: of its session, or of its transport, for this call alone."""

    def __init__(self, session: Session | None, options: dict[str, Any]) -> None:
        self._own: Session | None = None
        if session is not None:
            session._check_fork()
            for name in names(PeerOptions):
                if options.get(name):
                    raise UsageError(f"{name}: the session is connected already", f"remove {name}")
        elif options["transport"] is not None:
            given = {name: options.pop(name) for name in names(PeerOptions)}
            self._own = session = Session(timeout=options["timeout"], **given)
        options.pop("transport", None)
        self._stream = None if session is None else session._bytes
        self.connection = None if session is None else session._connection

    def end(self, error: BaseException | None = None) -> None:
        """End it with the call; ``error`` gets what a function of the transport has raised."""
        if self._own is not None:
            with contextlib.suppress(*([] if error is None else [NetworkError])):
                self._own.close()
        if isinstance(error, Error) and self._stream is not None and self._stream.raised is not None:
            error.__cause__ = self._stream.raised

    def __enter__(self) -> _volery.Connection | None:
        return self.connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.end(error)


class Stream(Here, Iterator[T]):
    """The parts of a stream of correlations, in memory for a part at a time.

    ``report`` is there after the last part. A stream that is not read to its end is ended by
    ``close()``, or by leaving its ``with`` block: the peer then fails with a network error.
    """

    def __init__(self, parts: _volery.Stream, kind: type[T], watch: Watch, lent: _Lent) -> None:
        super().__init__()
        self._lent = lent
        self._parts = parts
        self._kind: type[T] = kind
        self._watch = watch
        self.report: Report | None = None

    def __next__(self) -> T:
        self._check_fork()
        try:
            arrays = self._parts.next(self._watch)
        except BaseException as error:
            self._lent.end(error)
            raise
        if arrays is not None:
            return self._kind(arrays, None)
        self._watch.close()
        self._lent.end()
        text = self._parts.report
        if text is not None:
            self.report = Report.from_json(text)
        raise StopIteration

    def close(self) -> None:
        """End the stream."""
        self._parts.close()
        self._watch.close()
        self._lent.end()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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


def _only(options: dict[str, Any], sender: str, receiver: str) -> tuple[str, Any]:
    """The name and the value of the input of this role, without that of the other role."""
    given = {name: options.pop(name) for name in (sender, receiver)}
    role = options["role"]
    name = sender if role == "sender" else receiver
    for other, value in given.items():
        if other != name and value is not None:
            raise UsageError(f"{other}: not for the {role}; remove it")
    if given[name] is None:
        raise UsageError(f"{name}: required at the {role}")
    return name, given[name]


def _matching(
    verb: Verb,
    options: dict[str, Any],
    lend: Callable[[dict[str, Any]], contextlib.AbstractContextManager[_volery.Connection | None]],
) -> dict[str, Any]:
    data = options.pop("data")
    watch = Watch(options.pop("progress"), options.pop("cancel"))
    output = options.pop("output", "rows")
    if output not in ("rows", "indices"):
        raise UsageError("output: give 'rows' or 'indices'")
    paths, source, only = table(data)
    key = options["key"]
    options["key"] = only if key is None else key_words(key)
    options["or_"] = or_words(options["or_"])
    if not options["key"]:
        raise UsageError("key: required", "the name of the key column, or of several")
    for name in ("value", "value_name", "groups"):
        options[name] = listed(name, options.get(name))
    lent = lend(options)
    given = named({"input": paths, **options})
    with lent as connection, watch:
        return _volery.matching(verb, given, source, output == "rows", connection, watch)


class Calls:
    """The calls to a peer: each over a connection of its own, or in a :class:`Session` over one."""

    def _lend(self, options: dict[str, Any]) -> _Lent:
        """The connection for a call with these options."""
        return _Lent(None, options)

    def _match(self, verb: Verb, options: dict[str, Any]) -> Match:
        role = options["role"]
        found = _matching(verb, options, self._lend)
        rows, shares = found["rows"], found["shares"]
        report = Report.from_json(found["report"])
        if report.result.get("kind") not in (None, "shares"):
            return Match._of_totals(role, report)
        kind: type[Match] = MatchRows
        if rows is None:
            kind = Match if found["count"] is None else MatchIndices
        given: dict[str, Any] = {name: found[name] for name in ("count", "indices", "rules")}
        given["rows"] = None if rows is None else Table(rows)
        given["shares"] = None if shares is None else Shares.of(shares)
        return kind(role=role, report=report, **given)

    @overload
    def psi(
        self,
        *,
        role: Literal["receiver"],
        data: Data,
        result: None = None,
        out: None = None,
        output: Literal["rows"] = "rows",
        both: bool = False,
        **options: Unpack[PsiOptions],
    ) -> MatchRows: ...
    @overload
    def psi(
        self,
        *,
        role: Literal["sender"],
        data: Data,
        result: None = None,
        out: None = None,
        output: Literal["rows"] = "rows",
        both: Literal[True],
        **options: Unpack[PsiOptions],
    ) -> MatchRows: ...
    @overload
    def psi(
        self,
        *,
        role: Literal["receiver"],
        data: Data,
        result: None = None,
        out: Path | None = None,
        output: Literal["rows", "indices"] = "rows",
        both: bool = False,
        **options: Unpack[PsiOptions],
    ) -> MatchIndices: ...
    @overload
    def psi(self, **options: Unpack[PsiArguments]) -> Match: ...

    @call("psi", PsiArguments)
    def psi(self, **options: Any) -> Match:
        """Find the rows of a table whose keys are also in the peer's table.

        The receiver gets its own matching rows. Each side also learns how many distinct keys the
        other has, and the number and types of its key columns; ``report.revealed`` says it for the
        run. The run is secure against a malicious peer, except that a malicious receiver can test
        somewhat more keys than it declares. With ``both`` on both sides the sender gets its own
        matching rows too, and the run is secure against a semi-honest peer.

        A mistake of this side in an argument or in the data leaves a session open: the peer hears
        nothing of it, and the call can be repeated.

        Example:
            >>> import volery
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.psi(role="sender", data=["ann", "bea"]),
            ...     lambda session: session.psi(role="receiver", data=["bea", "cal"]),
            ... )
            >>> receiver.rows[0], receiver.indices.tolist()
            ({'key': 'bea'}, [0])

        Returns:
            The matching rows, their numbers, and the report; with ``result`` its numbers.

        Raises:
            UsageError: an argument is wrong.
            DataError: a file or table cannot be used.
            PeerError: the peer broke the protocol, or has another identity.
            NetworkError: the peer is not there, went away, or was silent for too long.
            SettingsDifferError: the two sides differ in a setting.
        """
        return self._match("psi", options)

    @overload
    def lookup(
        self,
        *,
        role: Literal["receiver"],
        data: Data,
        out: None = None,
        output: Literal["rows"] = "rows",
        both: bool = False,
        **options: Unpack[LookupOptions],
    ) -> MatchRows: ...
    @overload
    def lookup(
        self,
        *,
        role: Literal["receiver"],
        data: Data,
        out: Path | None = None,
        output: Literal["rows", "indices"] = "rows",
        both: bool = False,
        **options: Unpack[LookupOptions],
    ) -> MatchIndices: ...
    @overload
    def lookup(self, **options: Unpack[LookupArguments]) -> Match: ...

    @call("lookup", LookupArguments)
    def lookup(self, **options: Any) -> Match:
        """Look the keys of a table up in the peer's table.

        The receiver gets its own matching rows, each with columns of the sender. Of several rows of
        the sender with one key the first counts; a line of the log says how many others there are.
        The receiver also learns the length of the longest payload of all. A sender may give any
        values, also in malicious security. What is raised is as in :func:`psi`.

        Example:
            >>> import volery
            >>> shop = {"mail": ["ann", "bea"], "spent": [120, 80]}
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.lookup(role="sender", data=shop, key="mail", value="spent"),
            ...     lambda session: session.lookup(role="receiver", data=["bea"]),
            ... )
            >>> list(receiver.rows)
            [{'key': 'bea', 'spent': 80}]
        """
        return self._match("lookup", options)

    def _stream(self, kind: type[T], options: dict[str, Any]) -> Stream[T]:
        whole = "chunk" not in options
        chunk = options.pop("chunk", None)
        if chunk is None and not whole:
            chunk = 1 << 24 if str(options["device"]).startswith("cuda") else 1_000_000
        hashed = options.pop("hashed", False)
        delta = options.pop("delta", None)
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
        verb: Literal["cot", "random", "vole"] = "cot" if kind is Cot else "vole"
        if hashed:
            verb = "random"
        width = 2 if verb != "vole" or options.get("ring") == "gf128" else 1
        lent = self._lend(options)
        parts = _volery.stream(verb, named(options), delta, width, chunk, lent.connection)
        return Stream(parts, kind, watch, lent)

    def _whole(self, kind: type[T], options: dict[str, Any]) -> T:
        with self._stream(kind, options) as stream:
            part: T = next(stream)
            # The end of the run: only then both sides have all.
            for _ in stream:
                raise Error("internal error in volery: a second part of a whole")
            part.report = stream.report
            return part

    @call("cot", CotOptions)
    def cot(self, **options: Unpack[CotOptions]) -> Cot:
        """Make ``n`` correlated OTs ``w = v + u*delta`` with a peer.

        The sender gets ``delta`` and random ``v``, the receiver random bits ``u`` and ``w``;
        neither learns the other's part. The arrays take 16 bytes a correlation, at the receiver 17;
        :func:`cot_stream` takes memory for a part at a time. With ``device="cuda:0"`` the arrays are
        on that card, for ``from_dlpack`` of PyTorch or CuPy, and ``numpy()`` copies one; ``u`` is
        then ``u_packed``. What is raised is as in :func:`psi`.

        Example:
            >>> import volery
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.cot(role="sender", n=100),
            ...     lambda session: session.cot(role="receiver", n=100),
            ... )
            >>> bool((receiver.w == sender.v ^ receiver.u[:, None] * sender.delta).all())
            True
        """
        return self._whole(Cot, dict(options))

    @call("cot", CotStreamOptions)
    def cot_stream(self, **options: Unpack[CotStreamOptions]) -> Stream[Cot]:
        """Make ``n`` correlated OTs in parts of ``chunk``, as :func:`cot` does all at once.

        A part is computed while the one before is used. The sender's parts all have the same
        ``delta``.

        Example:
            >>> import volery
            >>> def party(role):
            ...     return lambda session: [
            ...         len(part) for part in session.cot_stream(role=role, n=1000, chunk=400)
            ...     ]
            >>> volery.run_local(party("sender"), party("receiver"))
            ([400, 400, 200], [400, 400, 200])
        """
        return self._stream(Cot, dict(options))

    @call("vole", VoleOptions)
    def vole(self, **options: Unpack[VoleOptions]) -> Vole:
        """Make ``n`` vector OLEs ``w = u*x + v`` over a ring with a peer.

        The sender gets random ``u`` and ``v``, the receiver a random ``x`` and ``w``; neither
        learns the other's part. Over ``z64`` security is semi-honest. What is raised is as in
        :func:`psi`.

        Example:
            >>> import volery
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.vole(role="sender", n=100, ring="z64"),
            ...     lambda session: session.vole(role="receiver", n=100, ring="z64"),
            ... )
            >>> bool((receiver.w == sender.u * receiver.x + sender.v).all())
            True
        """
        return self._whole(Vole, dict(options))

    @call("vole", VoleStreamOptions)
    def vole_stream(self, **options: Unpack[VoleStreamOptions]) -> Stream[Vole]:
        """Make ``n`` vector OLEs in parts of ``chunk``, as :func:`vole` does all at once.

        Example:
            >>> import volery
            >>> def party(role):
            ...     return lambda session: [part.first for part in session.vole_stream(role=role, n=9, chunk=4)]
            >>> volery.run_local(party("sender"), party("receiver"))
            ([0, 4, 8], [0, 4, 8])
        """
        return self._stream(Vole, dict(options))

    @overload
    def ope(
        self, *, role: Literal["sender"], coefficients: ArrayLike, **options: Unpack[OpeOptions]
    ) -> Ope[None]: ...
    @overload
    def ope(
        self, *, role: Literal["receiver"], points: ArrayLike, **options: Unpack[OpeOptions]
    ) -> Ope[Words]: ...
    @overload
    def ope(self, **options: Unpack[OpeArguments]) -> Ope[Words | None]: ...

    @call("ope", OpeArguments)
    def ope(self, **options: Any) -> Ope[Any]:
        """Evaluate the sender's polynomial at the receiver's points, modulo 2^61 - 1.

        The receiver learns the degree and the values at its points, the sender the number of
        points. The values at (degree + 1) points determine the polynomial: see ``max_points``. What
        is raised is as in :func:`psi`.

        Example:
            >>> import volery
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.ope(role="sender", coefficients=[5, 1], max_points=2),
            ...     lambda session: session.ope(role="receiver", points=[10, 20]),
            ... )
            >>> receiver.values.tolist()
            [15, 25]
        """
        data = _numbers(*_only(options, "coefficients", "points"), real=False).reshape(-1)
        lent = self._lend(options)
        watch = Watch(options.pop("progress"), options.pop("cancel"))
        with lent as connection, watch:
            text, values = _volery.ope(named(options), data, connection, watch)
        return Ope(values, Report.from_json(text))

    @overload
    def matvec(
        self,
        *,
        role: Literal["receiver"],
        result: Literal["receiver", "shared"] | None = None,
        **options: Unpack[MatvecOptions],
    ) -> Matvec[NDArray[Any]]: ...
    @overload
    def matvec(
        self,
        *,
        role: Literal["sender"],
        result: Literal["sender", "shared"],
        **options: Unpack[MatvecOptions],
    ) -> Matvec[NDArray[Any]]: ...
    @overload
    def matvec(self, **options: Unpack[MatvecArguments]) -> Matvec[NDArray[Any] | None]: ...

    @call("matvec", MatvecArguments)
    def matvec(self, **options: Any) -> Matvec[Any]:
        """Multiply the sender's matrix by the receiver's vector.

        Each side learns the shape of the other's input; who gets the product says ``result``. The
        product is not authenticated; over ``z64`` and for real numbers security is semi-honest.
        What is raised is as in :func:`psi`.

        Example:
            >>> import volery
            >>> sender, receiver = volery.run_local(
            ...     lambda session: session.matvec(role="sender", matrix=[[1, 2], [3, 4]]),
            ...     lambda session: session.matvec(role="receiver", vector=[5, 6]),
            ... )
            >>> receiver.values.tolist()
            [17, 39]
        """
        data = _numbers(*_only(options, "matrix", "vector"), real=True)
        lent = self._lend(options)
        watch = Watch(options.pop("progress"), options.pop("cancel"))
        with lent as connection, watch:
            text, values = _volery.matvec(named(options), data, connection, watch)
        return Matvec(values, Report.from_json(text))


class Session(Calls, Here):
    """A connection on which several protocols run, one after the other.

    Both sides make the same calls in the same order, with the other role; the arguments are those
    of the functions of these names, without the connection. Every call has a handshake and fresh
    randomness of its own. A call that fails after it has begun to speak with the peer closes the
    session; a mistake of this side that is found before leaves it open.

    Exactly one of ``listen`` and ``connect`` is ``"HOST:PORT"``, or ``transport`` takes their
    place. Off the loopback interface ``identity``, a folder made by :func:`keygen`, and ``peer``,
    the fingerprint of the other side, are required. ``wait`` is how long to wait for the peer to be there, ``timeout`` how long it may
    show no sign of life afterwards.

    Example:
        >>> import threading, volery
        >>> def shop():
        ...     with volery.Session(listen=ADDRESS) as session:
        ...         session.psi(role="sender", data=["ann", "bea"])
        ...         session.psi(role="receiver", data=["cal", "dan"])
        >>> thread = threading.Thread(target=shop)
        >>> thread.start()
        >>> with volery.Session(connect=ADDRESS) as session:
        ...     session.psi(role="receiver", data=["bea"]).count
        ...     session.psi(role="sender", data=["cal"])
        1
        <volery.Match: psi by dh, sender, 1 row offered>
        >>> thread.join()

    Raises:
        UsageError, NetworkError, PeerError: as :func:`psi`.
    """

    _connection: _volery.Connection

    def _lend(self, options: dict[str, Any]) -> _Lent:
        return _Lent(self, options)

    @call("psi", SessionOptions)
    def __init__(self, **options: Unpack[SessionOptions]) -> None:
        super().__init__()
        given: dict[str, Any] = dict(options)
        cancel, transport = given.pop("cancel"), given.pop("transport")
        self._bytes: ByteStream | None = None
        if transport is not None:
            times = {name: given.pop(name) for name in ("wait", "timeout")}
            for name, value in given.items():
                if value:
                    hint = f"remove {name}; security and addresses are those of the two functions"
                    raise UsageError(f"{name}: not with transport", hint)
            self._bytes = ByteStream(transport)
            self._connection = _volery.over(self._bytes, named(times))
            return
        with Watch(None, cancel) as watch:
            self._connection = _volery.open(named(given), watch)

    @classmethod
    def _of(cls, connection: _volery.Connection) -> Session:
        session = cls.__new__(cls)
        Here.__init__(session)
        session._connection = connection
        session._bytes = None
        return session

    def close(self) -> None:
        """Close the connection. A call that uses it fails; the peer sees that.

        Raises:
            NetworkError: the ``write`` of a transport has failed.
        """
        self._connection.close()
        if self._bytes is not None:
            self._bytes.check_written()

    @property
    def is_open(self) -> bool:
        """Whether another call can use the session."""
        return self._connection.is_open

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with contextlib.suppress(*([] if kind is None else [NetworkError])):
            self.close()

    def __repr__(self) -> str:
        return f"<volery.Session: {'open' if self.is_open else 'closed'}>"


_calls = Calls()
psi, lookup, ope, matvec = _calls.psi, _calls.lookup, _calls.ope, _calls.matvec
cot, cot_stream, vole, vole_stream = _calls.cot, _calls.cot_stream, _calls.vole, _calls.vole_stream


@call("plan", PlanOptions)
def plan(verb: Verb = "psi", **options: Unpack[PlanOptions]) -> Plan:
    """Say what a run of :func:`psi` or :func:`lookup` would cost and reveal; nothing is sent.

    Example:
        >>> import volery
        >>> volery.plan(role="receiver", data=["ann"], peer_rows=1000, link="100Mbit,20ms").protocol
        'dh'
    """
    given = {**options, "output": "indices", "dry_run": True}
    found = _matching(verb, given, lambda _: contextlib.nullcontext())
    report = Report.from_json(found["report"])
    fields = ("protocol", "bytes", "seconds", "memory_bytes", "buckets", "reveals")
    return Plan(**{name: report.result[name] for name in fields}, report=report)


@call("lint", LintOptions)
def lint(**options: Unpack[LintOptions]) -> Findings:
    """Count the empty, malformed, duplicate and changed keys of a table, without showing one.

    Returns:
        The report, which is also a table of the findings for each key.

    Example:
        >>> import volery
        >>> found = volery.lint(data={"mail": ["Ann@x.org", "ann@x.org", ""]}, key="mail:email")
        >>> found[0]["distinct"], found[0]["empty"]
        (1, 1)
    """
    given: dict[str, Any] = dict(options)
    paths, source, only = table(given.pop("data"))
    key = only if given["key"] is None else key_words(given["key"])
    # One option, where the columns of a key are one.
    given["key"] = ",".join(value for _, value in named({"key": key}))
    if not given["key"]:
        raise UsageError("key: required", "the name of the key column, or of several")
    given["or_"] = or_words(given["or_"])
    with Watch(given.pop("progress"), given.pop("cancel")) as watch:
        return Findings.from_json(_volery.lint(paths, named(given), source, watch))


def keygen(
    *,
    out: Path,
    name: str | None = None,
    days: int | None = None,
    token: bool = False,
    renew: Path | None = None,
    identity_passphrase: str | None = None,
) -> str:
    """Make an identity in the folder ``out`` and return its fingerprint.

    Give the fingerprint to the other party over a channel that cannot be forged.

    Args:
        out: a folder that does not exist, or is empty. Only its owner can read what is in it.
        name: in the certificate; it proves nothing, and is not secret.
        days: validity from now, by default 365.
        token: make an access token for a browser instead, a secret in the file ``out``.
        renew: make the successor of the identity in this folder, which announces it.
        identity_passphrase: encrypts the private key: ``"file:PATH"``, ``"env:NAME"``, ``"prompt"``.

    Example:
        >>> import volery
        >>> fingerprint = volery.keygen(out="shop-identity", name="shop")
        >>> fingerprint.count("-")
        8
    """
    options = locals()
    with Watch() as watch:
        return _volery.keygen(named(options), watch)


def verify(
    sender: Path, receiver: Path, *, ring: Literal["fp61", "z64", "gf128"] | None = None
) -> Report:
    """Check that two output folders of the program's ``cot`` or ``vole`` are correlated.

    It needs both parties' secrets: for tests on one machine.

    Raises:
        Error: they are not.

    Example:
        >>> import subprocess, sys, volery
        >>> words = "-m volery cot --n 1000 --wait 1m -q --threads 1".split()
        >>> sides = [
        ...     subprocess.Popen([sys.executable, *words, "--role", role, side, ADDRESS, "--out", role])
        ...     for role, side in [("sender", "--listen"), ("receiver", "--connect")]
        ... ]
        >>> [side.wait() for side in sides]
        [0, 0]
        >>> volery.verify("sender", "receiver").n
        1000
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

    Example:
        >>> import volery
        >>> volery.run_local(
        ...     lambda session: session.psi(role="sender", data=["ann"]).count,
        ...     lambda session: session.psi(role="receiver", data=["ann", "bea"]).count,
        ... )
        (None, 1)
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
