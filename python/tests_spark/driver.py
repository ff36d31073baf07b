"""A driver: runs the matches that come as lines of JSON on standard input, on one Spark session, or on Ray.

    driver.py {"spark.master": .., other settings}
    driver.py {"ray": number of processors}

A line is `{"match": arguments of Match, "plan": arguments of plan(), "table": Parquet file}`, an answer `{"rows": .., "report": ..}`
or `{"error": class, "message": .., "hint": ..}`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, told: dict[str, Any]) -> dict[str, Any]:
    from volery.spark import Match

    match = Match(**told["match"])
    table = spark.read.parquet(told["table"])
    if told.get("sql"):
        table.createOrReplaceTempView("input")
        table = spark.sql(told["sql"])
    plan = match.plan(table, **told["plan"])
    answer: dict[str, Any] = {"hash": plan.hash, "text": str(plan), "repr": repr(match)}
    if told.get("only_plan"):
        return answer
    if "refused" in told:
        refused(lambda: match.plan(spark.read.parquet(told["refused"]), **told["plan"]))
    if match._side.totals is not None:
        return {**answer, **numbers(match.run())}
    if match._side.role == "sender":
        return {**answer, "report": match.run().to_dict()}
    rows, report = match.run()
    answer |= {"report": report.to_dict(), "columns": rows.columns, "types": [one.dataType.simpleString() for one in rows.schema]}
    answer["rows"] = [list(row) for row in rows.toLocalIterator()]
    if "other" in told:
        answer["joined"] = joined(spark, table, told)
    return answer


def joined(spark: SparkSession, table: DataFrame, told: dict[str, Any]) -> list[list[Any]]:
    """What a plain join of both tables finds."""
    key = told["plan"]["key"]
    other = spark.read.parquet(told["other"]).select(key).distinct()
    return [list(row) for row in table.join(other, key, "left_semi").collect()]


def refused(plan: Callable[[], object]) -> None:
    """A plan that fails."""
    from volery import DataError

    try:
        plan()
    except DataError:
        return
    raise AssertionError("it was planned")


def numbers(found: Any) -> dict[str, Any]:
    """The numbers of a result; sums as text, so that all digits arrive."""
    groups = found.groups and {name: dataclasses.asdict(one) for name, one in found.groups.items()}
    names = ("count", "sum", "mean", "below_minimum")
    told = {"groups": groups, **{name: getattr(found, name) for name in names}}
    for one in [told, *(groups or {}).values()]:
        one["sum"] = None if one["sum"] is None else str(one["sum"])
    return {"report": found.report.to_dict(), "numbers": told}


def run_on_ray(told: dict[str, Any]) -> dict[str, Any]:
    import ray
    from volery.ray import Match

    match = Match(**told["match"])
    plan = match.plan(ray.data.read_parquet(told["table"]), **told["plan"])
    answer: dict[str, Any] = {"hash": plan.hash, "repr": repr(match)}
    if "refused" in told:
        refused(lambda: match.plan(ray.data.read_parquet(told["refused"]), **told["plan"]))
    if match._side.totals is not None:
        return {**answer, **numbers(match.run())}
    if match._side.role == "sender":
        return {**answer, "report": match.run().to_dict()}
    rows, report = match.run()
    table = rows.take_all()
    return {**answer, "report": report.to_dict(), "columns": rows.columns(), "rows": [list(row.values()) for row in table]}


def main() -> None:
    settings = json.loads(sys.argv[1])
    # Only answers go to standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if "ray" in settings:
        import ray

        ray.init(address="local", num_cpus=settings["ray"], include_dashboard=False, object_store_memory=200_000_000)
    else:
        builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    print(json.dumps({"ready": os.getpid()}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            told = json.loads(line)
            answer = run_on_ray(told) if "ray" in settings else run(spark, told)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": type(error).__name__, "message": getattr(error, "message", str(error)), "hint": getattr(error, "hint", None)}
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
