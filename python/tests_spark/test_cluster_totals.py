"""Numbers about the common keys, beside SQL."""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import time
from typing import Any

import pyarrow as pa
import pytest
from both import PROGRAM, ROLES, Both, finish, until
from totals import KINDS, OPTIONS, check, draw, matches, sql, table, tables

#: Places at which processes are killed.
KILLS = int(os.environ.get("VOLERY_KILLS", "20")) // 5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holder", ROLES)
def test_numbers_beside_sql(both: Both, kind: str, holder: str) -> None:
    run = f"total-{kind}-{holder}"
    rows = draw(run)
    sides = finish(both.start(run, tables(both, run, rows), matches(kind, holder)))
    for role, answer in zip(ROLES, sides):
        check(rows, kind, holder, answer["numbers"])
        report = answer["report"]
        assert report["security"] == "semi-honest" and report["result"]["protocol"] == "circuit"
        assert report["result"]["kind"] == kind and report["result"]["to"] == "both"
        assert report["result"]["failure_log2"] < -39 and report["parameters"]
        assert any("neither side learns which keys are common" in line for line in report["revealed"])
        # The folder of the run has no text of the table.
        for path in (both.work(role, run) / "staged").rglob("*.parquet"):
            assert b"idle" not in path.read_bytes()
    assert sides[0]["hash"] == sides[1]["hash"]
    assert sides[0]["report"]["bytes_sent"] == sides[1]["report"]["bytes_received"]


@pytest.mark.parametrize("to", ROLES)
def test_who_gets_the_number(both: Both, to: str) -> None:
    run = f"total-to-{to}"
    rows = draw(run, 50, 70, 40)
    for role, answer in zip(ROLES, finish(both.start(run, tables(both, run, rows), matches("sum", to=to)))):
        if role == to:
            check(rows, "sum", "sender", answer["numbers"])
        else:
            assert answer["numbers"] == {"count": None, "sum": None, "mean": None, "groups": None, "below_minimum": False}


@pytest.mark.parametrize(("kind", "at"), [("mean", "sender"), ("sum", "receiver"), ("count", "receiver")])
def test_groups_beside_sql(both: Both, kind: str, at: str) -> None:
    run = f"total-groups-{kind}-{at}"
    rows = draw(run)
    groups = ["y", "z, w", "x", "empty"]
    match = matches(kind, groups=groups, minimum=5)
    match[at]["group_by"] = "group, of"
    sides = finish(both.start(run, tables(both, run, rows), match))
    for answer in sides:
        assert list(answer["numbers"]["groups"]) == groups
        for group, numbers in answer["numbers"]["groups"].items():
            assert numbers["below_minimum"] == (group == "empty")
            if group == "empty":
                assert numbers["count"] is None and numbers["sum"] is None
            else:
                check(rows, kind, "sender", numbers, f"g = '{group}'")
    result = sides[ROLES.index(at)]["report"]["result"]
    assert result["rows_in_no_group"] == sum(one[2] == "none" for one in rows[at])


def test_a_minimum_that_is_not_reached_opens_nothing(both: Both) -> None:
    for minimum in (20, 21):
        run = f"total-minimum-{minimum}"
        rows: dict[str, Any] = {role: [(f"k{at}", 100, "x") for at in some] for role, some in zip(ROLES, (range(0, 60), range(40, 90)))}
        sides = finish(both.start(run, tables(both, run, rows), matches("mean", minimum=minimum)))
        for role, answer in zip(ROLES, sides):
            numbers, kept = answer["numbers"], json.loads((both.work(role, run) / "totals.json").read_text())
            if minimum == 20:
                assert (numbers["count"], numbers["sum"], numbers["below_minimum"]) == (20, "20.00", False)
            else:
                assert (numbers["count"], numbers["sum"], numbers["below_minimum"]) == (None, None, True)
                assert kept == [{"below_minimum": True, "count": None, "sum": None}]


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0), (1, 1)], ids=str)
def test_small_tables(both: Both, sizes: tuple[int, int]) -> None:
    run = "total-small-{}-{}".format(*sizes)
    rows: dict[str, Any] = {role: [(f"k{at}", 150, "x") for at in range(size)] for role, size in zip(ROLES, sizes)}
    some = {}
    for role in ROLES:
        columns = {"key": [one[0] for one in rows[role]], "v": [1.5 for _ in rows[role]]}
        some[role] = both.table(f"{run}-{role}", {"key": pa.array(columns["key"], pa.string()), "v": pa.array(columns["v"], pa.float64())})
    for answer in finish(both.start(run, some, matches("sum"))):
        check(rows, "sum", "sender", answer["numbers"])


