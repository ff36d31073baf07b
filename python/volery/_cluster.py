"""What all cluster engines share: storage, the parent of a worker, the steps of a driver.

A side has a folder of its own for each run, ``work/RUN``, on storage that all its machines see. On
mounted storage its owner alone has access to it: files have the mode 0600, folders 0700. With
``work_group`` the group has access, too, but for ``driver/``: 0640, and 02770, for each member makes
files there.

====================  =============================================================================
``facts.json``        what this side told the peer about its table, and the settings of the plan
``staged/``           tables of the engine: rows with their items, distinct items of each rule
``driver/``           secrets of the driver, drawn before the sides meet: this side's noise, the
                      opening of the commitment to its table, and its digest
``manifest.json``     what both sides agreed on, which workers get
``starts/N``          each start of the driver
``attempts/W.A``      each start of a worker
``begun/ found/ done/ complete/``  the journal of the workers, which the program writes; for
                      totals ``found/`` has this side's shares, each with its session in its name
``totals.json``       totals that were opened
``totals.told``       the other side has its totals, too
``worked/R-W.aA``     traffic, time and memory of a worker
``failed/N-W.json``   an error of a worker that a repetition would not help
====================  =============================================================================

Every object is written whole or not at all. None changes, but for facts and tables before the two
sides have agreed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import re
import secrets
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from volery._calls import ProgressOption, Time, Watch, key_words, listed, named, or_words, words
from volery._errors import DataError, Error, NetworkError, UsageError, from_status
from volery._options import SideOptions, call
from volery._results import Match, Report, Seconds

if TYPE_CHECKING:
    import pyarrow

    from typing_extensions import Unpack

    from volery._options import Key, Number, Path, Role, Security

logger = logging.getLogger("volery")
T = TypeVar("T")

#: Starts of a worker in a row in which it finished no shard.
ATTEMPTS = 3
#: Time to look for a driver that is usually gone.
BRIEFLY = "5s"
#: The options of a result.
RESULT = (
    "result",
    "to",
    "bound",
    "decimals",
    "minimum",
    "epsilon",
    "delta",
    "group_by",
    "groups",
)


class Store:
    """Objects below a folder, which is a path or a URL such as ``s3://bucket/folder``.

    Paths are for storage that all machines mount. Other URLs are those of ``pyarrow.fs``; the
    credentials are those that Arrow finds in the environment of the process.
    """

    def __init__(self, url: Path, group: str | int | None = None) -> None:
        text = os.fspath(url)
        scheme = urlsplit(text).scheme
        if scheme == "file":
            text = unquote(urlsplit(text).path)
        self._local = scheme in ("", "file")
        if group is not None and not self._local:
            raise UsageError(
                f"work_group: {scheme}:// has access rules of its own",
                "remove it, and give the folder the access that its storage has",
            )
        #: As engines take it.
        self.url = pathlib.Path(text).absolute().as_uri() if self._local else text.rstrip("/")
        self._base = os.path.abspath(text) if self._local else ""
        self._files: Any = None
        #: The group that has access to files and folders on mounted storage, beside their owner.
        self._group = group

    def __getstate__(self) -> dict[str, Any]:
        # A connection is for one process.
        return {**self.__dict__, "_files": None}

    def below(self, name: str) -> Store:
        """The folder ``name`` of this one."""
        url = os.path.join(self._base, name) if self._local else f"{self.url}/{name}"
        return Store(url, self._group)

    def private(self, name: str) -> Store:
        """The folder ``name`` of this one, to which no group has access."""
        folder = self.below(name)
        folder._group = None
        return folder

    def close(self, name: str) -> None:
        """Make the folder ``name``, and give nobody else access to it and to what is in it.

        Engines write tables with the access that new files of their processes have.
        """
        if not self._local:
            return
        folder = os.path.join(self._base, name)
        self._make(folder)
        self._set(self._base, 0o700)
        for place, folders, files in os.walk(folder):
            self._set(place, 0o700)
            for file in files:
                self._set(os.path.join(place, file), 0o600)

    def _make(self, folder: str) -> None:
        """Make a folder of mounted storage, and those above it."""
        above = os.path.dirname(folder)
        if not os.path.isdir(above):
            self._make(above)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
            self._set(folder, 0o700)

    def _set(self, place: str | int, mode: int) -> None:
        """Set group and access of a file or folder of this user; without a group it is ``mode``."""
        found = os.stat(place, follow_symlinks=False) if isinstance(place, str) else os.stat(place)
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            return
        if self._group is not None:
            # Each member makes files in a folder; they get its group.
            mode = 0o2770 if mode == 0o700 else 0o640
            try:
                os.chown(place, -1, self._gid())
            except PermissionError:
                raise UsageError(
                    f"work_group: this user is not in the group {self._group}",
                    "name a group that all users of drivers and workers are in",
                ) from None
        os.chmod(place, mode)

    def _gid(self) -> int:
        if isinstance(self._group, int):
            return self._group
        import grp

        try:
            return grp.getgrnam(str(self._group)).gr_gid
        except KeyError:
            raise UsageError(f"work_group: this machine has no group {self._group}") from None

    def get(self, name: str) -> bytes | None:
        """The object, or None if there is none."""
        try:
            if self._local:
                return pathlib.Path(self._path(name)).read_bytes()
            with self._remote().open_input_stream(self._path(name)) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        """Write an object, in place of one of this name."""
        self._put(name, data, os.replace)

    def put_new(self, name: str, data: bytes) -> bool:
        """Write an object, if there is none of this name; whether that was so."""
        if not self._local and self.get(name) is not None:
            # Arrow has no conditional write. A shard has one writer: the gateway sees to that.
            return False
        try:
            self._put(name, data, os.link)
        except FileExistsError:
            return False
        return True

    def _put(self, name: str, data: bytes, appear: Callable[[str, str], None]) -> None:
        path = self._path(name)
        folder, _, last = path.rpartition("/")
        beside = f"{folder}/.{last}.{secrets.token_hex(4)}"
        if self._local:
            self._make(folder)
            try:
                new = os.O_CREAT | os.O_EXCL | os.O_WRONLY
                with open(os.open(beside, new, 0o600), "wb") as local:
                    self._set(local.fileno(), 0o600)
                    local.write(data)
                    local.flush()
                    os.fsync(local.fileno())
                appear(beside, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(beside)
            place = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(place)
            finally:
                os.close(place)
            return
        files = self._remote()
        if files.type_name in ("s3", "gcs", "abfs"):
            # An object appears when its upload is complete.
            with files.open_output_stream(path) as remote:
                remote.write(data)
            return
        files.create_dir(folder)
        with files.open_output_stream(beside) as remote:
            remote.write(data)
        files.move(beside, path)

    def list(self, prefix: str) -> list[str]:
        """The names that begin with ``FOLDER/`` and the rest of the prefix, in ascending order."""
        folder = prefix.rpartition("/")[0]
        if self._local:
            try:
                names = os.listdir(self._path(folder))
            except FileNotFoundError:
                return []
        else:
            from pyarrow.fs import FileSelector

            place = FileSelector(self._path(folder), allow_not_found=True)
            names = [one.base_name for one in self._remote().get_file_info(place)]
        found = (f"{folder}/{name}" for name in names if not name.startswith("."))
        return sorted(name for name in found if name.startswith(prefix))

    def _path(self, name: str) -> str:
        if name.startswith("/") or ".." in name.split("/"):
            raise UsageError(f"work: {name!r} is no name of an object")
        self._remote()
        return f"{self._base}/{name}"

    def _remote(self) -> Any:
        if self._files is None and not self._local:
            from pyarrow.fs import FileSystem

            # The name that Hadoop has for S3.
            url = re.sub("^s3[an]:", "s3:", self.url)
            try:
                self._files, self._base = FileSystem.from_uri(url)
            except (OSError, ValueError, NotImplementedError) as error:
                raise UsageError(f"work: {self.url}: {error}") from None
        return self._files

    def __repr__(self) -> str:
        return f"<Store: {self.url}>"


class Secret:
    """A text that no message and no log shows."""

    def __init__(self, text: str) -> None:
        self._text = text

    def show(self) -> str:
        """The text."""
        return self._text

    def __repr__(self) -> str:
        return "<Secret>"


class Again(Exception):
    """The parent has not what its worker asks for: the engine should start the task again."""


class Shards:
    """The items of a worker, shard by shard, from batches in ascending order of shards.

    The batches have the columns ``shard``, ``item`` and those of ``more``: ``payload``, or ``value``
    and ``group``. In the last row the number is above that of every shard: Spark ends the batches
    of a task that it cancels as if there were no more, and the rest of a shard would be missing.
    The two shards that were asked for last are kept, for a worker that starts again.
    """

    def __init__(self, batches: Iterator[pyarrow.RecordBatch], more: Sequence[str]) -> None:
        import pyarrow

        types = {"payload": pyarrow.binary(), "value": pyarrow.int64(), "group": pyarrow.int32()}
        columns = [("item", pyarrow.binary(16)), *((name, types[name]) for name in more)]
        self._schema = pyarrow.schema(columns)
        self._batches = batches
        self._rest: pyarrow.RecordBatch | None = None
        self._next = 0
        self._kept: dict[int, bytes] = {}

    def __call__(self, shard: int) -> bytes:
        """The Arrow stream of a shard's items."""
        if shard not in self._kept:
            if shard < self._next:
                raise Again(f"shard {shard} was read before")
            self._kept[shard] = self._stream(self._read(shard))
            for earlier in sorted(self._kept)[:-2]:
                del self._kept[earlier]
        return self._kept[shard]

    def _read(self, shard: int) -> list[pyarrow.RecordBatch]:
        self._next = shard + 1
        found: list[pyarrow.RecordBatch] = []
        while True:
            batch, self._rest = self._rest, None
            if batch is None:
                batch = next(self._batches, None)
            if batch is None:
                raise Again(f"the rows ended within shard {shard}, or before it")
            numbers = batch.column("shard").to_numpy(zero_copy_only=False)
            first, after = numbers.searchsorted(shard), numbers.searchsorted(shard, "right")
            if after > first:
                found.append(batch.slice(first, after - first))
            if after < len(numbers):
                self._rest = batch.slice(after)
                return found

    def _stream(self, batches: list[pyarrow.RecordBatch]) -> bytes:
        import pyarrow

        out = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(out, self._schema) as stream:
            for batch in batches:
                stream.write_batch(batch.select(self._schema.names).cast(self._schema))
        data: bytes = out.getvalue().to_pybytes()
        return data


