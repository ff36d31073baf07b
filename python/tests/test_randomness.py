"""COT and VOLE: the relations, the arrays, and parts of a bounded size."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import volery
from parties import address, finish, program, python

P = 2**61 - 1


def cot(**options: Any) -> tuple[volery.Cot, volery.Cot]:
    return volery.run_local(
        lambda session: session.cot(role="sender", **options), lambda session: session.cot(role="receiver", **options)
    )


def vole(**options: Any) -> tuple[volery.Vole, volery.Vole]:
    return volery.run_local(
        lambda session: session.vole(role="sender", **options), lambda session: session.vole(role="receiver", **options)
    )


def arrays(of: object, names: str) -> list[Any]:
    """The arrays of these names; those of the other party are not there."""
    for name in {"delta", "u", "v", "w", "x"} - set(names.split()):
        assert getattr(of, name, None) is None, name
    return [getattr(of, name) for name in names.split()]


@pytest.mark.parametrize("n", [1, 1000, 1_000_003])
def test_cot(n: int) -> None:
    sender, receiver = cot(n=n)
    delta, v = arrays(sender, "delta v")
    u, w = arrays(receiver, "u w")
    assert [one.shape for one in [delta, v, u, w]] == [(1, 2), (n, 2), (n,), (n, 2)]
    assert [one.dtype for one in [delta, v, u, w]] == [np.uint64, np.uint64, np.uint8, np.uint64]
    assert u.max() <= 1
    assert (w == v ^ (u[:, None] * delta)).all()
    if n > 1000:
        assert abs(u.mean() - 0.5) < 0.01
        assert len(np.unique(v, axis=0)) == n


@pytest.mark.parametrize("protocol", ["softspoken2", "primal"])
def test_cot_of_a_protocol(protocol: str) -> None:
    sender, receiver = cot(n=10_000, protocol=protocol, security="semi-honest")
    assert (receiver.w == sender.v ^ (receiver.u[:, None] * sender.delta)).all()


def test_cot_with_own_delta() -> None:
    # One bit of each block carries the choice bit.
    delta = np.array([[0x0123_4567_89AB_CDEF, 0x8000_0000_0000_0001]], np.uint64) | np.uint64(1)
    sender, receiver = volery.run_local(
        lambda session: session.cot(role="sender", n=1000, delta=delta),
        lambda session: session.cot(role="receiver", n=1000),
    )
    assert (sender.delta == delta).all()
    assert (receiver.w == sender.v ^ (receiver.u[:, None] * delta)).all()


def test_vole_over_fp61() -> None:
    sender, receiver = vole(n=100_000)
    u, v = arrays(sender, "u v")
    x, w = arrays(receiver, "x w")
    assert [one.shape for one in [u, v, x, w]] == [(100_000,), (100_000,), (1,), (100_000,)]
    assert all(one.dtype == np.uint64 and one.max() < P for one in [u, v, x, w])
    for i in range(0, 100_000, 97):
        assert int(w[i]) == (int(u[i]) * int(x[0]) + int(v[i])) % P


def test_vole_over_z64() -> None:
    sender, receiver = vole(n=100_000, ring="z64", security="semi-honest")
    u, v = arrays(sender, "u v")
    x, w = arrays(receiver, "x w")
    assert (w == u * x + v).all()


def times(a: int, b: int) -> int:
    """The product of polynomials modulo X^128 + X^7 + X^2 + X + 1."""
    product = 0
    for bit in range(128):
        if b >> bit & 1:
            product ^= a << bit
    for bit in range(254, 127, -1):
        if product >> bit & 1:
            product ^= (1 << 128 | 0x87) << (bit - 128)
    return product


def test_vole_over_gf128() -> None:
    sender, receiver = vole(n=3000, ring="gf128")
    u, v = arrays(sender, "u v")
    x, w = arrays(receiver, "x w")
    assert [one.shape for one in [u, v, x, w]] == [(3000, 2), (3000, 2), (1, 2), (3000, 2)]

    def block(pair: Any) -> int:
        return int(pair[0]) | int(pair[1]) << 64

    for i in range(0, 3000, 101):
        assert block(w[i]) == times(block(u[i]), block(x[0])) ^ block(v[i])


def test_arrays_are_handed_over() -> None:
    for party in cot(n=100_000):
        for name in ["v", "u", "w"]:
            array = getattr(party, name, None)
            if array is None:
                continue
            # The array is the memory that the run wrote: NumPy does not own it, and it is writable.
            assert not array.flags.owndata
            assert array.base is not None
            assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
            assert getattr(party, name) is array
            array[0] ^= array[0]
            assert not array[0].any()


@pytest.mark.parametrize("ring", [None, "fp61"])
def test_parts(ring: str | None) -> None:
    def party(role: str) -> Any:
        def run(session: volery.Session) -> Any:
            call: Any = session.vole_stream if ring else session.cot_stream
            return list(call(role=role, n=25_000, chunk=10_000))

        return run

    sender, receiver = volery.run_local(party("sender"), party("receiver"))
    sizes = [len(part.v) for part in sender]
    assert sizes == [10_000, 10_000, 5_000] == [len(part.w) for part in receiver]
    for one, other in zip(sender, receiver):
        if ring:
            x = int(receiver[0].x[0])
            assert int(other.x[0]) == x
            for i in range(0, len(one.v), 1000):
                assert int(other.w[i]) == (int(one.u[i]) * x + int(one.v[i])) % P
        else:
            assert (one.delta == sender[0].delta).all()
            assert (other.w == one.v ^ (other.u[:, None] * one.delta)).all()


def test_parts_in_bounded_memory() -> None:
    # 400 MB of blocks, in parts of 3.2 MB. A party that reads slowly makes the other wait.
    code = """
import pathlib, time
def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
role, side, at = sys.argv[1:]
n = 25_000_000
parts = volery.cot_stream(role=role, n=n, chunk=200_000, threads=1, protocol="softspoken2", security="semi-honest", **{side: at})
count = 0
for part in parts:
    count += len(part.v if role == "sender" else part.w)
    if count == 2_000_000:
        before = peak()
        if role == "receiver":
            time.sleep(0.5)
assert count == n
print(peak() - before)
"""
    at = address()
    for grown in finish(python(code, "sender", "listen", at), python(code, "receiver", "connect", at)):
        assert int(grown) < 60_000_000


def test_verify(tmp_path: pathlib.Path) -> None:
    at = address()
    sender = program("cot", "--role", "sender", "--listen", at, "--n", "5000", "--out", str(tmp_path / "s"))
    receiver = program("cot", "--role", "receiver", "--connect", at, "--n", "5000", "--out", str(tmp_path / "r"))
    finish(sender, receiver)
    assert volery.verify(tmp_path / "s", tmp_path / "r").n == 5000
    w = np.load(tmp_path / "r" / "w.npy")
    w[17, 0] ^= np.uint64(1)
    np.save(tmp_path / "r" / "w.npy", w)
    with pytest.raises(volery.Error, match="17"):
        volery.verify(tmp_path / "s", tmp_path / "r")
