"""The parts of `volery.spark` that need no Spark; the rest is in python/tests_spark."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import volery
from volery import spark


class Session:
    """What the checks ask of a session."""

    def __init__(self, version: str = "4.0.1", **settings: str) -> None:
        self.version = version
        self.conf = {name.replace("_", "."): value for name, value in settings.items()}


@pytest.mark.parametrize(
    ("session", "message"),
    [
        (Session(version="3.4.2"), "3.5 or later"),
        (Session(spark_speculation="true"), "spark.speculation is true"),
        (Session(spark_dynamicAllocation_enabled="TRUE"), "spark.dynamicAllocation.enabled is true"),
    ],
)
def test_settings_of_spark_that_cannot_work(session: Any, message: str) -> None:
    with pytest.raises(volery.UsageError, match=message) as raised:
        spark._check(session, 2, slots=False)
    assert "3.5" in message or raised.value.hint is not None
    spark._check(Session(version="3.5.0"), 2, slots=False)


def test_pyarrow_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(volery.UsageError, match="pyarrow"):
        spark._check(Session(), 2, slots=False)


def test_pyspark_is_imported_when_it_is_used() -> None:
    code = "import sys, volery, volery.spark; assert 'pyspark' not in sys.modules and 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