@dataclass(frozen=True)
class Job:
    """A worker's part of one rule, as the engine sends it to a machine."""

    store: Store
    role: str
    gateway: str
    rule: int
    #: The number of the driver's start.
    start: int
    #: What stands beside an item: as for :class:`Shards`.
    more: tuple[str, ...]
    #: Of each worker.
    threads: int
    wait: Time | None = None
    timeout: Time | None = None
    #: On the way to the gateway; it may hold a password.
    proxy: str | None = field(default=None, repr=False)

    def run(self, worker: int, ticket: Secret, batches: Iterator[pyarrow.RecordBatch]) -> None:
        """Run the worker, whose run certificate is ``ticket``, until its shards are done.

        An error that the engine must not repeat is put to ``failed/``, where the driver finds it.

        Raises:
            Again: the engine should run the task again.
        """
        try:
            self._attempts(worker, ticket, Shards(batches, self.more))
        except Error as error:
            told = {"status": error.status, "message": error.message, "hint": error.hint}
            name = f"failed/{self.start:05}-{worker:05}.json"
            self.store.put(name, json.dumps({"worker": worker, **told}).encode())

    def _attempts(self, worker: int, ticket: Secret, shards: Shards) -> None:
        without = 0
        while True:
            begun = self._begun()
            self._check_newest(worker, 0)
            told = json.dumps({"start": self.start, "rule": self.rule}).encode()
            attempt = _number(self.store, f"attempts/{worker:05}.", told)
            try:
                return self._attempt(worker, attempt, ticket, shards)
            except (NetworkError, Killed) as error:
                self._check_newest(worker, attempt)
                without = 0 if self._begun() > begun else without + 1
                # One that met nobody at the gateway has waited for as long as it should.
                if without == ATTEMPTS or error.message.startswith("gateway "):
                    raise
                logger.warning("worker %s starts again: %s", worker, error.message)
                time.sleep(2**without)

    def _check_newest(self, worker: int, attempt: int) -> None:
        """Give way to a newer start of the worker, if there is one."""
        prefix = f"attempts/{worker:05}."
        numbers = [int(name.removeprefix(prefix)) for name in self.store.list(prefix)]
        newest = max(numbers, default=0)
        told = json.loads(self.store.get(f"{prefix}{newest:05}") or b"{}")
        if told.get("start", 0) > self.start:
            raise UsageError(
                "work: another driver has started this run since",
                "run one driver at a time for each side of a run",
            )
        if 0 < attempt < newest:
            raise Again(f"worker {worker} was started again elsewhere")

    def _begun(self) -> int:
        """How many shards were begun at least once: a new one means that another is done."""
        return len([name for name in self.store.list(f"begun/{self.rule}-") if name.endswith(".1")])

    def _attempt(self, worker: int, attempt: int, ticket: Secret, shards: Shards) -> None:
        manifest = self.store.get("manifest.json")
        if manifest is None:
            raise UsageError(
                f"work: this machine does not see {self.store.url}/manifest.json",
                "choose a place that the driver and all workers see, such as an object store",
            )
        options = {
            "role": self.role,
            "gateway": self.gateway,
            "worker": worker,
            "rule": self.rule,
            "attempt": attempt,
            "threads": self.threads,
            "wait": self.wait,
            "timeout": self.timeout,
            "work": "-",
            "log": "json",
        }
        with tempfile.TemporaryDirectory(prefix="volery-") as folder:
            file = pathlib.Path(folder, "manifest.json")
            with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as out:
                out.write(manifest)
            with _piped(ticket.show().encode()) as pipe:
                files = {"manifest": file, "ticket": f"/dev/fd/{pipe}"}
                command = [sys.executable, "-m", "volery", "worker", *words({**files, **options})]
                worked = serve(command, self.store, shards, keep=(pipe,), proxy=self.proxy)
        if worked is not None:
            name = f"worked/{self.rule}-{worker:05}.a{attempt}.json"
            self.store.put(name, json.dumps(worked).encode())


