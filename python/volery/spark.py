"""Match tables of two organisations, each on its own Spark.

Each side makes a :class:`Match` in a driver of its own. Needs Spark 3.5 or later with pyarrow, and
this package on driver and executors: ``pip install "volery[spark]"``.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from volery._cluster import (
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
    from pyspark.sql import Column, DataFrame, SparkSession

    from typing_extensions import Unpack

__all__ = ["Match", "Plan"]

# The columns of the tables in `work`. Those of the caller have numbers: Spark does not give
# columns of every name to Python.
_DIGEST = "digest"
# What stands beside an item.
_TYPES = {"payload": "binary", "value": "bigint", "group": "int"}
_VALUES = ("value", "group")


def _column(number: int) -> str:
    return f"column_{number}"


def _item(rule: int) -> str:
    return f"item_{rule}"


class Match(SideMatch):
    """A match of two organisations' tables; each side runs it from its own Spark.

    Both sides give the same ``run``, ``workers`` and settings, call :meth:`plan` with a table, then
    :meth:`run`. A run that broke goes on with the same calls, in a new driver too.

    Args:
        run: a name for the run, 1 to 64 letters, digits, ``.``, ``_`` or ``-``.
        role: ``"receiver"`` gets the result.
        peer: the fingerprint of the other side's identity, or a file with it.
        identity: the folder from :func:`volery.keygen`, a path or a URL. Only the driver reads it.
        identity_command, identity_passphrase: as in :func:`volery.psi`; one of the two names the
            identity.
        gateway: ``"HOST:PORT"`` of ``volery gateway``; driver and executors connect to it.
        work: a folder for this side's runs, a path or a URL that driver and executors see. It holds
            the table's rows, at the sender its payload: protect it as the table itself.
        workers: tasks of the barrier stage; so many must be able to run at once, on both sides.
        security: ``"malicious"`` (default) or ``"semi-honest"``.
        protocol: ``"vole"`` (default) or ``"vole-low"``.
        shards: their number, the same on both sides; by default one for 2^20 keys, and eight for
            each worker where there are enough keys.
        result, to, bound, decimals, minimum, epsilon, delta, group_by, groups: one number about the
            keys that both sides have in place of ``"rows"``, as in :func:`volery.psi`; without
            ``"shares"``. ``protocol`` is then ``"circuit"`` (default) or ``"circuit-low"``, and
            security semi-honest.
        wait, timeout: time to wait for the peer, and for its signs of life: seconds or ``"2h"``.
        proxy: on the way to the gateway, of driver and executors: as in :func:`volery.psi`. Without
            it each machine's own environment decides.
        work_group: a group, by name or number, if driver and executors are different users: its
            members have access to ``work`` on mounted storage, but for the driver's secrets.
            Without it only the user who makes a file has.
        log: a file to which each event is appended as a line of JSON.
        progress: True for a bar by tqdm, or a function of one :class:`volery.Progress`.

    Raises:
        UsageError: an argument or a setting of Spark is wrong.
    """

    _spark: SparkSession | None = None
    _columns: list[str]

    @call(None, SideTableOptions)
    def plan(self, df: DataFrame, **options: Unpack[SideTableOptions]) -> Plan:
        """Prepare a table, and say what the run will cost and reveal; nothing is sent.

        The table is read once and written to ``work`` with its items. If the run has begun already,
        the table is read and compared.

        Args:
            df: the table of this side.
            key, or_, drop_repeated, empty_keys, malformed: as in :func:`volery.psi`. The values of
                rows that ``drop_repeated`` leaves out are checked, too.
            payload: sender: the columns that the receiver gets; of several rows of a key one is
                taken, always the same. Receiver: True, if the sender gives some.
            value_name, left, rule_column: receiver: as in :func:`volery.lookup`.
            peer_rows: for the cost: the keys of the peer, by default as many as here.

        Raises:
            DataError: a key is empty or malformed.
            UsageError: an argument is wrong, or the table is not the one that the run began with.
        """
        side, totals = self._side, self._side.totals
        line, keeps, facts = self._begin(options)
        self._spark = spark = df.sparkSession
        _check(spark, side.workers, slots=False)
        if self._rule_column in df.columns:
            raise UsageError(
                f"rule_column: there is a column {self._rule_column!r}", "give another name"
            )
        df, self._columns = _numbered(df, None if keeps else line)
        told = _describe(df, self._columns, line)
        rules = told["rules"]
        facts |= {"keys": told["keys"], **({} if totals is None else {"more": told["more"]})}
        task = _Items(self._columns, line, rules, keeps, told["more"])
        made = df.mapInArrow(task, task.schema(df))
        if side.has_agreed():
            facts |= _digest(made)
            side.check_same(**facts)
            facts = side.earlier() or {}
        else:
            rows = self._staged(made, rules, options["drop_repeated"])
            facts |= _digest(rows)
            if totals is not None:
                self._stage_values(rows, facts, totals["bound"])
            else:
                self._stage(rows, rules, facts, told["payload"])
        return side.planned(facts, options["peer_rows"])

    def _staged(self, made: DataFrame, rules: int, most: int | None) -> DataFrame:
        """Write the rows, without the items that more than ``most`` of them have."""
        from pyspark.sql import functions as F

        if most is None:
            return self._written("rows", made)
        rows = self._written("read", made)
        for name in map(_item, range(rules)):
            often = rows.where(F.col(name).isNotNull()).groupBy(F.col(name).alias("often")).count()
            often = often.where(F.col("count") > most).select("often")
            rows = rows.join(often, F.col(name) == F.col("often"), "left")
            rows = rows.withColumn(name, F.when(F.col("often").isNull(), F.col(name))).drop("often")
        return self._written("rows", rows)

    def _stage(self, rows: DataFrame, rules: int, facts: dict[str, Any], payload: str | None) -> None:
        """Write the distinct items of the rows; add sizes to the facts."""
        from pyspark.sql import functions as F

        longest = 0
        sizes = []
        for rule in range(rules):
            items = _distinct(rows, rule, payload is not None)
            if self._side.role == "sender" or rule == 0:
                items = self._written(f"items-{rule}", items)
            values = [F.count("*").alias("size")]
            if payload is not None:
                values.append(F.max(F.length("payload")).alias("longest"))
            found = items.agg(*values).first()
            assert found is not None
            sizes.append(found["size"])
            if payload is not None:
                longest = max(longest, found["longest"] or 0)
        facts["sizes"] = sizes
        facts["payload"] = None if payload is None else [payload, longest]

    def _stage_values(self, rows: DataFrame, facts: dict[str, Any], bound: int) -> None:
        """Write the distinct items with values and groups; add their size to the facts."""
        from pyspark.sql import functions as F

        side = self._side
        some = rows.where(F.col(_item(0)).isNotNull())
        keys = some.groupBy(F.col(_item(0)).alias("item"))
        sums, tests = [], {"beyond": F.lit(False), "split": F.lit(False)}
        if "value" in facts["more"]:
            # Wide enough for any number of rows.
            value = F.sum(F.col("value").cast("decimal(38,0)")).alias("value")
            tests["beyond"] = F.abs("value") > F.lit(bound).cast("decimal(38,0)")
            sums.append(value)
        if "group" in facts["more"]:
            sums += [F.min("group").alias("group"), F.max("group").alias("last")]
            tests["split"] = F.col("group") != F.col("last")
            facts["no_group"] = some.where(F.col("group") < 0).count()
        items = keys.agg(*sums) if sums else some.select(F.col(_item(0)).alias("item")).distinct()
        items = self._written("items-0", items)
        counts = [F.count_if(test).alias(name) for name, test in tests.items()]
        found = items.agg(F.count("*").alias("size"), *counts).first()
        assert found is not None
        side.check_keys(found["beyond"], found["split"])
        facts["sizes"] = [found["size"]]
        facts["payload"] = None

    def run(self) -> Any:
        """Run the match, or go on with it.

        Returns:
            Receiver: ``(rows, report)``, the table's rows that match, in no order, and the report.
            Sender: the report. With ``result`` both: a :class:`volery.Match` with the number, at the
            side that gets it, and the report.

        Raises:
            NetworkError: the peer or the gateway is not there, went away, or is silent: call again.
            PeerError: the peer broke the protocol, or has another identity.
            SettingsDifferError: the two sides differ in a setting.
        """
        side, spark = self._side, self._spark
        if spark is None or side.plan is None:
            raise UsageError("run: call plan() with a table first")
        _check(spark, side.workers)
        began = time.monotonic()
        manifest = side.agree(self._names)
        shards = manifest["buckets"]
        start, tickets = side.begin()
        found: list[DataFrame] = []
        for rule in range(len(side.facts["sizes"])):
            if not side.is_complete(rule):
                items = self._sharded(self._items(rule, found), manifest, tickets)
                cores = int(str(spark.conf.get("spark.task.cpus", "1")))
                task = _Task(side.job(rule, start, cores))
                stage = items.mapInArrow(task, "worker int", barrier=True)
                self._barrier(stage, rule, start, shards)
            if side.role == "receiver" and side.totals is None:
                found.append(self._found(rule, side.found(rule, shards), manifest))
        if side.totals is not None:
            return side.opened(began, manifest)
        if side.role == "sender":
            return side.report(began, manifest)
        matched = [one.count() for one in found]
        return self._joined(found), side.report(began, manifest, matched_keys=matched)

    def _barrier(self, stage: DataFrame, rule: int, start: int, shards: int) -> None:
        """Run a barrier stage, as a job group of its own."""
        side, spark = self._side, self._spark
        assert spark is not None
        group = f"volery-{side.run}-{side.role}-{start}-{rule}"
        text = f"volery: run {side.run}, {side.role}, key {rule + 1}, {shards} shards"

        def work() -> None:
            with _group(spark, group, text):
                # The exchange of the count: a barrier stage that ends in a result is not repeated.
                stage.groupBy().count().collect()

        side.follow(rule, start, shards, work, lambda: _cancel(spark, group))

    def _written(self, name: str, table: DataFrame) -> DataFrame:
        """The table, written to ``work``: what follows reads that, and computes nothing again."""
        spark = table.sparkSession
        url = f"{self._side.store.url}/staged/{name}"
        with _group(spark, None, f"volery: run {self._side.run}, {name}"), _told():
            table.write.mode("overwrite").parquet(url)
        self._side.store.close(f"staged/{name}")
        return spark.read.parquet(url)

    def _read(self, name: str) -> DataFrame:
        assert self._spark is not None
        return self._spark.read.parquet(f"{self._side.store.url}/staged/{name}")

    def _items(self, rule: int, found: Sequence[DataFrame]) -> DataFrame:
        """The distinct items of a rule; at the receiver without rows that matched before."""
        from pyspark.sql import functions as F

        if self._side.totals is not None:
            more = [F.col(name).cast(_TYPES[name]).alias(name) for name in self._side.facts["more"]]
            return self._read("items-0").select("item", *more)
        if rule == 0 or self._side.role == "sender":
            return self._read(f"items-{rule}")
        rows = self._read("rows")
        for earlier, matched in enumerate(found):
            rows = rows.join(matched, rows[_item(earlier)] == matched["item"], "left_anti")
        return _distinct(rows, rule, False)

    def _sharded(
        self, items: DataFrame, manifest: dict[str, Any], tickets: Sequence[Secret]
    ) -> DataFrame:
        """The items of worker w in partition w, in ascending order of shards.

        The first row of the partition has the run certificate of the worker: no task gets another's.
        """
        from pyspark.sql import functions as F

        workers, spark = self._side.workers, items.sparkSession
        more = items.columns[1:]
        columns = ", ".join(["shard int, item binary", *(f"{name} {_TYPES[name]}" for name in more)])
        placed = items.mapInArrow(_Placed(manifest["key"], manifest["buckets"]), columns)
        # The last row of each worker: so no partition is empty, and none can end before its end.
        last = spark.range(workers).select(
            F.lit(manifest["buckets"]).alias("shard"),
            F.lit(None).cast("binary").alias("item"),
            *(F.lit(None).cast(_TYPES[name]).alias(name) for name in more),
            F.col("id").cast("int").alias("worker"),
        )
        placed = placed.withColumn("worker", F.col("shard") % workers).unionByName(last)
        rows = [(worker, ticket.show()) for worker, ticket in enumerate(tickets)]
        first = spark.createDataFrame(rows, "worker int, ticket string").withColumn("shard", F.lit(-1))
        placed = placed.unionByName(first, allowMissingColumns=True)
        lanes = F.array(*map(F.lit, _lanes(spark, workers)))
        placed = placed.withColumn("lane", F.element_at(lanes, F.col("worker") + 1))
        return placed.repartition(workers, "lane").drop("lane").sortWithinPartitions("shard")

    def _found(self, rule: int, names: list[str], manifest: dict[str, Any]) -> DataFrame:
        """The items that matched by a rule, with the sender's columns."""
        spark = self._spark
        assert spark is not None
        decode = _Found(self._side.store, manifest["payload"] and manifest["payload"][0])
        schema = _spark_schema(decode.table(b"").schema)
        objects = spark.createDataFrame([(name,) for name in names], "object string")
        objects = objects.repartition(min(len(names), 4 * self._side.workers))
        return self._written(f"found-{rule}", objects.mapInArrow(decode, schema))

    def _joined(self, found: Sequence[DataFrame]) -> DataFrame:
        """The own rows that matched, by the first rule that they matched by."""
        from pyspark.sql import functions as F

        rows = self._read("rows")
        values = found[0].columns[1:]
        names = value_names(self._columns, values, self._names)
        rule: Column = F.lit(None).cast("int")
        columns: list[Column] = [F.lit(None)] * len(values)
        for number in reversed(range(len(found))):
            new = [f"found_{number}", *(f"value_{number}_{at}" for at in range(len(values)))]
            rows = rows.join(found[number].toDF(*new), F.col(_item(number)) == F.col(new[0]), "left")
            matched = F.col(new[0]).isNotNull()
            rule = F.when(matched, F.lit(number + 1)).otherwise(rule)
            columns = [
                F.when(matched, F.col(name)).otherwise(later) for name, later in zip(new[1:], columns)
            ]
        rows = rows.withColumn("rule", rule)
        if not self._left:
            rows = rows.where(F.col("rule").isNotNull())
        made = [F.col(_column(at)).alias(name) for at, name in enumerate(self._columns)]
        made += [column.alias(name) for column, name in zip(columns, names)]
        if self._rule_column is not None:
            made.append(F.col("rule").alias(self._rule_column))
        return rows.select(*made)


