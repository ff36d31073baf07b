"""The signatures have the options of the program, with their allowed values."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, Literal

import pytest
import volery
from volery import _volery

# The arguments that are no options, and the options that other arguments stand for.
OWN = {"data", "session", "output", "progress", "cancel"}
STANDS_FOR = {"input", "dry_run"}


def _allowed(annotation: Any) -> set[str]:
    """The strings of a literal type, also in a union."""
    if typing.get_origin(annotation) is Literal:
        return set(typing.get_args(annotation))
    return {value for part in typing.get_args(annotation) for value in _allowed(part)}


@pytest.mark.parametrize("verb", ["psi", "lookup"])
def test_each_option_is_an_argument(verb: Literal["psi", "lookup"]) -> None:
    function: Callable[..., Any] = getattr(volery, verb)
    hints = typing.get_type_hints(function)
    arguments = {name.rstrip("_"): (name, one) for name, one in inspect.signature(function).parameters.items()}
    options = {name: parts for name, *parts in _volery.options(verb)}
    assert set(arguments) - OWN == set(options) - STANDS_FOR - {"peer_rows"}
    for option, (switch, _many, values) in options.items():
        if option in arguments:
            name, argument = arguments[option]
            assert (argument.default is False) == switch, name
            allowed = _allowed(hints[name])
            assert not allowed or not values or allowed == set(values), name


def test_a_plan_has_the_options_that_it_depends_on() -> None:
    of_runs = {name for verb in ("psi", "lookup") for name, *_ in _volery.options(verb)}  # type: ignore[arg-type]
    own = {name.rstrip("_") for name in inspect.signature(volery.plan).parameters}
    assert own - OWN - {"verb"} <= of_runs


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(volery.UsageError, match="colour"):
        _volery.matching("psi", [("colour", "red")], None, False, None, volery._calls.Watch())  # type: ignore[attr-defined]
