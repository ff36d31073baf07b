"""Match tables of two organisations, each on its own Ray.

The same as :mod:`volery.spark` with Ray's datasets: ``pip install "volery[ray]"``. The items of a
W-th part of the table, and all items that matched, must fit in the memory of one process.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from volery._cluster import (
    Again,
    Job,
    Plan,
    Secret,
    SideMatch,
    Store,
    digest_of,
    marked,
    slices,
    unmarked,
    value_names,
)
from volery._errors import DataError, Error, UsageError
from volery._options import SideTableOptions, call

if TYPE_CHECKING:
    import pyarrow

    from typing_extensions import Unpack

__all__ = ["Match", "Plan"]

#: Rows of the table that one task takes at once.
_ROWS = 100_000


class Match(SideMatch):
    """A match of two organisations' tables; each side runs it from its own cluster.

    The arguments are those of :class:`volery.spark.Match`, with ``result`` and what belongs to it.
    The other side may run it from Spark, or the program ``volery run-local``.
    """

    _blocks: list[str]
    _most: int | None

    @call(None, SideTableOptions)
    def plan(self, data: Any, **options: Unpack[SideTableOptions]) -> Plan:
        """Prepare a dataset, and say what the run will cost and reveal; nothing is sent.

        As :meth:`volery.spark.Match.plan`.
        """
        side, totals = self._side, self._side.totals
        line, keeps, facts = self._begin(options)
        self._most = options["drop_repeated"]
        stage = _Stage(side.store, line, side.workers, keeps)
        with _causes():
            told = _get(_task(_describe), data.schema().base_schema, line)
            made = data.map_batches(stage, batch_size=_ROWS, batch_format="pyarrow").take_all()
            # What an earlier plan or a repeated task wrote is not read.
            self._blocks = [one["block"] for one in made]
            sliced = _task(_sliced)
            of, places = self._args(), range(side.workers)
            found = _get_all([sliced.remote(of, place, self._blocks) for place in places])
        facts |= {
            "keys": told["keys"],
            **digest_of(one for parts in found for one in parts),
            **({} if totals is None else {"more": told["more"]}),
        }
        if side.has_agreed():
            side.check_same(**facts)
        sizes, longest = [], 0
        for rule in range(told["rules"]):
            with _causes():
                counted = self._distinct(rule, self._blocks, None)
            sizes.append(sum(one.size for one in counted))
            longest = max(longest, *(one.longest for one in counted))
            side.check_keys(sum(one.beyond for one in counted), sum(one.split for one in counted))
        facts["sizes"] = sizes
        facts["payload"] = None if told["payload"] is None else [told["payload"], longest]
        if "group" in facts.get("more", ()):
            facts["no_group"] = sum(one.no_group for one in counted)
        return side.planned(facts, options["peer_rows"])

    def run(self) -> Any:
        """Run the match, or go on with it; as :meth:`volery.spark.Match.run`.

        Returns:
            Receiver: ``(rows, report)``, a dataset and the report. Sender: the report. With
            ``result`` both: a :class:`volery.Match`.
        """
        side = self._side
        if side.plan is None:
            raise UsageError("run: call plan() with a dataset first")
        began = time.monotonic()
        manifest = side.agree(self._names)
        shards = manifest["buckets"]
        start, tickets = side.begin()
        found: list[Any] = []
        for rule in range(len(side.facts["sizes"])):
            if not side.is_complete(rule):
                blocks = self._blocks
                with _causes():
                    if rule > 0 and side.role == "receiver":
                        left = _task(_left)
                        blocks = _get_all([left.remote(self._args(), one, rule, found) for one in blocks])
                    self._distinct(rule, blocks, manifest)
                    self._workers(side.job(rule, start, threads=1), tickets, shards)
            if side.role == "receiver" and side.totals is None:
                line = manifest["payload"] and manifest["payload"][0]
                with _causes():
                    found.append(_put(_get(_task(_found), side.store, side.found(rule, shards), line)))
        if side.totals is not None:
            return side.opened(began, manifest)
        if side.role == "sender":
            return side.report(began, manifest)
        import ray

        tables = [ray.get(one) for one in found]
        columns = _Columns(tables[0].column_names[1:], self._names, self._left, self._rule_column)
        rows = ray.data.from_items([{"block": one} for one in self._blocks])
        rows = rows.map_batches(_Joined(side.store, found, columns), batch_size=1, batch_format="pyarrow")
        matched = [table.num_rows for table in tables]
        return rows, side.report(began, manifest, matched_keys=matched)

    def _args(self) -> tuple[Store, int]:
        return self._side.store, self._side.workers

    def _bound(self) -> int:
        totals = self._side.totals
        return 0 if totals is None else int(totals["bound"])

    def _distinct(
        self, rule: int, blocks: list[str], manifest: dict[str, Any] | None
    ) -> list[_Counted]:
        """Count the distinct items of a rule, and with a manifest give them to the workers."""
        task = _task(_distinct)
        places = range(self._side.workers)
        of, bound = self._args(), self._bound()
        # A task has no use for the rest.
        key = None if manifest is None else (manifest["key"], manifest["buckets"])
        most = self._most
        return _get_all([task.remote(of, rule, place, blocks, key, bound, most) for place in places])

    def _workers(self, job: Job, tickets: Sequence[Secret], shards: int) -> None:
        """Run all workers at once; each gets its own run certificate."""
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        side = self._side
        group = placement_group([{"CPU": 1}] * side.workers)
        try:
            if not group.wait(60):
                raise UsageError(
                    f"workers: {side.workers}, and Ray has not so many free processors",
                    "give fewer workers (on both sides), or add nodes",
                )
            place = PlacementGroupSchedulingStrategy(group)
            # One whose process or machine is lost starts again alone.
            task = _task(_work).options(
                scheduling_strategy=place, max_retries=3, retry_exceptions=[Again]
            )
            running = [
                task.remote(job, worker, ticket, side.workers, shards)
                for worker, ticket in enumerate(tickets)
            ]

            def stop() -> None:
                for one in running:
                    ray.cancel(one, force=True)

            side.follow(job.rule, job.start, shards, lambda: ray.get(running), stop)
        finally:
            remove_placement_group(group)


# What follows runs in tasks.


def _describe(schema: Any, options: list[tuple[str, str]]) -> dict[str, Any]:
    import pyarrow

    from volery import _volery

    items = _volery.items(schema, options)
    made = pyarrow.table(items.batch(schema.empty_table()))
    rules = sum(name.startswith("item_") for name in made.column_names)
    more = [name for name in ("value", "group") if name in made.column_names]
    return {"keys": items.description, "payload": items.payload, "rules": rules, "more": more}


class _Stage:
    """Writes rows and their items, divided by the items, and the rows' hashes by their slices."""

    def __init__(self, store: Store, options: list[tuple[str, str]], places: int, keeps: bool) -> None:
        self._store, self._options, self._places, self._keeps = store, options, places, keeps

    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        from volery import _volery

        try:
            items = _volery.items(rows.schema, self._options)
            made = pyarrow.table(items.batch(rows))
        except Error as error:
            raise marked(error) from None
        block = secrets.token_hex(8)
        if self._keeps:
            self._store.put(f"staged/rows/{block}", _bytes(rows))
            self._store.put(f"staged/keys/{block}", _bytes(made.drop(["digest"])))
        _divide(self._store, made, self._places, block)
        hashes = made.select(["digest"])
        numbers = _first_bytes(hashes, numpy.uint8).astype("int64") % self._places
        for place, part in enumerate(_parts(hashes, numbers, self._places)):
            self._store.put(f"staged/digests-{place:05}/{block}", _bytes(part))
        return pyarrow.Table.from_pylist([{"block": block}])