# The classes that follow run in tasks: they pickle small, and load the extension in the task only.


class _Items:
    """Adds the items of each row, and takes away what later steps do not need."""

    def __init__(
        self, columns: list[str], options: list[tuple[str, str]], rules: int, keeps: bool, more: list[str]
    ) -> None:
        from volery import _volery

        self._columns, self._options, self._keeps = columns, options, keeps
        self._added = [*map(_item, range(rules)), *more]
        self._version = _volery.__version__

    def schema(self, df: DataFrame) -> Any:
        """The columns of its result."""
        from pyspark.sql import types as t

        fields = list(df.schema) if self._keeps else []
        kinds = {"value": t.LongType(), "group": t.IntegerType()}
        fields += [t.StructField(name, kinds.get(name, t.BinaryType())) for name in self._added]
        return t.StructType([*fields, t.StructField(_DIGEST, t.BinaryType())])

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        items = None
        for batch in batches:
            rows = pyarrow.Table.from_batches([batch]).rename_columns(self._columns)
            with _marked(self._version):
                items = items or _items(rows.schema, self._options)
                made = pyarrow.table(items.batch(rows))
            columns = dict(zip(batch.schema.names, batch.columns)) if self._keeps else {}
            for name in [*self._added, _DIGEST]:
                column = made.column(name)
                columns[name] = column if name in _VALUES else column.cast(pyarrow.binary())
            yield from pyarrow.table(columns).combine_chunks().to_batches()


