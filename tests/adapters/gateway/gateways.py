"""Gateways to talk to: one in a thread of the tests, and one in a process of its own, to be killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from websockets.sync.client import connect

from messaging_adapters.gateway.server import listening

ROOT = Path(__file__).parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")])}


class Gateway:
    """A running gateway, by its address; ``hub`` only to look at."""

    def __init__(self, port, hub=None, loop=None):
        self.port, self.hub, self.loop = port, hub, loop

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def request(self, method, path, body=None, headers=None, raw=None):
        """Status, headers and body (JSON where it is) of one request by the standard library's client."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            content = raw if raw is not None else None if body is None else json.dumps(body).encode()
            own = {"Content-Type": "application/json"} if content is not None else {}
            connection.request(method, path, content, own | (headers or {}))
            reply = connection.getresponse()
            text = reply.read()
            kind = reply.headers.get("Content-Type", "")
            return reply.status, reply.headers, json.loads(text) if kind.startswith("application/json") else text
        finally:
            connection.close()

    def post(self, path, body, **headers):
        status, _, document = self.request("POST", path, body, headers)
        return status, document

    def send(self, target, content="hi", **members):
        return self.post("/api/send", {"content": content, "target": target, **members})

    def broadcast(self, content="hi", **members):
        return self.post("/api/broadcast", {"content": content, **members})

    def status(self, **headers):
        return self.request("GET", "/api/status", headers=headers)[2]

    def client(self, path="/ws", **options):
        """Somebody else's WebSocket client, as a context manager."""
        return connect(f"ws://127.0.0.1:{self.port}{path}", open_timeout=20, close_timeout=5, **options)

    def until(self, condition, seconds=10.0):
        """Wait until the status document is as wanted; the last one."""
        end = time.monotonic() + seconds
        while True:
            status = self.status()
            if condition(status) or time.monotonic() > end:
                return status
            time.sleep(0.02)


def text_of(frame):
    return json.loads(frame)["content"]


@contextmanager
def threaded(**options):
    """A gateway in a thread, on a port of its own."""
    loop, started, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found = []

    async def run():
        async with listening("127.0.0.1", 0, **options) as (port, hub):
            found.append(Gateway(port, hub, loop))
            started.set()
            await stop.wait()

    def main():
        try:
            loop.run_until_complete(run())
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    thread = threading.Thread(target=main)
    thread.start()
    assert started.wait(20)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive()


class Process:
    """A gateway in a process of its own, started by the function that the command starts."""

    def __init__(self, *arguments):
        self.popen = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("process.py")), *map(str, arguments)],
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        self.lines = []

    def ready(self):
        line = self.popen.stderr.readline()
        self.lines.append(line)
        assert "gateway on http://" in line, line
        return Gateway(int(line.split(",")[0].rpartition(":")[2]))

    def signal(self, number=signal.SIGTERM):
        self.popen.send_signal(number)

    def ended(self, seconds=20):
        """Exit status and what it said."""
        _, rest = self.popen.communicate(timeout=seconds)
        return self.popen.returncode, "".join(self.lines) + rest
