"""A process that is killed in the middle of a send leaves word of what may have gone out, and of nothing else."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from messaging_core.audit import read, unfinished

PROGRAM = """
import json, sys
from messaging_adapters.messenger import Messenger
from messaging_core.message import Message
messenger = Messenger.from_config(json.loads(sys.argv[1]))
for text in ("first", "second", "third"):
    print(messenger.send(Message(text=text, channel="hook")).status.value, flush=True)
"""
ROOT = Path(__file__).parents[2]


def answering(listener: socket.socket, answers: int, held: threading.Event) -> None:
    """Answer so many requests with 204; the next one is read and never answered."""
    for number in range(answers + 1):
        connection, _ = listener.accept()
        request = b""
        while not request.endswith(b"}"):
            request += connection.recv(65536)
        if number == answers:
            held.set()
            connection.recv(1)  # until the process is gone
        else:
            connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        connection.close()


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_the_log_names_the_send_that_was_under_way_and_no_other(tmp_path: Path, answers: int) -> None:
    listener, held = socket.create_server(("127.0.0.1", 0)), threading.Event()
    threading.Thread(target=answering, args=(listener, answers, held), daemon=True).start()
    log = tmp_path / "audit.jsonl"
    config = {
        "channels": {"hook": {"type": "webhook", "url": f"http://127.0.0.1:{listener.getsockname()[1]}/in"}},
        "security": {"audit": {"file": {"path": str(log)}}},
    }
    environ = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'adapters'}"}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(config)], env=environ, stdout=subprocess.PIPE)
    assert held.wait(30)
    process.send_signal(signal.SIGKILL)
    said, _ = process.communicate(timeout=10)
    listener.close()
    records = read(log.read_text().splitlines()).records
    assert said.split() == [b"delivered"] * answers
    assert [record.status for record in records] == ["delivered"] * answers + ["unfinished"]
    assert [(one.event.channel, one.event.kind) for one in unfinished(records)] == [("hook", "text")]
    assert "first" not in log.read_text()
