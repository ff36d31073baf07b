"""Exceptions, one class for each exit status of the program."""

from __future__ import annotations

import re


class Error(Exception):
    """A call failed.

    ``status`` is the exit status that the program would have, ``hint`` says what to do where
    that is known, ``message`` what happened. No key and no value is in any of them.
    """

    status: int = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"


class DataError(Error):
    """A file or table cannot be used, or the disk is full."""


class UsageError(Error, ValueError):
    """An argument is wrong or missing, or arguments exclude each other."""

    status = 2


class PeerError(Error):
    """The peer broke the protocol, a check of its messages failed, or it has another identity."""

    status = 3


class NetworkError(Error, ConnectionError):
    """The peer or the network went away, or a time limit passed."""

    status = 4


class SettingsDifferError(Error):
    """The two sides were started with different settings."""

    status = 5


class Cancelled(Error):
    """The event given as ``cancel`` was set."""


_CLASSES: dict[int, type[Error]] = {
    1: DataError,
    2: UsageError,
    3: PeerError,
    4: NetworkError,
    5: SettingsDifferError,
}

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return "or_" if name == "or" else name


def from_status(status: int, message: str, hint: str | None) -> Error:
    """The exception for a failure of the program: its options become names of arguments."""
    if status == 1 and message == "cancelled":
        return Cancelled(message)
    if hint is not None:
        hint = _OPTION.sub(_argument, hint)
    return _CLASSES.get(status, Error)(_OPTION.sub(_argument, message), hint)
