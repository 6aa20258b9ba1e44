"""Matrix with a real homeserver: what another account sees of what was sent."""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from returns.pipeline import is_successful
from returns.result import Success

from messaging_adapters.http_requests import HttpEdge
from messaging_core.channels.channel import Configured
from messaging_core.channels.matrix import CHANNEL, Settings
from messaging_core.config.settings import Http
from messaging_core.errors import Denied, InvalidRecipient, RateLimited, Rejected
from messaging_core.flow import Done, Learned, drive
from messaging_core.markup.split import render, split
from messaging_core.markup.tree import parse
from messaging_core.media import sniff
from messaging_core.message import FileFacts, Ids, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secret, Secrets
from tests.servers import synapse
from tests.servers.synapse import Account, Homeserver, quoted

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    with synapse.running(tmp_path_factory.mktemp("synapse")) as server:
        yield server


class Sender:
    """One account as a channel: ``send`` performs a send and tells its outcome, ``known`` keeps what was learned."""

    def __init__(self, server: Homeserver, account: Account) -> None:
        self.at = Configured("hs", "matrix", Settings(server.url, Secret("hs.access_token")))
        self.edge = HttpEdge(Http(), Secrets({"hs.access_token": account.token}))
        self.known: dict[str, str] = {}
        self.asked: list[str] = []

    def perform(self, exchange):  # type: ignore[no-untyped-def]
        self.asked.append(f"{exchange.request.method} {exchange.request.url}")
        return self.edge(exchange)

    def send(self, *parts, to: str, ids: Ids | None = None, **more):  # type: ignore[no-untyped-def]
        self.asked = []
        outgoing = Outgoing(CHANNEL.recipient(to).unwrap(), parts, **more)
        outcome = drive(self.perform, CHANNEL.describe(self.at, outgoing, ids or new_ids(), self.known).unwrap())
        learned = outcome.unwrap().learned if is_successful(outcome) else outcome.failure().learned
        self.known |= {lesson.key: lesson.value for lesson in learned if isinstance(lesson, Learned)}
        return outcome

    def probe(self, to: str | None):  # type: ignore[no-untyped-def]
        asked = None if to is None else CHANNEL.recipient(to).unwrap()
        assert CHANNEL.probe is not None
        return drive(self.perform, CHANNEL.probe(self.at, asked, self.known))


@pytest.fixture
def alice(server: Homeserver) -> Iterator[Sender]:
    sender = Sender(server, server.alice)
    yield sender
    sender.edge.close()


def new_ids() -> Ids:
    return Ids(f"{time.time_ns() // 1_000_000}{os.urandom(4).hex()}", time.time())


def text(markdown: str) -> TextPart:
    return TextPart(render(parse(markdown), CHANNEL.dialect))