class Killed(Error):
    """A signal ended the worker."""


def _number(store: Store, prefix: str, data: bytes) -> int:
    """The next number of objects that are counted from 1."""
    number = 1 + max((int(name.removeprefix(prefix)) for name in store.list(prefix)), default=0)
    while not store.put_new(f"{prefix}{number:05}", data):
        number += 1
    return number


@contextlib.contextmanager
def _piped(data: bytes) -> Iterator[int]:
    """A pipe with these few bytes, for a child: they are in no file."""
    source, into = os.pipe()
    try:
        os.write(into, data)
        os.close(into)
        yield source
    finally:
        os.close(source)


def serve(
    command: list[str],
    store: Store,
    shards: Callable[[int], bytes],
    keep: tuple[int, ...] = (),
    proxy: str | None = None,
) -> dict[str, Any] | None:
    """Start a worker and answer its requests until it ends.

    The requests are lines of JSON on its standard output, a ``put`` with bytes behind it; each
    answer is a line of JSON on its standard input, with bytes behind it where there are some. The
    worker ends when its standard input does, so it does not outlive this process.

    Returns:
        What it says of its work, if it had some.

    Raises:
        Error: of the class of its exit status.
        Killed: a signal ended it.
    """
    pipe = subprocess.PIPE
    # All users see the words of a process, and the URL of a proxy may hold a password.
    env = {**os.environ, "VOLERY_PROXY": proxy} if proxy else None
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=keep, env=env)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    said = _Said(child.stderr)
    worked = None
    try:
        worked = _answer(child.stdout, child.stdin, store, shards)
        child.stdin.close()
        status = child.wait()
    except BrokenPipeError:
        # It ended before it had its answer; its status says why.
        status = child.wait()
    finally:
        child.kill()
        child.wait()
        said.join()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        child.stdout.close()
        child.stderr.close()
    if status < 0:
        raise Killed(f"signal {-status} ended the worker", "look at the memory of its machine")
    if status > 0:
        raise from_status(status, said.error or f"the worker ended with {status}", said.hint)
    return worked


