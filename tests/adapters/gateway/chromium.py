"""A headless Chromium, driven over its DevTools protocol (https://chromedevtools.github.io/devtools-protocol/)."""

import itertools
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager

from websockets.sync.client import connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-proxy-server",
    "--remote-debugging-port=0",
)


class Page:
    """One tab."""

    def __init__(self, socket):
        self._socket, self._numbers = socket, itertools.count(1)

    def command(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=30))
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, url):
        """Go there, and wait until what was shown before is gone and the new document is whole."""
        self.run("window.before = true")
        self.command("Page.navigate", url=url)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if self.run("!window.before && document.readyState === 'complete'"):
                    return
            except AssertionError:  # between two documents
                pass
            time.sleep(0.02)
        raise AssertionError(f"{url} did not load")

    def run(self, script):
        """The value of an expression; of a promise, what it brings."""
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, script, seconds=15):
        """Wait until the expression is true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)


@contextmanager
def chromium(folder):
    """A fresh browser with its data in ``folder``; gives a function that opens a tab."""
    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    sockets = []
    try:
        port = _port(folder / "DevToolsActivePort", process)

        def tab():
            request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
            with urllib.request.urlopen(request, timeout=20) as answer:
                url = json.load(answer)["webSocketDebuggerUrl"]
            sockets.append(connect(url, max_size=None, proxy=None))
            return Page(sockets[-1].__enter__())

        yield tab
    finally:
        for socket in sockets:
            socket.__exit__(None, None, None)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _port(file, process):
    end = time.monotonic() + 40
    while time.monotonic() < end and process.poll() is None:
        lines = file.read_text().splitlines() if file.exists() else []
        if lines:
            return int(lines[0])
        time.sleep(0.1)
    raise AssertionError("Chromium did not start")
