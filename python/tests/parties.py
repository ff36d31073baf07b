"""Two parties: in this process, or each in a process of its own."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import time
from typing import Any

import volery

# The program that came with the package.
PROGRAM = str(pathlib.Path(sys.executable).with_name("volery"))


def address() -> str:
    """An address on which nothing listens yet."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def python(code: str, *words: str, **more: Any) -> subprocess.Popen[str]:
    """A process that runs `code` with the words in `sys.argv[1:]`."""
    command = [sys.executable, "-c", "import sys, volery\n" + code, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def program(*words: str, **more: Any) -> subprocess.Popen[str]:
    """The program `volery`."""
    return subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def finish(*processes: subprocess.Popen[str], seconds: float = 120) -> list[str]:
    """What each wrote to its standard output, after all of them ended well."""
    told = [process.communicate(timeout=seconds) for process in processes]
    for process, (_, errors) in zip(processes, told):
        assert process.returncode == 0, errors
    return [output for output, _ in told]


def line_of(process: subprocess.Popen[str], text: str) -> str:
    """The next line of standard output with `text` in it."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    assert process.stderr is not None
    raise AssertionError(f"no line {text!r}; standard error: {process.stderr.read()}")


def listens(at: str, seconds: float = 30.0) -> None:
    """Returns when somebody listens at the address; does not connect."""
    port = f"{int(at.rpartition(':')[2]):04X}"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        if any(row.split()[1].endswith(f":{port}") and row.split()[3] == "0A" for row in rows):
            return
        time.sleep(0.01)
    raise AssertionError(f"nobody listens at {at}")


def psi(sender: Any, receiver: Any, /, **options: Any) -> tuple[volery.Match, volery.Match]:
    """A matching of two tables in this process, both sides with the same options."""
    return volery.run_local(
        lambda session: session.psi(role="sender", data=sender, **options),
        lambda session: session.psi(role="receiver", data=receiver, **options),
    )


def column(match: volery.Match, name: str = "key") -> list[Any]:
    """A column of the rows that matched."""
    assert match.rows is not None
    values: list[Any] = match.rows.to_arrow().column(name).to_pylist()
    return values


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
