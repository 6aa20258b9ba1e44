"""Matrix rooms by the client-server API, v3 (https://spec.matrix.org/latest/client-server-api/)."""

import json
import re
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Limits, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.errors import Denied, Invalid, InvalidRecipient, RateLimited, Refusal, SendError
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, in_order
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.matrix_html import MATRIX_HTML
from messaging_core.message import Content, Ids, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import HttpReply, HttpRequest, at, at_least, bearer, json_request, read_json, segment, text_at


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``matrix`` channel."""

    homeserver: str = key(Sort.URL, "Base URL of the homeserver, `https://matrix.org`.")
    access_token: Secret = key(Sort.SECRET, "Access token of the account that sends.")
    room_id: str | None = key(Sort.ID, "Default room: id, alias or user.", default=None)


FORMS = {
    "room": re.compile(r"![!-~]{1,254}"),
    "alias": re.compile(r"#[^\s:\x00-\x1f]+:[!-~]+"),
    "user": re.compile(r"@[^\s:\x00-\x1f]+:[!-~]+"),
}
"""https://spec.matrix.org/latest/appendices/#identifier-grammar; rooms of version 12 have ids without a server."""

CODES: dict[str, type[SendError]] = {
    # https://spec.matrix.org/latest/client-server-api/#standard-error-response
    **dict.fromkeys(("M_FORBIDDEN", "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_LOCKED", "M_USER_SUSPENDED"), Denied),
    **dict.fromkeys(("M_USER_DEACTIVATED", "M_GUEST_ACCESS_FORBIDDEN", "M_CONSENT_NOT_GIVEN"), Denied),
    **dict.fromkeys(("M_TOO_LARGE", "M_BAD_JSON", "M_NOT_JSON", "M_INVALID_PARAM", "M_UNRECOGNIZED"), Invalid),
    "M_NOT_FOUND": InvalidRecipient,
    "M_LIMIT_EXCEEDED": RateLimited,
}


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    for kind, form in FORMS.items():
        if form.fullmatch(text) and len(text.encode()) <= 255:
            return Success(Recipient(text, kind))
    return Failure(InvalidRecipient(text, "a room id (!...), an alias (#name:server) or a user (@name:server)"))


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(in_order(tuple(place(at, outgoing, ids, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], outgoing: Outgoing, ids: Ids, part: Part, content: Content) -> Exchange:
    """One event. The transaction id comes from the message's id, so that a repeat is the same event."""
    assert isinstance(content, TextPart)
    room = outgoing.recipient.id
    event: dict[str, Any] = {"msgtype": "m.text", "body": content.text.text}
    if content.markup and content.text.formatted is not None:
        event |= {"format": "org.matrix.custom.html", "formatted_body": content.text.formatted}
    if outgoing.mute:
        event["m.mentions"] = {}
    return send_event(at, room, event, ids.part(part.index), part, content.notes)


def send_event(
    at: Configured[Settings], room: str, event: dict[str, Any], transaction: str, part: Part, notes: tuple[str, ...]
) -> Exchange:
    """``PUT`` an event into a room (https://spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid)."""
    url = f"{at.own.homeserver}/_matrix/client/v3/rooms/{segment(room)}/send/m.room.message/{segment(transaction)}"
    request = json_request("PUT", url, event, headers=(bearer(at.own.access_token),), repeatable=True)
    return Exchange(request, Placed(part, room, notes), Scope(at.name, at.own.access_token.name, room), part)


@dataclass(frozen=True, slots=True)
class Placed:
    """The event is in the room."""

    part: Part
    room: str
    notes: tuple[str, ...]

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.room).map(
            lambda body: Done((Receipt(self.part, text_at(body, "event_id") or None, self.room, self.notes),))
        )


def read(reply: HttpReply, room: str = "") -> Result[Any, SendError]:
    """The body of a good answer, or the failure that it is; waits come in milliseconds, or as ``Retry-After``."""
    if 200 <= reply.status < 300:
        return read_json(reply)
    body = read_json(reply).value_or(None)
    wait = at(body, "retry_after_ms")
    return Failure(
        failure(
            reply,
            code=text_at(body, "errcode"),
            detail=text_at(body, "error"),
            table=CODES,
            wait=None if wait is None else at_least(wait / 1000 if isinstance(wait, int | float) else wait),
            recipient=room,
        )
    )


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; and whether we are in the room."""
    base, auth = f"{at.own.homeserver}/_matrix/client/v3", (bearer(at.own.access_token),)
    path = f"/rooms/{segment(recipient.id)}/joined_members" if recipient else "/account/whoami"
    request = HttpRequest("GET", base + path, auth, repeatable=True)
    return Exchange(request, There(recipient.id if recipient else ""), Scope(at.name, at.own.access_token.name))


@dataclass(frozen=True, slots=True)
class There:
    room: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.room).map(lambda _: Done())


def rehearse(request: Any) -> HttpReply:
    return HttpReply(200, "OK", (), json.dumps({"event_id": "$rehearsed"}).encode())


CHANNEL = Channel(
    platform="matrix",
    settings=Settings,
    capabilities=Capabilities(),
    limits=Limits(text=(Length(60_000, Unit.BYTES, Of.RAW),)),
    dialect=MATRIX_HTML,
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.room_id,
    default_key="room_id",
    probe=probe,
    rehearse=rehearse,
)
