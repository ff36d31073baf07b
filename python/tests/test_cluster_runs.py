"""Runs of a small engine in this process: what it stores, who has access to that, and what each worker gets."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
import volery
from parties import address, listens, program
from volery import _cluster, _volery
from volery import ray as on_ray
from volery import spark as on_spark
from volery._cluster import Job, Secret, Side, Store, digest_of, plan_words, slices
from volery._calls import named

ROLES = ("sender", "receiver")
WORKERS = 2
SHARDS = 3


@pytest.fixture
def anyone() -> Iterator[None]:
    """New files are for everybody, unless something says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


class Both:
    """Two sides with a table each, and a gateway."""

    def __init__(self, folder: pathlib.Path, **options: Any) -> None:
        self.folder = folder
        prints = [volery.keygen(out=folder / role, name=role) for role in ROLES]
        self.gateway = address()
        allow = [word for one in prints for word in ("--allow", one)]
        self._gateway = program("gateway", "--listen", self.gateway, *allow)
        listens(self.gateway)
        self.prints = prints
        self.options = options

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *_: object) -> None:
        self._gateway.kill()
        self._gateway.communicate()

    def side(self, number: int, **more: Any) -> Side:
        """A side that has staged keys 0 to 59, or 40 to 99."""
        side = Side(
            **{
                "run": "run",
                "role": ROLES[number],
                "peer": self.prints[1 - number],
                "identity": self.folder / ROLES[number],
                "gateway": self.gateway,
                "work": self.folder / f"work-{ROLES[number]}",
                "workers": WORKERS,
                "shards": SHARDS,
                "wait": 60,
                "timeout": 20,
                **self.options,
                **more,
            }
        )
        side.begin_plan()
        table = pa.table({"id": [f"k{key}" for key in range(40 * number, 60 + 40 * number)]})
        line = [*side.result_options(), ("key", "id")]
        items = _volery.items(table.schema, line)
        made = pa.table(items.batch(table))
        side.items = made.column("item_0").to_pylist()  # type: ignore[attr-defined]
        # An engine writes with the access that its processes give.
        rows = pathlib.Path(side.work, "run", "staged", "rows")
        rows.mkdir(exist_ok=True)
        (rows / "part-0.parquet").write_bytes(b"rows")
        side.store.close("staged/rows")
        hashes = made.select(["digest"]).cast(pa.schema([("digest", pa.binary())]))
        facts = {"keys": items.description, "verb": "psi", "settings": side.settings(), "sizes": [60], "payload": None}
        side.planned({**facts, **digest_of(slices([hashes.sort_by("digest")])), "more": []}, None)
        return side

    def run(self, sides: list[Side]) -> list[Any]:
        """The whole run; what each side gets."""

        def go(side: Side) -> Any:
            manifest = side.agree()
            start, tickets = side.begin()
            work(side, manifest, start, tickets)
            if side.totals is not None:
                return side.opened(0.0, manifest)
            if side.role == "sender":
                return None
            parts = [side.store.get(name) for name in side.found(0, SHARDS)]
            return sum(pa.table(_volery.found(part or b"", None)).num_rows for part in parts)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(go, sides))


def work(side: Side, manifest: dict[str, Any], start: int, tickets: tuple[Secret, ...]) -> None:
    """The workers of a side."""
    items = pa.table({"item": pa.array(side.items, pa.binary(16))})  # type: ignore[attr-defined]
    places = _volery.shards(manifest["key"], SHARDS, items).tolist()

    def batches(worker: int) -> Iterator[pa.RecordBatch]:
        own = sorted((place, item) for place, item in zip(places, items.column(0).to_pylist()) if place % WORKERS == worker)
        shard, item = zip(*own, (SHARDS, bytes(16)))
        yield pa.record_batch({"shard": pa.array(shard, pa.int32()), "item": pa.array(item, pa.binary(16))})

    job = side.job(0, start, 1)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda worker: job.run(worker, tickets[worker], batches(worker)), range(WORKERS)))
    side._raise_failed(start)


def modes(folder: pathlib.Path) -> dict[str, str]:
    """The modes of all files and folders below a folder, and its own."""
    every = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): oct(stat.S_IMODE(path.lstat().st_mode)) for path in every}


def check_private(folder: pathlib.Path) -> None:
    found = modes(folder)
    wrong = {name: mode for name, mode in found.items() if mode != ("0o700" if (folder / name).is_dir() else "0o600")}
    assert wrong == {}
    assert {"run/facts.json", "run/driver/secrets.json", "run/staged/rows/part-0.parquet"} <= set(found)


