"""The parts that all calls share: options by name, lines of a run, progress, cancellation."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import functools
import json
import logging
import math
import numbers
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from volery._errors import UsageError, in_python

logger = logging.getLogger("volery")

#: Seconds, rounded up to whole ones; a timedelta; or a text such as ``"90s"`` or ``"2h"``.
Time = Union[str, float, int, datetime.timedelta]


@dataclass(frozen=True)
class Progress:
    """How far a call is: ``done`` of ``total`` steps of a phase; ``total`` is 0 if unknown.

    ``bytes`` is how many the call has sent and received so far.
    """

    phase: str
    done: int
    total: int
    bytes: int = 0


#: ``True``: a bar by tqdm. A function is called on the calling thread.
ProgressOption = Union[bool, Callable[[Progress], object], None]


class Watch:
    """Receives what a run tells, on the thread that called."""

    def __init__(self, progress: ProgressOption = None, cancel: threading.Event | None = None):
        self._tell: Callable[[Progress], object] | None = None
        self._bar: Any = None
        if progress is True:
            self._tell = self._show
        elif callable(progress):
            self._tell = progress
        elif progress not in (None, False):
            raise UsageError("progress: give True, a function, or nothing")
        if cancel is not None and not hasattr(cancel, "is_set"):
            raise UsageError("cancel: give a threading.Event")
        self._cancel = cancel
        self._last = Progress("", 0, 0)

    def line(self, level: int, text: str, fields: str) -> None:
        logger.log(level, "%s", in_python(text), extra={"volery": json.loads(fields)})

    def phase(self, name: str, steps: int) -> None:
        self._put(Progress(name, 0, steps, self._last.bytes))

    def tick(self, done: int, moved: int = 0) -> bool:
        self._put(dataclasses.replace(self._last, done=done, bytes=moved))
        return self._cancel is not None and self._cancel.is_set()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _put(self, now: Progress) -> None:
        last, self._last = self._last, now
        if self._tell is not None and now != last:
            self._tell(now)

    def _show(self, now: Progress) -> None:
        """One bar of bytes for the whole call, after its first second; in words the phase."""
        if self._bar is None:
            self._bar = _bar()
            if self._bar is None:
                self._tell = None
                return
        share = f" {100 * now.done // now.total} %" if now.total else ""
        self._bar.set_description_str(now.phase + share, refresh=False)
        self._bar.update(now.bytes - self._bar.n)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@functools.cache
def _bar_class() -> Any:
    """The class of bars; it says once that there is none."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        logger.warning("progress=True shows nothing, because tqdm is not installed: pip install tqdm")
        return None
    return tqdm


def _bar() -> Any:
    made = _bar_class()
    # A phase without traffic moves the bar, too.
    return made and made(unit="B", unit_scale=True, leave=False, delay=1, miniters=0)


def words(options: Mapping[str, object]) -> list[str]:
    """Options as words of the command line; those that are None or False are left out."""
    found: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append(flag)
        elif isinstance(value, (list, tuple)):
            found.extend(f"{flag}={_word(name, one)}" for one in value)
        else:
            found.append(f"{flag}={_word(name, value)}")
    return found


def named(options: Mapping[str, object]) -> list[tuple[str, str]]:
    """Options by name, each with a value; those that are None or False are left out."""
    found: list[tuple[str, str]] = []
    for name, value in options.items():
        name = name.rstrip("_")
        if value is None or value is False:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        found.extend((name, "true" if one is True else _word(name, one)) for one in values)
    return found


_TIMES = ("wait", "timeout")


def _word(name: str, value: object) -> str:
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, decimal.Decimal)):
        raise UsageError(f"{name}: {type(value).__name__} is not a value of this argument")
    return f"{math.ceil(value)}s" if name in _TIMES else str(value)


def listed(name: str, value: object) -> str | None:
    """Names of columns as one word."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Iterable):
        raise UsageError(f"{name}: give a name, or a list of names")
    return ",".join(map(quoted, value)) or None


def key_words(value: object) -> Any:
    """A key as words: an element of a list is one column, also if its name has a comma."""
    if not isinstance(value, (list, tuple)):
        return value
    return [_one_column(one) if isinstance(one, str) else one for one in value]


def or_words(value: object) -> list[str]:
    """Further keys as words, one for each key: each key is written as ``key`` is.

    A list of several strings is refused: as ``key`` it would be one key of several columns, as a
    list of keys it is several keys, by which other rows match.
    """
    keys = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else None
    if keys is None or not all(isinstance(key, (str, list, tuple)) for key in keys):
        raise UsageError("or_: give a list of keys, each a name or a list of names")
    if len(keys) > 1 and all(isinstance(key, str) for key in keys):
        one, several = [keys], [[key] for key in keys]
        raise UsageError(
            f"or_: {keys} may mean one key of {len(keys)} columns, or {len(keys)} keys",
            f"one key: or_={one}; {len(keys)} keys: or_={several}",
        )
    found = []
    for key in keys:
        columns = key_words(key)
        found.append(columns if isinstance(columns, str) else ",".join(_word("or_", one) for one in columns))
    return found


def _one_column(text: str) -> str:
    if "," not in text or text.startswith('"'):
        return text
    name, colon, spec = text.rpartition(":")
    if not colon or "," in spec:
        name, spec = text, ""
    return quoted(name) + (f":{spec}" if spec else "")


def quoted(name: str) -> str:
    """The name of a column as options take it: one with a comma or a colon stands in quotes."""
    if any(character in name for character in ',:"'):
        return '"' + name.replace('"', '""') + '"'
    return name


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Here:
    """An object with threads and sockets, which a forked process does not have."""

    def __init__(self) -> None:
        self._made_at = _forks

    def _check_fork(self) -> None:
        if self._made_at != _forks:
            raise UsageError(
                f"{type(self).__name__}: it was made before this process was forked",
                "make it in this process; multiprocessing: use the start method 'spawn'",
            )

    #: Why there is no copy in another process.
    _pickled = "it holds a connection of this process; make the call here, and pass on its result"

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be pickled: {self._pickled}")
