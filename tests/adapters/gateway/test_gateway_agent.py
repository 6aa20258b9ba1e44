"""The tool from an agent's call to a client of a real gateway, which runs as a process of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from messaging_adapters.messenger import Messenger
from messaging_core.outcome import Status
from tests.adapters.loopback import nowhere

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A gateway with a channel behind it."""
    with running(tmp_path, {"channels": {"console": {"type": "cli", "stream": "stderr"}}}) as port:
        yield port


@contextmanager
def running(tmp_path: Path, channels: dict[str, Any]) -> Iterator[int]:
    port = int(nowhere().rpartition(":")[2])
    (tmp_path / "gateway.yaml").write_text(json.dumps({"gateway": {"port": port}} | channels))
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    process = subprocess.Popen(
        [sys.executable, "-m", "messaging_adapters.cli", "gateway", "--config", "gateway.yaml"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert re.search(r"gateway on http://127\.0\.0\.1:\d+", process.stderr.readline())
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        process.stderr.close()


def tool(port: int, verdict: str = "allow") -> Messenger:
    return Messenger.from_config(
        {"gateway": {"port": port}, "max_attempts": 2, "security": {"tool_policy": {"tools": {"gateway": verdict}}}}
    )


def call(to: Messenger, action: str, **payload: Any) -> Any:
    return to.call_tool("gateway", {"action": action, **({"payload": payload} if payload else {})})


def test_a_message_reaches_the_clients_and_the_result_says_how_many(port: int) -> None:
    to = tool(port)
    target = f"ws://localhost:{port}/ws"
    nobody = call(to, "send", type="text", content="hi", target=target)
    assert (nobody.outcome.status, nobody.message) == (
        Status.FAILED,
        "Failed to send to gateway: Nobody is connected at /ws",
    )
    with connect(f"ws://127.0.0.1:{port}/ws") as client:
        sent = call(to, "send", type="text", content="hi", target=target)
        assert sent.ok and "1" in sent.message
        frame = json.loads(client.recv(5))
        assert frame["content"] == "hi" and frame["id"]
        assert call(to, "broadcast", type="text", content="all").ok
        assert json.loads(client.recv(5))["content"] == "all"


def test_a_channel_named_as_target_is_sent_through(port: int) -> None:
    result = call(tool(port), "send", type="text", content="through", target="console")
    assert (result.ok, result.message) == (True, "Message sent to console (the terminal)")


def test_the_status_is_a_sentence_for_the_model_and_a_document_for_programs(port: int) -> None:
    result = call(tool(port, "supervised"), "status")
    assert result.ok and "0 clients connected" in result.message
    assert result.details["gateway"]["channels"] == ["console"]
    assert ", channels: console" in result.message


def test_the_terminal_that_a_gateway_sends_to_unasked_is_among_its_channels(tmp_path: Path) -> None:
    with running(tmp_path, {}) as port:
        assert call(tool(port), "status").details["gateway"]["channels"] == ["cli"]
        assert call(tool(port), "send", type="text", content="through", target="cli").ok
    with running(tmp_path, {"channels_config": {"cli": False}}) as port:
        assert call(tool(port), "status").details["gateway"]["channels"] == []


def test_the_environments_proxy_is_not_for_the_gateway_of_this_machine(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", nowhere())
    assert call(tool(port), "status").ok


def test_each_send_waits_for_a_persons_yes_unless_the_settings_say_otherwise(port: int) -> None:
    to = Messenger.from_config({"gateway": {"port": port}})
    with connect(f"ws://127.0.0.1:{port}/ws") as client:
        asked = call(to, "send", type="text", content="hi", target="/ws")
        assert asked.outcome.status is Status.REFUSED
        proposal = asked.outcome.error.proposal
        assert to.approve(proposal).ok
        assert json.loads(client.recv(5))["content"] == "hi"
        assert not to.approve(proposal).ok


def test_a_try_that_may_have_arrived_is_not_undone_by_one_that_did_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]

        def take_one_and_be_gone() -> None:
            connection, _ = door.accept()
            with connection:
                assert connection.recv(10_000)
                door.close()

        dying = threading.Thread(target=take_one_and_be_gone)
        dying.start()
        result = call(tool(port), "send", type="text", content="hi", target="/ws")
        dying.join(10)
    assert result.outcome.status is Status.UNCONFIRMED
    assert "could not connect" not in result.message and "it may have arrived" in result.message


def test_no_other_host_can_be_named(port: int) -> None:
    for target in (
        "ws://evil.test/ws",
        f"http://127.0.0.1.evil.test:{port}/api/send",
        f"ws://127.0.0.1:{port}@evil.test/",
    ):
        assert call(tool(port), "send", type="text", content="x", target=target).outcome.status is Status.REFUSED
