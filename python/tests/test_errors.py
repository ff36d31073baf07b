"""One test for each class of errors."""

from __future__ import annotations

import os
import pathlib
import socket
import threading
import time
from typing import Any

import pytest
import volery
from parties import address, finish, listens, psi, python


def test_classes() -> None:
    statuses = {
        volery.DataError: 1,
        volery.UsageError: 2,
        volery.PeerError: 3,
        volery.NetworkError: 4,
        volery.SettingsDifferError: 5,
    }
    assert all(issubclass(one, volery.Error) for one in [*statuses, volery.Cancelled])


def test_usage_error() -> None:
    with pytest.raises(volery.UsageError) as caught:
        volery.psi(role="receiver", data=["a"], connect=address(), protocol="dh", both=True)
    assert caught.value.status == 2
    with pytest.raises(volery.UsageError, match="protocol"):
        volery.psi(role="receiver", data=["a"], connect=address(), protocol="nothing")
    with pytest.raises(volery.UsageError):
        volery.psi(role="receiver", data=["a"])
    with pytest.raises(TypeError):
        volery.psi(role="receiver", data=["a"], connect=address(), no_such_option=1)  # type: ignore[call-overload]


def test_unknown_level_of_the_processor() -> None:
    code = '''
for call in [
    lambda: volery.verify("a", "b"),
    lambda: volery.psi(role="receiver", data=["a"], connect="127.0.0.1:1"),
]:
    try:
        call()
    except volery.UsageError as error:
        assert "VOLERY_CPU" in str(error) and "portable" in str(error), error
    else:
        raise SystemExit("it was not refused")
'''
    finish(python(code, env={**os.environ, "VOLERY_CPU": "none"}))


def test_no_identity_off_the_loopback_interface() -> None:
    with pytest.raises(volery.UsageError) as caught:
        volery.psi(role="receiver", data=["a"], connect="192.0.2.1:7000")
    assert "identity" in str(caught.value)
    assert caught.value.hint


def test_peer_error() -> None:
    # A listener that speaks another protocol.
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 100)
                while connection.recv(1 << 16):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(volery.PeerError) as caught:
            volery.psi(role="receiver", data=["a"], connect=f"127.0.0.1:{server.getsockname()[1]}", timeout=20)
        thread.join()
    assert caught.value.status == 3


def test_network_error_nobody_there() -> None:
    begin = time.monotonic()
    with pytest.raises(volery.NetworkError) as caught:
        volery.psi(role="receiver", data=["a"], connect=address(), wait="1s")
    assert caught.value.status == 4
    assert 0.5 < time.monotonic() - begin < 10
    with pytest.raises(volery.NetworkError):
        volery.psi(role="receiver", data=["a"], listen="127.0.0.1:0", wait=1.0)


def test_network_error_peer_dies() -> None:
    at = address()
    peer = python("volery.cot_stream(role='sender', listen=sys.argv[1], n=10**9, chunk=10**6, threads=1).__next__()\nimport os\nos._exit(9)", at)
    with pytest.raises(volery.NetworkError):
        for _ in volery.cot_stream(role="receiver", connect=at, n=10**9, chunk=10**6, threads=1):
            pass
    assert peer.wait(30) == 9


def test_settings_differ_error() -> None:
    with pytest.raises(volery.SettingsDifferError, match="security") as caught:
        volery.run_local(
            lambda session: session.psi(role="sender", data=["a"], security="semi-honest"),
            lambda session: session.psi(role="receiver", data=["a"], security="malicious"),
        )
    assert caught.value.status == 5


def test_data_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(volery.DataError, match="absent.csv") as caught:
        volery.lint(data=tmp_path / "absent.csv", key="id")
    assert caught.value.status == 1
    with pytest.raises(volery.Error, match="ids"):
        volery.lint(data={"id": ["a"]}, key="ids")
    with pytest.raises(volery.DataError, match="row") as caught:
        psi(["a"], ["secret-key", "secret-key"], duplicates="error")
    assert "secret-key" not in str(caught.value)


def test_cancelled_while_waiting() -> None:
    cancel = threading.Event()
    at = address()

    def end() -> None:
        listens(at)
        cancel.set()

    thread = threading.Thread(target=end)
    thread.start()
    begin = time.monotonic()
    with pytest.raises(volery.Cancelled):
        volery.psi(role="receiver", data=["a"], listen=at, wait="1h", cancel=cancel)
    thread.join()
    assert time.monotonic() - begin < 5


def test_cancelled_while_computing() -> None:
    # In a thread that is not the main one, where no signal arrives.
    cancel = threading.Event()
    ends: list[float] = []
    at = address()
    peer = python(
        """
try:
    for _ in volery.cot_stream(role='sender', listen=sys.argv[1], n=10**9, chunk=10**6, threads=1): pass
except volery.NetworkError:
    sys.exit(4)
""",
        at,
    )

    def end() -> None:
        ends.append(time.monotonic())
        cancel.set()

    def compute() -> None:
        with pytest.raises(volery.Cancelled):
            for part, _ in enumerate(volery.cot_stream(role="receiver", connect=at, n=10**9, chunk=10**6, threads=1, cancel=cancel)):
                if part == 1:
                    threading.Timer(0.2, end).start()
        ends.append(time.monotonic())

    thread = threading.Thread(target=compute)
    thread.start()
    thread.join(60)
    assert ends[1] - ends[0] < 1
    assert peer.wait(30) == 4


def test_an_error_of_the_callers_function() -> None:
    # The other party learns that this one is gone.
    other: list[BaseException] = []

    def second(session: volery.Session) -> None:
        try:
            session.psi(role="receiver", data=["a"])
        except volery.Error as error:
            other.append(error)
            raise

    def first(session: volery.Session) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        volery.run_local(first, second)
    assert isinstance(other[0], volery.NetworkError)


def test_arguments_of_a_wrong_type() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cancel": True}, "cancel"),
        ({"progress": 3}, "progress"),
        ({"wait": object()}, "wait: object"),
        ({"output": "row"}, "output"),
        ({"key": []}, "key: required"),
    ]
    for given, message in wrong:
        options = {"key": "a", **given}
        with pytest.raises(volery.UsageError, match=message):
            volery.psi(role="receiver", data={"a": ["1"], "b": ["2"]}, listen="127.0.0.1:0", **options)


def test_a_message_names_arguments_as_in_python(tmp_path: pathlib.Path) -> None:
    with pytest.raises(volery.DataError) as caught:
        volery.plan(role="receiver", data=["ann", ""])
    assert caught.value.hint == 'empty_keys="skip" leaves such rows out'
    volery.keygen(out=tmp_path / "identity")
    with pytest.raises(volery.UsageError) as caught_again:
        volery.keygen(out=tmp_path / "identity")
    assert caught_again.value.hint == "choose another folder"