def _answer(
    requests: IO[bytes], answers: IO[bytes], store: Store, shards: Callable[[int], bytes]
) -> dict[str, Any] | None:
    worked: dict[str, Any] | None = None

    def answer(told: Mapping[str, object], data: bytes = b"") -> None:
        answers.write(json.dumps(told).encode() + b"\n" + data)
        answers.flush()

    for line in requests:
        request = json.loads(line)
        if "list" in request:
            answer({"names": store.list(_journal(request["list"]))})
        elif "put" in request:
            data = requests.read(request["bytes"])
            if len(data) < request["bytes"]:
                break
            is_new = store.put_new(_journal(request["put"]), data)
            answer({"done": True} if is_new else {"exists": True})
        elif "shard" in request:
            data = shards(request["shard"])
            answer({"bytes": len(data)}, data)
        elif "worked" in request:
            worked = request["worked"]
        elif "progress" in request:
            logger.info("%s", json.dumps(request["progress"]))
    return worked


def _journal(name: str) -> str:
    """The name of an object of the journal; a worker has access to no other."""
    if name.partition("/")[0] not in ("begun", "found", "done", "complete"):
        raise Error(f"a worker asked for {name!r}, which is none of its objects")
    return name


class _Said(threading.Thread):
    """Passes on what a worker says on standard error, and keeps its error and hint."""

    def __init__(self, lines: IO[bytes]) -> None:
        super().__init__(name="volery worker's messages", daemon=True)
        self._lines = lines
        self.error: str | None = None
        self.hint: str | None = None
        self.start()

    def run(self) -> None:
        for line in self._lines:
            text = line.decode(errors="replace").rstrip()
            told: dict[str, Any] = {}
            with contextlib.suppress(ValueError):
                told = json.loads(text) if text.startswith("{") else {}
            if told.get("level") == "error":
                self.error, self.hint = told.get("message"), told.get("hint")
            # Wrong options are told as text.
            elif text.startswith("error: "):
                self.error, self.hint = text.removeprefix("error: "), None
            elif text.startswith("hint: "):
                self.hint = text.removeprefix("hint: ")
            print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Plan:
    """What a run of one side will cost and reveal; nothing was sent."""

    run: str
    role: str
    verb: str
    #: Columns and normalisers of the keys.
    keys: str
    rows: int
    #: Different keys of this side, rule by rule.
    sizes: list[int]
    workers: int
    security: str
    #: Columns of the sender's payload with their types.
    payload: str | None
    #: In both directions, about, if the peer has as many keys as assumed.
    bytes: int
    #: What each side learns, in sentences.
    reveals: list[str]
    #: The same on both sides if their settings are.
    hash: str
    #: ``"rows"``, or the number.
    result: str = "rows"

    def __str__(self) -> str:
        sizes = ", ".join(f"{size:,}" for size in self.sizes)
        verb = self.verb if self.result == "rows" else f"{self.verb}, {self.result}"
        lines = [
            f"run {self.run}, {self.role} of {verb}, {self.security}, {self.workers} workers",
            f"{self.rows:,} rows; distinct keys: {sizes}",
            f"about {self.bytes / 1e6:,.0f} MB on the network, both directions",
            *(f"* {line}" for line in self.reveals),
            f"plan {self.hash}: the other side's must be the same",
        ]
        return "\n".join(lines)

    __repr__ = __str__


_SHARES = re.compile(r"found/0-([0-9]+)\.a([0-9]+)\.[0-9a-f]{64}")
_RUN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ADDRESS = re.compile(r".+:[0-9]+")


class _Keeper(Watch):
    """Keeps an object before the other side goes on."""

    def __init__(self, store: Store, name: str, progress: ProgressOption) -> None:
        super().__init__(progress)
        self._store, self._name = store, name

    def keep(self, text: str) -> None:
        self._store.put(self._name, text.encode())

    def __enter__(self) -> _Keeper:
        return self


class _OpeningKeeper(_Keeper):
    """Keeps the totals, and then the word that the other side has them, too."""

    def keep(self, text: str) -> None:
        self._store.put("totals.json" if text else "totals.told", text.encode())

    def __enter__(self) -> _OpeningKeeper:
        return self


