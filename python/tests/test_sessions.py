"""Several protocols over one connection, and both parties in one process."""

from __future__ import annotations

import pathlib
import shutil
import threading
from collections.abc import Callable
from typing import Any, Literal

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
    def party(role: Literal["sender", "receiver"], security: Literal["malicious", "semi-honest"]) -> Callable[[volery.Session], None]:
        def run(session: volery.Session) -> None:
            with pytest.raises(volery.SettingsDifferError):
                session.psi(role=role, data=["a"], security=security)
            with pytest.raises(volery.Error):
                session.psi(role=role, data=["a"])

        return run

    volery.run_local(party("sender", "malicious"), party("receiver", "semi-honest"))


def test_a_mistake_of_one_side_leaves_the_session_open(tmp_path: pathlib.Path) -> None:
    (tmp_path / "there.csv").write_text("key")
    table = {"key": ["ann"], "email": [""], "long": ["x" * 20_000], "n": ["x"]}
    mistakes: list[tuple[type[Exception], dict[str, Any]]] = [
        (TypeError, {"colour": "red"}),
        (volery.UsageError, {"protocol": "nothing"}),
        (volery.UsageError, {"protocol": "dh", "both": True}),
        (volery.UsageError, {"connect": "127.0.0.1:1"}),
        (volery.UsageError, {"progress": 3}),
        (volery.UsageError, {"data": 7}),
        (volery.DataError, {"data": tmp_path / "absent.csv"}),
        (volery.DataError, {"key": "mail"}),
        (volery.DataError, {"key": "email"}),
        (volery.DataError, {"key": "n:integer"}),
        (volery.DataError, {"data": ["ann", "ann"], "key": None, "duplicates": "error"}),
        (volery.Error, {"out": tmp_path / "there.csv", "both": True}),
        (volery.DataError, {"resume": tmp_path / "there.csv"}),
        (volery.Error, {"result": "sum=n", "bound": 5}),
    ]

    def sender(session: volery.Session) -> volery.Match:
        for kind, options in mistakes:
            with pytest.raises(kind):
                session.psi(**{"role": "sender", "data": table, "key": "key", **options})
            assert session.is_open, options
        with pytest.raises(volery.Error):
            session.lookup(role="sender", data=table, key="key", value="long")
        with pytest.raises(volery.DataError):
            session.ope(role="sender", coefficients=[2**62])
        with pytest.raises(volery.Error):
            session.matvec(role="sender", matrix=[1, 2], ring="z64")
        with pytest.raises(volery.UsageError):
            session.cot(role="sender", n=5, set="nothing")
        assert session.is_open
        return session.psi(role="sender", data=["ann"])

    # The peer makes one call: had it heard anything before, the two would be out of step.
    sent, received = volery.run_local(sender, lambda session: session.psi(role="receiver", data=["ann"]))
    assert received.count == 1
    # Nor was anything sent that this call does not count.
    assert sent.report.bytes_sent == received.report.bytes_received


def test_a_failure_after_the_run_closes_the_session(tmp_path: pathlib.Path) -> None:
    # The peer has its result and goes on to its next call.
    out = tmp_path / "folder" / "out.csv"
    out.parent.mkdir()

    def receiver(session: volery.Session) -> None:
        def gone(now: volery.Progress) -> None:
            if now.bytes > 0 and out.parent.exists():
                shutil.rmtree(out.parent)

        with pytest.raises(volery.DataError, match="out.csv"):
            session.psi(role="receiver", data=list(range(50_000)), out=out, progress=gone)
        assert not session.is_open

    volery.run_local(lambda session: session.psi(role="sender", data=list(range(50_000))), receiver)


def test_connection_options_in_a_session() -> None:
    def party(session: volery.Session) -> None:
        for option in ["listen", "connect", "identity", "peer", "wait"]:
            given: dict[str, Any] = {option: "127.0.0.1:0"}
            with pytest.raises(volery.UsageError, match=option):
                session.psi(role="sender", data=["a"], **given)

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