def test_nobody_else_has_access_to_a_finished_run(tmp_path: pathlib.Path, anyone: None) -> None:
    with Both(tmp_path) as both:
        assert both.run([both.side(0), both.side(1)]) == [None, 20]
    for role in ROLES:
        check_private(tmp_path / f"work-{role}")
    names = {name.split("/")[1] for name in modes(tmp_path / "work-receiver") if "/" in name}
    assert {"attempts", "begun", "complete", "done", "found", "manifest.json", "starts", "worked"} <= names


def test_nobody_else_has_access_to_a_run_that_failed(tmp_path: pathlib.Path, anyone: None) -> None:
    with Both(tmp_path, result="count", epsilon=1, minimum=1) as both:
        sides = [both.side(0), both.side(1)]
        with ThreadPoolExecutor(2) as pool:
            manifests = list(pool.map(Side.agree, sides))
        # The workers of the sender alone.
        sides[0].wait = 1
        start, tickets = sides[0].begin()
        with pytest.raises(volery.NetworkError, match="worker"):
            work(sides[0], manifests[0], start, tickets)
        check_private(tmp_path / "work-sender")
        assert sides[0].store.list("failed/")
        # It goes on, and the numbers are the same.
        sides[0].wait = 60
        first = both.run(sides)
        assert both.run([both.side(0), both.side(1)])[1].count == first[1].count
    for role in ROLES:
        check_private(tmp_path / f"work-{role}")


def test_what_an_earlier_version_left_is_closed(tmp_path: pathlib.Path, anyone: None) -> None:
    store = Store(tmp_path / "work").below("run")
    staged = tmp_path / "work" / "run" / "staged" / "rows"
    staged.mkdir(parents=True)
    (staged / "part-0").write_bytes(b"rows")
    (tmp_path / "elsewhere").write_bytes(b"")
    (staged / "link").symlink_to(tmp_path / "elsewhere")
    assert modes(tmp_path / "work")["run"] == "0o777"
    store.close("staged")
    found = modes(tmp_path / "work" / "run")
    assert (found["."], found["staged/rows"], found["staged/rows/part-0"]) == ("0o700", "0o700", "0o600")
    # It was not this run's.
    assert modes(tmp_path / "elsewhere")["."] == "0o666"


def own_group() -> int:
    """A group that this user may give a file to."""
    return 54321 if os.geteuid() == 0 else os.getgid()


def test_a_group_has_access_but_to_the_secrets_of_the_driver(tmp_path: pathlib.Path, anyone: None) -> None:
    with Both(tmp_path, work_group=own_group()) as both:
        assert both.run([both.side(0), both.side(1)]) == [None, 20]
    for role in ROLES:
        work = tmp_path / f"work-{role}"
        for name, mode in modes(work).items():
            is_folder, secret = (work / name).is_dir(), name.startswith("run/driver")
            expected = ("0o700" if is_folder else "0o600") if secret else ("0o2770" if is_folder else "0o640")
            assert mode == expected, name
            assert secret or (work / name).stat().st_gid == own_group()


def test_groups_that_do_not_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(volery.UsageError, match="no group nobody-has-this"):
        Store(tmp_path / "work", "nobody-has-this").put("a/b", b"")
    with pytest.raises(volery.UsageError, match="work_group: s3:// has access rules"):
        Store("s3://bucket/work", own_group())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs several users")
def test_users_of_one_group(tmp_path: pathlib.Path, anyone: None) -> None:
    code = """
import os, pickle, sys
group, user = int(sys.argv[2]), int(sys.argv[3])
sys.path[:0] = sys.argv[4].split(":")
from volery._cluster import Store
store = pickle.loads(bytes.fromhex(sys.argv[1]))
os.setgroups([group])
os.setgid(user)
os.setuid(user)
os.umask(0o077)
print(store.get("manifest.json"), flush=True)
store.put_new("found/0-00000.a1", b"rows")
try:
    print(store.get("driver/secrets.json"))
except PermissionError:
    print("refused")
"""
    for above in [tmp_path, *tmp_path.parents]:
        if above != pathlib.Path("/") and above.stat().st_uid == os.geteuid():
            above.chmod(above.stat().st_mode | 0o711)
    store = Store(tmp_path / "work", own_group()).below("run")
    store.put("manifest.json", b"manifest")
    store.private("driver").put("secrets.json", b"secret")

    def other(group: int) -> subprocess.CompletedProcess[str]:
        call = [sys.executable, "-c", code, pickle.dumps(store).hex(), str(group), "54322", ":".join(sys.path)]
        return subprocess.run(call, capture_output=True, text=True)

    member = other(own_group())
    assert member.stdout.splitlines() == ["b'manifest'", "refused"], member.stderr
    assert store.get("found/0-00000.a1") == b"rows"
    stranger = other(54323)
    assert "PermissionError" in stranger.stderr and stranger.stdout == ""


