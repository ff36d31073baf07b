"""What cluster engines share: storage, and the parent of a worker beside children that speak its protocol."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import volery
from hypothesis import given, settings
from hypothesis import strategies as st
from volery import _cluster
from volery._cluster import ATTEMPTS, Job, Killed, Again, Secret, Shards, Side, Store, serve

# A child: `ask` sends a request and returns the answer, with its bytes where there are some.
CHILD = """
import json, os, sys
def ask(request, data=b""):
    sys.stdout.buffer.write(json.dumps(request).encode() + b"\\n" + data)
    sys.stdout.buffer.flush()
    answer = json.loads(sys.stdin.buffer.readline())
    if answer.get("bytes") is not None:
        answer["data"] = sys.stdin.buffer.read(answer["bytes"])
    return answer
"""


def child(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", CHILD + code, *words]


def none(shard: int) -> bytes:
    raise AssertionError(f"shard {shard}")


@pytest.fixture(params=["path", "file", "pyarrow"])
def store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Store:
    if request.param == "path":
        return Store(tmp_path / "folder")
    if request.param == "file":
        return Store((tmp_path / "a folder").as_uri())
    # A file system of pyarrow's own for tests, in memory.
    return Store("mock://folder")


def test_objects(store: Store) -> None:
    assert store.get("done/0-00001.a1.json") is None
    assert store.list("done/") == []
    for name in ["done/0-00010.a1.json", "done/0-00001.a2.json", "done/1-00001.a1.json", "found/0-00001.a1"]:
        store.put(name, name.encode())
    assert store.list("done/0-") == ["done/0-00001.a2.json", "done/0-00010.a1.json"]
    assert store.list("done/") == ["done/0-00001.a2.json", "done/0-00010.a1.json", "done/1-00001.a1.json"]
    assert store.get("found/0-00001.a1") == b"found/0-00001.a1"
    assert not store.put_new("found/0-00001.a1", b"another")
    assert store.get("found/0-00001.a1") == b"found/0-00001.a1"
    store.put("found/0-00001.a1", b"another")
    assert store.get("found/0-00001.a1") == b"another"
    assert store.put_new("empty", b"")
    assert store.get("empty") == b""
    for wrong in ["/etc/passwd", "../outside", "done/../../outside"]:
        with pytest.raises(volery.UsageError, match="no name"):
            store.get(wrong)


def test_places(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Engines may take a path without a scheme to be elsewhere.
    assert Store("work").below("run").url == (tmp_path / "work" / "run").as_uri()
    assert Store("s3a://bucket/work/").below("run").url == "s3a://bucket/work/run"
    store = Store("work")
    assert store.put_new("a/b", b"1")
    assert not store.put_new("a/b", b"2")
    assert pickle.loads(pickle.dumps(store)).get("a/b") == b"1"
    # Nothing but the object is there.
    assert [path.name for path in (tmp_path / "work" / "a").iterdir()] == ["b"]
    with pytest.raises(volery.UsageError, match="work: nowhere://"):
        Store("nowhere://a").list("b/")


def test_a_worker_is_served(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path)
    code = """
