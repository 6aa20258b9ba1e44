"""Matrix, client-server API (https://spec.matrix.org/latest/client-server-api/). Rooms are written to without
encryption.

A person is written to in the room that both have for it: the one that the account's ``m.direct`` names, else a new one.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Limits, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Refusal,
    Rejected,
    SendError,
)
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Scope, Step, Then, after, in_order
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.matrix_html import MATRIX_HTML
from messaging_core.message import Content, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import (
    FileRef,
    HttpReply,
    HttpRequest,
    at,
    at_least,
    bearer,
    json_request,
    read_json,
    segment,
    text_at,
)


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


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """The parts, in the room that the recipient is, stands for, or is met in."""
    to = outgoing.recipient
    if outgoing.reply_to is not None and not EVENT_ID.fullmatch(outgoing.reply_to):
        return Failure(InvalidArguments("message_send", ("reply_to: expected the id of an event: $...",)))
    if to.thread is not None and not EVENT_ID.fullmatch(to.thread):
        return Failure(InvalidRecipient(f"{to.id}/{to.thread}", "the id of an event ($...) as the thread"))
    if to.kind == "room":
        return Success(parts(at, outgoing, ids, to.id))
    lesson = Learned(
        f"{at.name}.{to.kind}.{to.id}", "", ids.now + (ALIAS_HOLDS if to.kind == "alias" else DIRECT_HOLDS)
    )
    if room := known.get(lesson.key):
        return Success(parts(at, outgoing, ids, room))
    prelude = resolve(at, to.id, lesson) if to.kind == "alias" else meet(at, to.id, lesson)
    return Success(after(prelude, Found(at, outgoing, ids)))


@dataclass(frozen=True, slots=True)
class Found:
    """The room is the last thing learned: place the parts there."""

    at: Configured[Settings]
    outgoing: Outgoing
    ids: Ids

    def __call__(self, done: Done, /) -> Step:
        lesson = done.learned[-1]
        assert isinstance(lesson, Learned)
        return parts(self.at, self.outgoing, self.ids, lesson.value)


# --- Messages ---------------------------------------------------------------------------------------------------------


def parts(at: Configured[Settings], outgoing: Outgoing, ids: Ids, room: str) -> Step:
    return in_order(tuple(place(at, outgoing, ids, room, part, content) for part, content in outgoing.numbered))


def place(at: Configured[Settings], outgoing: Outgoing, ids: Ids, room: str, part: Part, content: Content) -> Exchange:
    """One event. The transaction id comes from the message's id, so that a repeat is the same event."""
    target = Target(at, room, str(outgoing.recipient), ids.part(part.index), part, content.notes)
    shared = _mentions(outgoing, content) | _relation(outgoing, part)
    if isinstance(content, TextPart):
        event = {"msgtype": "m.text", **_text(content.text, content.markup), **shared}
        return send(target, event)
    return upload(target, content, json.dumps(shared))


@dataclass(frozen=True, slots=True)
class Target:
    """Where one part goes. ``shown``: the recipient as named."""

    at: Configured[Settings]
    room: str
    shown: str
    transaction: str
    part: Part
    notes: tuple[str, ...]


def send(target: Target, event: dict[str, Any]) -> Exchange:
    """https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid"""
    path = f"/rooms/{segment(target.room)}/send/m.room.message/{segment(target.transaction)}"
    return _put(target.at, path, event, Placed(target), target.room, target.part)


def upload(target: Target, content: MediaPart, shared: str) -> Exchange:
    """The bytes as they are; until an event shows them, nobody sees them.

    https://spec.matrix.org/latest/client-server-api/#post_matrixmediav3upload
    """
    at = target.at
    body = FileRef(content.facts) if content.data is None else content.data
    headers = (("Content-Type", content.mime), bearer(at.own.access_token))
    query = (("filename", content.facts.name),)
    request = HttpRequest("POST", f"{at.own.homeserver}/_matrix/media/v3/upload", headers, body, query, repeatable=True)
    return Exchange(request, Uploaded(target, content, shared), _scope(at, target.room, "upload"))


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


# --- Rooms ------------------------------------------------------------------------------------------------------------


def resolve(at: Configured[Settings], alias: str, lesson: Learned) -> Exchange:
    """https://spec.matrix.org/latest/client-server-api/#get_matrixclientv3directoryroomroomalias"""
    return _get(at, f"/directory/room/{segment(alias)}", Resolved(alias, lesson))


