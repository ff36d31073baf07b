"""The signatures have the options of the program, with their allowed values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import volery
from volery import _volery
from volery._calls import Watch

# The arguments that are no options.
OWN = {"data", "output", "transport", "progress", "cancel", "chunk", "hashed"}
# Of each call, the options that other arguments stand for, or that only the program has.
STANDS_FOR = {
    "psi": {"input", "dry_run"},
    "lookup": {"input", "dry_run"},
    "cot": {"out", "force"},
    "vole": {"out", "force"},
    "ope": {"input", "point", "points", "out", "force"},
    "matvec": {"input", "out", "force"},
    "lint": {"strict", "report", "timeout"},
    "keygen": {"report"},
    "verify": {"report", "threads", "timeout"},
}
# Of each call, the arguments for values that the program has in files.
VALUES = {
    "ope": {"coefficients", "points"},
    "matvec": {"matrix", "vector"},
    "verify": {"sender", "receiver"},
}


def _allowed(annotation: str) -> set[str]:
    """The strings of a literal type."""
    return set(re.findall(r'"([^"]*)"', annotation)) if "Literal[" in annotation else set()


@pytest.mark.parametrize("verb", STANDS_FOR)
def test_each_option_is_an_argument(verb: str) -> None:
    function: Callable[..., Any] = getattr(volery, verb)
    arguments = {name.rstrip("_"): (name, one) for name, one in inspect.signature(function).parameters.items()}
    options = {one["name"]: (one["switch"], one["values"]) for one in _volery.options(verb)}
    own = set(arguments) - OWN - VALUES.get(verb, set())
    assert own == set(options) - STANDS_FOR[verb]
    for option, (switch, values) in options.items():
        if option in arguments:
            name, argument = arguments[option]
            assert (argument.default is False) == switch, name
            allowed = _allowed(argument.annotation)
            assert not allowed or not values or allowed == set(values), name


def test_a_plan_has_the_options_that_it_depends_on() -> None:
    of_runs = {option["name"] for option in (*_volery.options("psi"), *_volery.options("lookup"))}
    own = {name.rstrip("_") for name in inspect.signature(volery.plan).parameters}
    assert own - OWN - {"verb"} <= of_runs


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(volery.UsageError, match="colour"):
        _volery.matching("psi", [("colour", "red")], None, False, None, Watch())
