"""Two organisations on one machine: identities, a gateway, a driver each."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
PROGRAM = str(pathlib.Path(sys.executable).with_name("volery"))
ROLES = ("sender", "receiver")

#: Settings of small sessions, several of which share a machine.
SPARK = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    "spark.ui.showConsoleProgress": "false",
}


def address() -> str:
    """An address on which nothing listens yet."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def children(pid: int) -> Iterator[tuple[int, list[str]]]:
    """Processes below a process, with their command lines."""
    below: dict[int, list[int]] = {}
    words: dict[int, list[str]] = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(path.name)] = (path / "cmdline").read_text().split("\0")
        except (OSError, IndexError):
            continue
        below.setdefault(parent, []).append(int(path.name))
    todo = [pid]
    while todo:
        for one in below.get(todo.pop(), []):
            yield one, words[one]
            todo.append(one)


class Driver:
    """One side's driver process."""

    def __init__(self, log: pathlib.Path, **settings: Any) -> None:
        self.log = open(log, "ab")
        if "ray" not in settings:
            settings = {**SPARK, "spark.local.dir": str(log.parent / "spark"), **settings}
        command = [sys.executable, str(HERE / "driver.py"), json.dumps(settings)]
        pipe = subprocess.PIPE
        # A session of its own, so that it can be killed with all its processes.
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.log, start_new_session=True, text=True)
        self._answers: list[Future[dict[str, Any]]] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.ready: Future[dict[str, Any]] = Future()
        self._answers.append(self.ready)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.pop(0).set_result(json.loads(line))
        while self._answers:
            self._answers.pop(0).set_result({"error": "gone", "message": f"see {self.log.name}", "hint": None})

    def start(self, told: dict[str, Any]) -> Future[dict[str, Any]]:
        """Start a match; the answer comes later."""
        answer: Future[dict[str, Any]] = Future()
        self._answers.append(answer)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        return answer

    def workers(self, parents: bool = False) -> list[int]:
        """The processes of its workers, or of their parents, tasks of Spark."""
        found = []
        for pid, words in children(self.process.pid):
            if "volery" in words and "worker" in words:
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                found.append(parent if parents else pid)
        return found

    def kill(self) -> None:
        """Kill it with all its processes, at once."""
        pids = [pid for pid, _ in children(self.process.pid)]
        for pid in [self.process.pid, *pids]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.log.close()


class Both:
    """The two organisations."""

    def __init__(self, folder: pathlib.Path) -> None:
        import volery

        self.folder = folder
        self.gateway = address()
        self.fingerprints = [volery.keygen(out=folder / role, name=role) for role in ROLES]
        self.drivers: dict[str, Driver] = {}
        self._gateway: subprocess.Popen[bytes] | None = None
        self.open_gateway()

    def open_gateway(self) -> None:
        words = [f"--allow={one}" for one in self.fingerprints]
        log = open(self.folder / "gateway.log", "ab")
        self._gateway = subprocess.Popen([PROGRAM, "gateway", "--listen", self.gateway, *words], stderr=log, stdout=log)

    def close_gateway(self) -> None:
        assert self._gateway is not None
        self._gateway.kill()
        self._gateway.wait()

    def driver(self, role: str, **settings: Any) -> Driver:
        """The running driver of a side, or a new one."""
        if settings:
            return Driver(self.folder / f"{role}.log", **settings)
        if role not in self.drivers or self.drivers[role].process.poll() is not None:
            self.drivers[role] = Driver(self.folder / f"{role}.log")
        return self.drivers[role]

    def work(self, role: str, run: str) -> pathlib.Path:
        return self.folder / "work" / role / run

    def table(self, name: str, columns: dict[str, Any]) -> str:
        """A table in a file."""
        path = self.folder / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        return str(path)

    def told(self, role: str, run: str, table: str, match: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
        """A match, as a driver takes it."""
        options = {
            "run": run,
            "role": role,
            "peer": self.fingerprints[role == "sender"],
            "identity": str(self.folder / role),
            "gateway": self.gateway,
            "work": str(self.folder / "work" / role),
            "workers": 2,
            "shards": 8,
            "wait": "90s",
            "timeout": "30s",
            "log": str(self.folder / f"{role}.jsonl"),
            **match,
        }
        return {"match": options, "plan": {"key": "key", **plan}, "table": table}

    def start(self, run: str, tables: dict[str, str], match: Any = None, plan: Any = None, **more: Any) -> dict[str, Future[Any]]:
        """Start a match at both sides; `match` and `plan` are arguments of both, or of each by its role."""
        answers = {}
        for role in ROLES:
            options = [one.get(role, {}) if one and set(one) <= set(ROLES) else one or {} for one in (match, plan)]
            told = {**self.told(role, run, tables[role], *options), **more}
            answers[role] = self.driver(role).start(told)
        return answers

    def close(self) -> None:
        for driver in self.drivers.values():
            driver.kill()
        self.close_gateway()


def finish(answers: dict[str, Future[Any]], seconds: float = 240) -> tuple[Any, Any]:
    """Both sides' answers, which are no errors."""
    end = time.monotonic() + seconds
    found = [answers[role].result(max(1, end - time.monotonic())) for role in ROLES]
    for one in found:
        assert "error" not in one, found
    return found[0], found[1]


def until(what: Any, seconds: float = 120) -> Any:
    """Waits until it is true."""
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found
