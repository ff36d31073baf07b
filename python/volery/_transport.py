"""A byte stream of the caller's own as the connection of a run."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Union

from volery._errors import NetworkError, UsageError

#: ``read(n)`` waits for at least one byte and returns at most ``n``, or ``b""`` at the end.
#: ``write(piece)`` hands bytes on; it is called with ``b""`` once, at the end.
Transport = tuple[Callable[[int], Union[bytes, bytearray, memoryview]], Callable[[bytes], object]]

#: Bytes that ``read`` is asked for, and the most that ``write`` gets.
PIECE = 1 << 16

#: Pieces that wait for the caller's ``write`` before a run does: 256 MiB. A run must not wait for
#: its peer to read.
_GOING = 4096
#: Pieces that wait for the run.
_COME = 64
#: How long one call waits, in seconds.
_TICK = 0.05


class ByteStream:
    """The caller's functions, each called on a thread of its own, and the queues to a run.

    The run calls ``write``, ``read`` and ``close``, none of which waits for long, so that a run can
    time out or be cancelled while a function of the caller waits. Nothing is called before the run
    has something to say to its peer.
    """

    def __init__(self, transport: Transport) -> None:
        if not isinstance(transport, tuple) or len(transport) != 2 or not all(map(callable, transport)):
            raise UsageError("transport: give two functions, (read, write)")
        self._read, self._write = transport
        #: What a function of the caller has raised.
        self.raised: BaseException | None = None
        self._what = ""
        self._come: queue.Queue[bytes] = queue.Queue(_COME)
        self._going: queue.Queue[bytes | None] = queue.Queue(_GOING)
        self._rest = b""
        self._is_over = False
        self._written = 0
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()

    def _check(self) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._writing, name="volery write", daemon=True)
                self._writer.start()
                threading.Thread(target=self._reading, name="volery read", daemon=True).start()
        if self.raised is not None:
            # The text of the exception is the caller's own: it is in the cause.
            raise OSError(f"transport: {self._what} raised {type(self.raised).__name__}")

    def write(self, piece: bytes) -> bool:
        """Queue a piece; False if there is no space yet."""
        self._check()
        try:
            self._going.put(piece, timeout=_TICK)
        except queue.Full:
            return False
        return True

    def read(self, most: int) -> bytes | None:
        """Some bytes; ``b""`` at the end, None if nothing has come."""
        if not self._rest:
            try:
                self._rest = self._come.get(timeout=_TICK)
            except queue.Empty:
                self._check()
                return None
        piece, self._rest = self._rest[:most], self._rest[most:]
        return piece

    def close(self, timeout: float) -> None:
        """End the stream behind all that was written, of which some must go out in each ``timeout``.

        Without time what was written is lost, but the caller's ``write`` still gets the end.
        """
        self._is_over = True
        if self._writer is None:
            return
        with contextlib.suppress(queue.Empty):
            while timeout == 0:
                self._going.get_nowait()
        last, since, is_told = self._written, time.monotonic(), False
        while self._writer.is_alive():
            if not is_told and not self._going.full():
                # No other thread puts anything.
                self._going.put(None)
                is_told = True
            if time.monotonic() - since >= timeout:
                return
            self._writer.join(_TICK)
            if self._written != last:
                last, since = self._written, time.monotonic()

    def check_written(self) -> None:
        """Fail if the caller's ``write`` has raised: the peer may lack what was queued last."""
        if self.raised is not None and self._what == "write":
            what = f"transport: write raised {type(self.raised).__name__}; the peer may lack the last bytes"
            raise NetworkError(what) from self.raised

    def _fail(self, what: str, error: BaseException) -> None:
        if self.raised is None:
            self._what, self.raised = what, error

    def _reading(self) -> None:
        try:
            while not self._is_over:
                piece = self._read(PIECE)
                if not isinstance(piece, (bytes, bytearray, memoryview)):
                    raise TypeError(f"transport: read returned {type(piece).__name__}, not bytes")
                piece = bytes(piece)
                if len(piece) > PIECE:
                    raise ValueError(f"transport: read({PIECE}) returned {len(piece)} bytes")
                while not self._is_over:
                    try:
                        self._come.put(piece, timeout=_TICK)
                        break
                    except queue.Full:
                        pass
                if not piece:
                    return
        except BaseException as error:
            self._fail("read", error)

    def _writing(self) -> None:
        try:
            is_open = True
            while is_open:
                piece = self._going.get() or b""
                is_open = bool(piece)
                # Each call may be a request over a network: small pieces go together.
                while is_open and len(piece) < PIECE and not self._going.empty():
                    more = self._going.get() or b""
                    is_open = bool(more)
                    piece += more
                for start in range(0, len(piece), PIECE):
                    self._write(piece[start : start + PIECE])
                    self._written += 1
            self._write(b"")
        except BaseException as error:
            self._fail("write", error)
