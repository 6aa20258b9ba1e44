"""Processes that are killed in the middle of a send, and processes that send beside each other.

A killed one leaves a record from which one can tell what may have gone out: each ``begin`` without an ``end``, and
nothing else. Processes of one user on one machine keep a channel's ``rate_limit`` together.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from messaging_core import audit
from tests.adapters.loopback import Item, Loopback, Request, hang, reply

ROOT = Path(__file__).resolve().parent.parent.parent

SENDER = """
import json, sys, threading
from dataclasses import replace
from messaging_adapters.messenger import Messenger
from messaging_core.channels import CHANNELS
from messaging_core.message import Message

config, chats, texts = json.loads(sys.argv[1])
unhurried = {name: replace(CHANNELS[name], pace=()) for name in CHANNELS}
messenger = Messenger.from_config(config, registry=unhurried)

def send(chat):
    for text in texts:
        outcome = messenger.send(Message(text=text, recipient=chat))
        with one_line_at_a_time:
            print(json.dumps([chat, text[:20], outcome.status.value, outcome.message]), flush=True)

one_line_at_a_time = threading.Lock()
print("ready", flush=True)
threads = [threading.Thread(target=send, args=(chat,)) for chat in chats]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def config(url: str, home: Path, **more: Any) -> dict[str, Any]:
    channel = {
        "type": "telegram",
        "bot_token": "111111:FAKE-token-of-a-bot",
        "api_base": url,
        "chat_id": "42",
        **more.pop("channel", {}),
    }
    return {
        "channels": {"t": channel},
        "security": {"audit": {"file": {"path": str(home / "audit.jsonl")}}},
        "http": {"connect_timeout": 5, "read_timeout": 20},
        **more,
    }


def start(settings: dict[str, Any], chats: list[str], texts: list[str], home: Path) -> "subprocess.Popen[str]":
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    return subprocess.Popen(
        [sys.executable, "-c", SENDER, json.dumps([settings, chats, texts])],
        env={**os.environ, "PYTHONPATH": paths, "XDG_STATE_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def sending(
    settings: dict[str, Any], chats: list[str], texts: list[str], home: Path
) -> Iterator["subprocess.Popen[str]"]:
    process = start(settings, chats, texts, home)
    try:
        yield process
    finally:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    if process.stdout:
        process.stdout.close()


def trail(home: Path) -> tuple[audit.Record, ...]:
    with (home / "audit.jsonl").open() as lines:
        return audit.read(lines, audit.Filters()).records


def until(true: Any, within: float = 15.0) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def placed(number: int) -> Item:
    return reply(json={"ok": True, "result": {"message_id": number}})


# --- Killed at a known point ------------------------------------------------------------------------------------------


def test_killed_before_a_byte_left_it_is_unfinished(tmp_path: Path) -> None:
    """Held back by the channel's own pace: the record was begun, so the log does not say that it is certain."""
    with Loopback(default=placed(1)) as server:
        settings = config(server.url, tmp_path, channel={"rate_limit": "1/hour"}, message_timeout_secs=7200)
        with sending(settings, ["42"], ["first", "second"], tmp_path):
            until(lambda: len(server.requests) == 1 and len(trail(tmp_path)) == 2)
        assert [record.status for record in trail(tmp_path)] == ["delivered", audit.UNFINISHED]
        assert len(server.requests) == 1


def test_killed_before_the_plan_was_made_there_is_no_record_and_nothing_left(tmp_path: Path) -> None:
    with Loopback(default=placed(1)) as server:
        with sending(config(server.url, tmp_path), ["not a chat"], ["x"], tmp_path) as process:
            process.wait(15)
        assert [record.status for record in trail(tmp_path)] == ["refused"]
        assert server.requests == []


def test_killed_after_the_request_was_read_it_is_unfinished(tmp_path: Path) -> None:
    with Loopback(hang()) as server:
        with sending(config(server.url, tmp_path), ["42"], ["x"], tmp_path):
            server.wait_for(1, within=15)
        (record,) = trail(tmp_path)
        assert (record.status, record.event.recipient, record.event.parts) == (audit.UNFINISHED, "42", 1)
        assert record.ended is None and record.began is not None


def test_killed_between_two_parts_it_is_unfinished_and_says_how_many_there_were(tmp_path: Path) -> None:
    with Loopback(placed(1), placed(2), hang()) as server:
        with sending(config(server.url, tmp_path), ["42"], ["line of text\n" * 1200], tmp_path):
            server.wait_for(3, within=15)
        (record,) = trail(tmp_path)
        assert (record.status, record.event.parts) == (audit.UNFINISHED, 4)


def test_killed_after_the_result_the_record_is_whole(tmp_path: Path) -> None:
    with Loopback(default=placed(7)) as server:
        with sending(config(server.url, tmp_path), ["42"], ["x"], tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert json.loads(process.stdout.readline())[2] == "delivered"
        (record,) = trail(tmp_path)
        assert (record.status, record.ids) == ("delivered", ("7",))
        assert len(server.requests) == 1


def test_the_command_shows_what_is_unfinished(tmp_path: Path) -> None:
    with Loopback(hang()) as server:
        settings = config(server.url, tmp_path)
        with sending(settings, ["42"], ["x"], tmp_path):
            server.wait_for(1, within=15)
    (tmp_path / "messaging.json.yaml").write_text(json.dumps(settings))
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    words = [
        sys.executable,
        "-m",
        "messaging_adapters.cli",
        "audit",
        "--status",
        "unfinished",
        "--config",
        str(tmp_path / "messaging.json.yaml"),
    ]
    shown = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert "unfinished" in shown and "42" in shown


# --- Killed at any point ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_anywhere_the_records_and_what_went_out_agree(tmp_path: Path) -> None:
    """Each request that the server saw has its record; each ``delivered`` was seen; what is unfinished may be either."""
    chance = random.Random(7)
    with Loopback(respond=lambda request: placed(1).later(0.003)) as server:
        for round in range(8):
            chats = [str(1000 * (1 + round) + thread) for thread in range(4)]
            process = start(config(server.url, tmp_path), chats, [f"text {number}" for number in range(500)], tmp_path)
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 0.4))
            kill(process)
        time.sleep(0.1)
        seen = Counter(str(request.json()["chat_id"]) for request in server.requests if request.complete)
        begun = [request for request in server.requests if not request.complete]
    records = trail(tmp_path)
    delivered = Counter(record.event.recipient for record in records if record.status == "delivered")
    unfinished = Counter(record.event.recipient for record in records if record.status == audit.UNFINISHED)
    assert sum(delivered.values()) > 20, "the processes lived long enough to send"
    assert {record.status for record in records} <= {"delivered", audit.UNFINISHED}
    assert len(begun) <= sum(unfinished.values())
    for chat in seen | delivered:
        assert delivered[chat] <= seen[chat] <= delivered[chat] + unfinished[chat], chat
    raw = (tmp_path / "audit.jsonl").read_bytes()
    torn = [line for line in raw.splitlines() if line and not line.endswith(b"}")]
    assert len(torn) <= 8, "at most one for each process that was killed"


