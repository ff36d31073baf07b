"""Sides that differ, break, come late, or go on with something else."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from both import ROLES, Both, finish, until

#: Places at which processes are killed.
KILLS = int(os.environ.get("VOLERY_KILLS", "20"))
#: Seconds by which one side is late.
LATE = float(os.environ.get("VOLERY_LATE", "20"))
#: Keys of each side, and the first one of the receiver.
KEYS, FIRST = 400_000, 380_000


@pytest.fixture(scope="module")
def tables(both: Both) -> dict[str, str]:
    """Tables whose shards take a while."""
    return {
        role: both.table(f"failures-{role}", {"key": pa.array(range(first, first + KEYS), pa.int64())})
        for role, first in [("sender", 0), ("receiver", FIRST)]
    }


def check(both: Both, run: str, answers: Any) -> tuple[Any, Any]:
    """The result is right, and no two sessions of shards are the same."""
    sender, receiver = finish(answers)
    assert sorted(row[0] for row in receiver["rows"]) == list(range(FIRST, KEYS))
    for role in ROLES:
        sessions = [path.read_bytes() for path in (both.work(role, run) / "begun").iterdir()]
        assert len(set(sessions)) == len(sessions)
        # No secret is in a file.
        for path in both.work(role, run).rglob("*"):
            assert path.is_dir() or b"PRIVATE KEY" not in path.read_bytes()
    return sender, receiver


def begun(both: Both, run: str, role: str, least: int = 1) -> Callable[[], bool]:
    folder = both.work(role, run) / "begun"
    return lambda: folder.exists() and len(list(folder.iterdir())) >= least


@pytest.mark.parametrize("place", range(KILLS))
def test_a_killed_process(both: Both, tables: dict[str, str], place: int) -> None:
    chance = random.Random(place)
    run = f"kill-{place}"
    answers = both.start(run, tables)
    role, parents = chance.choice(ROLES), chance.random() < 0.5
    until(begun(both, run, role, chance.randrange(1, 7)))
    time.sleep(chance.random() * 0.2)
    victims = both.driver(role).workers(parents)
    if not victims:
        check(both, run, answers)
        pytest.skip("the workers had finished")
    os.kill(chance.choice(victims), signal.SIGKILL)
    results = check(both, run, answers)
    attempts = results[ROLES.index(role)]["report"]["result"]["attempts"]
    assert max(attempts) > 1


def test_a_killed_driver(both: Both, tables: dict[str, str]) -> None:
    for role, other in [ROLES, ROLES[::-1]]:
        run = f"driver-{role}"
        told = {one: both.told(one, run, tables[one], {}, {}) for one in ROLES}
        killed = both.driver(role, **{"spark.app.name": "killed"})
        killed.start(told[role])
        answer = both.driver(other).start(told[other])
        until(begun(both, run, role, 3))
        killed.kill()
        # The other side waits for it.
        again = both.driver(role).start(told[role])
        sender, receiver = check(both, run, {role: again, other: answer})
        one = sender if role == "sender" else receiver
        assert one["report"]["result"]["starts"] == 2


def test_the_gateway_restarts(both: Both, tables: dict[str, str]) -> None:
    answers = both.start("gateway", tables)
    until(begun(both, "gateway", "receiver", 2))
    both.close_gateway()
    time.sleep(1)
    both.open_gateway()
    check(both, "gateway", answers)


def test_one_side_is_late(both: Both, tables: dict[str, str]) -> None:
    told = {role: both.told(role, "late", tables[role], {"wait": "5m"}, {}) for role in ROLES}
    receiver = both.driver("receiver").start(told["receiver"])
    time.sleep(LATE)
    assert not receiver.done()
    check(both, "late", {"receiver": receiver, "sender": both.driver("sender").start(told["sender"])})


def test_nobody_comes(both: Both, tables: dict[str, str]) -> None:
    told = both.told("sender", "alone", tables["sender"], {"wait": "2s"}, {})
    answer = both.driver("sender").start(told).result(120)
    assert answer["error"] == "NetworkError", answer


def test_changed_input(both: Both, tables: dict[str, str]) -> None:
    check(both, "changed", both.start("changed", tables))
    told = both.told("receiver", "changed", tables["receiver"], {}, {})
    # The same table in another order.
    again = both.driver("receiver").start({**told, "sql": "select * from input order by rand()"}).result(120)
    assert len(again["rows"]) == KEYS - FIRST
    for sql in [
        "select * from input where key <> 390000",
        "select * from input union all select * from input where key = 390000",
        # Two equal rows in place of two other equal ones.
        "select case when key < 380002 then 5 else key end as key from input",
    ]:
        answer = both.driver("receiver").start({**told, "sql": sql}).result(120)
        assert answer["error"] == "UsageError", answer
        assert "not the one that it began with" in answer["message"]
    answer = both.driver("receiver").start({**told, "plan": {"key": "key", "left": True, "rule_column": "r"}}).result(120)
    assert len(answer["rows"]) == KEYS
    answer = both.driver("receiver").start({**told, "plan": {"key": "key:text"}}).result(120)
    assert answer["error"] in ("UsageError", "DataError"), answer


@pytest.mark.parametrize(
    ("name", "match", "plan"),
    [
        ("workers", {"sender": {"workers": 1}, "receiver": {}}, None),
        ("security", {"sender": {"security": "semi-honest"}, "receiver": {}}, None),
        ("shards", {"sender": {"shards": 4}, "receiver": {}}, None),
        ("key", None, {"sender": {"key": "key:integer"}, "receiver": {"key": "key:integer", "or_": ["key"]}}),
        ("payload", None, {"sender": {}, "receiver": {"payload": True}}),
    ],
)
def test_settings_differ(both: Both, tables: dict[str, str], name: str, match: Any, plan: Any) -> None:
    answers = both.start(f"differ-{name}", tables, match, plan)
    for role in ROLES:
        answer = answers[role].result(120)
        assert answer.get("error") == "SettingsDifferError", answer


def test_another_organisation(both: Both, tables: dict[str, str], tmp_path: pathlib.Path) -> None:
    import volery

    volery.keygen(out=tmp_path / "mallory")
    answers = both.start("other", tables, {"sender": {"identity": str(tmp_path / "mallory")}, "receiver": {"wait": "5s"}})
    assert answers["sender"].result(120)["error"] in ("NetworkError", "PeerError", "UsageError")
    assert answers["receiver"].result(120)["error"] == "NetworkError"


def test_wrong_rows(both: Both) -> None:
    table = both.table("empty-key", {"key": ["a", None, "b"]})
    told = both.told("sender", "empty-key", table, {}, {})
    answer = both.driver("sender").start(told).result(120)
    assert answer["error"] == "DataError", answer
    assert "empty_keys" in answer["hint"]
    answer = both.driver("sender").start({**told, "plan": {"key": "nothing"}}).result(120)
    assert answer["error"] in ("UsageError", "DataError"), answer
    assert "nothing" in answer["message"]


def test_too_few_slots(both: Both, tables: dict[str, str]) -> None:
    told = both.told("sender", "slots", tables["sender"], {"workers": 3}, {})
    answer = both.driver("sender").start(told).result(120)
    assert answer["error"] == "UsageError", answer
    assert "Spark can run 2 tasks at once" in answer["message"]
