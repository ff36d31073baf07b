"""Shares of matching rows as NumPy arrays: beside a join, and what is computed with them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import volery
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(deadline=None, max_examples=10)
keys = st.lists(st.integers(0, 30), unique=True, max_size=20)


def shared(left: dict[str, Any], right: dict[str, Any], **more: Any) -> list[volery.Match]:
    """Both sides, each with all its columns but the key."""

    def side(role: str, data: dict[str, Any]) -> Any:
        columns = ",".join(name for name in data if name != "key")
        options = {"bound": 1000, "decimals": 1} if columns else {}
        result = f"shares={columns}" if columns else "shares"
        return lambda session: session.psi(role=role, data=data, key="key", result=result, **options, **more)

    return list(volery.run_local(side("sender", left), side("receiver", right)))


def shares(match: volery.Match) -> volery.Shares:
    assert match.shares is not None
    assert match.rows is None and match.indices is None and match.count is None
    return match.shares


@few
@given(keys, keys, st.booleans())
def test_beside_a_join(left: list[int], right: list[int], row_order: bool) -> None:
    # A table has a row at least, of no key that the other one has.
    left, right = [*left, 77], [*right, 99]
    sender, receiver = shared(
        {"key": left, "x": [f"{key}.5" for key in left]},
        {"key": right, "y": [-key for key in right]},
        row_order=row_order,
    )
    ours, theirs = shares(receiver), shares(sender)
    assert theirs.rows is None and ours.rows is not None and ours.rows.dtype == np.int64
    assert ours.match.dtype == np.uint8 and len(ours) == len(theirs)
    found = ours.match ^ theirs.match
    values = {name: (ours.columns[name] + theirs.columns[name]).view("i8") for name in ours.columns}
    assert list(values) == list(theirs.columns) == ["sender_1", "receiver_1"]
    if row_order:
        assert ours.rows.tolist() == list(range(len(right)))
    assert sorted(row for row in ours.rows.tolist() if row >= 0) == list(range(len(right)))
    for place, row in enumerate(ours.rows.tolist()):
        key = right[row] if row >= 0 else None
        common = key in left
        assert found[place] == common
        # In tenths.
        assert values["sender_1"][place] == (10 * key + 5 if common and key is not None else 0)
        assert values["receiver_1"][place] == (-10 * key if common and key is not None else 0)


def test_what_is_known_of_them() -> None:
    sender, receiver = shared({"key": ["a", "b"], "x": [1, 2]}, {"key": ["b", "c", "d"]}, row_order=True)
    for match in (sender, receiver):
        description = shares(match).description
        assert description["order"] == "rows" and description["places"] == 3
        assert description["sender_keys"] == 2 and description["receiver_keys"] == 3
        assert any("neither side learns which keys are common" in line for line in match.report.revealed)
        assert "3 places" in repr(match.shares)
    names = [shares(match).description["columns"][0]["name"] for match in (sender, receiver)]
    assert names == ["x", None]
    assert shares(sender).description["session"] == shares(receiver).description["session"]


def test_folders(tmp_path: pathlib.Path) -> None:
    def side(role: str, data: dict[str, Any]) -> Any:
        return lambda session: session.psi(
            role=role, data=data, key="key", result="shares", out=tmp_path / role
        )

    both = volery.run_local(side("sender", {"key": [1, 2]}), side("receiver", {"key": [2, 3]}))
    assert [match.shares for match in both] == [None, None]
    report = volery.verify(tmp_path / "sender", tmp_path / "receiver")
    assert report.result["common"] == 1
    loaded = [np.load(tmp_path / role / "match.npy") for role in ("sender", "receiver")]
    assert int((loaded[0] ^ loaded[1]).sum()) == 1
    assert np.load(tmp_path / "receiver" / "row.npy").dtype == np.int64


def test_wrong_arguments() -> None:
    def side(role: str, **more: Any) -> Any:
        return lambda session: session.psi(role=role, data={"key": [1], "x": [1]}, key="key", **more)

    with pytest.raises(volery.UsageError, match="bound"):
        volery.run_local(side("sender", result="shares=x"), side("receiver", result="shares"))
    with pytest.raises(volery.UsageError, match="row_order"):
        volery.run_local(side("sender", row_order=True), side("receiver"))


def test_plan() -> None:
    plan = volery.plan(
        role="sender", data={"key": [1, 2], "x": [1, 2]}, key="key", result="shares=x", bound=5, row_order=True
    )
    assert plan.protocol == "circuit" and plan.bytes > 0