@dataclass(frozen=True, slots=True)
class Resolved:
    """The alias stands for a room."""

    alias: str
    lesson: Learned

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.alias).map(lambda room: _learned(self.lesson, room))


def _learned(lesson: Learned, room: str) -> Done:
    return Done(learned=(Learned(lesson.key, room, lesson.until),))


@dataclass(frozen=True, slots=True)
class Meeting:
    """A person, and the room to be found for both of us. ``me``: our own user id. ``direct``: the account's
    ``m.direct`` (user -> their rooms), as JSON. ``rooms``: those of them that are still to be looked at, the latest
    first.

    https://spec.matrix.org/latest/client-server-api/#direct-messaging
    """

    at: Configured[Settings]
    user: str
    lesson: Learned
    me: str = ""
    direct: str = "{}"
    rooms: tuple[str, ...] = ()

    @property
    def account_data(self) -> str:
        return f"/user/{segment(self.me)}/account_data/m.direct"


MOST_ROOMS = 5
"""How many of the rooms with a person are looked at before a new one is made."""


def meet(at: Configured[Settings], user: str, lesson: Learned) -> Exchange:
    return _get(at, "/account/whoami", Introduced(Meeting(at, user, lesson)))


@dataclass(frozen=True, slots=True)
class Introduced:
    """Who we are: ask for the rooms that we have with people."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "user_id", self.meeting.user).map(self._ask)

    def _ask(self, me: str) -> Step:
        meeting = replace(self.meeting, me=me)
        return _get(meeting.at, meeting.account_data, Remembered(meeting))


@dataclass(frozen=True, slots=True)
class Remembered:
    """The rooms that we have with people; 404 where none were ever noted."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status == 404:
            return Success(look(self.meeting))
        return read(reply, self.meeting.user).map(self._look)

    def _look(self, direct: Any) -> Step:
        noted = at(direct, self.meeting.user)
        rooms = [room for room in noted if isinstance(room, str)] if isinstance(noted, list) else []
        direct = direct if isinstance(direct, dict) else {}
        latest = tuple(reversed(rooms[-MOST_ROOMS:]))
        return look(replace(self.meeting, direct=json.dumps(direct), rooms=latest))


def look(meeting: Meeting) -> Exchange:
    """Whether the person is in the next of the rooms; where none is left, whether there is such a person at all.

    A homeserver makes rooms for people that there are not, and takes messages for them.
    """
    if not meeting.rooms:
        return _get(meeting.at, f"/profile/{segment(meeting.user)}", Exists(meeting))
    path = f"/rooms/{segment(meeting.rooms[0])}/state/m.room.member/{segment(meeting.user)}"
    return _get(meeting.at, path, Seen(meeting))


@dataclass(frozen=True, slots=True)
class Seen:
    """The person is in the room or invited to it; else on to the next (403: we are not in it ourselves)."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status in (403, 404):
            return Success(look(replace(self.meeting, rooms=self.meeting.rooms[1:])))
        return read(reply, self.meeting.user).map(self._judge)

    def _judge(self, member: Any) -> Step:
        if text_at(member, "membership") in ("join", "invite"):
            return _learned(self.meeting.lesson, self.meeting.rooms[0])
        return look(replace(self.meeting, rooms=self.meeting.rooms[1:]))


@dataclass(frozen=True, slots=True)
class Exists:
    """There is such a person, or their server does not tell (403, 5xx): make a room. A repeat makes another."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if reply.status == 403 or reply.status >= 500:
            return Success(self._make())
        return read(reply, self.meeting.user).map(lambda _: self._make())

    def _make(self) -> Step:
        at, user = self.meeting.at, self.meeting.user
        room = {"is_direct": True, "invite": [user], "preset": "trusted_private_chat"}
        url = f"{at.own.homeserver}/_matrix/client/v3/createRoom"
        request = json_request("POST", url, room, headers=(bearer(at.own.access_token),))
        return Exchange(request, Made(self.meeting), _scope(at, user, "createRoom"))


@dataclass(frozen=True, slots=True)
class Made:
    """There is a new room: note it where clients look for it."""

    meeting: Meeting

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.meeting.user).map(self._note)

    def _note(self, room: str) -> Step:
        meeting, direct = self.meeting, json.loads(self.meeting.direct)
        noted = direct.get(meeting.user)
        direct[meeting.user] = [*(noted if isinstance(noted, list) else []), room]
        found = _learned(meeting.lesson, room)
        step = _put(meeting.at, meeting.account_data, direct, Noted(found, meeting.user), meeting.user)
        return replace(step, learned=found.learned)  # also where noting it fails


