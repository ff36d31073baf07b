"""COT and VOLE: the relations, the arrays, and parts of a bounded size."""

from __future__ import annotations

import importlib
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
    for name in {"delta", "u", "v", "w", "x", "m", "m0", "m1"} - set(names.split()):
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
@pytest.mark.parametrize("n", [1, 300_001])
def test_random_ot(protocol: str, n: int) -> None:
    sender, receiver = cot(n=n, protocol=protocol, hashed=True)
    m0, m1 = arrays(sender, "m0 m1")
    u, m = arrays(receiver, "u m")
    assert m.shape == m0.shape == (n, 2)
    assert (m == np.where(u[:, None] == 1, m1, m0)).all()
    assert len(np.unique(np.concatenate([m0, m1]), axis=0)) == 2 * n
    bits = np.unpackbits(receiver.u_packed.view(np.uint8), bitorder="little")
    assert (bits[:n] == u).all() and not bits[n:].any()
    assert "hashed" not in repr(sender) and len(sender) == n


def test_random_ot_beside_correlated_ot() -> None:
    with pytest.raises(volery.SettingsDifferError, match="outputs"):
        volery.run_local(
            lambda session: session.cot(role="sender", n=5, hashed=True),
            lambda session: session.cot(role="receiver", n=5),
        )


def test_device() -> None:
    sender, _ = volery.run_local(
        lambda session: session.cot(role="sender", n=5, device="auto"),
        lambda session: session.cot(role="receiver", n=5),
    )
    assert sender.report is not None and sender.report.result["device"] == "cpu"
    with pytest.raises(volery.UsageError, match="cuda:NUMBER"):
        volery.cot(role="sender", n=5, device="gpu", connect="127.0.0.1:1")


def has_card() -> bool:
    """Whether this build has support for cards, and there is one."""
    if not hasattr(volery._volery, "CardArray"):
        return False
    try:
        cot(n=5, set="b11/4", device="cuda:0")
    except volery.Error:
        return False
    return True


@pytest.mark.parametrize("hashed", [False, True])
def test_on_a_card(hashed: bool) -> None:
    if not has_card():
        pytest.skip("needs a card")
    on_card: dict[str, Any] = {"set": "b11/4", "hashed": hashed, "device": "cuda:0"}
    for devices in [("cuda:0", "cpu"), ("cpu", "cuda:0"), ("cuda:0", "cuda:0")]:
        def party(role: Any, device: str) -> Any:
            return lambda session: list(
                session.cot_stream(**{**on_card, "role": role, "n": 3_000_001, "chunk": 1_000_000, "device": device})
            )

        def host(array: Any) -> Any:
            return array if isinstance(array, np.ndarray) else array.numpy()

        sent, received = volery.run_local(party("sender", devices[0]), party("receiver", devices[1]))
        assert [len(part) for part in sent] == [1_000_000] * 3 + [1]
        for left, right in zip(sent, received):
            u = np.unpackbits(host(right.u_packed).view(np.uint8), bitorder="little")[: len(left), None]
            if hashed:
                assert (host(right.m) == np.where(u == 1, host(left.m1), host(left.m0))).all()
            else:
                assert (host(right.w) == host(left.v) ^ u * left.delta).all()
        if devices[0] != "cpu":
            column = sent[0].m1 if hashed else sent[0].v
            assert column.__dlpack_device__() == (2, 0)
            torch = pytest.importorskip("torch")
            tensor = torch.from_dlpack(column)
            assert (tensor.cpu().numpy() == column.numpy()).all()


@pytest.mark.parametrize("ring", ["fp61", "gf128"])
def test_vole_on_a_card(ring: str) -> None:
    if not has_card():
        pytest.skip("needs a card")
    sender, receiver = vole(n=3_000_001, ring=ring, set="b10/4", device="cuda:0")
    on_card: list[Any] = [sender.u, sender.v, receiver.w]
    u, v, w = (array.numpy() for array in on_card)
    assert u.shape == v.shape == w.shape == ((3_000_001,) if ring == "fp61" else (3_000_001, 2))
    if ring == "fp61":
        x = int(receiver.x[0])
        assert all(int(w[i]) == (int(u[i]) * x + int(v[i])) % P for i in range(0, len(u), 9973))


def test_private_linear_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pathlib.Path(__file__).resolve().parents[2] / "examples"
    monkeypatch.syspath_prepend(str(folder))
    example: Any = importlib.import_module("private_linear")
    monkeypatch.setattr(example, "CHUNK", 5000)
    random = np.random.default_rng(4)
    weights, x = random.integers(-8, 8, (30, 50)), random.integers(-128, 128, 50)
    shares = example.both(weights, x, 4, ["cpu", "cpu"])
    assert (shares[0] + shares[1] == weights @ x).all()
    assert not (shares[0] == weights @ x).any()


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
