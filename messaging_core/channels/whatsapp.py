"""WhatsApp by the Cloud API (https://developers.facebook.com/documentation/business-messaging/whatsapp)."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import By, Capabilities, Channel, Configured, Fault, Known, Limits, Pace, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Refusal,
    Rejected,
    SendError,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, in_order
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.whatsapp import WHATSAPP
from messaging_core.message import Content, Ids, Kind, MediaPart, Outgoing, Recipient
from messaging_core.secrecy import Secret
from messaging_core.wire.http import (
    FileRef,
    FormPart,
    HttpReply,
    HttpRequest,
    Multipart,
    at,
    at_least,
    bearer,
    json_request,
    read_json,
    segment,
    text_at,
)

# --- Settings and limits ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``whatsapp`` channel."""

    access_token: Secret = key(Sort.SECRET, "Access token with the right `whatsapp_business_messaging`.")
    phone_number_id: str = key(Sort.ID, "Id of the business's phone number (not the number itself).")
    to: str | None = key(Sort.ID, "Default recipient: international phone number, user id or group id.", default=None)
    api_base: str = key(Sort.URL, "Prefix, version included.", default="https://graph.facebook.com/v25.0")


def check(values: Mapping[str, Any]) -> Iterator[Fault]:
    """The phone number itself, where its id belongs, gives an error of Graph that nobody understands."""
    if not re.fullmatch(r"(?a:\d+)", str(values.get("phone_number_id", "0"))):
        yield Fault("phone_number_id", "not an id: it consists of digits", "WhatsApp Manager shows it below the number")


TEXT = Length(4096, Unit.UTF16, Of.RAW)
CAPTION = Length(1024, Unit.UTF16, Of.RAW)
"""The documentation says "characters" and not which. In UTF-16 units a text is never shorter than in code points, so it
fits either way; one that is too long would be refused whole.
https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/text-messages"""

OGG = ("audio/ogg", "audio/opus")
VOICE = (*OGG, "audio/ogg; codecs=opus")

MB = 1024 * 1024
DOCUMENT = 100 * MB
SORTS: tuple[tuple[str, frozenset[str], int], ...] = (
    ("image", frozenset({"image/jpeg", "image/png"}), 5 * MB),
    ("video", frozenset({"video/mp4", "video/3gpp"}), 16 * MB),
    ("audio", frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", *OGG}), 16 * MB),
)
"""What is shown as what, with its limit in bytes; all else, and what is larger, goes as a document:
https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media#supported-media-types"""


# --- Recipients -------------------------------------------------------------------------------------------------------

PHONE = re.compile(r"\+?[1-9](?:[ ()-]{0,2}(?a:\d)){6,14}")
USER = re.compile(r"[A-Z]{2}\.[A-Za-z0-9.]{1,125}")
GROUP = re.compile(r"group:([A-Za-z0-9+/_-]+={0,2})|(?=[^A-Za-z]*[A-Za-z])([A-Za-z0-9+/_-]{20,}={0,2})")
"""Ids of groups are opaque, in base64, and long; ``group:`` before one says so in any case."""


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """An international phone number (its digits are sent), a business-scoped user id (``DE.1234``), a group id."""
    if PHONE.fullmatch(text):
        return Success(Recipient(_digits(text), "phone"))
    if USER.fullmatch(text):
        return Success(Recipient(text, "user"))
    group = GROUP.fullmatch(text)
    if group is not None:
        return Success(Recipient(group[1] or group[2], "group"))
    return Failure(InvalidRecipient(text, "a phone number with its country code, a user id (DE.1234...) or a group id"))


def same(text: str) -> str:
    """Phone numbers are compared by their digits; ids are, letter by letter, what they are."""
    return _digits(text) if PHONE.fullmatch(text) else text.removeprefix("group:")


def _digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text)