def test_names_for_another_number_of_columns_are_found_by_the_drivers(tmp_path: pathlib.Path) -> None:
    with Both(tmp_path) as both:
        sides = [both.side(0), both.side(1)]
        for side in sides:
            side.facts["verb"] = "lookup"
        sides[0].facts["payload"] = ['"n":int64,"t":text', 9]
        with ThreadPoolExecutor(2) as pool:
            sent, received = (pool.submit(side.agree, names) for side, names in zip(sides, [None, ["x"]]))
            with pytest.raises(volery.SettingsDifferError, match=r"\(value_name\): 1 here, 2 at the peer"):
                received.result()
            with pytest.raises(volery.NetworkError):
                sent.result()
        assert sides[1].store.get("manifest.json") is None


def test_a_task_gets_its_own_certificate_and_no_secret(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Both(tmp_path, result="count", epsilon=1, minimum=1) as both:
        sides = [both.side(0), both.side(1)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Side.agree, sides))
        start, tickets = sides[0].begin()
    job = sides[0].job(0, start, 1)
    (text,) = (tmp_path / "work-sender" / "run" / "driver").iterdir()
    secrets = json.loads(text.read_text())
    assert set(secrets) == {"digest", "opening", "noise"}
    # What an engine sends to every task.
    given = pickle.dumps(job)
    assert not any(ticket.show().encode() in given for ticket in tickets)
    seen = []

    def one(command: list[str], store: Store, shards: Any, keep: tuple[int, ...], proxy: str | None) -> None:
        (file,) = [word.removeprefix("--manifest=") for word in command if word.startswith("--manifest=")]
        place = pathlib.Path(file)
        seen.append((place.read_text(), os.read(keep[0], 100_000).decode(), modes(place.parent)))
        assert not any(ticket.show() in " ".join(command) for ticket in tickets)

    monkeypatch.setattr(_cluster, "serve", one)
    for worker in range(WORKERS):
        job.run(worker, tickets[worker], iter(()))
    for worker, (manifest, ticket, files) in enumerate(seen):
        assert ticket == tickets[worker].show()
        assert set(json.loads(manifest)["own"]) == {"rows", "dedup"}
        assert secrets["digest"] not in manifest and str(secrets["noise"]) not in manifest
        assert files == {".": "0o700", "manifest.json": "0o600"}


