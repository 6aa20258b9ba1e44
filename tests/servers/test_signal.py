"""The form of our requests, as signal-cli's own daemon reads them. It has no account, so that is what it always finds
missing.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from messaging_adapters.http_requests import HttpEdge
from messaging_core.channels.channel import Configured
from messaging_core.channels.signal import CHANNEL, Settings
from messaging_core.config.settings import Http
from messaging_core.errors import Denied, Invalid
from messaging_core.flow import drive
from messaging_core.markup.split import render
from messaging_core.markup.tree import parse
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secrets
from tests.servers import signal_daemon

pytestmark = pytest.mark.server

GROUP = "group:WldOaVoxeGFhVHB5YVhCaGJHbGtZWFJoTUhneU1EQT0="


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with signal_daemon.running(tmp_path_factory.mktemp("signal")) as address:
        yield address


@pytest.fixture
def edge() -> Iterator[HttpEdge]:
    edge = HttpEdge(Http(), Secrets())
    yield edge
    edge.close()


def cause(edge: HttpEdge, address: str, outgoing: Outgoing):  # type: ignore[no-untyped-def]
    at = Configured("sig", "signal", Settings(address, "+15550002222"))
    return drive(edge, CHANNEL.describe(at, outgoing, Ids("1764500000000abcd"), {}).unwrap()).failure().cause


TEXT = TextPart(render(parse('**due** 🎯 *soon* "quoted" \\\\ `code`'), CHANNEL.dialect))


@pytest.mark.parametrize("to", ["+15550003333", "bob.01", GROUP, "0b4d8e0a-7c11-4f55-9c3c-1f0f4a3e2d11"])
def test_a_text_with_styles_and_a_reply_is_understood_up_to_the_missing_account(edge, address, to):
    outgoing = Outgoing(CHANNEL.recipient(to).unwrap(), (TEXT,), "1712345678901:+15550004444")
    assert cause(edge, address, outgoing) == Denied(code="-32602", detail="Specified account does not exist")


def test_a_file_streamed_inside_the_json_is_read_whole(edge, address, tmp_path: Path):
    path = tmp_path / "Größe.bin"
    path.write_bytes(os.urandom(3_000_000))
    found = path.stat()
    facts = FileFacts(
        *(str(path), str(path), path.name, found.st_size),
        *(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns),
    )
    part = MediaPart(facts, Kind.DOCUMENT, "application/octet-stream", TEXT.text)
    outgoing = Outgoing(CHANNEL.recipient("+15550003333").unwrap(), (part,))
    assert cause(edge, address, outgoing) == Denied(code="-32602", detail="Specified account does not exist")


def test_the_probe_finds_the_account_missing(edge, address):
    at = Configured("sig", "signal", Settings(address, "+15550002222"))
    assert CHANNEL.probe is not None
    stopped = drive(edge, CHANNEL.probe(at, None, {})).failure()
    assert stopped.cause == Denied(detail="the program at http_url has no account +15550002222")
    stopped = drive(edge, CHANNEL.probe(at, CHANNEL.recipient("+15550003333").unwrap(), {})).failure()
    assert stopped.cause == Denied(code="-32602", detail="Specified account does not exist")


def test_another_path_is_no_daemon(edge, address):
    assert isinstance(
        cause(edge, f"{address}/elsewhere", Outgoing(CHANNEL.recipient(GROUP).unwrap(), (TEXT,))), Invalid
    )