assert ask({"put": "found/b", "bytes": 70000}, bytes(70000)) == {"done": True}
assert ask({"put": "found/b", "bytes": 1}, b"1") == {"exists": True}
assert ask({"put": "found/c", "bytes": 0}) == {"done": True}
print(json.dumps({"progress": {"shard": 3, "done": 1, "of": 2}}), flush=True)
assert ask({"list": "found/"}) == {"names": ["found/b", "found/c"]}
assert len(ask({"shard": 5})["data"]) == 5_000_000
assert os.read(int(sys.argv[1]), 100) == b"secret"
print("a line", file=sys.stderr)
print(json.dumps({"worked": {"shards": 3}}))
"""
    with _cluster._piped(b"secret") as ticket:
        worked = serve(child(code, str(ticket)), store, lambda shard: bytes(1_000_000 * shard), keep=(ticket,))
    assert worked == {"shards": 3}
    assert store.list("found/") == ["found/b", "found/c"]
    assert store.get("found/b") == bytes(70000)


@pytest.mark.parametrize("request_", [{"put": "manifest.json", "bytes": 0}, {"put": "driver/x", "bytes": 0}, {"list": "driver/"}])
def test_a_worker_has_its_journal_only(tmp_path: pathlib.Path, request_: dict[str, Any]) -> None:
    with pytest.raises(volery.Error, match="none of its objects"):
        serve(child(f"ask({request_!r})"), Store(tmp_path), none)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [(1, volery.DataError), (2, volery.UsageError), (3, volery.PeerError), (4, volery.NetworkError), (5, volery.SettingsDifferError)],
)
def test_an_exit_status_is_an_exception(tmp_path: pathlib.Path, status: int, kind: type[volery.Error]) -> None:
    told = json.dumps({"level": "error", "message": "it went wrong", "hint": "do this"})
    for text in ["error: first\nerror: it went wrong\nhint: do this", '{"level": "info"}\n{no\n' + told]:
        code = f"print({text!r}, file=sys.stderr)\nsys.exit({status})"
        with pytest.raises(kind) as raised:
            serve(child(code), Store(tmp_path), none)
        assert (raised.value.message, raised.value.hint) == ("it went wrong", "do this")


def late(shard: int) -> bytes:
    time.sleep(0.5)
    return bytes(10_000_000)


def test_a_killed_worker(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Killed, match="signal 9"):
        serve(child("os.kill(os.getpid(), 9)"), Store(tmp_path), none)
    # An object that was not sent whole is not there.
    code = "sys.stdout.write(json.dumps({'put': 'found/b', 'bytes': 10}) + '\\n12345')\nsys.exit(4)"
    with pytest.raises(volery.NetworkError):
        serve(child(code), Store(tmp_path), none)
    assert Store(tmp_path).list("found/") == []
    # One that does not wait for its answer.
    code = "sys.stdout.write(json.dumps({'shard': 1}) + '\\n')\nsys.stdout.flush()\nsys.exit(3)"
    with pytest.raises(volery.PeerError):
        serve(child(code), Store(tmp_path), late)


def test_an_error_of_the_parent_ends_the_worker(tmp_path: pathlib.Path) -> None:
    def passed(shard: int) -> bytes:
        raise Again

    begun = time.monotonic()
    with pytest.raises(Again):
        serve(child("import time\nask({'shard': 1})\ntime.sleep(60)"), Store(tmp_path), passed)
    assert time.monotonic() - begun < 30


def test_a_worker_ends_with_its_parent(tmp_path: pathlib.Path) -> None:
    # The parent is killed; the end of its pipe ends the child.
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from volery._cluster import Store, serve
child = "import os, sys\\nopen(sys.argv[1], 'w').write(str(os.getpid()))\\nsys.stdin.read()"
serve([sys.executable, "-c", child, {str(tmp_path / "pid")!r}], Store({str(tmp_path)!r}), None)
"""
    parent = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", code])
    pid = tmp_path / "pid"
    end = time.monotonic() + 30
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    worker = pathlib.Path(f"/proc/{pid.read_text()}/stat")
    while worker.exists() and worker.read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.01)


def batches(rows: list[tuple[int, bytes, bytes]], size: int, last: int = 99) -> Iterator[pa.RecordBatch]:
    rows = [*rows, (last, b"", b"")]
    for at in range(0, len(rows), size):
        shard, item, payload = zip(*rows[at : at + size])
        yield pa.record_batch(
            {"worker": pa.array([0] * len(shard)), "shard": pa.array(shard, pa.int32()), "item": list(item), "payload": list(payload)}
        )


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-1, 12), max_size=60), st.integers(1, 9), st.sets(st.integers(0, 14)), st.booleans())
def test_shards_are_read_in_order(shards: list[int], size: int, asked: set[int], with_payload: bool) -> None:
    rows = [(shard, bytes([at] * 16), bytes([at])) for at, shard in enumerate(sorted(shards))]
    read = Shards(batches(rows, size), ("payload",) if with_payload else ())
    for shard in sorted(asked):
        table = pa.ipc.open_stream(read(shard)).read_all()
        expected = [row for row in rows if row[0] == shard]
        assert table.column("item").to_pylist() == [item for _, item, _ in expected]
        assert table.column_names == (["item", "payload"] if with_payload else ["item"])
        assert not with_payload or table.column("payload").to_pylist() == [payload for _, _, payload in expected]