def _items(schema: pyarrow.Schema, options: list[tuple[str, str]]) -> Any:
    from volery import _volery

    return _volery.items(schema, options)


class _Described:
    """Tells the keys and the payload of a table of this schema, or what is wrong with them."""

    def __init__(self, columns: list[str], options: list[tuple[str, str]]) -> None:
        from volery import _volery

        self._columns, self._options, self._version = columns, options, _volery.__version__

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            rows = pyarrow.Table.from_batches([batch]).rename_columns(self._columns)
            with _marked(self._version):
                items = _items(rows.schema, self._options)
                made = pyarrow.table(items.batch(rows.slice(0, 0)))
            rules = sum(name.startswith("item_") for name in made.column_names)
            more = [name for name in _TYPES if name in made.column_names]
            told = {"keys": items.description, "payload": items.payload}
            told |= {"rules": rules, "more": more}
            yield pyarrow.record_batch({"told": [json.dumps(told)]})


class _Placed:
    """Adds the shard of each item."""

    def __init__(self, key: list[int], shards: int) -> None:
        self._key, self._shards = key, shards

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        from volery import _volery

        for batch in batches:
            items = pyarrow.Table.from_batches([batch.select(["item"])])
            shards = _volery.shards(self._key, self._shards, items).astype("int32")
            columns = dict(zip(batch.schema.names, batch.columns))
            yield pyarrow.record_batch({"shard": pyarrow.array(shards), **columns})


