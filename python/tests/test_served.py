"""Queries to a `volery serve`, which is a process."""

from __future__ import annotations

import pathlib
import signal

import pytest
import volery
from parties import address, listens, program


def test_queries_to_a_server(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("email\n" + "".join(f"u{i}@x.org\n" for i in range(2000)))
    clients = tmp_path / "clients.toml"
    clients.write_text("[[client]]\nname = 'here'\nkeys = 9\n")
    at, kept = address(), tmp_path / "filter"
    words = ["--store", str(tmp_path / "store"), "--input", str(table), "--key", "email:email"]
    server = program("serve", "--listen", at, "--clients", str(clients), *words)
    listens(at)

    def ask(refresh: bool = False) -> volery.Match:
        data = {"mail": ["u7@X.org", "nobody@x.org", "u1999@x.org"]}
        return volery.psi(
            role="receiver", connect=at, protocol="served", filter=kept, refresh=refresh, data=data, key="mail:email"
        )

    for fetched, left in [(True, 6), (False, 3), (True, 0)]:
        match = ask(refresh=left == 0)
        assert match.rows is not None and match.indices is not None
        assert list(match.indices) == [0, 2]
        assert match.report.result["filter_fetched"] is fetched
        assert match.report.result["budget_left"] == left
        assert any("budget" in line for line in match.report.revealed)
    plan = volery.plan(role="receiver", protocol="served", data=["u7@x.org"], key=None, peer_rows=10**6)
    assert plan.bytes == 64 + 161 and 9e6 < plan.memory_bytes < 1e7
    with pytest.raises(volery.UsageError, match="more items than the 0"):
        ask()
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(volery.DataError, match="it is cut off"):
        ask()
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0