def test_noise_is_drawn_once_for_a_run(both: Both) -> None:
    run = "total-noise"
    rows = draw(run)
    some = tables(both, run, rows)
    match = matches("sum", epsilon=0.5)
    first = finish(both.start(run, some, match))
    again = finish(both.start(run, some, match))
    numbers = [answer["numbers"]["sum"] for answer in (*first, *again)]
    assert len(set(numbers)) == 1
    _, cents = sql(rows, "s")
    # 2^-64 of such noise is further away.
    assert 0 < abs(float(numbers[0]) - cents / 100) < 2 * 200 / 0.5 * 45
    for role in ROLES:
        noise = first[ROLES.index(role)]["report"]["result"]["noise"]["sum"]
        assert noise["added_by"] == ["sender", "receiver"]


@pytest.mark.parametrize("place", range(KILLS))
def test_a_killed_process(both: Both, place: int) -> None:
    """Shards are repeated at both sides, and the shares of one execution are opened."""
    chance = random.Random(place)
    run = f"total-kill-{place}"
    keys = {"sender": range(0, 60_000), "receiver": range(40_000, 100_000)}
    some = {role: both.table(f"{run}-{role}", {"key": pa.array(keys[role], pa.int64()), "v": pa.array(keys[role], pa.int64())}) for role in ROLES}
    match = matches("mean", bound=100_000, decimals=0)
    answers = both.start(run, some, match)
    role, parents = chance.choice(ROLES), place % 2 == 1
    folder = both.work(role, run) / "begun"
    until(lambda: folder.exists() and len(list(folder.iterdir())) >= chance.randrange(1, 8))
    time.sleep(chance.random() * 0.3)
    victims = both.driver(role).workers(parents)
    if victims:
        os.kill(chance.choice(victims), signal.SIGKILL)
    sides = finish(answers)
    for answer in sides:
        assert (answer["numbers"]["count"], answer["numbers"]["sum"]) == (20_000, str(sum(range(40_000, 60_000))))
    for role in ROLES:
        found = [path.name for path in (both.work(role, run) / "found").iterdir()]
        # Each with a session of its own.
        assert len({name.rpartition(".")[2] for name in found}) == len(found) >= 8
    if not victims:
        pytest.skip("the workers had finished")


def test_a_driver_that_is_killed_while_it_opens(both: Both) -> None:
    """One side comes back to the opening; its peer's workers are done."""
    run = "total-driver"
    rows = draw(run)
    some, match = tables(both, run, rows), matches("sum")
    told = {role: both.told(role, run, some[role], match[role], {}) for role in ROLES}
    killed = both.driver("receiver", **{"spark.app.name": "killed"})
    killed.start(told["receiver"])
    answer = both.driver("sender").start(told["sender"])
    complete = both.work("receiver", run) / "complete"
    until(lambda: complete.exists() and len(list(complete.iterdir())) >= 1)
    killed.kill()
    again = both.driver("receiver").start(told["receiver"])
    if "error" in (first := answer.result(240)):
        # It had waited at the opening, or at its last worker.
        assert first["error"] == "NetworkError", first
        answer = both.driver("sender").start(told["sender"])
    for one in finish({"sender": answer, "receiver": again}):
        check(rows, "sum", "sender", one["numbers"])


@pytest.mark.parametrize(
    ("name", "mine", "theirs"),
    [
        ("minimum", {"minimum": 1}, {"minimum": 2}),
        ("bound", {"bound": 200}, {"bound": 201}),
        ("decimals", {"decimals": 2}, {"decimals": 3}),
        ("to", {"to": "sender"}, {"to": "receiver"}),
        ("epsilon", {"epsilon": 1}, {}),
        ("groups", {"groups": ["x", "y"], "group_by": "group, of"}, {"groups": ["y", "x"]}),
        ("result", {"result": "sum=v"}, {"result": "mean"}),
        ("result", {"result": "sum=v"}, {"result": "rows"}),
        ("side with the column", {"result": "sum"}, {"result": "sum"}),
    ],
)
def test_terms_that_differ_are_refused(both: Both, name: str, mine: Any, theirs: Any) -> None:
    run = f"total-differ-{len(name)}-" + "-".join(mine)
    rows = draw("differ", 30, 30, 20)
    match = matches("sum")
    match["sender"] |= mine
    match["receiver"] |= theirs
    if theirs.get("result") == "rows":
        run += "-rows"
        match["receiver"] = theirs
    answers = both.start(run, tables(both, run, rows), match)
    for role in ROLES:
        answer = answers[role].result(120)
        assert answer.get("error") == "SettingsDifferError", answer
        assert name in answer["message"], answer
        assert not (both.work(role, run) / "manifest.json").exists()


