"""Matrix, client-server API (https://spec.matrix.org/latest/client-server-api/). Rooms are written to without
encryption; aliases and people in the room that ``_matrix_rooms.py`` finds for them.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels._matrix import Account, Fine, read, read_text
from messaging_core.channels._matrix_rooms import meet, resolve
from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Limits, Sort, key
from messaging_core.errors import InvalidArguments, InvalidRecipient, Refusal, Rejected, SendError
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Step, after, in_order
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.matrix_html import MATRIX_HTML
from messaging_core.message import Content, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef, HttpReply, HttpRequest, bearer, segment


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``matrix`` channel."""

    homeserver: str = key(Sort.URL, "Base URL of the homeserver, `https://matrix.org`.")
    access_token: Secret = key(Sort.SECRET, "Access token of the account that sends.")
    room_id: str | None = key(Sort.ID, "Default room: id, alias or user.", default=None)


EVENT = Length(60_000, Unit.BYTES, Of.JSON)
"""Of body and HTML together, as they stand in the event; the whole may have 65,536 bytes, and the rest (ids, relations,
the server's own fields) is well under 5,000. https://spec.matrix.org/latest/client-server-api/#size-limits"""

ALIAS_HOLDS = 3600.0
DIRECT_HOLDS = 86_400.0
"""Seconds that the room behind an alias, or a person's room, is relied on: an alias moves on, a person may leave."""


# --- Recipients -------------------------------------------------------------------------------------------------------

FORMS = {
    "room": re.compile(r"![!-.0-~]{1,254}"),
    "alias": re.compile(r"#[^\s:\x00-\x1f]+:[!-~]+"),
    "user": re.compile(r"@[^\s:\x00-\x1f]+:[!-~]+"),
}
"""https://spec.matrix.org/latest/appendices/#identifier-grammar; rooms of version 12 have ids without a server."""

EVENT_ID = re.compile(r"\$[!-~]{1,254}")


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """A room's id, an alias or a user; and ``/$root`` for the thread that begins with that event."""
    chat, slash, root = text.rpartition("/$")
    if not slash:
        chat, root = text, ""
    for kind, form in FORMS.items():
        if form.fullmatch(chat) and len(chat.encode()) <= 255 and (not slash or EVENT_ID.fullmatch(f"${root}")):
            return Success(Recipient(chat, kind, f"${root}" if slash else None, text))
    return Failure(InvalidRecipient(text, "a room id (!...), an alias (#name:server) or a user (@name:server)"))


def same(text: str) -> str:
    """Users are equal whatever their case and with or without their ``@``; rooms, aliases and threads only as they are
    written.
    """
    chat, slash, root = text.rpartition("/$") if "/$" in text else (text, "", "")
    return (chat if chat.startswith(("!", "#")) else chat.removeprefix("@").casefold()) + slash + root


# --- Requests ---------------------------------------------------------------------------------------------------------


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """The parts, in the room that the recipient is, stands for, or is met in."""
    to = outgoing.recipient
    if outgoing.reply_to is not None and not EVENT_ID.fullmatch(outgoing.reply_to):
        return Failure(InvalidArguments("message_send", ("reply_to: expected the id of an event: $...",)))
    if to.thread is not None and not EVENT_ID.fullmatch(to.thread):
        return Failure(InvalidRecipient(f"{to.id}/{to.thread}", "the id of an event ($...) as the thread"))
    account = account_of(at)
    if to.kind == "room":
        return Success(parts(account, outgoing, ids, to.id))
    find, holds = (resolve, ALIAS_HOLDS) if to.kind == "alias" else (meet, DIRECT_HOLDS)
    lesson = Learned(f"{at.name}.{to.kind}.{to.id}", "", ids.now + holds)
    if room := known.get(lesson.key):
        return Success(parts(account, outgoing, ids, room))
    return Success(after(find(account, to.id, lesson), Found(account, outgoing, ids)))


def account_of(at: Configured[Settings]) -> Account:
    return Account(at.name, at.own.homeserver, at.own.access_token)


