"""The arguments that calls share, each in one place: types in groups, signatures and documentation.

What an argument means, its default and its allowed values come from the program's table of options.
"""

from __future__ import annotations

import decimal
import functools
import inspect
import os
import re
import textwrap
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Union

from volery import _volery
from volery._calls import ProgressOption, Time
from volery._errors import in_python

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from typing_extensions import Required

    from volery._data import Data
    from volery._transport import Transport

Role = Literal["sender", "receiver"]
Security = Literal["malicious", "semi-honest"]
Verb = Literal["psi", "lookup"]
Path = Union[str, "os.PathLike[str]"]

#: A decimal number: exact as text, or as a ``decimal.Decimal``.
Number = Union[int, float, str, decimal.Decimal]

#: One column, or several that together form one key, each ``NAME`` or ``NAME:SPEC``.
Key = Union[str, Sequence[str]]

#: Further keys, each written as a :data:`Key`; one string is one key. A list of several strings is
#: refused, because it could also mean one key of several columns.
Keys = Union[str, Sequence[Key]]


class PeerOptions(TypedDict, total=False):
    """The connection to the peer; a :class:`Session` has one already."""

    listen: str | None
    connect: str | None
    identity: Path | None
    identity_command: str | None
    identity_passphrase: str | None
    peer: Path | Sequence[Path] | None
    follow_key: bool
    wait: Time | None
    proxy: str | None
    allow_group_readable_identity: bool
    transport: Transport | None


class WatchOptions(TypedDict, total=False):
    """The call itself, on this side."""

    threads: int | None
    progress: ProgressOption
    cancel: threading.Event | None


class SessionOptions(PeerOptions, total=False):
    """The arguments of :class:`volery.Session`."""

    timeout: Time | None
    cancel: threading.Event | None


class RunOptions(PeerOptions, WatchOptions, total=False):
    """A run with a peer."""

    timeout: Time | None
    report: Path | None


class TableOptions(TypedDict, total=False):
    """The table of this side, and its keys."""

    key: Key | None
    or_: Keys
    delimiter: str | None
    encoding: str | None
    quote: Literal["double", "none"] | None
    as_of: int | None
    plain_files: bool


class LintOptions(TableOptions, WatchOptions, total=False):
    """The arguments of :func:`volery.lint`."""

    data: Required[Data]
    result: str | None
    bound: Number | None
    decimals: int | None
    duplicates: Literal["keep", "error", "dedup"] | None
    drop_repeated: int | None


class MatchOptions(TableOptions, total=False):
    """A match, planned or run."""

    format: Literal["csv", "tsv", "parquet", "arrow"] | None
    protocol: str | None
    security: Security | None
    link: str | None
    duplicates: Literal["keep", "error", "dedup"] | None
    drop_repeated: int | None
    empty_keys: Literal["error", "skip"] | None
    malformed: Literal["error", "skip"] | None
    memory: str | int | None
    buckets: int | None


class NumberOptions(TypedDict, total=False):
    """One number about the keys that both sides have, in place of rows."""

    to: Literal["receiver", "sender", "both"] | None
    bound: Number | None
    decimals: int | None
    minimum: int | None
    epsilon: Number | None
    delta: Number | None
    group_by: str | None
    groups: Key | None
    row_order: bool


class RowOptions(MatchOptions, RunOptions, total=False):
    """A match that is run, without the arguments that decide the type of its result."""

    resume: Path | None
    rule_column: str | None
    force: bool
    peer_rows: int | None
    html: Path | None


class PsiOptions(RowOptions, NumberOptions, total=False):
    """The arguments of :func:`volery.psi`, without those that decide the type of its result."""

    filter: Path | None
    refresh: bool


class LookupOptions(RowOptions, total=False):
    """The arguments of :func:`volery.lookup`, without those that decide the type of its result."""

    value: Key | None
    value_name: Key | None
    left: bool


class PsiArguments(PsiOptions, total=False):
    """All arguments of :func:`volery.psi`."""

    role: Required[Role]
    data: Required[Data]
    both: bool
    result: str | None
    out: Path | None
    output: Literal["rows", "indices"]


class LookupArguments(LookupOptions, total=False):
    """All arguments of :func:`volery.lookup`."""

    role: Required[Role]
    data: Required[Data]
    both: bool
    out: Path | None
    output: Literal["rows", "indices"]


