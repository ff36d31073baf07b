"""Polynomials and matrices, beside integers of Python and NumPy."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import volery

P = 2**61 - 1


def test_ope() -> None:
    coefficients, points = [5, 0, 1, 0], [3, 0, P - 1]
    sender, receiver = volery.run_local(
        lambda session: session.ope(role="sender", coefficients=coefficients),
        lambda session: session.ope(role="receiver", points=points),
    )
    assert sender.values is None
    assert receiver.values is not None
    assert receiver.values.dtype == np.uint64
    assert receiver.values.tolist() == [14, 5, 6]


def test_ope_of_a_large_polynomial() -> None:
    random = np.random.default_rng(1)
    coefficients = random.integers(0, P, 300, np.uint64)
    points = random.integers(0, P, 10, np.uint64)
    _, receiver = volery.run_local(
        lambda session: session.ope(role="sender", coefficients=coefficients),
        lambda session: session.ope(role="receiver", points=points),
    )
    expected = [sum(int(c) * pow(int(x), i, P) for i, c in enumerate(coefficients)) % P for x in points]
    assert receiver.values is not None
    assert receiver.values.tolist() == expected


def test_ope_beyond_the_bound() -> None:
    with pytest.raises(volery.Error, match="max-degree|max_degree"):
        volery.run_local(
            lambda session: session.ope(role="sender", coefficients=[1] * 100),
            lambda session: session.ope(role="receiver", points=[1], max_degree=10),
        )


@pytest.mark.parametrize("ring", ["fp61", "z64"])
def test_matvec(ring: Literal["fp61", "z64"]) -> None:
    random = np.random.default_rng(2)
    matrix = random.integers(0, P, (20, 30), np.uint64)
    vector = random.integers(0, P, 30, np.uint64)
    modulus = P if ring == "fp61" else 2**64
    security: Literal["malicious", "semi-honest"] = "malicious" if ring == "fp61" else "semi-honest"
    sender, receiver = volery.run_local(
        lambda session: session.matvec(role="sender", matrix=matrix, ring=ring, security=security),
        lambda session: session.matvec(role="receiver", vector=vector, ring=ring, security=security),
    )
    expected = [sum(int(a) * int(b) for a, b in zip(row, vector)) % modulus for row in matrix]
    assert sender.values is None
    assert receiver.values is not None
    assert receiver.values.tolist() == expected


def test_matvec_shared() -> None:
    matrix, vector = np.arange(12, dtype=np.uint64).reshape(4, 3), np.array([7, 8, 9], np.uint64)
    shares = volery.run_local(
        lambda session: session.matvec(role="sender", matrix=matrix, result="shared"),
        lambda session: session.matvec(role="receiver", vector=vector, result="shared"),
    )
    assert shares[0].values is not None and shares[1].values is not None
    total = (shares[0].values.astype(object) + shares[1].values.astype(object)) % P
    assert total.tolist() == (matrix @ vector).tolist()


def test_matvec_of_real_numbers() -> None:
    random = np.random.default_rng(3)
    matrix, vector = random.normal(size=(10, 40)), random.normal(size=40)
    options: dict[str, Any] = {"security": "semi-honest", "matrix_bound": 8.0, "vector_bound": 8.0}
    _, receiver = volery.run_local(
        lambda session: session.matvec(role="sender", matrix=matrix, **options),
        lambda session: session.matvec(role="receiver", vector=vector, **options),
    )
    assert receiver.values is not None
    assert receiver.values.dtype == np.float64
    np.testing.assert_allclose(receiver.values, matrix @ vector, atol=1e-3)