def _divide(store: Store, made: pyarrow.Table, places: int, block: str) -> None:
    """Write the items of each rule, divided into as many parts as there are workers."""
    names = [name for name in made.column_names if name.startswith("item_")]
    more = [name for name in ("payload", "value", "group") if name in made.column_names]
    for rule, name in enumerate(names):
        items = made.select([name, *more]).rename_columns(["item", *more]).drop_null()
        for place, part in enumerate(_parts(items, _first_bytes(items, numpy.uint64) % places, places)):
            store.put(f"staged/items-{rule}-{place:05}/{block}", _bytes(part))


def _first_bytes(values: pyarrow.Table, kind: Any) -> Any:
    """The first bytes of the first column's values, of one length, as numbers of this type."""
    data = values.column(0).to_pylist()
    numbers = numpy.frombuffer(b"".join(data), kind)
    return numbers[:: len(numbers) // len(data)] if data else numbers


def _sliced(of: tuple[Store, int], place: int, blocks: list[str]) -> list[dict[str, Any]]:
    """The slices of a table's digest that a place has."""
    import pyarrow

    tables = [_read(of[0], f"staged/digests-{place:05}/{block}") for block in blocks]
    if not tables:
        return []
    hashes = pyarrow.concat_tables(tables).cast(pyarrow.schema([("digest", pyarrow.binary())]))
    return slices([hashes.sort_by("digest")])


def _parts(table: pyarrow.Table, numbers: Any, count: int) -> Iterator[pyarrow.Table]:
    order = numpy.argsort(numbers, kind="stable")
    table, numbers = table.take(order), numbers[order]
    ends = numpy.searchsorted(numbers, numpy.arange(count + 1))
    for first, after in zip(ends[:-1], ends[1:]):
        yield table.slice(first, after - first)


@dataclass
class _Counted:
    """What is known of the distinct items of a part."""

    size: int = 0
    #: Bytes of the longest payload.
    longest: int = 0
    #: Those whose values add up to more than the bound.
    beyond: int = 0
    #: Those in several groups.
    split: int = 0
    #: Rows in none of the groups.
    no_group: int = 0


def _distinct(
    of: tuple[Store, int],
    rule: int,
    place: int,
    blocks: list[str],
    key: tuple[list[int], int] | None,
    bound: int,
    most: int | None,
) -> _Counted:
    """Count the distinct items of a part, without those that more than ``most`` rows have.

    With the key of the shards and their number, each worker gets its items of them.
    """
    import pyarrow

    from volery import _volery

    store, workers = of
    tables = [_read(store, f"staged/items-{rule}-{place:05}/{block}") for block in blocks]
    counted = _Counted()
    if not tables:
        return counted
    items = pyarrow.concat_tables(tables)
    items = items.set_column(0, "item", items.column("item").cast(pyarrow.binary()))
    if most is not None:
        often = f"staged/often-{rule}-{place:05}"
        # The plan sees all rows; later, those are missing that matched by an earlier rule.
        if key is None:
            rows = items.select(["item"]).group_by("item").aggregate([([], "count_all")])
            rows = rows.filter(pyarrow.compute.greater(rows.column("count_all"), most))
            store.put(often, _bytes(rows.select(["item"])))
        left_out = _read(store, often).column("item").cast(pyarrow.binary())
        is_left_out = pyarrow.compute.is_in(items.column("item"), left_out.combine_chunks())
        items = items.filter(pyarrow.compute.invert(is_left_out))
    if "group" in items.column_names:
        is_in_none = pyarrow.compute.equal(items.column("group"), -1)
        counted.no_group = pyarrow.compute.sum(is_in_none).as_py() or 0
    if {"value", "group"} & set(items.column_names):
        items = _summed(items, bound, counted)
    else:
        items = _least(items)
    counted.size = items.num_rows
    if "payload" in items.column_names and items.num_rows:
        lengths = pyarrow.compute.binary_length(items.column("payload"))
        counted.longest = pyarrow.compute.max(lengths).as_py()
    if key is not None:
        shards = _volery.shards(*key, items.select(["item"]))
        items = items.append_column("shard", pyarrow.array(shards.astype("int32")))
        for worker, part in enumerate(_parts(items, shards % workers, workers)):
            store.put(f"staged/shards-{rule}-{worker:05}/{place:05}", _bytes(part))
    return counted


def _least(items: pyarrow.Table) -> pyarrow.Table:
    """Each item once; of its payloads the least."""
    import pyarrow

    order = [(name, "ascending") for name in items.column_names]
    binary = pyarrow.schema([(name, pyarrow.binary()) for name in items.column_names])
    items = items.cast(binary).sort_by(order)
    column = items.column("item").combine_chunks()
    if len(column) > 1:
        first = numpy.ones(len(column), bool)
        first[1:] = pyarrow.compute.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        items = items.filter(pyarrow.array(first))
    return items


def _summed(items: pyarrow.Table, bound: int, counted: _Counted) -> pyarrow.Table:
    """Each item once, with the sum of its values and its group; counts those that are wrong."""
    import pyarrow

    compute = pyarrow.compute
    # Wide enough for any number of rows.
    wide = pyarrow.decimal128(38)
    wanted = []
    if "value" in items.column_names:
        at = items.column_names.index("value")
        items = items.set_column(at, "value", items.column("value").cast(wide))
        wanted.append(("value", "sum"))
    if "group" in items.column_names:
        wanted += [("group", "min"), ("group", "max")]
    summed = items.group_by("item").aggregate(wanted)
    columns = {"item": summed.column("item")}
    if "value" in items.column_names:
        sums = summed.column("value_sum")
        beyond = compute.greater(compute.abs(sums), pyarrow.scalar(bound).cast(wide))
        counted.beyond = compute.sum(beyond).as_py() or 0
        # One that is beyond the bound ends the run.
        columns["value"] = sums.cast(pyarrow.int64()) if counted.beyond == 0 else sums
    if "group" in items.column_names:
        columns["group"] = summed.column("group_min")
        other = compute.not_equal(columns["group"], summed.column("group_max"))
        counted.split = compute.sum(other).as_py() or 0
    return pyarrow.table(columns)


def _work(job: Job, worker: int, ticket: Secret, workers: int, shards: int) -> None:
    """The parent of one worker."""
    import pyarrow

    names = [f"staged/shards-{job.rule}-{worker:05}/{place:05}" for place in range(workers)]
    tables = [_read(job.store, name) for name in names if job.store.get(name) is not None]
    items = [pyarrow.concat_tables(tables).sort_by("shard")] if tables else []
    last = pyarrow.table({"shard": pyarrow.array([shards], pyarrow.int32())})
    job.run(worker, ticket, (batch for table in [*items, last] for batch in table.to_batches()))


def _found(store: Store, names: list[str], payload: str | None) -> pyarrow.Table:
    """The items that matched by a rule, with the sender's columns."""
    import pyarrow

    from volery import _volery

    objects = [_object(store, name) for name in names]
    return pyarrow.concat_tables([pyarrow.table(_volery.found(one, payload)) for one in objects])


def _matched(keys: pyarrow.Table, rule: int, found: pyarrow.Table) -> Any:
    """For each row its place among the items that matched, or null."""
    import pyarrow

    items = keys.column(f"item_{rule}").cast(pyarrow.binary()).combine_chunks()
    values = found.column("item").cast(pyarrow.binary()).combine_chunks()
    return pyarrow.compute.index_in(items, values, skip_nulls=True)


def _left(of: tuple[Store, int], block: str, rule: int, found: list[Any]) -> str:
    """Writes the items of the rows that did not match by an earlier rule; a new name of them."""
    import pyarrow
    import ray

    store, places = of
    keys = _read(store, f"staged/keys/{block}")
    matched = numpy.zeros(keys.num_rows, bool)
    for earlier in range(rule):
        place = _matched(keys, earlier, ray.get(found[earlier]))
        matched |= place.is_valid().to_numpy(zero_copy_only=False)
    left = f"{block}-{rule}"
    _divide(store, keys.filter(pyarrow.array(~matched)), places, left)
    return left


class _Columns:
    """The columns of the result."""

    def __init__(
        self, values: list[str], given: list[str] | None, left: bool, rule: str | None
    ) -> None:
        self.values, self.given, self.left, self.rule = values, given, left, rule


class _Joined:
    """The own rows that matched, by the first rule that they matched by."""

    def __init__(self, store: Store, found: Sequence[Any], columns: _Columns) -> None:
        self._store, self._found, self._columns = store, found, columns

    def __call__(self, blocks: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        (block,) = blocks.column("block").to_pylist()
        rows, keys = (_read(self._store, f"staged/{kind}/{block}") for kind in ("rows", "keys"))
        wanted, compute = self._columns, pyarrow.compute
        import ray

        tables = [ray.get(one) for one in self._found]
        rules = numpy.zeros(rows.num_rows, "int32")
        # Places in the tables one behind the other.
        places = numpy.full(rows.num_rows, -1, "int64")
        before = 0
        for rule, table in enumerate(tables):
            place = compute.fill_null(_matched(keys, rule, table), -1).to_numpy(zero_copy_only=False)
            new = (rules == 0) & (place >= 0)
            rules[new] = rule + 1
            places[new] = place[new] + before
            before += table.num_rows
        every = numpy.ones(rows.num_rows, bool) if wanted.left else rules > 0
        take = pyarrow.array(places[every], mask=places[every] < 0)
        values = pyarrow.concat_tables(tables).select(wanted.values).take(take)
        out = rows.filter(pyarrow.array(every))
        names = value_names(rows.column_names, wanted.values, wanted.given)
        for name, column in zip(names, values.columns):
            out = out.append_column(name, column)
        if wanted.rule is not None:
            rule_numbers = pyarrow.array(rules[every], mask=rules[every] == 0)
            out = out.append_column(wanted.rule, rule_numbers)
        return out


def _bytes(table: pyarrow.Table) -> bytes:
    import pyarrow

    out = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def _object(store: Store, name: str) -> bytes:
    data = store.get(name)
    if data is None:
        raise DataError(f"{store.url}/{name}: it is not there")
    return data


def _read(store: Store, name: str) -> pyarrow.Table:
    import pyarrow

    return pyarrow.ipc.open_stream(_object(store, name)).read_all()


def _task(work: Callable[..., Any]) -> Any:
    import ray

    return ray.remote(work)


def _get(task: Any, *arguments: Any) -> Any:
    import ray

    return ray.get(task.remote(*arguments))


def _get_all(running: list[Any]) -> list[Any]:
    import ray

    return list(ray.get(running))


def _put(value: Any) -> Any:
    import ray

    return ray.put(value)


class _causes:
    """Turns errors of tasks into those of the package."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None and (found := unmarked(str(error))) is not None:
            raise found from None
        while error is not None and not isinstance(getattr(error, "cause", None), Error):
            error = error.__cause__
        if error is not None:
            raise error.cause from None