class PlanOptions(MatchOptions, NumberOptions, WatchOptions, total=False):
    """The arguments of :func:`volery.plan`."""

    role: Required[Role]
    data: Required[Data]
    value: Key | None
    peer_rows: int | None
    both: bool
    result: str | None


class CorrelationOptions(RunOptions, total=False):
    """Correlations, of either kind."""

    role: Required[Role]
    n: Required[int]
    security: Security | None
    noise: Literal["regular", "uniform"] | None
    set: str | None
    parameters: str | None
    protocol: str | None
    link: str | None
    device: str


class CotOptions(CorrelationOptions, total=False):
    """The arguments of :func:`volery.cot`."""

    delta: ArrayLike | None
    hashed: bool


class VoleOptions(CorrelationOptions, total=False):
    """The arguments of :func:`volery.vole`."""

    ring: Literal["fp61", "z64", "gf128"]


class CotStreamOptions(CotOptions, total=False):
    """The arguments of :func:`volery.cot_stream`."""

    chunk: int | None


class VoleStreamOptions(VoleOptions, total=False):
    """The arguments of :func:`volery.vole_stream`."""

    chunk: int | None


class OpeOptions(RunOptions, total=False):
    """The arguments of :func:`volery.ope`, without those of one role."""

    security: Security | None
    max_degree: int | None
    max_points: int | None


class OpeArguments(OpeOptions, total=False):
    """All arguments of :func:`volery.ope`."""

    role: Required[Role]
    coefficients: ArrayLike | None
    points: ArrayLike | None


class MatvecOptions(RunOptions, total=False):
    """The arguments of :func:`volery.matvec`, without those that decide the type of its result."""

    matrix: ArrayLike | None
    vector: ArrayLike | None
    ring: Literal["fp61", "z64", "real"] | None
    security: Security | None
    fraction_bits: int | None
    matrix_bound: float | None
    vector_bound: float | None
    max_rows: int | None


class MatvecArguments(MatvecOptions, total=False):
    """All arguments of :func:`volery.matvec`."""

    role: Required[Role]
    result: Literal["receiver", "sender", "shared"] | None


class SideOptions(TypedDict, total=False):
    """A side of a run between the clusters of two organisations."""

    run: Required[str]
    role: Required[Role]
    peer: Required[str]
    identity: Path | None
    identity_command: str | None
    identity_passphrase: str | None
    gateway: Required[str]
    work: Required[Path]
    workers: Required[int]
    security: Security | None
    protocol: str | None
    shards: int | None
    result: str | None
    to: Literal["receiver", "sender", "both"] | None
    bound: Number | None
    decimals: int | None
    minimum: int | None
    epsilon: Number | None
    delta: Number | None
    group_by: str | None
    groups: Key | None
    wait: Time | None
    proxy: str | None
    timeout: Time | None
    allow_group_readable_identity: bool
    work_group: str | int | None
    log: Path | None
    progress: ProgressOption


class SideTableOptions(TypedDict, total=False):
    """The table of such a side."""

    key: Required[Key]
    or_: Keys
    payload: Key | bool | None
    value_name: Key | None
    left: bool
    rule_column: str | None
    drop_repeated: int | None
    empty_keys: Literal["error", "skip"] | None
    malformed: Literal["error", "skip"] | None
    peer_rows: int | None


#: Defaults that are not None, or False of a switch.
_DEFAULTS: dict[str, Any] = {"or_": (), "output": "rows", "ring": "fp61", "device": "cpu"}

