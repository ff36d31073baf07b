"""Several protocols over one connection, and both parties in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import volery
from parties import address, column, finish, python


def test_several_protocols() -> None:
    at = address()
    code = """
with volery.Session(listen=sys.argv[1]) as session:
    cot = session.cot(role="sender", n=1000)
    session.psi(role="receiver", data=["ann", "bea"])
    session.lookup(role="sender", data={"key": ["ann"], "city": ["Ulm"]}, key="key", value="city")
    session.ope(role="sender", coefficients=[1, 1])
    session.matvec(role="receiver", vector=[1, 2])
    session.vole(role="receiver", n=100)
"""
    peer = python(code, at)
    with volery.Session(connect=at) as session:
        assert len(session.cot(role="receiver", n=1000).w) == 1000
        assert session.psi(role="sender", data=["bea", "cal"]).rows is None
        found = session.lookup(role="receiver", data=["ann", "bea"], key="key")
        assert column(found, "city") == ["Ulm"]
        values = session.ope(role="receiver", points=[6]).values
        assert values is not None and values.tolist() == [7]
        assert session.matvec(role="sender", matrix=[[3, 4]]).values is None
        assert len(session.vole(role="sender", n=100).u) == 100
    finish(peer)


def test_a_closed_session() -> None:
    def party(session: volery.Session) -> None:
        session.close()
        session.close()
        with pytest.raises(volery.Error, match="closed"):
            session.psi(role="sender", data=["a"])

    volery.run_local(party, party)


def test_a_session_after_an_error() -> None:
    # The two sides are out of step, so the session is over.
    def party(role: str, security: str) -> Callable[[volery.Session], None]:
        def run(session: volery.Session) -> None:
            with pytest.raises(volery.SettingsDifferError):
                session.psi(role=role, data=["a"], security=security)
            with pytest.raises(volery.Error):
                session.psi(role=role, data=["a"])

        return run

    volery.run_local(party("sender", "malicious"), party("receiver", "semi-honest"))


def test_a_wrong_option_leaves_the_session() -> None:
    def sender(session: volery.Session) -> None:
        with pytest.raises(volery.UsageError):
            session.psi(role="sender", data=["a"], protocol="nothing")
        session.psi(role="sender", data=["a"])

    _, match = volery.run_local(sender, lambda session: session.psi(role="receiver", data=["a"]))
    assert match.count == 1


def test_connection_options_in_a_session() -> None:
    def party(session: volery.Session) -> None:
        with pytest.raises(TypeError):
            session.psi(role="sender", data=["a"], listen="127.0.0.1:0")

    volery.run_local(party, party)


def test_run_local_runs_two_threads() -> None:
    seen: list[int] = []
    both = threading.Barrier(2)

    def party(session: volery.Session) -> str:
        seen.append(threading.get_ident())
        both.wait(10)
        return f"{len(seen)}"

    assert volery.run_local(party, party) == ("2", "2")
    assert len(set(seen)) == 2


def test_run_local_without_a_word() -> None:
    # A party that never speaks does not hold the other for ever.
    def silent(session: volery.Session) -> None:
        event.wait(30)

    event = threading.Event()
    with pytest.raises(volery.NetworkError):

        def speaks(session: volery.Session) -> None:
            try:
                session.psi(role="receiver", data=["a"])
            finally:
                event.set()

        volery.run_local(silent, speaks, timeout=1)


def test_nobody_to_meet() -> None:
    with pytest.raises(volery.NetworkError):
        volery.Session(connect=address(), wait=1)
    with pytest.raises(volery.UsageError):
        volery.Session(connect=address(), listen=address())
    with pytest.raises(volery.UsageError):
        volery.Session()
