"""Executors that are processes, and another engine at the other side."""

from __future__ import annotations

import pathlib
import subprocess

import pyarrow as pa
import pyspark
import pytest
from both import PROGRAM, Both, finish


def tables(both: Both, name: str) -> dict[str, str]:
    keys = {"sender": range(0, 3000), "receiver": range(2000, 5000)}
    return {role: both.table(f"{name}-{role}", {"key": pa.array(some, pa.int64())}) for role, some in keys.items()}


def test_executors_that_are_processes(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(pathlib.Path(pyspark.__file__).parent))
    some = tables(both, "cluster")
    told = {role: both.told(role, "cluster", some[role], {}, {}) for role in ("sender", "receiver")}
    settings = {"spark.master": "local-cluster[2,1,1024]", "spark.executor.memory": "640m", "spark.python.worker.reuse": "true"}
    driver = both.driver("receiver", **settings)
    try:
        answers = {"receiver": driver.start(told["receiver"]), "sender": both.driver("sender").start(told["sender"])}
        _, receiver = finish(answers, 300)
        assert sorted(row[0] for row in receiver["rows"]) == list(range(2000, 3000))
    finally:
        driver.kill()


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_the_program_at_the_other_side(both: Both, role: str, tmp_path: pathlib.Path) -> None:
    """Spark has the role, processes on one machine the other."""
    run = f"program-{role}"
    some = tables(both, run)
    other = "sender" if role == "receiver" else "receiver"
    told = both.told(role, run, some[role], {}, {})
    match = told["match"]
    words = ["run-local", "psi", "--role", other, "--run", run, "--workers", "2", "--shards", "8", "--gateway", both.gateway]
    words += ["--identity", str(both.folder / other), "--peer", both.fingerprints[other == "sender"]]
    words += ["--input", some[other], "--key", "key", "--resume", str(tmp_path / "work"), "--wait", match["wait"]]
    if other == "receiver":
        words += ["--out", str(tmp_path / "out.csv")]
    process = subprocess.Popen([PROGRAM, *words], stderr=subprocess.PIPE, text=True)
    answer = both.driver(role).start(told).result(240)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "error" not in answer, answer
    if role == "receiver":
        found = [row[0] for row in answer["rows"]]
    else:
        found = [int(line) for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert sorted(found) == list(range(2000, 3000))