def test_shards_with_values() -> None:
    columns = {"shard": pa.array([0, 1, 9], pa.int32()), "item": [bytes(16)] * 3, "value": [5, -7, None], "group": pa.array([1, -1, None], pa.int32())}
    read = Shards(iter([pa.record_batch(columns)]), ("value", "group"))
    for shard, value, group in [(0, 5, 1), (1, -7, -1)]:
        table = pa.ipc.open_stream(read(shard)).read_all()
        assert table.schema.types == [pa.binary(16), pa.int64(), pa.int32()]
        assert table.to_pylist() == [{"item": bytes(16), "value": value, "group": group}]


def test_a_worker_that_starts_again_gets_the_last_shards() -> None:
    rows = [(shard, bytes([shard] * 16), b"") for shard in range(6)]
    read = Shards(batches(rows, 2), ())
    kept = {shard: read(shard) for shard in range(4)}
    assert read(2) == kept[2]
    assert read(3) == kept[3]
    with pytest.raises(Again, match="was read before"):
        read(1)
    assert len(pa.ipc.open_stream(read(5)).read_all()) == 1


@pytest.mark.parametrize("rows", range(7))
def test_rows_that_are_cut_off(rows: int) -> None:
    every = [(shard, bytes([shard] * 16), b"") for shard in range(6)]
    read = Shards(iter(list(batches(every, 1))[:rows]), ())
    # A shard is whole only if something follows it.
    for shard in range(rows - 1):
        assert len(pa.ipc.open_stream(read(shard)).read_all()) == 1
    with pytest.raises(Again, match="ended within"):
        read(max(rows - 1, 0))


def job(store: Store) -> Job:
    store.put("manifest.json", b"{}")
    return Job(store, "sender", "host:1", 0, 7, (), 1)


def run(job: Job, monkeypatch: pytest.MonkeyPatch, *ends: Any) -> list[list[str]]:
    """Runs worker 1, whose starts end so; returns the words of each start."""
    started = []
    todo = list(ends)

    def one(
        command: list[str], store: Store, shards: Any, keep: tuple[int, ...], proxy: str | None
    ) -> dict[str, Any]:
        assert proxy is None
        started.append(command)
        assert os.read(keep[0], 100) == b"pem 1"
        for end in todo.pop(0):
            if isinstance(end, str):
                store.put(end, b"{}")
            else:
                raise end
        return {"shards": 2}

    monkeypatch.setattr(_cluster, "serve", one)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    job.run(1, Secret("pem 1"), iter(()))
    return started


def failed(store: Store) -> dict[str, Any]:
    found = store.get("failed/00007-00001.json")
    assert found is not None
    return dict(json.loads(found))