#: Arguments that are no options of the program, or mean more than those: heading and text.
_OWN = {
    "data": (
        "Input",
        "a path, or a list of ``pathlib.Path``; a folder of Parquet files or of a Delta table; a "
        "table with ``__arrow_c_stream__`` (polars, pyarrow, DuckDB, pandas 3); a pandas frame; a "
        "dictionary of lists; or the keys alone: a list, an iterator or an array of str, bytes, int, "
        "Decimal, date, datetime or UUID (read as text). Messages count rows from 1",
    ),
    "transport": (
        "Peer",
        "``(read, write)`` in place of an address: two functions that carry the bytes to the peer and "
        "back, for those who have HTTP or a queue and no port. See :data:`volery.Transport`; "
        "authentication and secrecy off this machine are theirs [default: none]",
    ),
    "key": (
        "Keys",
        'the key column, or a list of several that together form one key. ``"mail:email"`` cleans '
        "the column ``mail`` by the normaliser ``email``, see :func:`lint`. Not needed for keys alone",
    ),
    "or_": (
        "Keys",
        "a list of further keys, each written as ``key`` is, by which rows match that do not match "
        'by the keys before: ``or_=[["first", "last"], ["phone:e164=DE"]]`` is two. Both sides give '
        "as many keys, in the same order [default: none]",
    ),
    "output": ("Output", '``"rows"``, or ``"indices"`` to leave ``rows`` out [default: rows]'),
    "delta": (
        "Input",
        "sender: that of an earlier run, uint64 of shape (1, 2); the receiver learns the position "
        "of one of its set bits [default: a random one]",
    ),
    "chunk": ("Output", "number of correlations in a part [default: 1000000; on a card 16777216]"),
    "hashed": (
        "Output",
        "random OTs, on both sides: the sender gets messages ``m0`` and ``m1``, the receiver bits and "
        "the messages ``m`` that they choose [default: correlated OTs]",
    ),
    "coefficients": ("Input", "sender: uint64, the constant one first, each below 2^61 - 1"),
    "points": ("Input", "receiver: uint64, each below 2^61 - 1"),
    "matrix": ("Input", "sender: uint64 or float64 of shape (rows, columns)"),
    "vector": ("Input", "receiver: as the matrix, of shape (columns,)"),
    "progress": (
        "Running",
        "True for a bar by tqdm, or a function of one :class:`Progress`, called on this thread "
        "[default: nothing is shown]",
    ),
    "cancel": (
        "Running",
        "a ``threading.Event`` that ends the call with :class:`Cancelled`; Ctrl-C ends it anyway "
        "[default: none]",
    ),
}
#: Options of the program whose argument of the same name means something else.
_OTHER = {("psi", "delta"), ("plan", "delta")}

_INDENTS: dict[str, Any] = {
    "initial_indent": " " * 4,
    "subsequent_indent": " " * 8,
    "break_on_hyphens": False,
}

F = TypeVar("F", bound=Callable[..., Any])


def names(arguments: type) -> list[str]:
    """The names of a group of arguments."""
    return list(arguments.__annotations__)


def _parameters(arguments: type) -> list[inspect.Parameter]:
    """The arguments of a group by name: first those that are required."""
    found = []
    for name, annotation in arguments.__annotations__.items():
        text = annotation.__forward_arg__
        default = _DEFAULTS.get(name, False if text == "bool" else None)
        if name == "ring" and "None" in text:
            default = None
        if text.startswith("Required["):
            text, default = text[len("Required[") : -1], inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY
        found.append(inspect.Parameter(name, kind, default=default, annotation=text))
    return sorted(found, key=lambda one: one.default is not inspect.Parameter.empty)


def _documented(verb: str, parameters: Sequence[inspect.Parameter]) -> str:
    """The arguments under their headings, with values and defaults."""
    verbs = ["psi", "lookup"] if verb == "plan" else [verb]
    options = {one["name"]: one for each in verbs for one in _volery.options(each)}
    groups: dict[str, list[str]] = {}
    for name in (one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY):
        option = options.get(name.rstrip("_"))
        if name in _OWN and (verb, name) not in _OTHER:
            heading, text = _OWN[name]
        else:
            assert option is not None, name
            heading, text = option["heading"], in_python(option["help"])
            # The site would take them for emphasis, a substitution and a link.
            text = re.sub(r"([*|]|\bor_(?!\w))", r"``\1``", text)
            if option["values"] and not all(value in text for value in option["values"]):
                text += f" [values: {', '.join(option['values'])}]"
            if option["default"] is not None and "[default:" not in text:
                text += f" [default: {option['default']}]"
        told = textwrap.fill(f"{name}: {text}.", 96, **_INDENTS)
        groups.setdefault(heading, []).append(told)
    return "\n\n".join("\n".join([f"{heading}:", *group]) for heading, group in groups.items())


def call(verb: str | None, arguments: type) -> Callable[[F], F]:
    """Give a function the arguments of a group: signature and a check of the names.

    With the name of a command also the documentation of its options.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function, eval_str=False)
        first = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        signature = own.replace(parameters=[*first, *_parameters(arguments)])

        @functools.wraps(function)
        def called(*given: Any, **options: Any) -> Any:
            try:
                bound = signature.bind(*given, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        if verb is not None:
            summary, *rest = inspect.cleandoc(function.__doc__ or "").split("\n\nExample:", 1)
            parts = [summary, _documented(verb, list(signature.parameters.values()))]
            called.__doc__ = "\n\n".join([*parts, *(f"Example:{one}" for one in rest)])
        called.__signature__ = signature  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate
