"""Matches from Ray, with Ray and with Spark at the other side."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from both import ROLES, Both, Driver, finish, until

KEYS = {"sender": range(0, 200_000), "receiver": range(190_000, 390_000)}


@pytest.fixture(scope="module")
def rays(both: Both) -> Iterator[dict[str, Driver]]:
    """A driver with a Ray of its own for each side."""
    found = {role: both.driver(role, ray=4) for role in ROLES}
    yield found
    for one in found.values():
        one.kill()


@pytest.mark.parametrize("engines", ["ray-ray", "spark-ray", "ray-spark"])
def test_rows(both: Both, rays: dict[str, Driver], engines: str) -> None:
    mine = [(f"k{at % 700}", f"p{at % 900}", at) for at in range(2_000)]
    theirs = [(f"k{2 * at}", f"p{3 * at}", at) for at in range(400)] * 2
    names = ("key", "other", "id")
    tables = {
        role: both.table(f"{engines}-{role}", dict(zip(names, map(list, zip(*rows)))))
        for role, rows in [("sender", theirs), ("receiver", mine)]
    }
    keys = {"key": "key", "or_": ["other"]}
    plan: dict[str, dict[str, Any]] = {"sender": {**keys, "payload": "id"}, "receiver": {**keys, "payload": True, "rule_column": "rule"}}
    answers = {}
    for role, engine in zip(ROLES, engines.split("-")):
        driver = rays[role] if engine == "ray" else both.driver(role)
        answers[role] = driver.start(both.told(role, engines, tables[role], {}, plan[role]))
    _, receiver = finish(answers)
    assert receiver["columns"] == ["key", "other", "id", "id_sender", "rule"]
    expected = []
    for key, other, at in mine:
        first, second = (int(one[1:]) for one in (key, other))
        if first % 2 == 0 and first < 800:
            expected.append([key, other, at, first // 2, 1])
        elif second % 3 == 0 and second < 1200:
            expected.append([key, other, at, second // 3, 2])
    assert sorted(receiver["rows"]) == sorted(expected)


@pytest.mark.parametrize("parents", [False, True])
def test_a_killed_worker(both: Both, rays: dict[str, Driver], parents: bool) -> None:
    run = f"ray-kill-{parents}"
    tables = {role: both.table(f"{run}-{role}", {"key": pa.array(keys, pa.int64())}) for role, keys in KEYS.items()}
    answers = {role: rays[role].start(both.told(role, run, tables[role], {}, {})) for role in ROLES}
    begun = both.work("receiver", run) / "begun"
    until(lambda: begun.exists() and len(list(begun.iterdir())) >= 2)
    victims = rays["receiver"].workers(parents)
    if not victims:
        pytest.skip("the workers had finished")
    os.kill(victims[0], signal.SIGKILL)
    _, receiver = finish(answers)
    assert sorted(row[0] for row in receiver["rows"]) == list(range(190_000, 200_000))
    assert max(receiver["report"]["result"]["attempts"]) > 1