def test_attempts_of_a_worker(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    lost = volery.NetworkError("the peer went away")
    # As long as it finishes shards it starts again.
    ends = [["begun/0-00001.1", lost], [lost], [lost], ["begun/0-00003.1", Killed("signal 9")], []]
    started = run(job(store), monkeypatch, *ends)
    assert [next(word for word in one if "--attempt" in word) for one in started] == [f"--attempt={n}" for n in range(1, 6)]
    assert "--worker=1" in started[0]
    assert not any("pem" in word for word in started[0])
    assert store.list("failed/") == []
    assert store.get("worked/0-00001.a5.json") == b'{"shards": 2}'
    # A later start has a higher number.
    (again,) = run(job(store), monkeypatch, [])
    assert "--attempt=6" in again


def test_a_worker_gives_up(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = volery.NetworkError("the peer went away")
    store = Store(tmp_path / "network")
    assert len(run(job(store), monkeypatch, *[[lost]] * ATTEMPTS)) == ATTEMPTS
    assert failed(store) == {"worker": 1, "status": 4, "message": "the peer went away", "hint": None}
    # It has waited for as long as it should.
    store = Store(tmp_path / "gateway")
    assert len(run(job(store), monkeypatch, [volery.NetworkError("gateway a:1: nobody came")])) == 1
    # What a repetition does not help is not repeated.
    store = Store(tmp_path / "peer")
    assert len(run(job(store), monkeypatch, [volery.PeerError("a check failed", "ask them")])) == 1
    assert failed(store) == {"worker": 1, "status": 3, "message": "a check failed", "hint": "ask them"}
    # Storage that this machine does not see.
    store = Store(tmp_path / "elsewhere")
    Job(store, "sender", "host:1", 0, 7, (), 1).run(1, Secret("pem 1"), iter(()))
    assert "does not see" in failed(store)["message"]
    # The engine runs the task again.
    store = Store(tmp_path / "passed")
    with pytest.raises(Again):
        run(job(store), monkeypatch, [Again()])
    assert store.list("failed/") == []


def test_a_worker_gives_way_to_a_newer_start(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = volery.NetworkError("the peer went away")
    store = Store(tmp_path / "task")
    # The engine has started the task again on another machine.
    with pytest.raises(Again, match="started again elsewhere"):
        run(job(store), monkeypatch, ["attempts/00001.00002", lost])
    assert store.list("failed/") == []
    # Another driver has.
    store = Store(tmp_path / "driver")
    store.put("attempts/00001.00001", b'{"start": 8, "rule": 0}')
    assert run(job(store), monkeypatch) == []
    assert "another driver" in failed(store)["message"]


def test_secrets_are_not_shown() -> None:
    assert "pem" not in repr((Secret("pem 0"),))
    assert pickle.loads(pickle.dumps(Secret("pem 0"))).show() == "pem 0"


def side(work: pathlib.Path, **other: Any) -> Side:
    options: dict[str, Any] = {"run": "a", "role": "sender", "peer": "p", "identity": "i", "gateway": "g:1", "workers": 2}
    return Side(work=work, **{**options, **other})


@pytest.mark.parametrize(
    "wrong", [{"run": "a/b"}, {"run": ""}, {"run": "x" * 65}, {"run": ".."}, {"role": "both"}, {"workers": 0}, {"workers": "2"}, {"gateway": "host"}]
)
def test_wrong_settings(tmp_path: pathlib.Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(volery.UsageError, match=next(iter(wrong))):
        side(tmp_path, **wrong)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"result": "median"}, "median"),
        ({"result": "sum=v"}, "bound: required"),
        ({"result": "shares=v"}, "result: shares are computed by one process"),
        ({"bound": 5}, "bound: only with"),
        ({"result": "count", "protocol": "dh"}, "protocol: workers compute totals by circuit"),
        ({"result": "count", "security": "malicious"}, "security: count is computed by circuit-PSI"),
        ({"result": "count", "delta": "1e-9"}, "delta: only with epsilon"),
        ({"result": "count", "group_by": "g"}, "groups: required with group_by"),
    ],
)
def test_results_that_do_not_exist(tmp_path: pathlib.Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(volery.UsageError) as raised:
        side(tmp_path, **options)
    assert said in raised.value.message


def test_what_follows_from_a_result(tmp_path: pathlib.Path) -> None:
    shared = {"bound": 200, "decimals": 2, "groups": ["a", "b, c"], "epsilon": 0.5}
    sender = side(tmp_path, result="mean=v", **shared)
    receiver = side(tmp_path, role="receiver", result="mean", group_by="g", **{**shared, "bound": "200.00"})
    # Without the names of columns, and defaults beside what is given.
    assert sender.settings() == receiver.settings() == side(tmp_path, result="mean=w", minimum=50, to="receiver", **shared).settings()
    assert sender.settings()["protocol"] == "circuit" and sender.settings()["security"] == "semi-honest"
    assert sender.totals is not None and sender.totals["bound"] == 20_000
    assert any("noise" in line for line in sender.reveals()) and "gateway" in sender.reveals()[-1]
    facts = {**FACTS, "more": ["value"]}
    plan = sender.planned(facts, 1_000_000)
    assert plan.result == "mean" and plan.security == "semi-honest" and plan.bytes > 10_000_000
    assert "sender of psi, mean, semi-honest" in str(plan)
    assert plan.hash == receiver.planned({**FACTS, "more": ["group"]}, None).hash
    assert plan.hash != side(tmp_path, result="mean=v", **{**shared, "bound": 201}).planned(facts, None).hash
    assert sender.job(0, 1, 1).more == ("value",)
    with pytest.raises(volery.UsageError, match="does not fit into 64 bits"):
        side(tmp_path, result="sum=v", bound=2**62).planned(facts, None)


def test_the_shares_of_the_highest_attempt(tmp_path: pathlib.Path) -> None:
    one = side(tmp_path, result="count")
    first, second = "a1" * 32, "f2" * 32
    for name in [f"0-00000.a2.{second}", f"0-00000.a10.{first}", f"0-00001.a1.{first}", f"0-00001.a9.{second}"]:
        one.store.put(f"found/{name}", name.encode())
    # Of somebody else.
    for name in ["0-00000.a11", "0-00001.a99.copy", "0-x.a1.y", "0-00002.a1.00"]:
        one.store.put(f"found/{name}", b"")
    assert one._shares(2) == [f"0-00000.a10.{first}".encode(), f"0-00001.a9.{second}".encode()]
    with pytest.raises(volery.Error, match="2 of 3 shards"):
        one._shares(3)


def test_what_an_opening_keeps(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = side(tmp_path, result="count")
    one.store.private("driver").put("secrets.json", b"the secrets")
    calls = []

    def opening(*given: Any) -> str:
        assert given[1][1] == "the secrets"
        calls.append(given[3])
        given[-1].keep("[1]")
        if len(calls) > 1:
            given[-1].keep("")
        raise volery.NetworkError("the peer went away")

    monkeypatch.setattr("volery._volery.open_totals", opening)
    for _ in range(3):
        with pytest.raises(volery.NetworkError):
            one.opened(0.0, {"buckets": 0})
    assert calls == [None, ("[1]", False), ("[1]", True)]


def test_keys_whose_rows_do_not_fit_together(tmp_path: pathlib.Path) -> None:
    one = side(tmp_path, result="count")
    one.check_keys(0, 0)
    for counts, said in [((1, 5), "the rows of 1 key have values"), ((2, 0), "the rows of 2 keys have values"), ((0, 2), "of 2 keys are in different groups")]:
        with pytest.raises(volery.DataError, match=said):
            one.check_keys(*counts)


FACTS = {"keys": "text", "verb": "psi", "sizes": [5], "rows": 7, "payload": None, "digest": "00"}


def test_a_plan(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.jsonl"
    one, other = side(tmp_path / "s", log=log), side(tmp_path / "r", role="receiver")
    plans = one.planned(dict(FACTS), None), other.planned({**FACTS, "sizes": [9]}, None)
    assert plans[0].hash == plans[1].hash
    assert plans[0].hash != side(tmp_path / "w", workers=3).planned(dict(FACTS), None).hash
    assert plans[0].hash in str(plans[0])
    assert plans[0].bytes < one.planned(dict(FACTS), 1000).bytes
    assert json.loads(log.read_text().splitlines()[0])["event"] == "planned"
    one.check_same(digest="00", verb="psi")
    with pytest.raises(volery.UsageError, match="not the one that it began with"):
        one.check_same(digest="01", verb="psi")
    with pytest.raises(volery.UsageError, match="other than when it began: verb"):
        one.check_same(digest="00", verb="lookup")


def test_the_workers_are_followed(tmp_path: pathlib.Path) -> None:
    seen: list[volery.Progress] = []
    one = side(tmp_path, role="receiver", progress=seen.append)

    def work() -> str:
        for shard in range(4):
            one.store.put(f"done/0-{shard:05}.a1.json", json.dumps({"found": f"found/{shard}"}).encode())
            time.sleep(0.5)
        return "all"

    assert one.follow(0, 1, 4, work, lambda: None) == "all"
    assert seen[0].total == 4
    assert 1 < len(seen)
    assert seen[-1].done == 4
    # Of several records the lowest attempt counts, by its number.
    one.store.put("done/0-00002.a10.json", b'{"found": "later"}')
    assert one.found(0, 4) == [f"found/{shard}" for shard in range(4)]
    with pytest.raises(volery.Error, match="4 of 5 shards"):
        one.found(0, 5)


def test_a_failed_worker_stops_the_others(tmp_path: pathlib.Path) -> None:
    one = side(tmp_path)
    stopped: list[bool] = []

    def work() -> None:
        for worker, status in enumerate([4, 3]):
            told = {"worker": worker, "status": status, "message": f"status {status}", "hint": None}
            one.store.put(f"failed/00001-{worker:05}.json", json.dumps(told).encode())
        while not stopped:
            time.sleep(0.01)

    # The lost connection is the consequence.
    with pytest.raises(volery.PeerError, match="worker 1: status 3"):
        one.follow(0, 1, 4, work, lambda: stopped.append(True))
    # Errors of an earlier start are past.
    one.follow(0, 2, 4, lambda: None, lambda: None)
    with pytest.raises(volery.Error, match="did not finish: the engine said this"):
        one.follow(0, 2, 4, lambda: _raise("the engine said this\nand more"), lambda: None)


def _raise(text: str) -> None:
    raise RuntimeError(text)
