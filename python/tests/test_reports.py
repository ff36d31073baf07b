"""What a run tells: reports, plans, lint, progress, logging; and never a key."""

from __future__ import annotations

import dataclasses
import json
import logging
import pathlib
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pytest
import volery
from parties import finish, psi, python
from volery._calls import Watch

SECRET = "only-mine@example.org"
TABLE = {"mail": [SECRET, "both@example.org", "both@example.org"], "city": ["Secretville", "Ulm", None]}


def test_fields() -> None:
    left, right = psi(["a", "b", "c"], ["b", "c", "d"])
    report = right.report
    assert (report.command, report.protocol) == ("psi", "dh")
    assert (report.role, report.n, report.security) == ("receiver", 3, "malicious")
    assert repr(left) == "<volery.Match: psi by dh, sender, 3 rows offered>"
    assert repr(right) == "<volery.MatchRows: psi by dh, receiver, 2 of 3 rows match>"
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
    written = file.read_text()
    assert json.loads(written) == report.to_dict()
    assert volery.Report.from_json(written) == report
    assert (tmp_path / "report.html").read_text().startswith("<!")


def shown(match: volery.Match) -> str:
    """All that an interactive session would show of it, but for the rows, if they are asked for."""
    assert match.rows is not None
    of: list[Any] = [match, match.report]
    html = [one._repr_html_() for one in of]
    return "".join([*html, *map(repr, [*of, match.rows]), *map(str, [*of, match.rows])])


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


def test_rows_are_a_table_in_a_notebook() -> None:
    table = {"<b>": [f"<i>{at}" for at in range(12)], "n": [*range(11), None]}
    _, match = psi(table, table, key="<b>")
    rows = match.rows
    assert rows is not None and rows.columns == ["<b>", "n"] and len(rows) == 12
    assert rows[0] == {"<b>": "<i>0", "n": 0} and rows[-1] == {"<b>": "<i>11", "n": None}
    assert rows[9:11] == list(rows)[9:11] == [{"<b>": f"<i>{at}", "n": at} for at in (9, 10)]
    with pytest.raises(IndexError):
        rows[12]
    html = rows._repr_html_()
    assert "12 rows, the first 10" in html and "<th>&lt;b&gt;</th><th>n</th>" in html
    assert "<td>&lt;i&gt;9</td><td>9</td>" in html and "<i>" not in html and "gt;10<" not in html


def test_rows_without_pyarrow() -> None:
    code = """
sys.modules["pyarrow"] = None
_, got = volery.run_local(
    lambda session: session.psi(role="sender", data=["bea"]),
    lambda session: session.psi(role="receiver", data={"key": ["ann", "bea"], "n": [1, 2]}, key="key"),
)
assert list(got.rows) == [got.rows[0]] == [{"key": "bea", "n": 2}]
"""
    finish(python(code))


def test_results_are_equal_after_pickling() -> None:
    table = {"key": ["ann", "bea", None], "n": [1, None, 3], "x": [[1], None, []]}
    given = pa.table({**table, "d": pa.array(["y", None, "y"]).dictionary_encode()})

    def party(role: Literal["sender", "receiver"]) -> Callable[[volery.Session], list[Any]]:
        matrix: dict[str, Any] = {"matrix": [[1, 2]]} if role == "sender" else {"vector": [3, 4]}
        points: dict[str, Any] = {"coefficients": [1, 2]} if role == "sender" else {"points": [3]}
        return lambda session: [
            session.psi(role=role, data=given, key="key", empty_keys="skip"),
            session.psi(role=role, data=["ann"], output="indices", both=True),
            session.psi(role=role, data=["ann"], result="count", minimum=0),
            session.psi(role=role, data=["ann"], result="shares"),
            session.matvec(role=role, **matrix),
            session.ope(role=role, **points),
        ]

    results = [*sum(volery.run_local(party("sender"), party("receiver")), []), volery.lint(data=given, key="key")]
    for at, result in enumerate(results):
        again = pickle.loads(pickle.dumps(result))
        assert again == result and repr(again) == repr(result) and type(again) is type(result)
        assert all(result != other for other in results[:at])
    rows = results[6].rows
    assert rows.to_arrow().equals(pickle.loads(pickle.dumps(rows)).to_arrow())
    assert rows == results[6].rows and rows != results[6].rows.to_arrow()


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


def test_progress_counts_the_bytes_of_the_run() -> None:
    seen: list[volery.Progress] = []
    keys = list(range(100_000))
    _, match = volery.run_local(
        lambda session: session.psi(role="sender", data=keys),
        lambda session: session.psi(role="receiver", data=keys, progress=seen.append),
    )
    report = match.report
    assert [one.bytes for one in seen] == sorted(one.bytes for one in seen)
    assert seen[-1].bytes == (report.bytes_sent or 0) + (report.bytes_received or 0) > 1_000_000


def bar(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A bar of a call of two phases that takes so long."""
    now = [100.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    with Watch(True) as watch:
        watch.phase("hashing", 10)
        now[0] += seconds / 2
        watch.tick(5, 0)
        watch.phase("matching", 0)
        now[0] += seconds / 2
        watch.tick(0, 123_000)


def test_a_bar_of_bytes(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    bar(monkeypatch, 0.9)
    assert tuple(capfd.readouterr()) == ("", "")
    bar(monkeypatch, 4.0)
    out, shown = capfd.readouterr()
    # One bar: it is drawn over itself, and is gone at the end.
    assert out == "" and "\n" not in shown and not shown.split("\r")[-1].strip()
    assert re.search(r"hashing 50 %: 0.00B", shown) and re.search(r"matching: 123kB .*B/s", shown), shown


def test_a_missing_tqdm_is_said_once() -> None:
    code = """
import logging
logging.basicConfig(level="WARNING", format="%(message)s", stream=sys.stdout)
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
for _ in range(2):
    volery.lint(data=list(range(1000)), progress=True)
"""
    (told,) = finish(python(code))
    assert told.splitlines() == ["progress=True shows nothing, because tqdm is not installed: pip install tqdm"]


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
    assert report.command == "lint"
    assert len(report) == 2 and list(report) == report.result["rules"]
    assert (report[0]["empty"], report[1]["malformed"], report[1]["empty"]) == (0, 1, 1)
    assert report.columns == list(pd.DataFrame(report).columns)
    assert "<th>malformed</th>" in report._repr_html_()
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