def test_noise_is_drawn_before_the_sides_meet(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    peer = volery.keygen(out=tmp_path / "peer")
    file = tmp_path / "work" / "run" / "driver" / "secrets.json"

    def agree(line: list[str], facts: str, secret: str, *_: object) -> str:
        # It is in storage before anything is connected.
        assert file.read_text() == secret
        seen.append(secret)
        raise volery.NetworkError("the peer went away")

    monkeypatch.setattr(_volery, "agree", agree)

    def side(**options: Any) -> Side:
        more = {"result": "count", "epsilon": "0.5", "minimum": 5, **options}
        own = {"peer": peer, "identity": tmp_path / "peer", "gateway": "g:1", "work": tmp_path / "work", "workers": 2}
        one = Side(run="run", role="sender", **{**own, **more})
        one.facts = {"keys": "text", "verb": "psi", "sizes": [5], "rows": 7, "payload": None, "digest": "00"}
        return one

    for _ in range(4):
        with pytest.raises(volery.NetworkError):
            side().agree()
    assert len(set(seen)) == 1
    assert len(json.loads(seen[0])["noise"]["counts"]) == 1
    # Other settings, before the sides have met, are another run's.
    with pytest.raises(volery.NetworkError):
        side(epsilon="0.25").agree()
    assert seen[-1] != seen[0]
    # Once they have, nothing is drawn any more.
    kept = file.read_text()
    side().store.put("manifest.json", b'{"buckets": 1, "sizes": [[5, 5]]}')
    side(epsilon="0.125").agree()
    assert len(seen) == 6 and file.read_text() == seen[-1] == kept
    file.unlink()
    with pytest.raises(volery.UsageError, match="secrets.json is missing"):
        side().agree()


# The table of the same test in Rust: crates/cluster/tests/all/digest.rs.
OF_300 = "ad085e6887c73fdacbbd623d94b8712a480ea45a8c4a5ab45173e23630e2e903"
KEYS = [*range(290), *range(5, 15)]
TABLE = pa.table(
    {
        "a": [f"k{key}" for key in KEYS],
        "b": [f"k{key ^ 5}" for key in KEYS],
        "n": pa.array([None if key % 3 == 0 else key - 7 for key in KEYS], pa.int64()),
        "t": [f"t{key * 7}" for key in KEYS],
    }
)
GIVEN = {"key": "a", "or_": "b", "payload": ["n", "t"], "left": False, "value_name": None, "rule_column": None, "drop_repeated": 3}
LINE = [
    ("role", "sender"),
    *named(plan_words("sender", {**GIVEN, "empty_keys": "skip", "malformed": None})),
]


def test_the_digest_of_a_table_is_that_of_rust() -> None:
    made = pa.table(_volery.items(TABLE.schema, LINE).batch(TABLE)).select(["digest"])
    made = made.cast(pa.schema([("digest", pa.binary())]))
    assert digest_of(slices([made.sort_by("digest")])) == {"rows": 300, "digest": OF_300}
    with pytest.raises(ValueError, match="ascending"):
        slices([made])
    with pytest.raises(ValueError, match="not together"):
        ordered = made.sort_by("digest")
        digest_of([*slices([ordered.slice(0, 150)]), *slices([ordered.slice(150)])])


@pytest.mark.parametrize("seed", range(3))
def test_the_digest_of_spark(seed: int) -> None:
    """Spark's tasks, with a shuffle of the same kind between them."""
    shuffled = random.Random(seed)
    order = list(range(300))
    shuffled.shuffle(order)
    rows = TABLE.take(order)
    task = on_spark._Items(TABLE.column_names, LINE, 2, False, ["payload"])
    partitions = [rows.slice(at, 71).to_batches(max_chunksize=shuffled.randint(1, 50)) for at in range(0, 300, 71)]
    made = [batch.column("digest") for partition in partitions for batch in task(iter(partition))]
    hashes = [one for column in made for one in column.to_pylist()]
    count = shuffled.randint(1, 7)
    moved: list[list[bytes]] = [[] for _ in range(count)]
    for one in hashes:
        moved[one[0] * 31 % count].append(one)
    parts = []
    for some in moved:
        table = pa.table({"digest": pa.array(sorted(some), pa.binary())})
        for batch in on_spark._Sliced()(iter(table.to_batches(max_chunksize=13))):
            assert batch.schema.names == [name.split()[0] for name in on_spark._Sliced.COLUMNS.split(", ")]
            parts += batch.to_pylist()
    assert digest_of(parts) == {"rows": 300, "digest": OF_300}


@pytest.mark.parametrize("places", [1, 3, 300])
def test_the_digest_of_ray(tmp_path: pathlib.Path, places: int) -> None:
    store = Store(tmp_path)
    stage = on_ray._Stage(store, LINE, places, True)
    rows = TABLE.take(list(reversed(range(300))))
    blocks = [stage(rows.slice(at, 90)).column("block")[0].as_py() for at in range(0, 300, 90)]
    parts = [one for place in range(places) for one in on_ray._sliced((store, places), place, blocks)]
    assert digest_of(parts) == {"rows": 300, "digest": OF_300}


def test_a_task_of_spark_has_one_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row has it; the worker reads none of the rows before it does."""
    seen: list[Any] = []

    def run(job: Job, worker: int, ticket: Secret, batches: Iterator[pa.RecordBatch]) -> None:
        shards = _cluster.Shards(batches, ())
        read = [pa.ipc.open_stream(shards(shard)).read_all().column("item").to_pylist() for shard in (1, 3)]
        seen.append((worker, ticket.show(), read))

    monkeypatch.setattr(Job, "run", run)
    columns = {
        "shard": pa.array([-1, 1, 1, 3, 4], pa.int32()),
        "item": pa.array([None, b"a" * 16, b"b" * 16, b"c" * 16, None], pa.binary()),
        "worker": pa.array([1] * 5, pa.int32()),
        "ticket": pa.array(["pem 1", *[None] * 4]),
    }
    job = Job(Store("mock://folder"), "sender", "host:1", 0, 7, (), 1)
    batches = pa.table(columns).to_batches(max_chunksize=2)
    (done,) = on_spark._Task(job)(iter(batches))
    assert done.column("worker").to_pylist() == [1]
    assert seen == [(1, "pem 1", [[b"a" * 16, b"b" * 16], [b"c" * 16]])]
