#!/usr/bin/env python3
"""The package in a headless Chromium, against native peers: rows, values, queries, and what goes wrong.

Fails also on a message in the console and on a request for anything but the package's files. Needs Python 3.9,
chromium, the built package, and the program.

    web/tests/run.py PACKAGE VOLERY [NAME]     NAME: tests whose name has it; `time` only by its name
"""

import json
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / ".ci"))

from chromium import Browser  # noqa: E402
from relay import Server  # noqa: E402

PACKAGE = pathlib.Path(sys.argv[1]).resolve()
VOLERY = pathlib.Path(sys.argv[2]).resolve()


class Peer:
    """A native volery that listens on a port of its own choice."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([VOLERY, *map(str, arguments), "--listen", "127.0.0.1:0"], text=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if "listening on" in line:
                self.port = int(line.rsplit(":", 1)[1])
                return
        raise AssertionError(f"the peer does not listen: {self.said}")

    def end(self):
        """The exit status and what was said on standard error."""
        said = self.process.stderr.read()
        return self.process.wait(120), "".join(self.said) + said

    def stop(self):
        self.process.terminate()
        self.process.stderr.read()
        self.process.wait(60)


class Tests:
    def __init__(self, browser, server, folder):
        self.browser, self.server, self.folder = browser, server, folder
        self.page = f"{server.origin}/tests/page.html"

    def run(self, call, options, **more):
        words = ", ".join(json.dumps(one) for one in (call, options, more))
        return self.browser.value(f"run({words})")

    def table(self, name, header, rows):
        path = self.folder / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    def sender(self, rows, *options, verb="psi", header="mail,city", key="mail:email"):
        path = self.table("sender.csv", header, rows)
        return Peer(verb, "--role", "sender", "--input", path, "--key", key, *options)

    def meet(self, peer, name="match", more=None, **options):
        options["url"] = self.server.bridge(f"tcp/{peer.port}")
        return self.run(name, options, **(more or {}))

    # Each of the following is a test.

    def test_rows_equal_a_plain_join(self):
        draw = random.Random(1)
        theirs = [f"p{draw.randrange(3000)}@x.org" for _ in range(2000)]
        ours = [f"P{draw.randrange(3000)}@X.org " for _ in range(1500)]
        common = {mail for mail in theirs}
        want = [i for i, mail in enumerate(ours) if mail.strip().lower() in common]
        for protocol in ["auto", "vole", "dh", "kkrt", "vole-low"]:
            security = {"kkrt": "semi-honest", "vole-low": "semi-honest"}.get(protocol, "malicious")
            peer = self.sender([f"{mail},Rome" for mail in theirs], "--protocol", protocol, "--security", security)
            csv = "id,email\n" + "".join(f"{i},{mail}\n" for i, mail in enumerate(ours))
            got = self.meet(peer, more={"csv": csv, "terms": True}, key="email:email", protocol=protocol,
                            security=security)
            status, said = peer.end()
            assert status == 0, said
            assert "error" not in got, got
            result = got["result"]
            assert result["rows"] == want and result["count"] == len(want), (protocol, result["count"], len(want))
            assert set(result["rules"]) == {1}
            assert result["bytes"] > 1000 and result["seconds"] > 0
            assert result["report"]["peer_items"] == len(common), result["report"]
            assert got["terms"]["rows"] == 1500 and got["terms"]["security"] == security
            assert any("the peer learns how many" in line or "learns" in line for line in got["terms"]["revealed"])
            assert "connecting" in got["phases"], got["phases"]

    def test_awkward_sizes_and_lists(self):
        for theirs, ours in [([], []), (["a"], []), ([], ["a"]), (["a"], ["b", "a"]), (["é", "b"], ["e", "é", "b"])]:
            peer = self.sender([f"{one},x" for one in theirs], key="mail")
            got = self.meet(peer, table=ours)
            assert peer.end()[0] == 0
            assert got["result"]["rows"] == [i for i, one in enumerate(ours) if one in theirs], got

    def test_several_keys(self):
        peer = self.sender(["a,1", "b,2", "c,3"], "--or", "city", key="mail")
        got = self.meet(peer, more={"csv": "m,c\nx,2\nb,9\ny,7\n"}, key="m", **{"or": ["c"]})
        assert peer.end()[0] == 0
        assert (got["result"]["rows"], got["result"]["rules"]) == ([0, 1], [2, 1]), got

    def test_both_sides(self):
        out = self.folder / "both.csv"
        peer = self.sender(["a,1", "b,2"], "--both", "--out", out, key="mail")
        got = self.meet(peer, table=["b", "z"], both=True)
        assert peer.end()[0] == 0
        assert got["result"]["rows"] == [0] and out.read_text() == "mail,city\nb,2\n"

    def test_count(self):
        for protocol in ["auto", "dh", "circuit"]:
            peer = self.sender([f"p{i}@x.org,1" for i in range(500)], "--result", "count", "--protocol", protocol)
            got = self.meet(peer, "count", more={"terms": True}, table=["P3@x.org", "q@x.org", "p499@x.org"],
                            key=":email", protocol=protocol)
            status, said = peer.end()
            assert status == 0, said
            assert got["result"]["count"] == 2 and "rows" not in got["result"], got
            assert got["terms"]["security"] == "semi-honest"
        peer = self.sender(["a@x.org,1"], "--result", "count", "--minimum", "5")
        got = self.meet(peer, "count", table=["a@x.org"], key=":email", minimum=5)
        assert peer.end()[0] == 0
        assert got["result"]["count"] is None and got["result"]["belowMinimum"], got

    def test_lookup(self):
        rows = ["a@x.org,Rome", "b@x.org,Oslo", 'c@x.org,"Sao, Paulo"']
        peer = self.sender(rows, "--value", "city", verb="lookup")
        got = self.meet(peer, "lookup", more={"csv": "email\nz@x.org\nC@x.org\na@x.org\n"}, key="email:email",
                        valueNames=["town"])
        status, said = peer.end()
        assert status == 0, said
        result = got["result"]
        assert result["rows"] == [1, 2], got
        assert result["values"] == [{"name": "town", "cells": ["Sao, Paulo", "Rome"]}], result["values"]

    def test_queries(self):
        table = self.table("served.csv", "mail", [f"p{i}@x.org" for i in range(3000)])
        folder = self.folder / "served"
        serve = ["serve", "--input", table, "--key", "mail:email", "--store", folder]
        peer = Peer(*serve)
        try:
            ask = dict(table=["p1@x.org", "q@x.org", "P2999@x.org"], key=":email")
            first = self.meet(peer, "query", more={"terms": True}, **ask)
            assert "error" not in first, first
            assert first["result"]["rows"] == [0, 2] and first["result"]["fetched"] is True, first
            assert any("the server learns" in line for line in first["terms"]["revealed"])
            again = self.meet(peer, "query", **ask)
            assert again["result"]["rows"] == [0, 2] and again["result"]["fetched"] is False, again
            anew = self.meet(peer, "query", refresh=True, **ask)
            assert anew["result"]["fetched"] is True
            apart = self.meet(peer, "query", keep=False, **ask)
            assert apart["result"]["fetched"] is True
        finally:
            peer.stop()

    def test_the_table_is_checked(self):
        bad = [
            ({"csv": "a,b\n1\n"}, {"key": "a"}, "data", "row 1"),
            ({"csv": "a\n1\n"}, {"key": "nope"}, "data", "nope"),
            ({"csv": "a\n1\n"}, {}, "usage", "key"),
            ({"csv": "a\nx\n"}, {"key": "a:email"}, "data", "row 1"),
            ({"csv": "a\n\"x"}, {"key": "a"}, "data", "quote"),
            ({"csv": "PAR1", "file": "t.parquet"}, {"key": "a"}, "data", "Parquet"),
            ({"csv": "", "file": "t.csv"}, {"key": "a"}, "data", "t.csv"),
            ({"csv": "a\n1\n"}, {"key": "a", "protocol": "best"}, "usage", "protocol"),
            ({"csv": "a\n1\n"}, {"key": "a", "unknown": 1}, "usage", "unknown"),
            ({"csv": "a\n1\n"}, {"key": "a", "protocol": "kkrt", "security": "malicious"}, "usage", "security"),
            ({}, {}, "usage", "table"),
            ({}, {"table": ["a", 1]}, "usage", "table"),
            ({"csv": "a\n1\n"}, {"key": "a", "url": "ftp://x/"}, "usage", "url"),
            ({"csv": "a\n1\n"}, {"key": "a", "timeout": 0}, "usage", "timeout"),
        ]
        for more, options, kind, word in bad:
            got = self.run("match", {"url": "ws://localhost:1/", **options}, **more)
            assert got.get("error", {}).get("kind") == kind and word in got["error"]["message"], (more, options, got)
            assert "--" not in got["error"]["message"] + got["error"].get("hint", "")

    def test_terms_are_asked_before_there_is_a_connection(self):
        before = len(self.server.offered)
        got = self.run("match", {"url": self.server.bridge("silent"), "table": ["a", "a", "b"]}, terms=False)
        assert got["error"]["kind"] == "cancelled", got
        assert got["terms"]["keys"] == [2] and got["terms"]["duplicates"] == 1
        assert len(self.server.offered) == before
        only = self.browser.value("volery.terms({table: ['a', 'b']})")
        assert only["keys"] == [2], only

    def test_different_settings(self):
        peer = self.sender(["a@x.org,1"])
        got = self.meet(peer, table=["a"])
        status, said = peer.end()
        assert got["error"]["kind"] == "settings" and "key columns" in got["error"]["message"], got
        assert status == 5, said

    def test_bad_peers(self):
        for path, kind, word in [("garbage", "peer", "volery"), ("text", "peer", "volery"),
                                 ("refuse", "peer", "the token is not known: ask"), ("absent", "network", "not there"), ("vanish", "network", "broke")]:
            got = self.run("match", {"url": self.server.bridge(path), "table": ["a", "b"], "token": "tök en"})
            assert got["error"]["kind"] == kind and word in got["error"]["message"], (path, got)
            assert self.server.offered[-1] == ["volery.1", "token.dMO2ayBlbg"], self.server.offered[-1]
        got = self.run("match", {"url": self.server.bridge("silent"), "table": ["a"], "timeout": 1})
        assert got["error"]["kind"] == "network" and "timed out" in got["error"]["message"], got
        self.expected_in_console = 1
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            here = f"localhost:{unused.getsockname()[1]}"
            got = self.run("match", {"url": f"ws://{here}/", "table": ["a"]})
        assert got["error"]["kind"] == "network" and here in got["error"]["message"], got

    def test_a_worker_that_computes_gives_signs_of_life(self):
        reason = self.browser.value("""(async () => {
          const { RING, WORDS } = await import("/package/stream.js");
          const memory = new SharedArrayBuffer(4 * WORDS + RING);
          const { port1, port2 } = new MessageChannel();
          const socket = new Worker("/package/socket.js", { type: "module" });
          const url = %s, protocols = ["volery.1"];
          return new Promise((resolve) => {
            socket.onmessage = ({ data }) => {
              // The module has sent something, and does not wait for bytes.
              if (data.open) port2.postMessage(new Uint8Array(12));
              else resolve(data.reason);
            };
            socket.postMessage({ url, protocols, memory, port: port1, patience: 60000 }, [port1]);
          });
        })()""" % json.dumps(self.server.bridge("beats")))
        assert reason == "01000000", reason

    def test_cancelling(self):
        for moment in ["agreeing on settings and sizes", "connecting", "reading keys"]:
            peer = self.sender([f"p{i}@x.org,1" for i in range(20000)])
            table = "mail\n" + "".join(f"p{i}@x.org\n" for i in range(5000))
            got = self.meet(peer, more={"csv": table, "abort": moment}, key="mail:email")
            assert got.get("error", {}).get("kind") == "cancelled", (moment, got)
            assert got["wall"] < 1000, got["wall"]
            if moment.startswith("agreeing"):
                status, said = peer.end()
                assert status == 4 and "closed the connection" in said and "panicked" not in said, said
            else:
                peer.stop()
        got = self.run("match", {"url": self.server.bridge("silent"), "table": ["a"]}, abort="now")
        assert got["error"]["kind"] == "cancelled", got

    def test_a_page_that_is_not_isolated_says_so(self):
        self.browser.open(f"{self.server.origin}/plain/page.html")
        got = self.run("match", {"url": self.server.bridge("silent"), "table": ["a"]})
        assert got["error"]["kind"] == "usage" and "cross-origin isolated" in got["error"]["message"], got

    def time(self):
        """10^4 rows against 10^6: seconds, by protocol."""
        theirs, ours = 10 ** 6, 10 ** 4
        self.table("sender.csv", "mail", (f"p{i}@x.org" for i in range(theirs)))
        table = self.table("ours.csv", "mail", (f"p{i * 150}@x.org" for i in range(ours)))
        self.server.folders["/data/"] = self.folder
        want = [i for i in range(ours) if i * 150 < theirs]
        for protocol, security in [("auto", "malicious"), ("vole", "malicious"), ("auto", "semi-honest")]:
            for _ in range(3):
                peer = Peer("psi", "--role", "sender", "--input", self.folder / "sender.csv", "--key", "mail:email",
                            "--protocol", protocol, "--security", security)
                got = self.meet(peer, more={"fetch": f"{self.server.origin}/data/{table.name}"}, key="mail:email",
                                protocol=protocol, security=security)
                assert peer.end()[0] == 0 and got["result"]["rows"] == want, got.get("error")
                result = got["result"]
                print(f"{protocol}, {security}: {result['report']['protocol']}, {result['seconds']:.2f} s from the "
                      f"connection, {got['wall'] / 1e3:.2f} s with reading, {result['bytes'] / 1e6:.1f} MB, "
                      f"the page ticked {got['ticks']} times")
        table_of = self.folder / "sender.csv"
        peer = Peer("serve", "--input", table_of, "--key", "mail:email", "--store", self.folder / "large")
        try:
            for _ in range(2):
                got = self.meet(peer, "query", more={"fetch": f"{self.server.origin}/data/{table.name}"},
                                key="mail:email")
                assert got["result"]["rows"] == want
                print(f"query: fetched {got['result']['fetched']}, {got['result']['seconds']:.2f} s, "
                      f"{got['result']['bytes'] / 1e6:.1f} MB")
        finally:
            peer.stop()


def main():
    wanted = sys.argv[3] if len(sys.argv) > 3 else "test_"
    failures = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        scratch = pathlib.Path(scratch)
        server = Server({"/package/": PACKAGE, "/tests/": HERE, "/plain/": HERE})
        browser = Browser(scratch / "profile")
        browser.follow_workers()
        files = [f"{server.origin}/package/{path.name}" for path in PACKAGE.iterdir()]
        for name in [name for name in dir(Tests) if wanted in name and (name == wanted or name.startswith("test_"))]:
            folder = scratch / name
            folder.mkdir()
            tests = Tests(browser, server, folder)
            tests.expected_in_console = 0
            began = time.monotonic()
            browser.open(tests.page)
            try:
                getattr(tests, name)()
            except Exception as error:  # noqa: BLE001
                failures.append(f"{name}: {type(error).__name__}: {error}")
            plain = f"{server.origin}/plain/page.html"
            data = f"{server.origin}/data/ours.csv"
            # The browser itself tells the console of a connection that fails.
            complaints = set(browser.complaints(tests.page, plain, data, *files))
            if len(complaints) > tests.expected_in_console:
                failures += [f"{name}: {what}" for what in complaints]
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        browser.close()
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
