"""A private linear layer: W x, with the weights W at the server and the activations x at the client.

    python3 examples/private_linear.py                       # NumPy, or PyTorch if it is installed
    python3 examples/private_linear.py --device cuda:0 --rows 1024 --columns 4096

Both parties run in this process; between machines each has a volery.Session and a connection of its
own, over TLS. With a card the random OTs are made there, and stay there as tensors of PyTorch.

By Gilboa's multiplication, with a random OT for each bit of each weight. The server has the bits b
of its weights (the last one of a weight counts negatively), the client the addends c = x_j * 2^t:

    server: u, m = m_u                                  client: m_0, m_1
           ------------------ d = b + u ----------------->      swaps m_0 and m_1 where d is 1
           <------------- e = m_0 + c - m_1 --------------      adds -m_0 to its share
    adds m + b*e = m_0 + b*c to its share

The sums over the columns and bits are shares of W x modulo 2^64.

The client learns the number of rows, columns and bits of W, and the server those of columns; each
gets a share that is random to it, and here both shares are put together to check them. The random
OTs are secure against a malicious peer. The products are secure against a semi-honest peer only: a
client may take another x for each weight, and a server other weights than those agreed upon.
"""

from __future__ import annotations

import argparse
import socket
import time
from typing import Any

import numpy as np
import volery

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment,unused-ignore]

#: OTs at a time, at most.
CHUNK = 1 << 24


def placed(array: Any, device: str) -> Any:
    """An array of NumPy or volery as one of signed integers on the device; sums wrap."""
    signed = str(array.dtype).replace("uint", "int")
    if torch is None:
        return array.view(signed)
    if isinstance(array, np.ndarray):
        return torch.from_numpy(array.view(signed)).to(device)
    return torch.from_dlpack(array).view(getattr(torch, signed))


def on_host(array: Any) -> Any:
    """The same as an array of NumPy."""
    return array if torch is None else array.cpu().numpy()


def unpacked(words: Any, n: int, device: str) -> Any:
    """The first n bits of words of 32."""
    places = placed(np.arange(32, dtype=np.int32), device)
    return ((words.reshape(-1, 1) >> places) & 1).reshape(-1)[:n]


def packed(bits: Any) -> Any:
    """Words of 32 of these bits."""
    padded = np.zeros(-(-len(bits) // 32) * 32, np.uint8)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<u4")


def receive(wire: socket.socket, count: int, kind: str) -> Any:
    """An array of NumPy from the peer; its size is known here."""
    array = np.empty(count, kind)
    left = memoryview(array).cast("B")
    while len(left):
        done = wire.recv_into(left)
        if done == 0:
            raise ConnectionError("the peer is gone")
        left = left[done:]
    return array


def options(device: str, ots_of_row: int, rows: int, peer_device: str) -> dict[str, Any]:
    """What both parties give but the role and their own device."""
    at_once = max(1, CHUNK // ots_of_row) * ots_of_row
    on_cards = "cuda" in device + peer_device
    return {
        "n": rows * ots_of_row,
        "chunk": at_once,
        "hashed": True,
        "device": device,
        "set": "b11/4" if on_cards else None,
        "protocol": None if on_cards else "primal",
    }


def server(session: volery.Session, wire: socket.socket, weights: Any, bits: int, devices: list[str]) -> Any:
    """The server's share of each row."""
    rows, columns = weights.shape
    device, shares = devices[0], []
    chosen = ((weights[:, :, None] >> np.arange(bits)) & 1).astype(np.uint8).reshape(-1)
    given = options(device, columns * bits, rows, devices[1])
    with session.cot_stream(role="receiver", **given) as parts:
        for part in parts:
            b = placed(packed(chosen[part.first : part.first + len(part)]), device)
            wire.sendall(on_host(b ^ placed(part.u_packed, device)).tobytes())
            e = placed(receive(wire, len(part), "<i8"), device)
            m = placed(part.m, device)[:, 0]
            products = m + unpacked(b, len(part), device) * e
            shares.append(on_host(products.reshape(-1, columns * bits).sum(1)))
    return np.concatenate(shares)


def client(
    session: volery.Session, wire: socket.socket, x: Any, rows: int, bits: int, devices: list[str]
) -> Any:
    """The client's share of each row."""
    device, shares = devices[1], []
    powers = 1 << np.arange(bits, dtype=np.int64)
    powers[-1] = -powers[-1]
    c = placed((x[:, None] * powers).reshape(1, -1), device)
    with session.cot_stream(role="sender", **options(device, c.shape[1], rows, devices[0])) as parts:
        for part in parts:
            d = placed(receive(wire, -(-len(part) // 32), "<u4"), device)
            d = unpacked(d, len(part), device).reshape(-1, c.shape[1])
            m0, m1 = (placed(m, device)[:, 0].reshape(d.shape) for m in (part.m0, part.m1))
            swap = d * (m1 - m0)
            m0, m1 = m0 + swap, m1 - swap
            wire.sendall(on_host(m0 + c - m1).tobytes())
            shares.append(on_host(-m0.sum(1)))
    return np.concatenate(shares)


def both(weights: Any, x: Any, bits: int, devices: list[str]) -> tuple[Any, Any]:
    """The shares of server and client, who compute on these devices."""
    left, right = socket.socketpair()
    with left, right:
        return volery.run_local(
            lambda session: server(session, left, weights, bits, devices),
            lambda session: client(session, right, x, len(weights), bits, devices),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="A private linear layer on random OTs.")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--bits", type=int, default=8, help="bits of a weight, with its sign")
    parser.add_argument("--device", default="cpu", help="of both parties: cpu or cuda:N")
    parser.add_argument("--client-device", help="of the client, if it is another one")
    given = parser.parse_args()
    devices = [given.device, given.client_device or given.device]
    if torch is None and "cuda" in "".join(devices):
        parser.error("a card needs PyTorch: pip install torch")
    random = np.random.default_rng()
    bound = 1 << (given.bits - 1)
    weights = random.integers(-bound, bound, (given.rows, given.columns), np.int64)
    x = random.integers(-128, 128, given.columns, np.int64)
    start = time.perf_counter()
    shares = both(weights, x, given.bits, devices)
    seconds = time.perf_counter() - start
    assert (shares[0] + shares[1] == weights @ x).all(), "the shares add up to W x"
    ots = given.bits * weights.size
    print(f"{given.rows} x {given.columns}, {ots} OTs: {seconds:.2f} s; the shares add up to W x")


if __name__ == "__main__":
    main()
