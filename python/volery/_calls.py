"""The parts that all calls share: options by name, lines of a run, progress, cancellation."""

from __future__ import annotations

import datetime
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
    """How far a call is: ``done`` of ``total`` steps of a phase; ``total`` is 0 if unknown."""

    phase: str
    done: int
    total: int


#: ``True``: a bar by tqdm where it is installed. A function is called on the calling thread.
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

    def line(self, level: int, text: str) -> None:
        logger.log(level, "%s", in_python(text))

    def phase(self, name: str, steps: int) -> None:
        self._put(Progress(name, 0, steps))

    def tick(self, done: int) -> bool:
        if done != self._last.done:
            self._put(Progress(self._last.phase, done, self._last.total))
        return self._cancel is not None and self._cancel.is_set()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _put(self, now: Progress) -> None:
        last, self._last = self._last, now
        if self._tell is not None and now != last:
            self._tell(now)

    def _show(self, now: Progress) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            # The lines of the run are in the log all the same.
            self._tell = None
            return
        if self._bar is None or self._bar.desc != now.phase:
            self.close()
            self._bar = tqdm(desc=now.phase, total=now.total or None, leave=False)
        self._bar.n = now.done
        self._bar.refresh()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"{name}: {type(value).__name__} is not a value of this argument")
    return f"{math.ceil(value)}s" if name in _TIMES else str(value)


def listed(name: str, value: object) -> str | None:
    """Names of columns as one word."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, Iterable):
        raise UsageError(f"{name}: give a name, or a list of names")
    return ",".join(map(quoted, value)) or None


def key_words(value: object) -> object:
    """Keys as words: an element of a list is one column, also if its name has a comma."""
    if not isinstance(value, (list, tuple)):
        return value
    return [_one_column(one) if isinstance(one, str) else one for one in value]


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

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} cannot be pickled: it holds secrets")
