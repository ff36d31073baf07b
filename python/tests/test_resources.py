"""Memory over many runs, and threads: with the lock of the interpreter, and without."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import time

import numpy as np
import volery
from parties import psi, python, finish


def test_memory_of_many_runs() -> None:
    # In a process of its own, where no other test has left anything.
    code = f"sys.path.insert(0, {str(__file__).rpartition('/')[0]!r})\n" + """
from parties import psi, resident
import gc
def runs(n):
    for _ in range(n):
        _, match = psi(list(range(50)), {"key": list(range(25, 75)), "text": ["x" * 1000] * 50}, key="key", protocol="dh", threads=1)
        assert match.count == 25 and match.rows.to_arrow().num_rows == 25
        cot = {"n": 20_000, "protocol": "softspoken2", "security": "semi-honest", "threads": 1}
        volery.run_local(lambda s: s.cot(role="sender", **cot), lambda s: s.cot(role="receiver", **cot))
        try:
            psi(["a"], ["a"], protocol="nothing")
        except volery.UsageError:
            pass
    gc.collect()
runs(40)
before = resident()
runs(160)
print((resident() - before) / 160)
"""
    # Bytes a run: an array that stays would be 320,000.
    (grown,) = finish(python(code), seconds=300)
    assert float(grown) < 20_000


def run(number: int) -> None:
    """Both parties, with a result that another run does not have."""
    _, match = psi([f"{number}-{at}" for at in range(100)], [f"{number}-{at}" for at in range(50, 200)])
    assert match.count == 50
    sender, receiver = volery.run_local(
        lambda session: session.cot(role="sender", n=5000), lambda session: session.cot(role="receiver", n=5000)
    )
    assert (receiver.w == sender.v ^ (receiver.u[:, None] * sender.delta)).all()


def test_eight_threads() -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(run, number) for number in range(24)]:
            done.result(120)


def test_the_lock_stays_off() -> None:
    # Without the lock, an extension that is not ready for that would switch the lock on.
    if "free-threading" in sys.version:
        assert not sys._is_gil_enabled()  # type: ignore[attr-defined,unused-ignore]


def test_the_lock_is_free_during_a_run() -> None:
    # A loop in another thread goes on while both parties compute.
    stop = threading.Event()
    gaps: list[float] = []

    def count() -> None:
        last = time.monotonic()
        while not stop.is_set():
            time.sleep(0.005)
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=count)
    thread.start()
    sender, _ = volery.run_local(
        lambda session: session.cot(role="sender", n=3_000_000, threads=1),
        lambda session: session.cot(role="receiver", n=3_000_000, threads=1),
    )
    stop.set()
    thread.join()
    assert sender.v is not None and sender.v.shape == (3_000_000, 2) and isinstance(sender.v, np.ndarray)
    assert max(gaps) < 0.5