# --- Many threads in many processes -----------------------------------------------------------------------------------


class Limited:
    """A server that takes ``most`` messages in any second, and answers 429 with a wait beyond that."""

    def __init__(self, most: int) -> None:
        self.most, self.taken, self.refused = most, [], 0  # type: ignore[var-annotated]

    def __call__(self, request: Request) -> Item:
        now = time.monotonic()
        recent = [at for at, _, _ in self.taken if at > now - 1.0]
        if len(recent) >= self.most:
            self.refused += 1
            return reply(
                429,
                json={
                    "ok": False,
                    "error_code": 429,
                    "description": "Too Many Requests",
                    "parameters": {"retry_after": 1},
                },
            )
        said = request.json()
        self.taken.append((now, str(said["chat_id"]), said["text"]))
        return placed(len(self.taken))


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_8_threads_in_4_processes_lose_nothing_and_keep_each_chats_order(shared: bool, tmp_path: Path) -> None:
    """With one state folder the processes keep the limit together, and the platform never has to say no. With folders
    of their own each keeps it for itself alone, and the platform's own word is what still loses nothing."""
    limited, most, count = Limited(20), 20, 3
    with Loopback(respond=limited) as server, ExitStack() as running:
        processes = []
        for number in range(4):
            home = tmp_path / ("one" if shared else str(number))
            home.mkdir(exist_ok=True)
            rate = {"rate_limit": f"{most}/second"}
            settings = config(server.url, tmp_path, channel=rate, max_attempts=50)
            texts = [f"{number} {one}" for one in range(count)]
            processes.append(
                running.enter_context(sending(settings, [str(100 + thread) for thread in range(8)], texts, home))
            )
        said = [
            json.loads(line)
            for process in processes
            for line in process.communicate(timeout=110)[0].splitlines()
            if line != "ready"
        ]
    assert Counter(status for _, _, status, _ in said) == {"delivered": 4 * 8 * count}
    assert len(limited.taken) == len({(chat, text) for _, chat, text in limited.taken}) == 4 * 8 * count
    order = defaultdict(list)
    for _, chat, text in limited.taken:
        process, number = text.split()
        order[chat, process].append(int(number))
    assert all(numbers == sorted(numbers) for numbers in order.values())
    moments = [at for at, _, _ in limited.taken]
    assert all(later - sooner >= 1.0 for sooner, later in zip(moments, moments[most:], strict=False))
    records = trail(tmp_path)
    assert Counter(record.status for record in records) == {"delivered": 4 * 8 * count}, "all into one file, none torn"
    if shared:
        assert limited.refused == 0