@dataclass
class Side:
    """One side of a run: the settings, and the steps of a driver that all engines share."""

    run: str
    role: Role
    peer: str
    gateway: str
    work: Path
    workers: int
    identity: Path | None = None
    identity_command: str | None = None
    identity_passphrase: str | None = None
    security: Security | None = None
    protocol: str | None = None
    shards: int | None = None
    result: str | None = None
    to: str | None = None
    bound: Number | None = None
    decimals: int | None = None
    minimum: int | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    group_by: str | None = None
    groups: Key | None = None
    wait: Time | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout: Time | None = None
    allow_group_readable_identity: bool = False
    work_group: str | int | None = None
    log: Path | None = None
    progress: ProgressOption = None
    #: What follows from the result, if it is a number.
    totals: dict[str, Any] | None = field(init=False, default=None)
    store: Store = field(init=False)
    plan: Plan | None = field(init=False, default=None)
    facts: dict[str, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not _RUN.fullmatch(self.run) or self.run.startswith("."):
            raise UsageError("run: give 1 to 64 letters, digits, '.', '_' or '-'")
        if self.role not in ("sender", "receiver"):
            raise UsageError("role: give 'sender' or 'receiver'")
        if isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 1:
            raise UsageError("workers: give a number of at least 1, the same on both sides")
        if not _ADDRESS.fullmatch(self.gateway):
            raise UsageError("gateway: give 'HOST:PORT'")
        self.store = Store(self.work, self.work_group).below(self.run)
        self.totals = self._totals(0, 0)

    def begin_plan(self) -> None:
        """Forget an earlier plan, and close the folder of the run before tables come into it."""
        self.plan = None
        self.store.close("staged")

    def event(self, name: str, **more: object) -> None:
        """Tell what happens: to the logger, and to the file ``log`` as a line of JSON."""
        text = json.dumps({"event": name, "run": self.run, "role": self.role, **more})
        logger.info("%s", text)
        if self.log is not None:
            with open(self.log, "a", encoding="utf-8") as file:
                print(text, file=file)

    def earlier(self) -> dict[str, Any] | None:
        """The facts of an earlier plan of this run."""
        found = self.store.get("facts.json")
        return None if found is None else dict(json.loads(found))

    def has_agreed(self) -> bool:
        """Whether the two sides have met."""
        return self.store.get("manifest.json") is not None

    def check_same(self, **now: object) -> None:
        """Refuse a run that goes on with other input or settings than it began with."""
        earlier = self.earlier() or {}
        other = [name for name, value in now.items() if earlier.get(name) != value]
        if "digest" in other:
            raise UsageError(
                f"run {self.run}: its table is not the one that it began with",
                "give that table, for instance by its version, or choose another name for the run",
            )
        if other:
            raise UsageError(
                f"run {self.run}: other than when it began: {', '.join(other)}",
                "give what it began with, or choose another name for the run",
            )

    def _totals(self, own: int, peer: int) -> dict[str, Any] | None:
        """What follows from the result for so many keys; None for rows."""
        given = [name for name in RESULT if getattr(self, name) is not None]
        if self.result in (None, "rows") and given in ([], ["result"]):
            return None
        from volery import _volery

        found = _volery.totals(self.result_options(), [own, peer])
        return None if found is None else dict(json.loads(found))

    def result_options(self) -> list[tuple[str, str]]:
        """What the run computes, as options of the program."""
        options = {name: getattr(self, name) for name in RESULT}
        rows = self.result in (None, "rows")
        options["protocol"] = self.protocol or ("vole" if rows else None)
        options["security"] = self.security or ("malicious" if rows else None)
        options["groups"] = listed("groups", self.groups)
        return named({"role": self.role, **options})

    def settings(self) -> dict[str, Any]:
        """What both sides must have alike."""
        alike = {"run": self.run, "workers": self.workers, "shards": self.shards}
        if self.totals is None:
            security, protocol = self.security or "malicious", self.protocol or "vole"
            return {**alike, "security": security, "protocol": protocol}
        protocol, result = self.totals["protocol"], self.totals["alike"]
        return {**alike, "security": "semi-honest", "protocol": protocol, "result": result}

    def reveals(self) -> list[str]:
        """What each side learns."""
        if self.totals is None:
            return _reveals(self.role, self.facts)
        return [*self.totals["reveals"], _GATEWAY]

    def check_keys(self, beyond: int, split: int) -> None:
        """Refuse tables with keys whose rows do not fit together: so many of each kind."""
        hint = "a key has one group: correct the rows"
        if beyond:
            what = "have values whose sum is beyond bound"
            hint = "the bound holds for a key: correct the values, or raise bound on both sides"
        elif split:
            what = "are in different groups of group_by"
        else:
            return
        keys = beyond or split
        raise DataError(f"the rows of {keys} {'key' if keys == 1 else 'keys'} {what}", hint)

    def planned(self, facts: dict[str, Any], peer_rows: int | None) -> Plan:
        """Keep the facts and say what follows from them."""
        self.facts = facts
        if self.earlier() != facts:
            self.store.put("facts.json", json.dumps(facts).encode())
        settings = self.settings()
        text = json.dumps({**settings, "keys": facts["keys"], "verb": facts["verb"]}, sort_keys=True)
        # As of performance.md; the values of a lookup come on top.
        an_item = 33 if settings["security"] == "malicious" else 27
        longest = facts["payload"][1] if facts["payload"] else 0
        items = sum(max(size, peer_rows or size) for size in facts["sizes"])
        own = facts["sizes"][0]
        about = None if self.totals is None else self._totals(own, peer_rows or own)
        self.plan = Plan(
            run=self.run,
            role=self.role,
            verb=facts["verb"],
            keys=facts["keys"],
            rows=facts["rows"],
            sizes=facts["sizes"],
            workers=self.workers,
            security=settings["security"],
            payload=facts["payload"][0] if facts["payload"] else None,
            bytes=items * (an_item + longest) if about is None else about["bytes"],
            reveals=self.reveals(),
            hash=hashlib.sha256(text.encode()).hexdigest()[:16],
            result="rows" if about is None else about["kind"],
        )
        self.event("planned", rows=facts["rows"], sizes=facts["sizes"], hash=self.plan.hash)
        return self.plan

    @contextlib.contextmanager
    def _identity(self) -> Iterator[dict[str, Any]]:
        """The options of this side's identity, fetched if it is on an object store."""
        options: dict[str, Any] = {"role": self.role, "peer": self.peer}
        options["proxy"] = self.proxy
        options["allow_group_readable_identity"] = self.allow_group_readable_identity
        options["identity_command"] = self.identity_command
        options["identity_passphrase"] = self.identity_passphrase
        if self.identity is None or "://" not in os.fspath(self.identity):
            yield {**options, "identity": self.identity}
            return
        store = Store(self.identity)
        with tempfile.TemporaryDirectory(prefix="volery-") as folder:
            for name in store.list("./"):
                file = pathlib.Path(folder, name.removeprefix("./"))
                with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as out:
                    out.write(store.get(name) or b"")
            yield {**options, "identity": folder}

    def _secrets(self, line: list[tuple[str, str]], facts: str, has_agreed: bool) -> str:
        """The secrets of the driver; new ones are kept before the sides meet."""
        from volery import _volery

        store = self.store.private("driver")
        kept = store.get("secrets.json")
        earlier = None if kept is None else kept.decode()
        if has_agreed:
            if earlier is None:
                raise UsageError(
                    f"run {self.run}: {store.url}/secrets.json is missing",
                    "run the driver as the user who began the run, or choose another name for it",
                )
            return earlier
        secret = _volery.secrets(line, facts, earlier)
        if secret != earlier:
            store.put("secrets.json", secret.encode())
        return secret

    def agree(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """What both sides agreed on; ``names`` are those of the sender's columns in the result."""
        from volery import _volery

        earlier = self.store.get("manifest.json")
        self.event("waits for the peer", gateway=self.gateway)
        keeper = _Keeper(self.store, "manifest.json", self.progress)
        with self._identity() as options, keeper:
            del options["role"]
            options.update(run=self.run, workers=self.workers, shards=self.shards)
            options.update(verb=self.facts["verb"], gateway=self.gateway, value_name=listed("value_name", names))
            # A driver whose side has a manifest is usually past this; one that lost its own is not.
            options.update(wait=self.wait if earlier is None else BRIEFLY, timeout=self.timeout)
            names = ("keys", "sizes", "payload", "digest", "rows")
            facts = json.dumps({name: self.facts[name] for name in names})
            begun = bool(self.store.list("begun/"))
            text = None if earlier is None else earlier.decode()
            line = [*named(options), *self.result_options()]
            secret = self._secrets(line, facts, text is not None)
            try:
                text = _volery.agree(line, facts, secret, text, begun, keeper)
            except NetworkError:
                if text is None:
                    raise
        manifest: dict[str, Any] = json.loads(text)
        self.event("agreed", shards=manifest["buckets"], sizes=manifest["sizes"])
        return manifest

    def begin(self) -> tuple[int, tuple[Secret, ...]]:
        """The number of this start, and the run certificates of the workers."""
        from volery import _volery

        start = _number(self.store, "starts/", b"")
        manifest = (self.store.get("manifest.json") or b"").decode()
        with self._identity() as options:
            tickets = _volery.tickets(manifest, named(options))
        return start, tuple(map(Secret, tickets))

    def job(self, rule: int, start: int, threads: int) -> Job:
        """What all workers of a rule need."""
        more = tuple(self.facts.get("more", ()))
        if self.role == "sender" and self.facts["payload"] is not None:
            more = ("payload",)
        return Job(
            store=self.store,
            role=self.role,
            gateway=self.gateway,
            rule=rule,
            start=start,
            more=more,
            threads=threads,
            wait=self.wait,
            timeout=self.timeout,
            proxy=self.proxy,
        )

    def is_complete(self, rule: int) -> bool:
        """Whether all workers have finished a rule."""
        return len(self.store.list(f"complete/{rule}-")) == self.workers

    def follow(
        self, rule: int, start: int, shards: int, work: Callable[[], T], stop: Callable[[], object]
    ) -> T:
        """Run ``work``, which runs the workers of a rule, and tell how far they are.

        Raises:
            Error: that of a worker.
        """
        result: Future[T] = Future()

        def call() -> None:
            try:
                result.set_result(work())
            except BaseException as error:
                result.set_exception(error)

        told = -1
        thread = threading.Thread(target=call, name="volery workers", daemon=True)
        thread.start()
        with Watch(self.progress) as watch:
            try:
                watch.phase(f"match by key {rule + 1}", shards)
                while True:
                    thread.join(1.0)
                    self._raise_failed(start)
                    # A sender has nothing to keep.
                    kind = "done" if self.role == "receiver" else "begun"
                    if self.totals is not None:
                        kind = "found"
                    done = len({_shard(name) for name in self.store.list(f"{kind}/{rule}-")})
                    if done != told:
                        told = done
                        watch.tick(done, 0)
                        self.event("progress", rule=rule + 1, done=done, of=shards)
                    if not thread.is_alive():
                        break
            except BaseException:
                stop()
                thread.join(60.0)
                raise
        self._raise_failed(start)
        try:
            return result.result()
        except Exception as error:
            raise Error(
                f"the workers of key {rule + 1} did not finish: {_first_line(error)}",
                "run() goes on where they stopped; the log of the engine says more",
            ) from error

    def _raise_failed(self, start: int) -> None:
        names = self.store.list(f"failed/{start:05}-")
        errors = [json.loads(self.store.get(name) or b"{}") for name in names]
        # A lost connection may be the consequence of another worker's error.
        for one in sorted(errors, key=lambda one: one["status"] == NetworkError.status):
            message = f"worker {one['worker']}: {one['message']}"
            raise from_status(one["status"], message, one["hint"])

    def found(self, rule: int, shards: int) -> list[str]:
        """The receiver's results of a rule, one a shard: of several that of the lowest attempt."""
        first: dict[int, str] = {}
        names = self.store.list(f"done/{rule}-")
        for name in sorted(names, key=lambda name: int(name.rpartition(".a")[2].split(".")[0])):
            first.setdefault(_shard(name), name)
        if len(first) != shards:
            raise Error(f"{self.store.url}/done: {len(first)} of {shards} shards of key {rule + 1}")

        records = self._records([first[shard] for shard in sorted(first)])
        return [record["found"] for record in records]

    def _records(self, names: list[str]) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(16) as pool:
            return [json.loads(data or b"{}") for data in pool.map(self.store.get, names)]

    def _shares(self, shards: int) -> list[bytes]:
        """This side's shares, one object a shard: of several that of the highest attempt.

        Both sides of the highest attempt are of one session: a worker repeats the others.
        """
        newest: dict[int, tuple[int, str]] = {}
        for name in self.store.list("found/0-"):
            parts = _SHARES.fullmatch(name)
            if parts is None:
                # Nothing that a worker wrote.
                continue
            shard, found = int(parts[1]), (int(parts[2]), name)
            newest[shard] = max(found, newest.get(shard, found))
        if len(newest) != shards:
            raise Error(f"{self.store.url}/found: {len(newest)} of {shards} shards")
        names = [newest[shard][1] for shard in sorted(newest)]
        with ThreadPoolExecutor(16) as pool:
            data = list(pool.map(self.store.get, names))
        for name, one in zip(names, data):
            if one is None:
                raise DataError(f"{self.store.url}/{name}: it is not there")
        return [one for one in data if one is not None]

    def opened(self, began: float, manifest: dict[str, Any]) -> Match:
        """Open the number with the peer's driver, when all workers have finished."""
        from volery import _volery

        shares = self._shares(manifest["buckets"])
        earlier = self.store.get("totals.json")
        told = self.store.get("totals.told") is not None
        opened = None if earlier is None else (earlier.decode(), told)
        keeper = _OpeningKeeper(self.store, "totals.json", self.progress)
        self.event("opens the result", gateway=self.gateway)
        with self._identity() as options, keeper:
            options.update(gateway=self.gateway, wait=self.wait, timeout=self.timeout)
            no_group = self.facts.get("no_group")
            line, terms = named(options), json.dumps(manifest)
            secret = self._secrets(line, "", True)
            text = _volery.open_totals(line, (terms, secret), shares, opened, no_group, keeper)
        opening = Report.from_json(text)
        report = self.report(began, manifest)
        sent = report.bytes_sent, report.bytes_received, report.messages
        more = opening.bytes_sent, opening.bytes_received, opening.messages
        sent_bytes, received, messages = ((a or 0) + (b or 0) for a, b in zip(sent, more))
        result = {**opening.result, **report.result, "bytes_online": sent_bytes + received}
        report = dataclasses.replace(
            report,
            parameters=opening.parameters,
            assumption=opening.assumption,
            bytes_sent=sent_bytes,
            bytes_received=received,
            messages=messages,
            result=result,
        )
        return Match._of_totals(self.role, report)

    def report(self, began: float, manifest: dict[str, Any], **result: Any) -> Report:
        """What the run did and cost."""
        from volery import _volery

        records = self._records(self.store.list("worked/"))
        attempts = [name.rpartition("/")[2].split(".")[0] for name in self.store.list("attempts/")]
        terms = manifest["workers"]
        organisations = dict(zip(("sender", "receiver"), terms["organisations"]))
        report = Report(
            command=self.facts["verb"],
            role=self.role,
            n=sum(self.facts["sizes"]),
            security=terms["security"],
            version=_volery.__version__,
            bytes_sent=sum(one["bytes_sent"] for one in records),
            bytes_received=sum(one["bytes_received"] for one in records),
            messages=sum(one["messages"] for one in records),
            seconds=Seconds(total=time.monotonic() - began),
            peak_rss_bytes=max((one["peak_rss_bytes"] or 0 for one in records), default=0),
            date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            identity=organisations.pop(self.role),
            peer="".join(organisations.values()),
            revealed=self.reveals(),
            result={
                "protocol": terms["protocol"],
                "run": self.run,
                "rows": self.facts["rows"],
                "keys": self.facts["sizes"],
                "announced": manifest["sizes"],
                "shards": manifest["buckets"],
                "workers": self.workers,
                "starts": len(self.store.list("starts/")),
                "attempts": [attempts.count(f"{worker:05}") for worker in range(self.workers)],
                "shards_begun_again": len(
                    [name for name in self.store.list("begun/") if not name.endswith(".1")]
                ),
                **result,
            },
        )
        self.event("done", **report.result)
        return report


class SideMatch:
    """A match of one side, for any engine: the arguments, and the begin of a plan."""

    @call(None, SideOptions)
    def __init__(self, **options: Unpack[SideOptions]) -> None:
        self._side = Side(**options)
        self._left = False
        self._names: list[str] | None = None
        self._rule_column: str | None = None

    def __repr__(self) -> str:
        side = self._side
        return f"<{type(self).__module__}.Match: run {side.run}, {side.role}, {side.workers} workers>"

    def _begin(self, given: Mapping[str, Any]) -> tuple[list[tuple[str, str]], bool, dict[str, Any]]:
        """The options of a plan, whether the engine keeps the rows, and what is known of the facts."""
        side = self._side
        # What an earlier call has staged goes: a refused table must not run under its facts.
        side.begin_plan()
        if side.totals is not None:
            refuse_rows(side.totals["kind"], given)
        options = named(plan_words(side.role, given))
        self._left, self._rule_column = given["left"], given["rule_column"]
        names = given["value_name"]
        self._names = [names] if isinstance(names, str) else None if names is None else list(names)
        verb = "lookup" if given["payload"] else "psi"
        facts = {"verb": verb, "settings": side.settings(), "options": options}
        keeps = side.role == "receiver" and side.totals is None
        return [*side.result_options(), *options], keeps, facts


def plan_words(role: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a plan about keys and payload, as options of the program."""
    payload = given["payload"]
    if role == "receiver" and payload not in (None, False, True):
        raise UsageError("payload: the receiver gives True; value_name= names the columns")
    if role == "sender" and payload is True:
        raise UsageError("payload: the sender gives names of columns")
    for name in ("left", "value_name", "rule_column"):
        if role == "sender" and given[name]:
            raise UsageError(f"{name}: not for the sender; remove it")
    return {
        "key": key_words(given["key"]),
        "or_": or_words(given["or_"]) or None,
        "value": listed("payload", payload or None) if role == "sender" else None,
        "drop_repeated": given["drop_repeated"],
        "empty_keys": given["empty_keys"],
        "malformed": given["malformed"],
    }


def refuse_rows(kind: str, given: Mapping[str, Any]) -> None:
    """Refuse the arguments of a plan that a number does not have."""
    if given["or_"]:
        raise UsageError(
            f"or_: a {kind} is of the keys of one key", "remove or_, or use result='rows'"
        )
    for name in ("payload", "value_name", "left", "rule_column"):
        if given[name]:
            raise UsageError(f"{name}: a {kind} has no rows", "remove it, or use result='rows'")


# An error of the package in a task, as text: an engine may pass on no more of it.
_MARK = re.compile(r"volery error ([0-9a-f]+) end")


def marked(error: Error) -> RuntimeError:
    """The error, in a form in which :func:`unmarked` finds it."""
    told = {"status": error.status, "message": error.message, "hint": error.hint}
    # What is on the way may quote a text.
    return RuntimeError(f"volery error {json.dumps(told).encode().hex()} end")


def unmarked(text: str) -> Error | None:
    """The error of a task in what an engine says of it."""
    found = _MARK.search(text)
    if found is None:
        return None
    told = json.loads(bytes.fromhex(found[1]))
    return from_status(told["status"], told["message"], told["hint"])


def slices(hashes: Iterable[pyarrow.Table | pyarrow.RecordBatch]) -> list[dict[str, Any]]:
    """Parts of a table's digest, from the column ``digest`` of all rows of some first bytes, ascending."""
    from volery import _volery

    all_slices = _volery.Slices()
    for some in hashes:
        all_slices.add(some.select(["digest"]))
    return [{"slice": number, "hash": data, "rows": rows} for number, data, rows in all_slices.finish()]


def digest_of(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Digest and number of rows of a table, which depend on no order, from all its :func:`slices`."""
    from volery import _volery

    found = [(one["slice"], bytes(one["hash"]), one["rows"]) for one in parts]
    digest, rows = _volery.digest(found)
    return {"rows": rows, "digest": digest}


def value_names(
    own: Sequence[str], values: Sequence[str], given: Sequence[str] | None
) -> list[str]:
    """Names of the sender's columns beside the receiver's."""
    if given is None:
        given = [f"{name}_sender" if name in own else name for name in values]
    if len(given) != len(values):
        raise UsageError(
            f"value_name: {len(given)} names for {len(values)} columns of the sender",
            "give a name for each of them, and call plan and run again",
        )
    for at, name in enumerate(given):
        if name in own or name in given[:at]:
            raise UsageError(
                f"value_name: the result would have two columns {name!r}",
                "name the sender's columns with value_name, and call plan and run again",
            )
    return list(given)


def _shard(name: str) -> int:
    """The number of the shard in ``done/R-SSSSS.aA.json``."""
    return int(name.rpartition("-")[2].split(".")[0])


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


_GATEWAY = (
    "who runs the gateway sees both networks' addresses, the workers, sizes and times, no content"
)


def _reveals(role: str, facts: Mapping[str, Any]) -> list[str]:
    """What each side learns."""
    receiver, sender = ("the peer", "this side") if role == "sender" else ("this side", "the peer")
    lines = [
        "each side learns how many distinct keys the other has by each rule, rounded up to three "
        "digits, and the number and types of its key columns",
        f"{receiver} learns which of its own keys {sender} has",
    ]
    if facts["verb"] == "lookup":
        lines.append(
            f"{receiver} learns the columns of {sender}'s payload, their values for these keys, and "
            "the length of the longest payload"
        )
    if len(facts["sizes"]) > 1:
        lines.append(f"{receiver} learns by which rule each of its rows matched first")
    return [
        *lines,
        f"{sender} learns nothing more",
        "all shards have one size, so neither side learns how the other's keys spread over them",
        _GATEWAY,
    ]