@dataclass(frozen=True, slots=True)
class Found:
    """The room is the last thing learned: place the parts there."""

    account: Account
    outgoing: Outgoing
    ids: Ids

    def __call__(self, done: Done, /) -> Step:
        lesson = done.learned[-1]
        assert isinstance(lesson, Learned)
        return parts(self.account, self.outgoing, self.ids, lesson.value)


def parts(account: Account, outgoing: Outgoing, ids: Ids, room: str) -> Step:
    return in_order(tuple(place(account, outgoing, ids, room, part, content) for part, content in outgoing.numbered))


def place(account: Account, outgoing: Outgoing, ids: Ids, room: str, part: Part, content: Content) -> Exchange:
    """One event. The transaction id comes from the message's id, so that a repeat is the same event."""
    target = Target(account, room, str(outgoing.recipient), ids.part(part.index), part, content.notes)
    shared = _mentions(outgoing, content) | _relation(outgoing, part)
    if isinstance(content, TextPart):
        event = {"msgtype": "m.text", **_text(content.text, content.markup), **shared}
        return send(target, event)
    return upload(target, content, json.dumps(shared))


@dataclass(frozen=True, slots=True)
class Target:
    """Where one part goes. ``shown``: the recipient as named."""

    account: Account
    room: str
    shown: str
    transaction: str
    part: Part
    notes: tuple[str, ...]


def send(target: Target, event: dict[str, Any]) -> Exchange:
    """https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid"""
    path = f"/rooms/{segment(target.room)}/send/m.room.message/{segment(target.transaction)}"
    return target.account.put(path, event, Placed(target), target.room, target.part)


def upload(target: Target, content: MediaPart, shared: str) -> Exchange:
    """The bytes as they are; until an event shows them, nobody sees them.

    https://spec.matrix.org/latest/client-server-api/#post_matrixmediav3upload
    """
    account = target.account
    url = f"{account.homeserver}/_matrix/media/v3/upload"
    headers = (("Content-Type", content.mime), bearer(account.token))
    body = FileRef(content.facts) if content.data is None else content.data
    request = HttpRequest("POST", url, headers, body, (("filename", content.facts.name),), repeatable=True)
    return Exchange(request, Uploaded(target, content, shared), account.scope(target.room, "upload"))


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The bytes are stored: show them in the room. ``shared``: the event's mentions and relation, as JSON."""

    target: Target
    content: MediaPart
    shared: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "content_uri", self.target.shown).map(self._show)

    def _show(self, uri: str) -> Step:
        return send(self.target, media_event(self.content, uri) | json.loads(self.shared))


@dataclass(frozen=True, slots=True)
class Placed:
    """The event is in the room."""

    target: Target

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        target = self.target
        return read_text(reply, "event_id", target.shown).map(
            lambda id: Done((Receipt(target.part, id, target.shown, target.notes),))
        )


SHOWN_AS = {Kind.IMAGE: "image", Kind.ANIMATION: "image", Kind.VIDEO: "video", Kind.AUDIO: "audio"}


def media_event(content: MediaPart, uri: str) -> dict[str, Any]:
    """With a caption the ``body`` is it, else the file's name. All numbers are whole ones: servers refuse others.

    https://spec.matrix.org/latest/client-server-api/#media-captions
    """
    name, caption = content.facts.name, content.caption
    sort = SHOWN_AS.get(content.kind, "")
    if sort and not content.mime.startswith(sort):
        sort = ""
    size = content.facts.size if content.data is None else len(content.data)
    info: dict[str, Any] = {"mimetype": content.mime, "size": size}
    if sort in ("image", "video") and content.width and content.height:
        info |= {"w": content.width, "h": content.height}
    if sort in ("audio", "video") and content.duration is not None:
        info["duration"] = round(content.duration * 1000)
    shown = {"body": name} if caption is None else _text(caption, content.markup)
    return {"msgtype": f"m.{sort or 'file'}", **shown, "filename": name, "url": uri, "info": info}


def _text(text: Rendered, markup: bool) -> dict[str, Any]:
    plain = {"body": text.text}
    if not markup or text.formatted is None:
        return plain
    return plain | {"format": "org.matrix.custom.html", "formatted_body": text.formatted}


