#!/usr/bin/env python3
"""The page of examples/web in a headless Chromium, against native peers behind the bridge of the program.

Compares rows with a plain join, and looks at each state of the page at 1280, 390 and 360 pixels, light and dark: width,
contrast (WCAG 2.2, AA), names of controls, focus, messages in the console, requests. Needs Python 3.9, chromium, the
page with its package, and the program.

    web/tests/example.py PAGE VOLERY SHOTS [NAME]    screenshots go to SHOTS; NAME: tests whose name has it
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / ".ci"))

from chromium import CONTRAST, Browser  # noqa: E402

PAGE, VOLERY, SHOTS = (pathlib.Path(one).resolve() for one in sys.argv[1:4])

# Seconds for what takes a moment, on a machine that does other things.
LONG = 180

# Controls that a screen reader could not name, and headings out of order.
NAMES = """[
  ...[...document.querySelectorAll('input, select, progress')].filter(one => !one.labels?.length
    && !one.getAttribute('aria-labelledby')).map(one => `${one.id} has no label`),
  ...[...document.querySelectorAll('button, a')].filter(one => !one.innerText.trim()
    && one.offsetParent).map(one => `${one.id} has no text`),
  ...[...document.querySelectorAll('[tabindex="0"]')].filter(one => !one.getAttribute('aria-label'))
    .map(one => `${one.id} has no name`),
]"""


class Program:
    """A running volery, with the ports that it tells."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([VOLERY, *map(str, arguments)], text=True, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE)
        self.said = []

    def port(self, before):
        for line in self.process.stderr:
            self.said.append(line)
            if before in line:
                return int(line.strip().rsplit(":", 1)[1])
        raise AssertionError(f"it ended: {self.said}")

    def end(self):
        said = self.process.stderr.read()
        return self.process.wait(LONG), "".join(self.said) + said

    def stop(self):
        self.process.terminate()
        return self.end()


