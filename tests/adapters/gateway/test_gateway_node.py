"""The gateway by clients of another language: ``ws`` and ``wscat`` from npm."""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from messaging_core.gateway.access import token_as_subprotocol

pytestmark = [pytest.mark.server, pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js is not installed")]

CLIENT = """
const [url, count, ...protocols] = process.argv.slice(1)
const ws = new (require('ws'))(url, protocols, { headers: process.env.TOKEN ? { authorization: 'Bearer ' + process.env.TOKEN } : {} })
let left = +count
const say = value => console.log(JSON.stringify(value))
ws.on('open', () => say({ open: ws.protocol, deflate: ws.extensions }))
ws.on('unexpected-response', (request, answer) => { say({ refused: answer.statusCode }); request.destroy() })
ws.on('error', () => {})
ws.on('message', data => {
  const message = JSON.parse(data)
  say(message)
  if (message.type === 'text') ws.send(JSON.stringify({ type: 'ack', id: message.id }))
  if (!--left) ws.close(1000, 'enough')
})
ws.on('close', (code, reason) => say({ close: code, reason: String(reason) }))
if (process.env.SAY) ws.on('open', () => { for (const frame of JSON.parse(process.env.SAY)) ws.send(frame) })
if (process.env.BINARY) ws.on('open', () => ws.send(Buffer.from([0, 1])))
"""


@pytest.fixture(scope="module")
def modules():
    """``ws`` and ``wscat``, installed once for all runs."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-messaging-tests" / "node"
    if not (folder / "node_modules" / "ws").exists() or not (folder / "node_modules" / "wscat").exists():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "ws@8", "wscat@6"]
        subprocess.run(install, check=True, capture_output=True, timeout=120)
    return folder / "node_modules"


@pytest.fixture
def node(modules):
    """Start a ``ws`` client; its lines are read as they come."""
    running = []

    @contextmanager
    def begin(url, count=1, *protocols, **environment):
        process = subprocess.Popen(
            ["node", "-e", CLIENT, url, str(count), *protocols],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"NODE_PATH": str(modules)} | environment,
        )
        running.append(process)
        with process:
            yield process
            process.wait(20)

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()


def line(process):
    return json.loads(process.stdout.readline())


def address(gateway, path="/ws"):
    return gateway.url.replace("http", "ws") + path


def test_a_ws_client_gets_messages_acknowledges_and_closes(start, node):
    gateway = start()
    with node(address(gateway, "/ws/js"), 2) as client:
        assert line(client) == {"open": "", "deflate": ""}
        gateway.until(lambda status: status["connections"]["total"] == 1)
        gateway.send("/ws/js", "hé \U0001f600", id="1")
        gateway.broadcast("x" * 500_000, id="2")
        assert line(client)["content"] == "hé \U0001f600"
        assert len(line(client)["content"]) == 500_000
        assert line(client)["close"] == 1000
    counts = gateway.until(lambda status: status["connections"]["total"] == 0)["counts"]
    assert (counts["acknowledged"], counts["handed"]) == (2, 2)


def test_ws_clients_send_to_each_other(start, node):
    gateway = start()
    with node(address(gateway, "/ws/a")) as one:
        line(one)
        gateway.until(lambda status: status["connections"]["total"] == 1)
        with node(address(gateway, "/ws/b"), SAY='["{\\"content\\":\\"hi\\",\\"target\\":\\"/ws/a\\"}"]') as other:
            line(other)
            assert line(other)["message"] == "Handed to 1 client at /ws/a"
        assert line(one)["from"] == "/ws/b"


def test_a_ws_client_is_told_how_it_was_closed(start, node):
    gateway = start()
    with node(address(gateway), BINARY="1") as client:
        line(client)
        assert line(client) == {"close": 1003, "reason": "frames are text: JSON in UTF-8"}


def test_a_ws_client_comes_in_with_the_token_alone(start, node):
    gateway = start(token="s3cret")
    with node(address(gateway)) as stranger:
        assert line(stranger) == {"refused": 401}
    for arguments, environment, chosen in (
        ((), {"TOKEN": "s3cret"}, ""),
        (("messaging", token_as_subprotocol("s3cret")), {}, "messaging"),
    ):
        with node(address(gateway), 1, *arguments, SAY='["{}"]', **environment) as client:
            assert line(client)["open"] == chosen
            assert line(client)["code"] == "invalid"


def test_a_killed_node_process_is_gone(start, node):
    gateway = start()
    with node(address(gateway, "/ws/js")) as client:
        line(client)
        gateway.until(lambda status: status["connections"]["total"] == 1)
        client.kill()
    assert gateway.until(lambda status: status["connections"]["total"] == 0)["connections"]["total"] == 0


def test_wscat_as_the_documentation_shows_it(start, modules):
    gateway = start(token="s3cret")
    wscat = subprocess.Popen(
        [modules / ".bin" / "wscat", "-c", address(gateway, "/ws/cat"), "-H", "Authorization: Bearer s3cret"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        bearer = {"Authorization": "Bearer s3cret"}
        for _ in range(400):
            if gateway.request("GET", "/api/status", headers=bearer)[2]["connections"]["total"]:
                break
        gateway.request("POST", "/api/send", {"content": "meow", "target": "/ws/cat"}, bearer)
        while "meow" not in (shown := wscat.stdout.readline()):
            assert shown, "wscat ended"
    finally:
        wscat.kill()
        wscat.communicate()