@pytest.mark.parametrize("role", ROLES)
def test_the_program_at_the_other_side(both: Both, role: str, tmp_path: pathlib.Path) -> None:
    run = f"total-program-{role}"
    rows = draw(run)
    some, match = tables(both, run, rows), matches("mean", groups="x,y")
    other = "sender" if role == "receiver" else "receiver"
    match[other] |= {"group_by": "group, of"}
    told = both.told(role, run, some[role], match[role], {})
    words = ["run-local", "psi", "--role", other, "--run", run, "--workers", "2", "--shards", "8", "--gateway", both.gateway]
    words += ["--identity", str(both.folder / other), "--peer", both.fingerprints[other == "sender"]]
    words += ["--input", some[other], "--key", "key", "--resume", str(tmp_path / "work"), "--wait", told["match"]["wait"]]
    words += [f"--{name.replace('_', '-')}={value}" for name, value in match[other].items()]
    process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    answer = both.driver(role).start(told).result(240)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "error" not in answer, answer
    for line, group in zip(said.splitlines()[1:], ("x", "y")):
        numbers = answer["numbers"]["groups"][group]
        check(rows, "mean", "sender", numbers, f"g = '{group}'")
        assert line.split(",")[:3] == [group, str(numbers["count"]), numbers["sum"]]


def test_rows_that_are_refused(both: Both) -> None:
    match = {**OPTIONS, "result": "sum=v", "group_by": "group, of", "groups": ["x", "y"]}
    for name, rows, error, said in [
        ("large", [("a", 1, "x"), ("b", 20_001, "x")], "DataError", 'column "v" of row'),
        ("sum", [("a", 20_000, "x"), ("a", 1, "x"), ("b", 1, "x")], "DataError", "the rows of 1 key have values whose sum is beyond bound"),
        ("group", [("a", 1, "x"), ("a", 1, "y"), ("b", 1, "x"), ("b", 1, "")], "DataError", "the rows of 2 keys are in different groups"),
    ]:
        told = both.told("sender", f"total-refused-{name}", table(both, f"refused-{name}", rows), match, {})
        answer = both.driver("sender").start(told).result(120)
        assert answer["error"] == error and said in answer["message"], answer
        assert "bound" in answer["hint"] or "group" in answer["hint"]
    some = table(both, "refused", [("a", 1, "x")])
    wrong: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("payload", {}, {"payload": "v"}, "payload: a sum has no rows"),
        ("or", {}, {"or_": ["v"]}, "or_: a sum is of the keys of one key"),
        ("bound", {"bound": None}, {}, "bound: required"),
        ("shares", {"result": "shares=v"}, {}, "result: shares are computed by one process"),
        ("rows", {"result": "rows"}, {}, "only with result"),
        ("security", {"security": "malicious"}, {}, "no practical malicious"),
        ("dh", {"protocol": "dh"}, {}, "workers compute totals by circuit"),
        ("column", {"result": "sum=w"}, {}, "w"),
    ]
    for name, more, plan, said in wrong:
        told = both.told("sender", f"total-wrong-{name}", some, {**match, **more}, plan)
        answer = both.driver("sender").start(told).result(120)
        assert answer["error"] in ("UsageError", "DataError") and said in answer["message"], answer


def test_a_refused_plan_takes_the_earlier_one_away(both: Both) -> None:
    match = {**OPTIONS, "result": "sum=v"}
    some = table(both, "total-planned", [("a", 1, "x")])
    large = table(both, "total-replanned", [("a", 20_000, "x"), ("a", 1, "x")])
    told = {**both.told("sender", "total-replanned", some, match, {}), "refused": large}
    answer = both.driver("sender").start(told).result(120)
    assert answer["error"] == "UsageError" and "call plan()" in answer["message"], answer