@dataclass(frozen=True, slots=True)
class Noted:
    """The room is noted."""

    found: Done
    user: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.user).map(lambda _: self.found)


# --- Requests and replies ---------------------------------------------------------------------------------------------


def _get(at: Configured[Settings], path: str, then: Then) -> Exchange:
    own = at.own
    url = f"{own.homeserver}/_matrix/client/v3{path}"
    request = HttpRequest("GET", url, (bearer(own.access_token),), repeatable=True)
    return Exchange(request, then, _scope(at))


def _put(
    at: Configured[Settings], path: str, value: dict[str, Any], then: Then, chat: str, part: Part | None = None
) -> Exchange:
    """Either has an id of its own in the path, or is the whole of what is kept there: a repeat changes nothing."""
    own = at.own
    url = f"{own.homeserver}/_matrix/client/v3{path}"
    request = json_request("PUT", url, value, headers=(bearer(own.access_token),), repeatable=True)
    return Exchange(request, then, _scope(at, chat), part)


def _scope(at: Configured[Settings], chat: str = "", method: str = "") -> Scope:
    return Scope(at.name, at.own.access_token.name, chat, method)


CODES: dict[str, type[SendError]] = {
    # https://spec.matrix.org/latest/client-server-api/#standard-error-response
    **dict.fromkeys(("M_FORBIDDEN", "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_LOCKED", "M_USER_SUSPENDED"), Denied),
    **dict.fromkeys(("M_USER_DEACTIVATED", "M_GUEST_ACCESS_FORBIDDEN", "M_CONSENT_NOT_GIVEN"), Denied),
    **dict.fromkeys(("M_TOO_LARGE", "M_BAD_JSON", "M_NOT_JSON", "M_INVALID_PARAM", "M_UNRECOGNIZED"), Invalid),
    **dict.fromkeys(("M_RESOURCE_LIMIT_EXCEEDED", "M_USER_LIMIT_EXCEEDED"), Rejected),
    **dict.fromkeys(("M_NOT_FOUND", "M_BAD_ALIAS"), InvalidRecipient),
    "M_LIMIT_EXCEEDED": RateLimited,
}


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """The body of a good answer, or the failure that it is; waits come in milliseconds, or as ``Retry-After``."""
    if 200 <= reply.status < 300:
        return read_json(reply)
    body = read_json(reply).value_or(None)
    wait = at(body, "retry_after_ms")
    return Failure(
        failure(
            reply,
            code=_code(reply, text_at(body, "errcode")),
            detail=text_at(body, "error"),
            table=CODES,
            wait=None if wait is None else at_least(wait / 1000 if isinstance(wait, int | float) else wait),
            recipient=recipient,
        )
    )


def _code(reply: HttpReply, code: str) -> str:
    """``M_UNKNOWN`` says nothing: with it the status counts (a user that there is not is 404 ``M_UNKNOWN`` in
    Synapse).
    """
    return "M_NOT_FOUND" if code == "M_UNKNOWN" and reply.status == 404 else code


def read_text(reply: HttpReply, name: str, recipient: str) -> Result[str, SendError]:
    """The text under ``name`` in a good answer; without it the answer is none of a homeserver."""
    missing = Malformed(reply.status, reply.reason, detail=f"the answer has no {name}")
    return read(reply, recipient).bind(
        lambda body: Success(text_at(body, name)) if text_at(body, name) else Failure(missing)
    )


# --- Probes -----------------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; whether we are in the room, and it is not encrypted; whether there is such an alias or user."""
    if recipient is None:
        return _get(at, "/account/whoami", There())
    if recipient.kind == "user":
        return _get(at, f"/profile/{segment(recipient.id)}", There(recipient.id))
    if recipient.kind == "alias":
        return _get(at, f"/directory/room/{segment(recipient.id)}", Pointed(at, recipient.id))
    return encryption(at, recipient.id)


@dataclass(frozen=True, slots=True)
class There:
    """A good answer is all that was asked for."""

    recipient: str = ""

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.recipient).map(lambda _: Done())


@dataclass(frozen=True, slots=True)
class Pointed:
    """The alias stands for a room: look at that."""

    at: Configured[Settings]
    alias: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_text(reply, "room_id", self.alias).map(lambda room: encryption(self.at, room))


def encryption(at: Configured[Settings], room: str) -> Exchange:
    """The room's own word on encryption: who is not in the room is not told, and where there is none the answer is
    404.
    """
    return _get(at, f"/rooms/{segment(room)}/state/m.room.encryption", Unencrypted(room))


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