class _Sliced:
    """Hashes slices of a table's digest."""

    COLUMNS = "slice int, hash binary, rows bigint"

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        found = slices(pyarrow.Table.from_batches([batch]) for batch in batches)
        kinds = [("slice", pyarrow.int32()), ("hash", pyarrow.binary()), ("rows", pyarrow.int64())]
        yield pyarrow.RecordBatch.from_pylist(found, pyarrow.schema(kinds))


class _Task:
    """A task of the barrier stage: the parent of one worker."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        first = next(iter(batches))
        worker = first.column("worker")[0].as_py()
        ticket = Secret(first.column("ticket")[0].as_py())

        def own() -> Iterator[pyarrow.RecordBatch]:
            yield first
            yield from batches

        self._job.run(worker, ticket, own())
        yield pyarrow.record_batch({"worker": pyarrow.array([worker], pyarrow.int32())})


class _Found:
    """Reads the objects with the items that matched."""

    def __init__(self, store: Store, payload: str | None) -> None:
        self._store, self._payload = store, payload

    def table(self, data: bytes) -> pyarrow.Table:
        import pyarrow

        from volery import _volery

        return _plain(pyarrow.table(_volery.found(data, self._payload)))

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for name in batch.column("object").to_pylist():
                with _marked():
                    data = self._store.get(name)
                    if data is None:
                        raise DataError(f"{self._store.url}/{name}: it is not there")
                    table = self.table(data)
                yield from table.to_batches(max_chunksize=10_000)


def _plain(table: pyarrow.Table) -> pyarrow.Table:
    """The table with types that Spark has."""
    import pyarrow
    import pyarrow.types as t

    def plain(kind: Any) -> Any:
        if t.is_fixed_size_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind):
            return pyarrow.binary()
        if t.is_large_string(kind) or t.is_string_view(kind) or t.is_time(kind):
            return pyarrow.string()
        if t.is_timestamp(kind):
            return pyarrow.timestamp("us", kind.tz and "UTC")
        if t.is_uint64(kind):
            return pyarrow.decimal128(20)
        return kind

    fields = [field.with_type(plain(field.type)) for field in table.schema]
    return table.cast(pyarrow.schema(fields), safe=False)


def _spark_schema(schema: pyarrow.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


class _marked:
    """An error of the package within a task, in a form that :class:`_told` finds in the driver."""

    def __init__(self, version: str | None = None) -> None:
        from volery import _volery

        if version not in (None, _volery.__version__):
            message = f"volery {_volery.__version__} on an executor, {version} on the driver"
            raise marked(UsageError(message, "install the same version"))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Error):
            raise marked(error) from None


class _told:
    """Turns errors of tasks into those of the package."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            return
        if (found := unmarked(str(error))) is not None:
            raise found from None
        missing = re.search(r"ModuleNotFoundError: No module named '(volery|pyarrow)", str(error))
        if missing:
            raise UsageError(
                f"{missing[1]}: not installed on an executor",
                'install "volery[spark]" there, or ship an environment: spark.archives and '
                "PYSPARK_PYTHON",
            ) from error


