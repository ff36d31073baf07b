import builtins
from collections.abc import Sequence
from typing import Any, Literal, Protocol, final

import numpy
from numpy.typing import NDArray

__all__ = [
    "Batches",
    "Connection",
    "Items",
    "Slices",
    "Stream",
    "Table",
    "__version__",
    "agree",
    "columns",
    "digest",
    "found",
    "items",
    "keygen",
    "lint",
    "main",
    "matching",
    "matvec",
    "ope",
    "open",
    "open_totals",
    "options",
    "over",
    "pair",
    "secrets",
    "shards",
    "stream",
    "tickets",
    "totals",
    "verify",
]

__version__: str

class _Watch(Protocol):
    def line(self, level: int, text: str, fields: str) -> None: ...
    def phase(self, name: str, steps: int) -> None: ...
    def tick(self, done: int, bytes: int) -> bool: ...

class _Keeper(_Watch, Protocol):
    def keep(self, text: str) -> None: ...

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def of_bytes(bytes: builtins.bytes) -> Table: ...
    def columns(self) -> list[tuple[str, str]]: ...

@final
class Batches:
    def __new__(cls, data: object) -> Batches: ...

@final
class Connection:
    def close(self) -> None: ...
    @property
    def is_open(self) -> bool: ...

@final
class Stream:
    def next(self, watch: _Watch) -> dict[str, Any] | None: ...
    @property
    def report(self) -> str | None: ...
    def close(self) -> None: ...

def main(program: Sequence[str], words: Sequence[str]) -> int: ...
def columns(
    lists: Sequence[tuple[str, Sequence[Any], tuple[str, int] | None]],
) -> Table: ...
def open(named: Sequence[tuple[str, str]], watch: _Watch) -> Connection: ...
def over(object: object, named: Sequence[tuple[str, str]]) -> Connection: ...
def pair(timeout: float) -> tuple[Connection, Connection]: ...
def matching(
    verb: Literal["psi", "lookup"],
    named: Sequence[tuple[str, str]],
    data: object | None,
    rows: bool,
    connection: Connection | None,
    watch: _Watch,
) -> dict[str, Any]: ...
def options(verb: str) -> list[dict[str, Any]]: ...
def lint(
    files: Sequence[str],
    named: Sequence[tuple[str, str]],
    data: object | None,
    watch: _Watch,
) -> str: ...
def keygen(named: Sequence[tuple[str, str]], watch: _Watch) -> str: ...
def verify(
    folders: tuple[str, str], named: Sequence[tuple[str, str]], watch: _Watch
) -> str: ...
def ope(
    named: Sequence[tuple[str, str]],
    data: NDArray[numpy.uint64] | None,
    connection: Connection | None,
    watch: _Watch,
) -> tuple[str, NDArray[numpy.uint64] | None]: ...
def matvec(
    named: Sequence[tuple[str, str]],
    data: NDArray[numpy.uint64] | NDArray[numpy.float64],
    connection: Connection | None,
    watch: _Watch,
) -> tuple[str, NDArray[Any] | None]: ...
def stream(
    verb: Literal["cot", "random", "vole"],
    named: Sequence[tuple[str, str]],
    delta: Sequence[int] | None,
    width: int,
    chunk: int | None,
    connection: Connection | None,
) -> Stream: ...

@final
class Items:
    @property
    def description(self) -> str: ...
    @property
    def payload(self) -> str | None: ...
    def batch(self, data: object) -> Table: ...
    def counts(self) -> dict[str, Any]: ...

def items(schema: object, named: Sequence[tuple[str, str]]) -> Items: ...
def shards(key: Sequence[int], count: int, data: object) -> NDArray[numpy.uint32]: ...

@final
class Slices:
    def __new__(cls) -> Slices: ...
    def add(self, data: object) -> None: ...
    def finish(self) -> list[tuple[int, bytes, int]]: ...

def digest(slices: Sequence[tuple[int, bytes, int]]) -> tuple[str, int]: ...
def secrets(named: Sequence[tuple[str, str]], facts: str, earlier: str | None) -> str: ...
def agree(
    named: Sequence[tuple[str, str]],
    facts: str,
    secret: str,
    earlier: str | None,
    begun: bool,
    watch: _Keeper,
) -> str: ...
def open_totals(
    named: Sequence[tuple[str, str]],
    agreed: tuple[str, str],
    found: Sequence[bytes],
    opened: tuple[str, bool] | None,
    no_group: int | None,
    watch: _Keeper,
) -> str: ...
def totals(named: Sequence[tuple[str, str]], sizes: Sequence[int]) -> str | None: ...
def tickets(manifest: str, named: Sequence[tuple[str, str]]) -> list[str]: ...
def found(data: bytes, payload: str | None = None) -> Table: ...
