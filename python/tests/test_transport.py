"""Runs over two functions of the caller."""

from __future__ import annotations

import http.client
import http.server
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import volery

Pair = tuple[volery.Transport, volery.Transport]


def queues() -> Pair:
    there: queue.Queue[bytes] = queue.Queue()
    back: queue.Queue[bytes] = queue.Queue()
    return (lambda n: there.get(), back.put), (lambda n: back.get(), there.put)


def both(first: Callable[[], Any], second: Callable[[], Any]) -> list[Any]:
    """What both calls return, or the exceptions that they raise."""
    results: list[Any] = [None, None]

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            results[place] = work()
        except BaseException as error:
            results[place] = error

    other = threading.Thread(target=run, args=(0, first), daemon=True)
    other.start()
    run(1, second)
    other.join(60)
    assert not other.is_alive()
    return results


TABLE = {"k": ["a", "b", "c"], "v": ["1", "2", "3"]}
CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any], Any]] = {
    "psi": (
        lambda t: volery.psi(role="sender", data=["a", "b"], transport=t),
        lambda t: volery.psi(role="receiver", data=["b", "c"], transport=t),
        lambda found: found.count,
        1,
    ),
    "lookup": (
        lambda t: volery.lookup(role="sender", data=TABLE, key="k", value="v", transport=t),
        lambda t: volery.lookup(role="receiver", data={"k": ["c", "x"]}, key="k", transport=t),
        lambda found: found.rows.to_arrow()["v"].to_pylist(),
        ["3"],
    ),
    "count": (
        lambda t: volery.psi(role="sender", data=["a", "b"], result="count", transport=t),
        lambda t: volery.psi(role="receiver", data=["b", "c"], result="count", transport=t),
        lambda found: found.count,
        1,
    ),
    "sum": (
        lambda t: volery.psi(
            role="sender", data=TABLE, key="k", result="sum=v", bound=9, minimum=1, transport=t
        ),
        lambda t: volery.psi(role="receiver", data=["b", "c"], result="sum", bound=9, minimum=1, transport=t),
        lambda found: found.sum,
        5,
    ),
    "cot": (
        lambda t: volery.cot(role="sender", n=1000, transport=t),
        lambda t: volery.cot(role="receiver", n=1000, transport=t),
        len,
        1000,
    ),
    "vole_stream": (
        lambda t: [len(part) for part in volery.vole_stream(role="sender", n=25, chunk=10, transport=t)],
        lambda t: [len(part) for part in volery.vole_stream(role="receiver", n=25, chunk=10, transport=t)],
        list,
        [10, 10, 5],
    ),
    "ope": (
        lambda t: volery.ope(role="sender", coefficients=[1, 1], transport=t),
        lambda t: volery.ope(role="receiver", points=[6], transport=t),
        lambda found: found.values.tolist(),
        [7],
    ),
    "matvec": (
        lambda t: volery.matvec(role="sender", matrix=[[3, 4]], transport=t),
        lambda t: volery.matvec(role="receiver", vector=[1, 2], transport=t),
        lambda found: found.values.tolist(),
        [11],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_call_takes_a_transport(name: str) -> None:
    first, second, of, expected = CALLS[name]
    left, right = queues()
    results = both(lambda: first(left), lambda: second(right))
    assert not any(isinstance(one, BaseException) for one in results), results
    assert of(results[1]) == expected


def test_a_session_over_a_transport() -> None:
    left, right = queues()

    def party(role: Any, transport: volery.Transport) -> int:
        with volery.Session(transport=transport, timeout=30) as session:
            for _ in range(2):
                session.psi(role=role, data=["a"])
            return len(session.cot(role=role, n=10))

    assert both(lambda: party("sender", left), lambda: party("receiver", right)) == [10, 10]


def test_two_posts_over_http() -> None:
    boxes: dict[str, queue.Queue[bytes]] = {"/there": queue.Queue(), "/back": queue.Queue()}

    class Mailbox(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            boxes[self.path].put(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(b"")

        def do_GET(self) -> None:
            self.answer(boxes[self.path].get())

        def answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mailbox)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def request(method: str, path: str, body: bytes | None = None) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
        connection.request(method, path, body)
        return connection.getresponse().read()

    def mail(read: str, write: str) -> volery.Transport:
        return lambda n: request("GET", read), lambda piece: request("POST", write, piece)

    first, second, of, expected = CALLS["psi"]
    results = both(lambda: first(mail("/there", "/back")), lambda: second(mail("/back", "/there")))
    assert of(results[1]) == expected
    server.shutdown()


@pytest.mark.parametrize("broken", ["read", "write"])
def test_an_exception_is_the_cause(broken: str) -> None:
    left, (read, write) = queues()
    calls = []

    def fails(argument: Any) -> Any:
        calls.append(argument)
        if len(calls) == 2:
            raise RuntimeError("the queue is gone")
        return (read if broken == "read" else write)(argument)

    right = (fails, write) if broken == "read" else (read, fails)
    first, second, _, _ = CALLS["psi"]

    def ends() -> Any:
        try:
            return second(right)
        finally:
            if broken == "write":
                # A function that has failed is not called again: somebody else must tell the peer.
                write(b"")

    other, error = both(lambda: first(left), ends)
    assert isinstance(error, volery.NetworkError) and isinstance(error.__cause__, RuntimeError)
    assert f"{broken} raised RuntimeError" in error.message and "gone" not in str(error)
    assert isinstance(other, volery.NetworkError) and "closed" in other.message


@pytest.mark.parametrize(
    "read, what",
    [(lambda n: "text", "TypeError"), (lambda n: bytes(n + 1), "ValueError"), (lambda n: b"", "closed")],
)
def test_a_wrong_read(read: Any, what: str) -> None:
    with pytest.raises(volery.NetworkError, match=what):
        volery.psi(role="sender", data=["a"], transport=(read, lambda piece: None))


def test_times_and_cancel() -> None:
    never: queue.Queue[bytes] = queue.Queue()
    said: list[bytes] = []
    silent: volery.Transport = (lambda n: never.get(), said.append)
    start = time.monotonic()
    with pytest.raises(volery.NetworkError, match="timed out"):
        volery.psi(role="sender", data=["a"], transport=silent, wait=1, timeout="1h")
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(volery.Cancelled):
        volery.psi(role="sender", data=["a"], transport=silent, wait="1h", cancel=stop)
    assert time.monotonic() - start < 30
    # After a cancellation the end is written behind the call.
    while said.count(b"") < 2:
        assert time.monotonic() - start < 60
        time.sleep(0.01)


def test_a_local_mistake_calls_nothing() -> None:
    called: list[object] = []
    transport: Any = (called.append, called.append)
    for name in ["listen", "connect", "identity", "peer", "proxy"]:
        more: dict[str, Any] = {name: "127.0.0.1:1"}
        with pytest.raises(volery.UsageError, match=f"{name}: not with transport"):
            volery.psi(role="sender", data=["a"], transport=transport, **more)
        with pytest.raises(volery.UsageError, match=f"{name}: not with transport"):
            volery.Session(transport=transport, **more)
    for wrong in [len, (len,), (len, "no")]:
        with pytest.raises(volery.UsageError, match=r"two functions, \(read, write\)"):
            volery.cot(role="sender", n=1, transport=wrong)  # type: ignore[arg-type]
    with pytest.raises(volery.DataError):
        volery.psi(role="sender", data=["a", ""], transport=transport)
    with pytest.raises(volery.UsageError):
        volery.psi(role="sender", data=["a"], protocol="nothing", transport=transport)

    def party(session: volery.Session) -> None:
        with pytest.raises(volery.UsageError, match="transport: the session is connected"):
            session.psi(role="sender", data=["a"], transport=transport)

    volery.run_local(party, party)
    time.sleep(0.2)
    assert called == []


def test_bytes_that_are_lost_at_the_end_are_an_error() -> None:
    """The run has ended when the caller's ``write`` fails."""
    left, right = queues()
    sizes: list[int] = []

    def party(role: Any, read: Any, write: Any) -> Callable[[], Any]:
        return lambda: volery.psi(role=role, data=["a", "b"], transport=(read, write))

    def counts(piece: bytes) -> None:
        sizes.append(len(piece))
        left[1](piece)

    both(party("sender", left[0], counts), party("receiver", *right))
    left, right = queues()
    sent = 0

    def fails(piece: bytes) -> None:
        nonlocal sent
        sent += len(piece)
        if sent >= sum(sizes):
            left[1](b"")
            raise ConnectionResetError("the queue is gone")
        left[1](piece)

    ended = both(party("sender", left[0], fails), party("receiver", *right))
    assert [type(one) for one in ended] == [volery.NetworkError] * 2, ended
    assert isinstance(ended[0].__cause__, ConnectionResetError)


def test_others_may_look_at_a_session_that_closes() -> None:
    """``close`` waits for the caller's ``write``, which needs the interpreter, as others do."""
    left, right = queues()

    def slow(piece: bytes) -> None:
        time.sleep(0.3 if not piece else 0)
        left[1](piece)

    session = volery.Session(transport=(left[0], slow))
    both(
        lambda: session.psi(role="sender", data=["a"]),
        lambda: volery.psi(role="receiver", data=["a"], transport=right),
    )
    closes = threading.Thread(target=session.close)
    closes.start()
    while closes.is_alive():
        assert repr(session)
    assert not session.is_open