def _describe(df: DataFrame, columns: list[str], options: list[tuple[str, str]]) -> dict[str, Any]:
    """The keys and the payload, from one row of nulls with the table's types."""
    from pyspark.sql import functions as F

    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in df.schema]
    with _told():
        one = df.sparkSession.range(1).select(*nulls)
        row = one.mapInArrow(_Described(columns, options), "told string").first()
    assert row is not None
    return dict(json.loads(row["told"]))


# Of the options that name columns by nothing else.
_NAME = re.compile(r'(?:"((?:[^"]|"")*)"|([^,]*))(?:,|$)')
_COLUMN = re.compile(r'(?:"((?:[^"]|"")*)"|([^,:]*))(?::[^,]*)?(?:,|$)')


def _numbered(df: DataFrame, options: list[tuple[str, str]] | None) -> tuple[DataFrame, list[str]]:
    """The table with numbers as names, and its names; with options only the columns that they name."""
    columns = list(df.columns)
    df = df.toDF(*map(_column, range(len(columns))))
    if options is None:
        return df, columns
    lists = [value for name, value in options if name in ("key", "or", "value")]
    pairs = [pair for text in lists for pair in _COLUMN.findall(text)]
    results = [value.partition("=")[2] for name, value in options if name == "result"]
    pairs += [pair for text in results for pair in _NAME.findall(text)]
    found = {quoted.replace('""', '"') or plain for quoted, plain in pairs}
    found |= {value for name, value in options if name == "group_by"}
    kept = [at for at, name in enumerate(columns) if name in found]
    return df.select(*map(_column, kept)), [columns[at] for at in kept]