# --- Requests ---------------------------------------------------------------------------------------------------------


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(in_order(tuple(place(at, outgoing, ids, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], outgoing: Outgoing, ids: Ids, part: Part, content: Content) -> Exchange:
    """One part; a file is uploaded before. The reply belongs to the first."""
    reply = outgoing.reply_to if part.index == 1 else None
    target = Target(at, outgoing.recipient, part, content.notes, reply)
    if isinstance(content, MediaPart):
        return upload(target, content, ids.boundary)
    return send(target, "text", (("body", content.text.text), ("preview_url", False)))


Fields: TypeAlias = tuple[tuple[str, str | bool], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where one part goes, and what message it replies to."""

    at: Configured[Settings]
    recipient: Recipient
    part: Part
    notes: tuple[str, ...] = ()
    reply: str | None = None

    def noting(self, *notes: str) -> "Target":
        return replace(self, notes=(*self.notes, *notes))

    @property
    def address(self) -> dict[str, str]:
        """A business-scoped user id has a field of its own; a number goes into ``to``, and so does a group."""
        group = self.recipient.kind == "group"
        field = "recipient" if self.recipient.kind == "user" else "to"
        return {"recipient_type": "group" if group else "individual", field: self.recipient.id}


def send(target: Target, type: str, fields: Fields, instead: "Instead" = ()) -> Exchange:
    """One message, its content in the object that is named as its type.

    https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/send-messages
    """
    body = {
        "messaging_product": "whatsapp",
        **target.address,
        **({"context": {"message_id": target.reply}} if target.reply else {}),
        "type": type,
        type: dict(fields),
    }
    if target.reply:
        bare = replace(target, reply=None).noting("not as a reply: the message replied to is not there")
        instead = (*instead, ("131009", send(bare, type, fields, instead)))
    own = target.at.own
    request = json_request("POST", _url(own, "messages"), body, headers=(bearer(own.access_token),))
    return Exchange(request, Accepted(target, instead), _scope(target.at, "messages", target.recipient.id), target.part)


def upload(target: Target, content: MediaPart, boundary: str) -> Exchange:
    """Store a file.

    https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media
    """
    own, mime = target.at.own, mime_of(content)
    form = Multipart(
        (
            FormPart("messaging_product", b"whatsapp"),
            FormPart("type", mime.encode()),
            FormPart(
                "file", FileRef(content.facts) if content.data is None else content.data, content.facts.name, mime
            ),
        ),
        boundary,
    )
    request = HttpRequest("POST", _url(own, "media"), (bearer(own.access_token),), form, repeatable=True)
    return Exchange(request, Uploaded(target, content), _scope(target.at, "media"))


def show(target: Target, content: MediaPart, sort: str, id: str) -> Exchange:
    """The stored file as ``sort``: only a document has a name; only audio can be voice, and it has no caption."""
    fields: list[tuple[str, str | bool]] = [("id", id)]
    if content.caption is not None:
        assert sort != "audio", "a caption to audio goes as text of its own"
        fields.append(("caption", content.caption.text))
    if sort == "document":
        fields.append(("filename", content.facts.name))
        target = target if content.kind is Kind.DOCUMENT else target.noting("as a file")
    if content.voice and sort == "audio":
        fields += [("voice", True)] if is_opus(content) else []
        target = target if is_opus(content) else target.noting("as audio")
    refused_picture = (("131053", show(target, content, "document", id)),) if sort == "image" else ()
    return send(target, sort, tuple(fields), refused_picture)


def _url(own: Settings, *path: str) -> str:
    return "/".join((own.api_base, segment(own.phone_number_id), *path))


def _scope(at: Configured[Settings], method: str, chat: str = "") -> Scope:
    return Scope(at.name, at.own.access_token.name, chat, method)


# --- How a file is shown ----------------------------------------------------------------------------------------------


def is_opus(content: MediaPart) -> bool:
    """Whether an Ogg file holds Opus, by its first page (RFC 7845, 5.1): the only Ogg that WhatsApp plays."""
    return content.mime.partition(";")[0] in OGG and b"OpusHead" in (content.data or content.facts.head)[:512]


def mime_of(content: MediaPart) -> str:
    """The type as WhatsApp lists it: of texts it knows ``text/plain`` alone, and Ogg by its codec."""
    if is_opus(content):
        return "audio/ogg; codecs=opus"
    return "text/plain" if content.mime.startswith("text/") else content.mime


def sort_of(content: MediaPart) -> str:
    """``image``, ``video``, ``audio`` or ``document``: by type and size, a document where no other would be taken."""
    mime, size = content.mime.partition(";")[0], content.facts.size
    if content.kind is Kind.DOCUMENT or (mime in OGG and not is_opus(content)):
        return "document"
    return next((sort for sort, mimes, most in SORTS if mime in mimes and size <= most), "document")


# --- What replies mean ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The file is stored for 30 days, and has an id. Nobody sees it yet."""

    target: Target
    content: MediaPart

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.target.recipient.id, "id").map(
            lambda body: show(self.target, self.content, sort_of(self.content), text_at(body, "id"))
        )


Instead: TypeAlias = tuple[tuple[str, Exchange], ...]
"""Code of a refusal -> the step taken instead: a picture as a file, a reply as a message of its own."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """WhatsApp has taken the message over; whether it reaches the phone is told later, to a webhook of the app."""

    target: Target
    instead: Instead

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        other = dict(self.instead).get(_code(reply))
        if other is not None:
            return Success(other)
        return read(reply, self.target.recipient.id, "messages", 0, "id").map(self._done)

    def _done(self, body: Any) -> Step:
        to, notes = self.target.recipient, list(self.target.notes)
        status, number = text_at(body, "messages", 0, "message_status"), text_at(body, "contacts", 0, "wa_id")
        if status in ("held_for_quality_assessment", "paused"):
            notes.append(f"not delivered yet: {status.replace('_', ' ')}")
        if to.kind == "phone" and number and _digits(number) != to.id:
            notes.append(f"WhatsApp knows the number as {_digits(number)}")
        return Done((Receipt(self.target.part, text_at(body, "messages", 0, "id"), str(to), tuple(notes)),))


# --- Errors -----------------------------------------------------------------------------------------------------------

CODES: dict[str, type[SendError]] = {
    # https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
    **dict.fromkeys(("0", "3", "10", "33", "190", "368", "131005", "131031"), Denied),
    **{str(code): Denied for code in range(200, 300)},
    **dict.fromkeys(("131037", "131042", "131045", "133010", "100/33"), Denied),
    **dict.fromkeys(("100", "131008", "131009", "131051", "131052", "131053", "135000", "137000"), Invalid),
    **{str(code): Invalid for code in range(132000, 132070)},
    **dict.fromkeys(("131021", "131026", "131030", "131062", "130497"), InvalidRecipient),
    **dict.fromkeys(("131047", "131049", "131050"), Rejected),
    **dict.fromkeys(("4", "80007", "130429", "131048", "131056"), RateLimited),
    **dict.fromkeys(("1", "2", "131000", "131016", "131057"), Unavailable),
}

MEANING = {
    "33": "the business's phone number has been deleted",
    "100/33": "phone_number_id is not there, or the token has no right to it",
    "130497": "the business may not write to users in this country",
    "131021": "this is the business's own number",
    "131026": "not on WhatsApp, or not reachable there",
    "131030": "not among the recipients that a test number may write to",
    "131047": "more than 24 hours since the user last wrote: only an approved template can be sent now",
    "131048": "messages from this number were reported as spam: sending is restricted for a while",
    "131049": "withheld by WhatsApp to keep this user from too many messages",
    "131050": "the user has stopped marketing messages of this business",
    "131062": "this message cannot go to a user id, a phone number is needed",
}

PAIR_LIMITED = "131056"
PAIR_WAIT = 6.0
"""Seconds: one message to the same user in so many, where WhatsApp itself names no wait.
https://developers.facebook.com/documentation/business-messaging/whatsapp/throughput"""


def read(reply: HttpReply, recipient: str, *needed: str | int) -> Result[Any, SendError]:
    """The body of a success, which has something at ``needed``; or what ``{"error": {"code", "message", ...}}`` is."""
    body = read_json(reply)
    if not 200 <= reply.status < 300 or at(body.value_or(None), "error") is not None:
        return Failure(failure_of(reply, recipient))
    return body.bind(lambda value: _holding(reply, value, needed))


def _holding(reply: HttpReply, body: Any, needed: tuple[str | int, ...]) -> Result[Any, Malformed]:
    if text_at(body, *needed):
        return Success(body)
    return Failure(Malformed(reply.status, reply.reason, detail="the answer has no id"))


def _code(reply: HttpReply) -> str:
    """The code that decides, with the subcode where that says more. The HTTP status does not decide: it varies."""
    error = at(read_json(reply).value_or(None), "error")
    both = f"{text_at(error, 'code')}/{text_at(error, 'error_subcode')}"
    return both if both in CODES else text_at(error, "code")


def failure_of(reply: HttpReply, recipient: str = "") -> SendError:
    error, code = at(read_json(reply).value_or(None), "error"), _code(reply)
    said = text_at(error, "error_data", "details") or text_at(error, "message")
    meaning = MEANING.get(code)
    table = CODES if code in CODES or at(error, "is_transient") is not True else {code: Unavailable}
    detail = f"{meaning} ({said})" if meaning and said else meaning or said
    return failure(reply, code=code, detail=detail, table=table, wait=_wait(reply, code), recipient=recipient)


def _wait(reply: HttpReply, code: str) -> float | None:
    """Seconds, from the minutes that Graph gives in ``X-Business-Use-Case-Usage``.

    ``{"<account>": [{"estimated_time_to_regain_access": 5, ...}]}``,
    https://developers.facebook.com/docs/graph-api/overview/rate-limiting#headers-2
    """
    try:
        usage = json.loads(reply.header("X-Business-Use-Case-Usage") or "{}")
    except ValueError:
        usage = {}
    accounts = usage.values() if isinstance(usage, dict) else ()
    limits = [limit for listed in accounts if isinstance(listed, list) for limit in listed]
    minutes = [at(limit, "estimated_time_to_regain_access") for limit in limits]
    waits = [at_least(60.0 * each) for each in minutes if isinstance(each, int | float) and each > 0]
    return max(waits, default=PAIR_WAIT if code == PAIR_LIMITED else None)


# --- Probing ----------------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Whether the number is ours to send from. The platform has no call that says whether somebody is on WhatsApp."""
    query = (("fields", "id,display_phone_number,verified_name,quality_rating"),)
    request = HttpRequest("GET", _url(at.own), (bearer(at.own.access_token),), query=query, repeatable=True)
    return Exchange(request, there, _scope(at, "phone_number"))


def there(reply: HttpReply, /) -> Result[Step, SendError]:
    return read(reply, "", "id").map(lambda _: Done())


def rehearse(request: Any) -> HttpReply:
    """The success that WhatsApp would answer."""
    path = str(request.url)
    if path.endswith("/messages"):
        body = json.loads(request.body)
        to = body.get("to") or body.get("recipient")
        answer: dict[str, Any] = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": to}],
            "messages": [{"id": "wamid.rehearsed"}],
        }
    else:
        answer = {"id": "1000000000"}
    return HttpReply(200, "OK", (), json.dumps(answer).encode())


CHANNEL = Channel(
    platform="whatsapp",
    settings=Settings,
    capabilities=Capabilities(media=True, voice=True, reply=True),
    limits=Limits(
        text=(TEXT,), caption=(CAPTION,), any_file=DOCUMENT, voice=VOICE, uncaptioned=frozenset({Kind.AUDIO})
    ),
    dialect=WHATSAPP,
    pace=(Pace(80, 1.0, By.CREDENTIAL), Pace(10, 60.0, By.CHAT)),
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.to,
    default_key="to",
    probe=probe,
    same=same,
    check=check,
    rehearse=rehearse,
)
