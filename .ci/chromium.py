"""A headless Chromium, driven through a pair of pipes, with Python's standard library."""

import base64
import json
import os
import shutil
import subprocess
import sys

# Names of elements whose text has less contrast with what lies behind it than the standard asks.
CONTRAST = """(() => {
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.body.querySelectorAll('*')) {
    if (element.closest('svg') || ![...element.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${element.tagName} ${ratio.toFixed(2)} ${element.textContent.slice(0, 40)}`);
  }
  return poor;
})()"""


class Browser:
    """A headless browser, spoken to through a pair of pipes."""

    def __init__(self, profile):
        program = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
        if program is None:
            sys.exit("error: chromium is not installed\nhint: on Debian, apt-get install chromium")
        self.events = []
        self.last = 0
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # The browser reads from its descriptor 3 and writes to 4.
        script = 'exec "$@" 3<&%d 4>&%d' % (to_browser, from_browser)
        flags = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--no-first-run", "--disable-background-networking", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(["bash", "-c", script, "bash", program, *flags, "about:blank"],
                                        pass_fds=[to_browser, from_browser], stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Network", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def follow_workers(self):
        """Sees requests and messages of the workers of pages, too."""
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.into, 1 << 16)
            if not data:
                sys.exit("error: the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Target.attachedToTarget" and message["params"]["waitingForDebugger"]:
            for method in ["Network.enable", "Runtime.enable", "Log.enable", "Runtime.runIfWaitingForDebugger"]:
                self.send(method, {}, message["params"]["sessionId"])
        return message

    def send(self, method, params, session):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        return self.last

    def call(self, method, **params):
        sent = self.send(method, params, self.session)
        while True:
            answer = self.receive()
            if answer.get("id") == sent:
                if "error" in answer:
                    sys.exit(f"error: {method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, address):
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())

    def value(self, expression):
        """The value of an expression; of a promise, what it becomes."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            sys.exit(f"error: {answer['exceptionDetails']['exception'].get('description', answer)}")
        return answer["result"].get("value")

    def show(self, width, scheme, media="screen"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                  mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self, *allowed):
        """What happened that should not: requests, except for these addresses, and messages in the console."""
        for event in self.events:
            params = event.get("params", {})
            method = event.get("method")
            if method == "Network.requestWillBeSent" and params["request"]["url"] not in (*allowed, "data:,"):
                yield f"a request: {params['request']['url']}"
            if method == "Runtime.consoleAPICalled" or method == "Runtime.exceptionThrown":
                yield f"a message of a script: {params}"
            if method == "Log.entryAdded":
                yield f"console: {params['entry']['text']}"

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait()
