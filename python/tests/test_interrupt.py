"""Ctrl-C: a call ends within a second, as `KeyboardInterrupt`, and the peer is told."""

from __future__ import annotations

import asyncio
import pathlib
import re
import signal
import subprocess
import textwrap
import threading
import time
from typing import Any

import pytest
import volery
from parties import address, line_of, listens, python

PEER = """
try:
    for _ in volery.cot_stream(role="sender", listen=sys.argv[1], n=10**9, chunk=10**6, threads=1): pass
except volery.NetworkError:
    sys.exit(4)
"""


# The time at which the call ends, without that which the interpreter takes to end.
CATCH = """
except KeyboardInterrupt:
    import time
    print("ended", time.monotonic(), flush=True)
    raise
"""


def interruptible(code: str, *words: str) -> subprocess.Popen[str]:
    """A process for `interrupt`."""
    return python("try:\n" + textwrap.indent(code.strip(), "    ") + CATCH, *words)


def interrupt(process: subprocess.Popen[str]) -> None:
    """Sends the signal to a process, whose call has to end by it within a second."""
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert float(output.split()[-1]) - begin < 1
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors


def test_while_it_waits() -> None:
    at = address()
    process = interruptible("volery.psi(role='sender', listen=sys.argv[1], data=['a'], wait='1h')", at)
    listens(at)
    time.sleep(0.3)
    interrupt(process)


def test_while_it_connects() -> None:
    process = interruptible("print('begin', flush=True)\nvolery.psi(role='sender', connect=sys.argv[1], data=['a'], wait='1h')", address())
    line_of(process, "begin")
    time.sleep(1)
    interrupt(process)


def test_while_it_computes() -> None:
    at = address()
    peer = python(PEER, at)
    code = "for _ in volery.cot_stream(role='receiver', connect=sys.argv[1], n=10**9, chunk=10**6, threads=1): print('part', flush=True)"
    process = interruptible(code, at)
    line_of(process, "part")
    interrupt(process)
    assert peer.wait(20) == 4


def test_while_it_matches() -> None:
    at = address()
    code = """
side = {"sender": "listen", "receiver": "connect"}[sys.argv[2]]
print("begin", flush=True)
volery.psi(role=sys.argv[2], data=list(range(3_000_000)), threads=1, **{side: sys.argv[1]},
    progress=lambda at: print(at.phase, flush=True))
"""
    sender = python(code, at, "sender")
    receiver = interruptible(code, at, "receiver")
    line_of(receiver, "hashing items")
    interrupt(receiver)
    _, errors = sender.communicate(timeout=20)
    assert "NetworkError" in errors, errors


def test_a_task_of_asyncio_is_cancelled() -> None:
    page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
    (code,) = re.findall(r"```python\n(import asyncio\n.*?)^async def main", page.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"threading": threading, "volery": volery}
    exec(code, names)
    at = address()
    code = """
try:
    volery.psi(role="sender", listen=sys.argv[1], data=list(range(3_000_000)), threads=1)
except volery.NetworkError:
    sys.exit(4)
"""
    peer = python(code, at)

    async def cancelled() -> None:
        met = asyncio.Event()
        loop = asyncio.get_running_loop()

        def progress(now: volery.Progress) -> None:
            if now.bytes > 0:
                loop.call_soon_threadsafe(met.set)

        call = names["in_thread"](
            volery.psi, role="receiver", connect=at, data=list(range(3_000_000)), threads=1, progress=progress
        )
        task = asyncio.create_task(call)
        await met.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert peer.wait(20) == 4


def test_in_a_chunk_of_the_caller() -> None:
    # The caller leaves the loop with an error of its own: the peer is told as well.
    at = address()
    peer = python(PEER, at)
    code = "for part in volery.cot_stream(role='receiver', connect=sys.argv[1], n=10**9, chunk=10**6, threads=1): raise ValueError('mine')"
    process = python(code, at)
    _, errors = process.communicate(timeout=30)
    assert "ValueError: mine" in errors
    assert process.returncode == 1
    assert peer.wait(20) == 4