def file(path: Path, caption: str | None = None) -> MediaPart:
    found = path.stat()
    facts = FileFacts(
        *(str(path), str(path), path.name, found.st_size),
        *(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns),
        head=path.read_bytes()[:4096],
        tail=path.read_bytes()[-512:],
    )
    seen = sniff(facts)
    shown = text(caption).text if caption else None
    return MediaPart(facts, seen.kind, seen.mime, shown, width=seen.width, height=seen.height)


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(b"".join(b"\0" + os.urandom(3 * width) for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def only(outcome) -> str:  # type: ignore[no-untyped-def]
    (receipt,) = outcome.unwrap().delivered
    return str(receipt.id)


def test_a_text_is_read_by_another_account_with_its_html(server, alice):
    id = only(alice.send(text("**two** lines\nnext & <last>"), to=server.room))
    assert server.event(server.room, id, server.bob)["content"] == {
        "msgtype": "m.text",
        "body": "two lines\nnext & <last>",
        "format": "org.matrix.custom.html",
        "formatted_body": "<p><strong>two</strong> lines<br>next &amp; &lt;last&gt;</p>",
        "m.mentions": {},
    }


def test_the_same_send_taken_again_is_the_same_event(server, alice):
    ids = new_ids()
    once = only(alice.send(text("once"), to=server.room, ids=ids))
    assert only(alice.send(text("once"), to=server.room, ids=ids)) == once
    bodies = [event["content"].get("body") for event in server.messages(server.room, server.bob)]
    assert bodies.count("once") == 1


def test_a_picture_arrives_with_its_size_and_caption_octet_for_octet(server, alice, tmp_path):
    path = tmp_path / "Größe 1.png"
    path.write_bytes(png(40, 30))
    content = server.event(server.room, only(alice.send(file(path, "**see**"), to=server.room)), server.bob)["content"]
    assert (content["msgtype"], content["filename"], content["body"]) == ("m.image", path.name, "see")
    assert content["formatted_body"] == "<p><strong>see</strong></p>"
    assert content["info"] == {"mimetype": "image/png", "size": path.stat().st_size, "w": 40, "h": 30}
    assert server.download(content["url"], server.bob) == path.read_bytes()


def test_a_reply_and_a_thread_hang_where_they_belong(server, alice):
    root = only(alice.send(text("question"), to=server.room))
    reply = only(alice.send(text("answer"), to=server.room, reply_to=root))
    relation = server.event(server.room, reply, server.bob)["content"]["m.relates_to"]
    assert relation == {"m.in_reply_to": {"event_id": root}}
    only(alice.send(text("in the thread"), to=f"{server.room}/{root}"))
    path = f"/_matrix/client/v1/rooms/{quoted(server.room)}/relations/{quoted(root)}/m.thread"
    (threaded,) = server.call("GET", path, server.bob)["chunk"]
    assert threaded["content"]["body"] == "in the thread"


def test_a_reply_to_an_event_that_is_not_there_is_delivered(server, alice):
    only(alice.send(text("x"), to=server.room, reply_to="$nowhere"))


def test_an_alias_leads_to_its_room_and_is_asked_for_once(server, alice):
    only(alice.send(text("by alias"), to=server.alias))
    id = only(alice.send(text("by alias again"), to=server.alias))
    assert len(alice.asked) == 1
    assert server.event(server.room, id, server.bob)["content"]["body"] == "by alias again"
    stopped = alice.send(text("x"), to="#nowhere:matrix.test").failure()
    assert isinstance(stopped.cause, InvalidRecipient)


def test_a_person_is_invited_to_a_room_once_and_written_to_there_ever_after(server, alice):
    carol = server.carol
    only(alice.send(text("first"), to=carol.user))
    assert len(alice.asked) == 6
    (room,) = server.call("GET", "/_matrix/client/v3/sync", carol)["rooms"]["invite"]
    server.call("POST", f"/_matrix/client/v3/join/{quoted(room)}", carol, {})
    assert server.messages(room, carol)[0]["content"]["body"] == "first"
    direct = f"/_matrix/client/v3/user/{quoted(server.alice.user)}/account_data/m.direct"
    assert server.call("GET", direct, server.alice) == {carol.user: [room]}

    alice.known = {}  # as after a restart
    id = only(alice.send(text("second"), to=carol.user))
    assert len(alice.asked) == 4
    assert server.event(room, id, carol)["content"]["body"] == "second"

    server.call("POST", f"/_matrix/client/v3/rooms/{quoted(room)}/leave", carol, {})
    alice.known = {}
    only(alice.send(text("third"), to=carol.user))
    first, other = server.call("GET", direct, server.alice)[carol.user]
    assert first == room
    member = f"/_matrix/client/v3/rooms/{quoted(other)}/state/m.room.member/{quoted(carol.user)}"
    assert server.call("GET", member, server.alice)["membership"] == "invite"
    alice.known = {}
    only(alice.send(text("fourth, not yet joined"), to=carol.user))
    assert server.call("GET", direct, server.alice)[carol.user] == [room, other]


def test_a_person_that_there_is_not_is_the_recipient_s_fault(server, alice):
    """The homeserver would make a room for nobody, and take the message."""
    assert isinstance(alice.send(text("x"), to="@nobody:matrix.test").failure().cause, InvalidRecipient)


def test_the_largest_parts_of_a_long_text_are_taken(server, alice):
    document = parse('**é** "\\" 🎯 | `c`\n' * 9000)
    parts = [TextPart(part) for part in split(document, CHANNEL.dialect, CHANNEL.limits.text)]
    assert len(parts) > 2
    assert len(alice.send(*parts, to=server.room).unwrap().delivered) == len(parts)


def test_a_room_that_one_is_not_in_and_a_wrong_token_are_denied(server):
    carol = Sender(server, server.carol)
    assert isinstance(carol.send(text("x"), to=server.room).failure().cause, Denied)
    stranger = Sender(server, Account("@x:matrix.test", "FAKE-token"))
    assert isinstance(stranger.send(text("x"), to=server.room).failure().cause, Denied)


def test_probes(server, alice):
    encrypted = {"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
    made = server.call("POST", "/_matrix/client/v3/createRoom", server.alice, {"initial_state": [encrypted]})
    for fine in (None, server.room, server.alias, server.bob.user):
        assert alice.probe(fine) == Success(Done())
    assert isinstance(alice.probe(made["room_id"]).failure().cause, Rejected)
    assert isinstance(alice.probe("@nobody:matrix.test").failure().cause, InvalidRecipient)
    assert isinstance(Sender(server, server.carol).probe(server.room).failure().cause, Denied)


def test_a_limit_is_told_with_its_wait_and_kept_to_the_same_event_arrives(tmp_path):
    with synapse.running(tmp_path, messages_per_second=1.0, burst=3) as server:
        alice = Sender(server, server.alice)
        stopped = None
        while stopped is None:
            outcome = alice.send(text("much"), to=server.room)
            stopped = None if is_successful(outcome) else outcome.failure()
        assert isinstance(stopped.cause, RateLimited)
        assert 0 < (stopped.cause.after or 0) <= 5
        time.sleep(stopped.cause.after or 0)
        assert is_successful(drive(alice.perform, stopped.at))
