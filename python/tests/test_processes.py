"""Parties that are processes: Python beside the program, both ways; fork, spawn, pickling."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import pickle
import signal
from typing import Any, Literal

import numpy as np
import pytest
import volery
from parties import address, column, finish, listens, program, python

RECEIVER = "print(*volery.psi(role='receiver', connect=sys.argv[1], data=['ann', 'bea', 'dan']).rows.to_arrow()['key'].to_pylist())"
SENDER = "volery.psi(role='sender', listen=sys.argv[1], data=['bea', 'cal', 'dan'])"


@pytest.fixture
def csv(tmp_path: pathlib.Path) -> str:
    """A file with the keys of the sender."""
    path = tmp_path / "sender.csv"
    path.write_text("key\nbea\ncal\ndan\n")
    return str(path)


def test_both_in_python() -> None:
    at = address()
    assert finish(python(SENDER, at), python(RECEIVER, at))[1] == "bea dan\n"


def test_the_program_sends(csv: str) -> None:
    at = address()
    sender = program("psi", "--role", "sender", "--listen", at, "--input", csv, "--key", "key")
    assert finish(sender, python(RECEIVER, at))[1] == "bea dan\n"


def test_the_program_receives(csv: str, tmp_path: pathlib.Path) -> None:
    at = address()
    words = ["psi", "--role", "receiver", "--connect", at, "--input", csv, "--key", "key", "--out", "-"]
    sender = python("volery.psi(role='sender', listen=sys.argv[1], data=['ann', 'bea', 'dan'])", at)
    assert finish(sender, program(*words))[1] == "key\nbea\ndan\n"


def test_the_program_makes_correlations(tmp_path: pathlib.Path) -> None:
    at = address()
    sender = program("cot", "--role", "sender", "--listen", at, "--n", "100000", "--out", str(tmp_path / "s"))
    receiver = volery.cot(role="receiver", connect=at, n=100_000)
    finish(sender)
    delta, v = np.load(tmp_path / "s" / "delta.npy"), np.load(tmp_path / "s" / "v.npy")
    assert receiver.u is not None and receiver.w is not None
    assert (receiver.w == v ^ (receiver.u[:, None] * delta)).all()


def test_identities(tmp_path: pathlib.Path) -> None:
    fingerprints = [volery.keygen(out=tmp_path / name, name=name) for name in ["alice", "bob"]]
    at = address()
    code = """
at, role, identity, peer = sys.argv[1:]
side = {"listen": at} if role == "sender" else {"connect": at}
match = volery.psi(role=role, data=["ann"], identity=identity, peer=peer, **side)
print(match.report.identity, match.report.peer)
"""
    sender = python(code, at, "sender", str(tmp_path / "alice"), fingerprints[1])
    receiver = python(code, at, "receiver", str(tmp_path / "bob"), fingerprints[0])
    assert [line.split() for line in finish(sender, receiver)] == [fingerprints, fingerprints[::-1]]


def test_the_program_of_the_wheel() -> None:
    (version,) = finish(program("--version"))
    assert version.split() == ["volery", volery.__version__]
    wrong = program("psi", "--role", "nobody")
    assert "error:" in wrong.communicate(timeout=20)[1]
    assert wrong.returncode == 2


def test_the_program_ends_by_a_signal() -> None:
    at = address()
    process = program("ope", "--role", "receiver", "--listen", at, "--point", "1", "--wait", "1h")
    listens(at)
    process.send_signal(signal.SIGTERM)
    assert "error:" in process.communicate(timeout=5)[1]
    assert process.returncode == 1


def test_fork() -> None:
    # Only the thread that forks is in the child, and the peer would hear both: the object refuses.
    code = """
import os
at = sys.argv[1]
session = volery.Session(listen=at)
session.psi(role="sender", data=["ann"])
if (child := os.fork()) == 0:
    try:
        session.psi(role="sender", data=["ann"])
    except volery.Error as error:
        print(error, flush=True)
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
# The child's end of it does not close the connection.
session.psi(role="sender", data=["ann"])
session.close()
# A new call works in a child.
if (child := os.fork()) == 0:
    volery.run_local(lambda s: s.psi(role="sender", data=["a"]), lambda s: s.psi(role="receiver", data=["a"]))
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
"""
    at = address()
    process = python(code, at)
    with volery.Session(connect=at) as session:
        assert session.psi(role="receiver", data=["ann"]).count == 1
        assert session.psi(role="receiver", data=["ann"]).count == 1
    (told,) = finish(process)
    assert "fork" in told


def side(role: Literal["sender", "receiver"], at: str) -> list[str]:
    """One side, in a process that multiprocessing started."""
    end = {"sender": "listen", "receiver": "connect"}[role]
    options: dict[str, Any] = {end: at}
    match = volery.psi(role=role, data=["ann", "bea", role], **options)
    return column(match) if role == "receiver" else []


def test_spawn() -> None:
    at = address()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(side, [("sender", at), ("receiver", at)]) == [[], ["ann", "bea"]]


def test_functions_can_be_pickled() -> None:
    # As an executor of processes does.
    lint, psi = pickle.loads(pickle.dumps((volery.lint, volery.psi)))
    assert lint(data=["a"]).n == 1
    with pytest.raises(volery.UsageError, match="listen, connect"):
        psi(role="sender", data=["a"])


def test_pickling_is_refused() -> None:
    def party(role: Literal["sender", "receiver"]) -> Any:
        def run(session: volery.Session) -> Any:
            with pytest.raises(TypeError, match="pickled: it holds a connection of this process"):
                pickle.dumps(session)
            return session.cot(role=role, n=10), session.vole(role=role, n=10)

        return run

    for correlations in volery.run_local(party("sender"), party("receiver")):
        for secret in correlations:
            with pytest.raises(TypeError, match="pickled: it holds secrets"):
                pickle.dumps(secret)