def _digest(rows: DataFrame) -> dict[str, Any]:
    """Number and digest of the rows."""
    from pyspark.sql import functions as F

    # All rows of a slice come together, in the order of their hashes.
    placed = rows.select(_DIGEST).repartition(F.substring(_DIGEST, 1, 1))
    with _told():
        found = placed.sortWithinPartitions(_DIGEST).mapInArrow(_Sliced(), _Sliced.COLUMNS).collect()
    return digest_of(row.asDict() for row in found)


def _distinct(rows: DataFrame, rule: int, payload: bool) -> DataFrame:
    """The distinct items of a rule; of the payloads of one the least."""
    from pyspark.sql import functions as F

    item = F.col(_item(rule)).alias("item")
    some = rows.where(F.col(_item(rule)).isNotNull())
    if payload:
        return some.groupBy(item).agg(F.min("payload").alias("payload"))
    return some.select(item).distinct()


def _lanes(spark: SparkSession, workers: int) -> list[int]:
    """For each partition a number that Spark's hash sends there."""
    from pyspark.sql import functions as F

    found: dict[int, int] = {}
    numbers = 64
    while len(found) < workers:
        numbers *= 4
        place = F.expr(f"pmod(hash(id), {workers})").alias("place")
        rows = spark.range(numbers).select("id", place).groupBy("place").agg(F.min("id").alias("id"))
        found = {row["place"]: row["id"] for row in rows.collect()}
    return [found[worker] for worker in range(workers)]


@contextlib.contextmanager
def _group(spark: SparkSession, group: str | None, text: str) -> Iterator[None]:
    """Names the jobs that this thread starts."""
    context = getattr(spark, "_sc", None)
    if context is None:
        # A session through Spark Connect has no context; its jobs have tags.
        tag = group or "volery"
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    names = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
    before = [context.getLocalProperty(name) for name in names]
    if group is None:
        context.setJobDescription(text)
    else:
        context.setJobGroup(group, text, interruptOnCancel=True)
    try:
        yield
    finally:
        for name, value in zip(names, before):
            context.setLocalProperty(name, value)


def _cancel(spark: SparkSession, group: str) -> None:
    context = getattr(spark, "_sc", None)
    if context is None:
        spark.interruptTag(group)
    else:
        context.cancelJobGroup(group)


def _check(spark: SparkSession, workers: int, slots: bool = True) -> None:
    """Refuse what cannot work, with the setting to change."""
    if tuple(map(int, re.findall(r"\d+", spark.version)[:2])) < (3, 5):
        raise UsageError(f"Spark {spark.version}: a barrier stage needs Spark 3.5 or later")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise UsageError("pyarrow: not installed", 'pip install "volery[spark]"') from None

    def on(name: str) -> bool:
        return str(spark.conf.get(name, "false")).lower() == "true"

    if on("spark.speculation"):
        raise UsageError(
            "spark.speculation is true: two copies of a worker would fight over its connection",
            "start Spark with spark.speculation=false",
        )
    if on("spark.dynamicAllocation.enabled"):
        raise UsageError(
            "spark.dynamicAllocation.enabled is true: Spark refuses barrier stages with it",
            "start Spark with spark.dynamicAllocation.enabled=false and spark.executor.instances",
        )
    if slots:
        _check_slots(spark, workers)


def _check_slots(spark: SparkSession, workers: int, seconds: float = 30.0) -> None:
    """Spark would wait for slots for ten minutes, and then say so."""
    end = time.monotonic() + seconds
    while (found := _slots(spark)) is not None and found < workers:
        # Executors may still be starting.
        if time.monotonic() > end or str(spark.conf.get("spark.master", "")).startswith("local["):
            cores = str(spark.conf.get("spark.task.cpus", "1"))
            raise UsageError(
                f"workers: {workers}, and Spark can run {found} tasks at once, of "
                f"spark.task.cpus={cores} each",
                "give fewer workers (on both sides), or more spark.executor.instances or "
                "spark.executor.cores",
            )
        time.sleep(1.0)


def _slots(spark: SparkSession) -> int | None:
    """The tasks that can run at once; None if Spark does not say."""
    context = getattr(spark, "_sc", None)
    if context is None:
        return None
    try:
        scheduler = context._jsc.sc()
        profile = scheduler.resourceProfileManager().defaultResourceProfile()
        return int(scheduler.maxNumConcurrentTasks(profile))
    except Exception:
        # Not part of Spark's interface.
        cpus = int(str(spark.conf.get("spark.task.cpus", "1")))
        return int(context.defaultParallelism) // cpus
