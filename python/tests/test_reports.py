"""What a run tells: reports, plans, lint, progress, logging; and never a key."""

from __future__ import annotations

import dataclasses
import json
import logging
import pathlib
import re
import threading
from typing import Any

import pytest
import volery
from parties import psi

SECRET = "only-mine@example.org"
TABLE = {"mail": [SECRET, "both@example.org", "both@example.org"], "city": ["Secretville", "Ulm", None]}


def test_fields() -> None:
    left, right = psi(["a", "b", "c"], ["b", "c", "d"])
    report = right.report
    assert (report.protocol, report.role, report.n, report.security) == ("psi", "receiver", 3, "malicious")
    assert report.version == volery.__version__
    assert report.bytes_sent == left.report.bytes_received and (report.bytes_sent or 0) > 0
    assert report.bytes_received == left.report.bytes_sent
    assert 0 < (report.seconds.total or 0) < 60
    assert report.status == 0 and report.error is None
    assert report.revealed
    assert right.role == "receiver" and left.role == "sender"


def test_forms(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "report.json"
    (_, match) = volery.run_local(
        lambda session: session.psi(role="sender", data=["a"]),
        lambda session: session.psi(role="receiver", data=["a"], report=file, html=tmp_path / "report.html"),
    )
    report = match.report
    assert dataclasses.is_dataclass(report)
    assert json.loads(report.to_json()) == report.to_dict()
    written = json.loads(file.read_text())
    assert written == report.to_dict()
    for name, value in written.items():
        assert getattr(report, name) == value
    assert (tmp_path / "report.html").read_text().startswith("<!")


def shown(match: volery.Match) -> str:
    """All that an interactive session would show of it."""
    assert match.rows is not None
    of: list[Any] = [match, match.report, match.rows]
    html = [one._repr_html_() for one in of]
    return "".join([*html, *map(repr, of), *map(str, of)])


def test_repr_of_a_match_has_no_key() -> None:
    _, match = psi(TABLE, TABLE, key="mail")
    text = shown(match)
    assert SECRET not in text and "example.org" not in text and "Secretville" not in text
    assert "3" in text


def test_repr_of_correlations_has_no_number() -> None:
    sender, receiver = volery.run_local(
        lambda session: session.cot(role="sender", n=4), lambda session: session.cot(role="receiver", n=4)
    )
    for party, names in [(sender, "delta v"), (receiver, "w")]:
        text = repr(party) + str(party)
        assert "4" in text
        for name in names.split():
            for number in getattr(party, name).flatten().tolist():
                assert str(number) not in text and f"{number:x}" not in text


def test_html_is_whole_and_escaped() -> None:
    _, match = psi({"<b>x</b>": ["a"]}, {"<b>x</b>": ["a"]}, key='"<b>x</b>"')
    html = match.report._repr_html_()
    assert "<b>x</b>" not in html
    assert "<script" not in html


def test_progress_on_the_calling_thread() -> None:
    seen: list[tuple[int, volery.Progress]] = []
    caller: list[int] = []

    def receiver(session: volery.Session) -> volery.Match:
        caller.append(threading.get_ident())
        return session.psi(
            role="receiver",
            data=list(range(200_000)),
            progress=lambda progress: seen.append((threading.get_ident(), progress)),
        )

    volery.run_local(lambda session: session.psi(role="sender", data=list(range(100_000))), receiver)
    assert {thread for thread, _ in seen} == set(caller)
    assert len({progress.phase for _, progress in seen}) > 1
    for _, progress in seen:
        assert progress.total == 0 or 0 <= progress.done <= progress.total
    # Within a phase it never goes back.
    for (_, one), (_, next) in zip(seen, seen[1:]):
        assert one.phase != next.phase or one.done <= next.done


def test_an_error_in_a_progress_callback_ends_the_run() -> None:
    def fail(progress: volery.Progress) -> None:
        raise ZeroDivisionError("in the callback")

    other: list[BaseException] = []

    def sender(session: volery.Session) -> None:
        with pytest.raises(volery.NetworkError):
            session.psi(role="sender", data=list(range(200_000)))
        other.append(ValueError())

    with pytest.raises(ZeroDivisionError, match="in the callback"):
        volery.run_local(
            sender, lambda session: session.psi(role="receiver", data=list(range(200_000)), progress=fail)
        )
    assert other


def test_progress_with_tqdm(capfd: pytest.CaptureFixture[str]) -> None:
    volery.run_local(
        lambda session: session.psi(role="sender", data=["a"]),
        lambda session: session.psi(role="receiver", data=list(range(100_000)) and ["a"], progress=True),
    )
    told = capfd.readouterr()
    assert told.out == ""
    assert re.search(r"\d+%|it/s|\[", told.err), told.err


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    psi(TABLE, TABLE, key="mail")
    assert tuple(capfd.readouterr()) == ("", "")


def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="volery"):
        psi(TABLE, TABLE, key="mail")
    texts = [record.getMessage() for record in caplog.records if record.name.split(".")[0] == "volery"]
    assert any("reveal" in text or "learn" in text for text in texts), texts
    assert not any("example.org" in text or "Secretville" in text for text in texts)
    assert {record.levelno for record in caplog.records} >= {logging.INFO, logging.DEBUG}


def test_lint() -> None:
    report = volery.lint(data={**TABLE, "phone": ["0151 12345678", "no number", ""]}, key="mail:email", or_=["phone:e164=DE"])
    assert report.protocol == "lint"
    rules = report.result["rules"]
    assert len(rules) == 2
    assert "example.org" not in report.to_json()


def test_plan() -> None:
    plan = volery.plan(role="receiver", data=list(range(10_000)), peer_rows=20_000, link="100Mbit,20ms")
    assert plan.protocol in {"vole", "dh", "kkrt"}
    assert plan.bytes > 100_000
    assert plan.seconds > 0
    assert plan.memory_bytes > 100_000
    assert plan.reveals
    small = volery.plan("psi", role="receiver", data=list(range(100)), peer_rows=100, link="100Mbit,20ms")
    assert small.bytes < plan.bytes


def test_keygen(tmp_path: pathlib.Path) -> None:
    fingerprint = volery.keygen(out=tmp_path / "alice", name="alice", days=30)
    assert re.fullmatch(r"([0-9a-z]{4}-){8}[0-9a-z]{4}", fingerprint)
    with pytest.raises(volery.Error, match="alice"):
        volery.keygen(out=tmp_path / "alice", name="alice")


def test_report_of_a_failure(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "report.json"
    with pytest.raises(volery.NetworkError) as caught:
        volery.psi(role="receiver", data=["a"], connect="127.0.0.1:1", wait=1, report=file)
    report: dict[str, Any] = json.loads(file.read_text())
    assert report["status"] == 4
    assert report["error"] and report["error"].split(":")[0] in str(caught.value)
