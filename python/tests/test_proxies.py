"""Runs through proxies: HTTP and SOCKS5, by option and by environment, with TLS and without."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import volery
from parties import PROGRAM, address, finish, program

PASSWORD = "open sesame"
BASIC = "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="


class Gone(Exception):
    """The client's time was up."""


class Proxy:
    """A proxy on this machine. It resolves ``peer.invalid``, and refuses as often as it is told."""

    def __init__(self, kind: str, refusals: list[int], login: bool = False) -> None:
        self.kind, self.refusals, self.login = kind, refusals, login
        self.asked: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        port = self._server.getsockname()[1]
        user = f"Aladdin:{PASSWORD.replace(' ', '%20')}@" if login else ""
        self.url = f"{kind}://{user}127.0.0.1:{port}"
        self.shown = f"{kind}://127.0.0.1:{port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._server.accept()
            threading.Thread(target=self._one, args=(client,), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        file = client.makefile("rb")
        try:
            host, port = (self._http if self.kind == "http" else self._socks)(client, file)
        except (Gone, OSError):
            return client.close()
        self.asked.append(f"{host}:{port}")
        refusal = self.refusals.pop(0) if self.refusals else 0
        if not refusal:
            try:
                peer = socket.create_connection(("127.0.0.1" if host == "peer.invalid" else host, port))
            except OSError:
                refusal = 503 if self.kind == "http" else 5
        if self.kind == "http":
            client.sendall(f"HTTP/1.1 {refusal or 200} x\r\nVia: test\r\n\r\n".encode())
        else:
            # The address at this side: a name, or an IPv6 address.
            client.sendall(bytes([5, refusal, 0]) + (b"\x03\x04name\x00\x07" if refusal else b"\x04" + bytes(18)))
        if refusal:
            return client.close()
        threading.Thread(target=self._pump, args=(peer, client), daemon=True).start()
        self._pump(client, peer)

    def _http(self, client: socket.socket, file: Any) -> tuple[str, int]:
        lines = []
        while (line := file.readline()) not in (b"", b"\r\n"):
            lines.append(line.decode().strip())
        if not line:
            raise Gone
        assert lines[0].startswith("CONNECT ") and lines[0].endswith(" HTTP/1.1")
        assert (BASIC in lines) == self.login
        host, _, port = lines[0].split()[1].rpartition(":")
        assert lines[1] == f"Host: {host}:{port}"
        return host, int(port)

    def _socks(self, client: socket.socket, file: Any) -> tuple[str, int]:
        if not (begun := file.read(2)):
            raise Gone
        version, count = begun
        assert version == 5 and file.read(count) == (b"\x00\x02" if self.login else b"\x00")
        client.sendall(b"\x05\x02" if self.login else b"\x05\x00")
        if self.login:
            assert file.read(1) == b"\x01" and file.read(file.read(1)[0]) == b"Aladdin"
            assert file.read(file.read(1)[0]) == PASSWORD.encode()
            client.sendall(b"\x01\x00")
        if not (asked := file.read(3)):
            raise Gone
        assert asked == b"\x05\x01\x00"
        host = file.read(file.read(1)[0]).decode() if file.read(1) == b"\x03" else ".".join(map(str, file.read(4)))
        return host, int.from_bytes(file.read(2), "big")

    @staticmethod
    def _pump(of: socket.socket, to: socket.socket) -> None:
        try:
            while data := of.recv(1 << 16):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """The words of both sides for TLS, and the files of both."""
    place = tmp_path_factory.mktemp("proxies")
    prints = {name: volery.keygen(out=place / name) for name in ("sender", "receiver")}
    words = {}
    for own, other in [("sender", "receiver"), ("receiver", "sender")]:
        (place / f"{own}.csv").write_text("k\nann\n" + own + "\n")
        words[own] = ["--input", str(place / f"{own}.csv"), "--key", "k"]
        words[own] += ["--identity", str(place / own), "--peer", prints[other]]
    yield words


def receive(words: list[str], folder: pathlib.Path, *more: str, **variables: str) -> subprocess.Popen[str]:
    call = ["psi", "--role", "receiver", "--out", str(folder / "out.csv"), "-v", *words, *more]
    return program(*call, env={**os.environ, **variables})


@pytest.mark.parametrize(
    "kind, refusal, by",
    [("http", 503, "option"), ("http", 502, "environment"), ("socks5h", 5, "environment"), ("socks5h", 1, "option")],
)
def test_tls_through_a_proxy(
    kind: str, refusal: int, by: str, secured: dict[str, list[str]], tmp_path: pathlib.Path
) -> None:
    # It does not reach the peer at first, for another reason each time.
    proxy = Proxy(kind, [refusal, 504 if kind == "http" else 4], login=True)
    at = address()
    given = ["--proxy", proxy.url] if by == "option" else []
    variables = {"HTTPS_PROXY": "http://127.0.0.1:1" if given else proxy.url, "NO_PROXY": "other"}
    to = "peer.invalid:" + at.rpartition(":")[2]
    receiver = receive(secured["receiver"], tmp_path, "--connect", to, "--report", str(tmp_path / "r.json"), *given, **variables)
    sender = program("psi", "--role", "sender", "--listen", at, *secured["sender"])
    _, told = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, told
    finish(sender)
    assert (tmp_path / "out.csv").read_text() == "k\nann\n"
    assert f"through the proxy {proxy.shown}" in told
    assert "sesame" not in told + (tmp_path / "r.json").read_text()
    assert len(proxy.asked) >= 3 and set(proxy.asked) == {to}


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_plain_run_on_this_machine(kind: str) -> None:
    proxy, at = Proxy(kind, []), address()
    sender = program("ope", "--role", "receiver", "--listen", at, "--point", "2")
    values = volery.ope(role="sender", coefficients=[1, 1], connect=at, proxy=proxy.url).values
    finish(sender)
    assert values is None and set(proxy.asked) == {at}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1"])
def test_the_environment_is_not_for_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is a name of this machine that is on no list: the run is one in plain text."""
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")
    at = address()
    sender = program("ope", "--role", "receiver", "--listen", at, "--point", "2")
    volery.ope(role="sender", coefficients=[1, 1], connect=at.replace("127.0.0.1", host))
    finish(sender)


@pytest.mark.parametrize(
    "kind, refusals, wait, parts",
    [
        ("http", [407], 60, ["it answered 407: it requires a login", "USER:PASSWORD"]),
        ("http", [403], 60, ["it answered 403", "NO_PROXY"]),
        ("socks5h", [2], 60, ["it answered 2: its rules forbid it", "NO_PROXY"]),
        ("http", [], 1, ["it answered 503: it does not reach the peer, until 1s", "the peer is running"]),
        ("socks5h", [], 1, ["it answered 5: it does not reach the peer, until 1s", "wait"]),
        ("none there", [], 1, ["no peer started to listen on 127.0.0.1:1 within 1s", "wait"]),
    ],
)
def test_a_refusal_names_proxy_peer_and_answer(kind: str, refusals: list[int], wait: int, parts: list[str]) -> None:
    proxy = Proxy(kind, refusals)
    url = "http://127.0.0.1:1" if kind == "none there" else proxy.url
    with pytest.raises(volery.NetworkError) as raised:
        volery.psi(role="sender", data=["a"], connect="127.0.0.1:1", proxy=url, wait=wait)
    text = str(raised.value)
    for part in [f"the proxy {url} did not connect to 127.0.0.1:1: ", *parts]:
        assert part in text
    # Those that last are not tried again.
    assert len(proxy.asked) == (0 if kind == "none there" else 1) or not refusals


@pytest.mark.parametrize(
    "words, variables",
    [
        (["--connect", "127.0.0.1:1", "--proxy", f"ftp://u:{PASSWORD}@h:1"], {}),
        (["--connect", "127.0.0.1:1"], {"VOLERY_PROXY": f"http://u:{PASSWORD}@h"}),
        (["--connect", "127.0.0.1:1"], {"VOLERY_PROXY": f"http://u:{PASSWORD}%@h:1"}),
        (["--connect", "127.0.0.1:1"], {"VOLERY_PROXY": f"http://u:{PASSWORD}@[h]:1"}),
        (["--connect", "127.0.0.1:1"], {"VOLERY_PROXY": f"http://u:{PASSWORD * 99}@h:1"}),
        (["--connect", "192.0.2.1:1"], {"HTTPS_PROXY": f"https://u:{PASSWORD}@h:1"}),
        (["--listen", "127.0.0.1:0", "--proxy", f"http://u:{PASSWORD}@h:1"], {}),
        (["--listen", "127.0.0.1:0"], {"VOLERY_PROXY": f"http://u:{PASSWORD}@h:1"}),
    ],
)
def test_a_wrong_proxy_is_refused_without_its_password(
    words: list[str], variables: dict[str, str], secured: dict[str, list[str]], tmp_path: pathlib.Path
) -> None:
    process = receive(secured["receiver"], tmp_path, *words, **variables)
    out, told = process.communicate(timeout=60)
    assert process.returncode == 2 and "PROXY" in told.upper(), told
    assert PASSWORD not in out + told


def test_workers_reach_a_gateway_through_a_proxy(tmp_path: pathlib.Path) -> None:
    prints = {name: volery.keygen(out=tmp_path / name) for name in ("a", "b")}
    allowed = [word for one in prints.values() for word in ("--allow", one)]
    at = address()
    gateway = program("gateway", "--listen", at, *allowed)
    proxy = Proxy("http", [502], login=True)
    to = "peer.invalid:" + at.rpartition(":")[2]
    sides = []
    for own, other, role in [("a", "b", "sender"), ("b", "a", "receiver")]:
        (tmp_path / f"{own}.csv").write_text("k\n" + "".join(f"{own}{i}\nboth{i}\n" for i in range(20)))
        call = ["run-local", "psi", "--role", role, "--run", "r", "--workers", "2", "--key", "k"]
        call += ["--identity", str(tmp_path / own), "--peer", prints[other], "--gateway", to]
        call += ["--resume", str(tmp_path / f"{own}.work"), "--input", str(tmp_path / f"{own}.csv")]
        call += ["--out", str(tmp_path / "out.csv")] if role == "receiver" else []
        sides.append(program(*call, "--proxy", proxy.url))
    finish(*sides)
    assert len((tmp_path / "out.csv").read_text().split()) == 21
    # Two drivers and four workers.
    assert len(proxy.asked) >= 6 and set(proxy.asked) == {to}
    gateway.terminate()
    gateway.communicate(timeout=30)


def test_kubernetes_gets_no_password(tmp_path: pathlib.Path) -> None:
    call = [PROGRAM, "k8s", "--image", "i", "--work-claim", "w", "--identity-secret", "s", "--out", str(tmp_path / "o")]
    call += ["--data-claim", "d"]
    call += ["--", "psi", "--role", "sender", "--run", "r", "--workers", "1", "--key", "k", "--input", "/data/x.csv"]
    call += ["--peer", volery.keygen(out=tmp_path / "id"), "--gateway", "g:1", "--proxy"]
    refused = subprocess.run([*call, f"http://u:{PASSWORD}@h:1"], capture_output=True, text=True)
    assert refused.returncode == 2 and "VOLERY_PROXY" in refused.stderr and PASSWORD not in refused.stderr
    subprocess.run([*call, "http://h:1"], check=True, capture_output=True)
    for manifest in (tmp_path / "o").glob("[1-9]*.json"):
        assert '"--proxy' in manifest.read_text()