class Tests:
    def __init__(self, browser, folder):
        self.browser, self.folder = browser, folder
        self.failures = []
        self.address = None

    # ------------------------------------------------------------------------------- the page

    def open(self, port, link=""):
        self.address = f"http://127.0.0.1:{port}"
        self.browser.open("about:blank")
        self.browser.open(f"{self.address}/{link}")

    def table(self, name, header, rows):
        path = self.folder / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    def behind_a_bridge(self, table, *options, verb="psi", gateway=()):
        """A sender with this table, the bridge in front of it, and the port of the bridge."""
        sender = Program(verb, "--role", "sender", "--listen", "127.0.0.1:0", "--wait", "10m", "--input", table,
                         "--key", "mail:email", *options)
        to = f"127.0.0.1:{sender.port('listening on')}"
        bridge = Program("gateway", "--web", "127.0.0.1:0", "--to", to, "--web-files", PAGE, *gateway)
        return sender, bridge, bridge.port("browsers connect")

    def choose(self, path):
        node = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.call("DOM.querySelector", nodeId=node, selector="#file")["nodeId"]
        self.browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def wait(self, *panels):
        """Until one of these panels is shown: its name."""
        shown = f"{list(panels)}.find(id => !document.getElementById(id).hidden) ?? ''"
        began = time.monotonic()
        while time.monotonic() - began < LONG:
            found = self.browser.value(shown)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"none of {panels}: {self.text()}")

    def wait_for_words(self, words):
        """Until a screen reader is told this. The browser starts its workers only while it is asked something."""
        began = time.monotonic()
        while self.browser.value("document.getElementById('status').textContent") != words:
            assert time.monotonic() - began < LONG, self.text()
            time.sleep(0.02)

    def text(self):
        return self.browser.value("document.querySelector('main').innerText")

    def click(self, name):
        self.browser.value(f"document.getElementById('{name}').click()")

    def fill(self, **values):
        for name, value in values.items():
            self.browser.value(f"(one => {{ one.value = {value!r}; one.dispatchEvent(new Event('change')) }})"
                               f"(document.getElementById('{name}'))")

    def look(self, name):
        """At the page as it is: all widths, light and dark."""
        focus = self.browser.value("document.activeElement.id")
        for width in (1280, 390, 360):
            for scheme in ("light", "dark"):
                self.browser.show(width, scheme)
                here = f"{name}, {width} px, {scheme}"
                self.browser.screenshot(SHOTS / f"{name}-{width}-{scheme}.png")
                scroll, client = self.browser.value("[document.documentElement.scrollWidth, innerWidth]")
                if scroll > min(client, width):
                    self.failures.append(f"{here}: {scroll} pixels wide")
                self.failures += [f"{here}: too little contrast: {what}" for what in self.browser.value(CONTRAST)]
        self.failures += [f"{name}: {what}" for what in self.browser.value(NAMES)]
        self.browser.show(1280, "light")
        return focus

    def complaints(self):
        """Messages, and requests for anything that is not of the page."""
        for what in self.browser.complaints():
            own = any(what.startswith(f"a request: {start}") for start in (self.address, f"blob:{self.address}"))
            if not own and what != "a request: about:blank":
                yield what

    # ------------------------------------------------------------------------------ the tests

    def test_a_large_table(self):
        draw = random.Random(7)
        ours = [f"{i},U{draw.randrange(300000)}@Example.org,\"city {i % 9}, \"\"x\"\"\"" for i in range(100000)]
        theirs = [f"u{draw.randrange(300000)}@example.org,{i}" for i in range(100000)]
        common = {row.split(",")[0] for row in theirs}
        want = [row for row in ours if row.split(",")[1].lower() in common]
        mine = self.table("customers.csv", "id,e-mail,city", ours)
        sender, gateway, port = self.behind_a_bridge(self.table("theirs.csv", "mail,n", theirs))
        self.open(port)
        self.look("1-empty")
        self.choose(mine)
        self.wait("peer-part")
        self.look("2-table")
        assert self.browser.value("document.getElementById('column').selectedOptions[0].text") == "e-mail"
        assert self.browser.value("document.getElementById('clean').value") == "email"
        self.click("start")
        assert self.wait("terms", "failed") == "terms", self.text()
        # Nothing was sent yet.
        assert sender.process.poll() is None
        focus = self.look("3-terms")
        shown = self.text()
        assert focus == "terms-title", focus
        assert "100,000 rows" in shown and "learns" in shown, shown
        self.click("agree")
        self.wait("work", "result")
        self.look("4-work")
        assert self.wait("result", "failed") == "result", self.text()
        focus = self.look("5-result")
        assert focus == "result-title", focus
        shown = self.text()
        assert f"{len(want):,} rows matched" in shown, shown
        assert self.browser.value("document.querySelectorAll('#rows tbody tr').length") == 10
        assert self.browser.value("document.getElementById('report').href.startsWith('blob:')")
        self.browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder))
        self.click("download")
        got = self.folder / "matched-customers.csv"
        began = time.monotonic()
        while not got.exists() and time.monotonic() - began < LONG:
            time.sleep(0.05)
        assert got.read_text() == "\n".join(["id,e-mail,city", *want]) + "\n"
        status, said = sender.end()
        assert status == 0, said
        # The other party has ended: the page says so, and what to do.
        self.click("start")
        assert self.wait("terms") == "terms"
        self.click("agree")
        self.wait("failed")
        focus = self.look("6-failed")
        assert focus == "failed-title", focus
        assert "not there" in self.text(), self.text()
        assert self.browser.value("document.getElementById('failed').getAttribute('role')") == "alert"
        yield from self.complaints()
        assert gateway.stop()[0] == 0

    def test_cancel(self):
        mine = self.table("small.csv", "mail", [f"u{i}@x.org" for i in range(20000)])
        sender, gateway, port = self.behind_a_bridge(mine)
        self.open(port)
        self.choose(mine)
        self.wait("peer-part")
        self.click("start")
        self.wait("terms")
        self.click("refuse")
        self.wait_for_words("Cancelled.")
        assert self.browser.value("document.activeElement.id") == "start"
        assert sender.process.poll() is None, "the sender must not have seen anything"
        # While it works: the other party finds the connection closed. Before both have spoken it
        # would take the page for a stranger, and go on waiting.
        self.click("start")
        self.wait("terms")
        self.browser.value("""(() => {
          document.getElementById('agree').click();
          const phase = document.getElementById('phase');
          new MutationObserver(() => !/^(Working|Connecting|Agreeing|Reading|Sorting)/.test(phase.textContent)
            && document.getElementById('cancel').click()).observe(phase, {childList: true});
        })()""")
        self.wait_for_words("Cancelled.")
        status, said = sender.end()
        assert status == 4 and "closed the connection" in said, (status, said)
        hidden = "['terms', 'work', 'failed', 'result'].every(id => document.getElementById(id).hidden)"
        assert self.browser.value(hidden), self.text()
        yield from self.complaints()
        gateway.stop()

    def test_errors_in_plain_words(self):
        theirs = self.table("theirs.csv", "mail,city", [f"u{i}@x.org,Rome" for i in range(50)])
        token = self.folder / "token"
        made = subprocess.run([VOLERY, "keygen", "--token", "--out", token], text=True, capture_output=True,
                              check=True)
        sender, gateway, port = self.behind_a_bridge(theirs, "--value", "city", verb="lookup",
                                                     gateway=["--token", made.stdout.strip()])
        self.open(port)
        self.choose(self.table("none.csv", "", []))
        self.wait("failed")
        assert "empty" in self.text(), self.text()
        self.choose(self.table("bad.csv", "mail,city", ["u1@x.org,Oslo", "u2@x.org"]))
        self.wait("peer-part")
        self.click("start")
        self.wait("failed")
        assert "cannot be used" in self.text() and "row 2" in self.text(), self.text()
        # Keys that cannot be read take no part, and the user is told.
        self.choose(self.table("own.tsv", "name\tmail", ["a\tU3@x.org", "b\tnone", "c\t", "d\tU99@x.org"]))
        self.wait("peer-part")
        self.fill(column="1", clean="email")
        self.click("start")
        self.wait("terms")
        assert "1 row without a key and 1 row with a key that cannot be read" in self.text(), self.text()
        self.click("agree")
        self.wait("failed")
        assert "access token" in self.text(), self.text()
        yield from self.complaints()
        # The link that the other party gives: the token does not stay in it.
        self.open(port, f"#call=lookup&key=:email&token={token.read_text().strip()}")
        assert "token" not in self.browser.value("location.href")
        self.choose(self.folder / "own.tsv")
        self.wait("peer-part")
        self.fill(column="1")
        self.click("start")
        self.wait("terms")
        self.click("agree")
        assert self.wait("result", "failed") == "result", self.text()
        assert "1 row matched" in self.text() and "Rome" in self.text(), self.text()
        assert sender.end()[0] == 0
        yield from self.complaints()
        gateway.stop()

    def test_only_a_number(self):
        theirs = self.table("theirs.csv", "mail", [f"u{i}@x.org" for i in range(500)])
        sender, gateway, port = self.behind_a_bridge(theirs, "--result", "count")
        self.open(port, "#call=count&key=:email")
        self.choose(self.table("own.csv", "mail", [f"U{i}@x.org" for i in range(450, 600)]))
        self.wait("peer-part")
        self.click("start")
        self.wait("terms")
        assert "how many" in self.text(), self.text()
        self.click("agree")
        assert self.wait("result", "failed") == "result", self.text()
        self.look("7-count")
        assert "50 keys in common" in self.text(), self.text()
        hidden = "['rows', 'download'].every(id => document.getElementById(id).hidden)"
        assert self.browser.value(hidden), self.text()
        assert sender.end()[0] == 0
        yield from self.complaints()
        gateway.stop()

    def test_a_server(self):
        theirs = self.table("theirs.csv", "mail", [f"u{i}@x.org" for i in range(500)])

        def serve(address, *options):
            return Program("serve", "--web", address, "--web-files", PAGE, "--store", self.folder / "store",
                           "--input", theirs, "--key", "mail:email", *options)

        def ask(wanted):
            # What looks like the end of a field or a row, and is none.
            rows = [f"u{500 - wanted + i}@x.org,{i}\" pipe\r" for i in range(40)]
            self.choose(self.table(f"ask-{wanted}.csv", "mail,size", rows))
            self.wait("peer-part")
            self.click("start")
            self.wait("terms")
            assert "server" in self.text(), self.text()
            self.click("agree")
            return self.wait("result", "failed")

        server = serve("127.0.0.1:0")
        port = server.port("browsers connect")
        self.open(port, "#call=query&key=:email")
        for wanted in (10, 20):
            assert ask(wanted) == "result", self.text()
            assert f"{wanted} rows matched" in self.text() and '9" pipe' in self.text(), self.text()
            self.click("anew")
        status, said = server.stop()
        assert status == 0 and "keys: 80" in said, said
        # With a new key the page asks before it fetches the filter again.
        server = serve(f"127.0.0.1:{port}", "--rotate")
        server.port("browsers connect")
        assert ask(15) == "failed", self.text()
        assert "new one" in self.text(), self.text()
        self.click("refresh")
        self.wait("terms")
        self.click("agree")
        assert self.wait("result", "failed") == "result", self.text()
        assert "15 rows matched" in self.text(), self.text()
        yield from self.complaints()
        assert server.stop()[0] == 0


def main():
    SHOTS.mkdir(parents=True, exist_ok=True)
    failures = []
    names = [name for name in dir(Tests) if name.startswith("test_") and "".join(sys.argv[4:]) in name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        browser = Browser(pathlib.Path(place) / "profile")
        browser.follow_workers()
        browser.show(1280, "light")
        for name in names:
            folder = pathlib.Path(place) / name
            folder.mkdir()
            tests = Tests(browser, folder)
            try:
                tests.failures += getattr(tests, name)()
            except AssertionError as error:
                tests.failures.append(f"failed: {error}")
            failures += [f"{name}: {what}" for what in tests.failures]
            print(f"{name}: {'ok' if not tests.failures else 'FAILED'}", flush=True)
        browser.close()
    print(f"screenshots in {SHOTS}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
