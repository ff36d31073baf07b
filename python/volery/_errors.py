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

# The program's words and what they are in Python: `'volery keygen --out DIR'`, `'--role <ROLE>'`,
# `--peer FINGERPRINT`, `--both`.
_COMMAND = re.compile(
    r"'volery (?P<verb>psi|lookup|lint|cot|vole|ope|matvec|keygen|verify)(?P<options>[^']*)'"
)
_PLACE = re.compile(r"'--(?P<name>[a-z-]+) <[^>]*>'")
_VALUE = re.compile(r"(?<![\w-])--(?P<name>[a-z-]+)[ =](?P<value>[A-Z][A-Z:.]*\b)")
_CHOICE = re.compile(
    r"(?<![\w-])--(?P<name>[a-z-]+)[ =](?P<value>skip|error|keep|dedup|malicious|semi-honest"
    r"|auto|none|vole-low|vole|kkrt-paper|kkrt|dh)\b"
)
_FLAG = re.compile(r"(?<![\w-])--(?P<name>both|left|force)\b")
_OPTION = re.compile(r"(?<![\w-])--(?P<name>[a-z][a-z-]*)")


def _name(option: re.Match[str]) -> str:
    name = option["name"].replace("-", "_")
    return "or_" if name == "or" else name


def in_python(text: str) -> str:
    """Options and commands in a message as arguments and calls."""
    text = _COMMAND.sub(lambda found: f"volery.{found['verb']}({found['options'].strip()})", text)
    text = _PLACE.sub(_name, text)
    text = _CHOICE.sub(lambda found: f'{_name(found)}="{found["value"]}"', text)
    text = _FLAG.sub(lambda found: f"{_name(found)}=True", text)
    text = _VALUE.sub(lambda found: f"{_name(found)}={found['value']}", text)
    return _OPTION.sub(_name, text)


def from_status(status: int, message: str, hint: str | None) -> Error:
    """The exception for a failure of the program."""
    if status == 1 and message == "cancelled":
        return Cancelled(message)
    if hint is not None:
        # The program's help has nothing that the text of the function does not have.
        hint = None if "'volery --help'" in hint else in_python(hint)
    return _CLASSES.get(status, Error)(in_python(message), hint)