MENTION = re.compile(r"(?<![\w@/#.-])@[a-z0-9._=/+-]+:[a-z0-9.-]*[a-z0-9](?::[0-9]+)?", re.ASCII)
ROOM_MENTION = re.compile(r"(?<![\w@/#.-])@room\b")
MOST_MENTIONS = 20


def _mentions(outgoing: Outgoing, content: Content) -> dict[str, Any]:
    """Without the key clients look for names in the text.
    https://spec.matrix.org/latest/client-server-api/#user-and-room-mentions
    """
    if outgoing.mute:
        return {"m.mentions": {}}
    text = content.text if isinstance(content, TextPart) else content.caption
    visible = text.visible if text else ""
    users = list(dict.fromkeys(MENTION.findall(visible)))[:MOST_MENTIONS]
    mentions = ({"user_ids": users} if users else {}) | ({"room": True} if ROOM_MENTION.search(visible) else {})
    return {"m.mentions": mentions} if mentions else {}


def _relation(outgoing: Outgoing, part: Part) -> dict[str, Any]:
    """A reply belongs to the first part; a thread holds them all, and its root stands for the latest event in it.

    https://spec.matrix.org/latest/client-server-api/#threading
    """
    root, reply = outgoing.recipient.thread, outgoing.reply_to if part.index == 1 else None
    if root is None:
        return {"m.relates_to": {"m.in_reply_to": {"event_id": reply}}} if reply else {}
    thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": reply is None}
    return {"m.relates_to": thread | {"m.in_reply_to": {"event_id": reply or root}}}


# --- Probes -----------------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; whether we are in the room, and it is not encrypted; whether there is such an alias or user."""
    account = account_of(at)
    if recipient is None:
        return account.get("/account/whoami", Fine())
    if recipient.kind == "user":
        return account.get(f"/profile/{segment(recipient.id)}", Fine(recipient.id))
    if recipient.kind == "alias":
        return account.get(f"/directory/room/{segment(recipient.id)}", Pointed(account, recipient.id))
    return encryption(account, recipient.id)


@dataclass(frozen=True, slots=True)
class Pointed:
    """The alias stands for a room: look at that."""

    account: Account
    alias: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.alias).map(lambda room: encryption(self.account, room))


def encryption(account: Account, room: str) -> Exchange:
    """The room's own word on it: who is not in the room is not told, and where there is none the answer is 404."""
    return account.get(f"/rooms/{segment(room)}/state/m.room.encryption", Unencrypted(room))


@dataclass(frozen=True, slots=True)
class Unencrypted:
    """We are in the room, and what is sent to it as it is does not stand out there as unprotected."""

    room: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status == 404:
            return Success(Done())
        encrypted = Rejected(detail="the room is encrypted, and a message from here would not be")
        return read(reply, self.room).bind(lambda _: Failure(encrypted))


REHEARSED: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("/state/m.room.encryption", 404, {"errcode": "M_NOT_FOUND", "error": "Event not found."}),
    ("/account/whoami", 200, {"user_id": "@rehearsed:server"}),
    ("/directory/room/", 200, {"room_id": "!rehearsed"}),
    ("/createRoom", 200, {"room_id": "!rehearsed"}),
    ("/media/v3/upload", 200, {"content_uri": "mxc://server/rehearsed"}),
    ("/send/", 200, {"event_id": "$rehearsed"}),
    ("", 200, {}),
)


def rehearse(request: Any) -> HttpReply:
    """What a homeserver would answer; nobody has been met before."""
    status, body = next((status, body) for path, status, body in REHEARSED if path in str(request.url))
    return HttpReply(status, "", (), json.dumps(body).encode())


CHANNEL = Channel(
    platform="matrix",
    settings=Settings,
    capabilities=Capabilities(media=True, reply=True),
    limits=Limits(text=(EVENT,), caption=(EVENT,)),
    dialect=MATRIX_HTML,
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.room_id,
    default_key="room_id",
    same=same,
    probe=probe,
    rehearse=rehearse,
)
