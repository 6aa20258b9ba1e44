"""Telegram by the Bot API: one request a part, the method by the kind of file (https://core.telegram.org/bots/api).

A :class:`Letter` is what is left to be placed in one chat, a :class:`Way` how its first part is asked for. Where the
platform refuses the way but would take another (plain text, as a file, the group's new id), its reply makes the next
exchange, and the receipt says so.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import By, Capabilities, Channel, Configured, Known, Limits, Pace, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.errors import Denied, InvalidArguments, InvalidRecipient, Malformed, Refusal, SendError
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Scope, Step
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.telegram_html import TELEGRAM_HTML
from messaging_core.message import Content, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret, Text, joined
from messaging_core.wire.http import (
    FileRef,
    FormPart,
    HttpReply,
    HttpRequest,
    Multipart,
    at_least,
    json_request,
    read_json,
    text_at,
    to_json,
)
from messaging_core.wire.http import at as value_at


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``telegram`` channel."""

    bot_token: Secret = key(Sort.SECRET, "The bot's token, as BotFather gave it.")
    chat_id: str | None = key(Sort.ID, "Default chat: a number or the `@name` of a group or channel.", default=None)
    message_thread_id: str | None = key(Sort.ID, "A topic of `chat_id` to write to.", default=None)
    api_base: str = key(Sort.URL, "Another Bot API server.", default="https://api.telegram.org")


# --- What Telegram takes ----------------------------------------------------------------------------------------------

MIB = 1024 * 1024

RAW = Length(32_768, Unit.BYTES, Of.RAW)
"""Before the markup is read; "Text is too long" beyond (the Bot API server's source)."""

ENTITIES = Length(100, Unit.STRETCHES, Of.RAW)
"""Further ones are dropped without a word, and the addresses of links with them: undocumented, but well known
(https://docs.python-telegram-bot.org/en/stable/telegram.constants.html#telegram.constants.MessageLimit.MESSAGE_ENTITIES)."""

PHOTO_BYTES, PHOTO_SIDES, PHOTO_RATIO = 10 * MIB, 10_000, 20
"""Of the file; of width and height together, in pixels; of the longer to the shorter (https://core.telegram.org/bots/api#sendphoto)."""

METHODS: dict[Kind, tuple[str, tuple[str, ...]]] = {
    # What else there is of these kinds goes as a document: https://core.telegram.org/bots/api#available-methods
    Kind.IMAGE: ("sendPhoto", ("image/jpeg", "image/png", "image/webp")),
    Kind.ANIMATION: ("sendAnimation", ("image/gif", "video/mp4")),
    Kind.VIDEO: ("sendVideo", ("video/mp4",)),
    Kind.AUDIO: ("sendAudio", ("audio/mpeg", "audio/mp4")),
}

VOICE = ("audio/ogg", "audio/mpeg", "audio/mp4")
"""https://core.telegram.org/bots/api#sendvoice"""


# --- Recipients -------------------------------------------------------------------------------------------------------

CHAT = re.compile(r"(-?[1-9][0-9]{0,18}|@[A-Za-z][A-Za-z0-9_]{0,31})(?:/([1-9][0-9]{0,18}))?")
MESSAGE_ID = re.compile(r"[1-9][0-9]{0,18}")
GENERAL = "1"
"""The topic that every forum has; the platform does not find it by this number, but by none."""


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """``42``, ``-1001234567890``, ``@name``; with a topic ``-1001234567890/7``."""
    found = CHAT.fullmatch(text)
    if found is None:
        return Failure(InvalidRecipient(text, "a chat id (-100...), @name, or <chat>/<topic>"))
    chat, thread = found.groups()
    if thread and kind_of(chat) == "private":
        return Failure(InvalidRecipient(text, "no topic: a private chat has none"))
    return Success(Recipient(chat, kind_of(chat), thread, text))


def kind_of(chat: str) -> str:
    """Persons have positive ids, groups and channels negative ones."""
    return {"@": "name", "-": "group"}.get(chat[0], "private")


def default_recipient(own: Settings) -> str | None:
    """The topic of the settings belongs to their chat alone."""
    chat, topic = own.chat_id, own.message_thread_id
    return f"{chat}/{topic}" if chat and topic and "/" not in chat and kind_of(chat) != "private" else chat


def same(text: str) -> str:
    return text.casefold().removeprefix("@")


def moved_key(chat: str) -> str:
    """Where it is kept that a group has become a supergroup, with another id; true for every bot."""
    return f"telegram.chat.{chat}"


# --- What is asked for ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Letter:
    """What is left for one chat. ``to``: as asked for. ``chat``: its id as far as we know; ``moved``: just told so."""

    at: Configured[Settings]
    to: Recipient
    chat: str
    parts: tuple[tuple[Part, Content], ...]
    reply_to: str | None
    boundary: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """How a part is asked for: the method, whether with markup, and what the reader of the result must know of it."""

    method: str
    markup: bool
    notes: tuple[str, ...]


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    to, reply_to = outgoing.recipient, outgoing.reply_to
    if reply_to is not None and not MESSAGE_ID.fullmatch(reply_to):
        return Failure(InvalidArguments("message_send", (f"reply_to: {reply_to!r} is no message id (a number)",)))
    if to.thread is not None and not MESSAGE_ID.fullmatch(to.thread):
        return Failure(InvalidRecipient(f"{to.id}/{to.thread}", "the id of a topic (a number)"))
    chat = known.get(moved_key(to.id), to.id)
    parts = tuple(outgoing.numbered)
    # Where earlier parts are there already, the first of them was the reply.
    return Success(write(Letter(at, to, chat, parts, reply_to if outgoing.numbered_from == 1 else None, ids.boundary)))


def write(letter: Letter) -> Step:
    return ask(letter, way_of(letter.parts[0][1])) if letter.parts else Done()


def way_of(content: Content) -> Way:
    """The platform's method for the content; a file that the method would refuse goes as a document."""
    if isinstance(content, TextPart):
        return Way("sendMessage", content.markup, content.notes)
    method, types = ("sendVoice", VOICE) if content.voice else METHODS.get(content.kind, ("sendDocument", ()))
    way = Way(method, content.markup, content.notes)
    fits = content.mime in types and (method != "sendPhoto" or fits_photo(content))
    return way if fits or method == "sendDocument" else as_file(way)


def fits_photo(picture: MediaPart) -> bool:
    """Whether a picture is within the limits, as far as it says; the platform has the last word."""
    if picture.facts.size > PHOTO_BYTES:
        return False
    if not picture.width or not picture.height:
        return True
    shorter, longer = sorted((picture.width, picture.height))
    return shorter + longer <= PHOTO_SIDES and longer <= PHOTO_RATIO * shorter


def as_file(way: Way) -> Way:
    return Way("sendDocument", way.markup, (*(note for note in way.notes if note != "as audio"), "as a file"))


def ask(letter: Letter, way: Way) -> Exchange:
    """One part. Nothing deduplicates here, so an unanswered request is not to be repeated."""
    at, (part, content) = letter.at, letter.parts[0]
    url, fields = url_of(at, way.method), fields_of(letter, way)
    if isinstance(content, MediaPart):
        request = HttpRequest("POST", url, (), Multipart((*form(fields), file(way, content)), letter.boundary))
    else:
        request = json_request("POST", url, fields)
    return Exchange(request, Placed(letter, way), scope_of(at, letter.chat), part)


def scope_of(at: Configured[Settings], chat: str) -> Scope:
    """The platform counts by chat, whatever the method. Groups have a pace of their own: the method stands for that."""
    return Scope(at.name, at.own.bot_token.name, chat, "" if kind_of(chat) == "private" else f"group {chat}")


def url_of(at: Configured[Settings], method: str) -> Text:
    return joined(f"{at.own.api_base}/bot", at.own.bot_token, f"/{method}")


def chat_id(chat: str) -> int | str:
    """A number as a number, as documented: its 52 bits are exact in JSON."""
    return chat if kind_of(chat) == "name" else int(chat)


def fields_of(letter: Letter, way: Way) -> dict[str, Any]:
    """The parameters but for the file."""
    content = letter.parts[0][1]
    text = content.caption if isinstance(content, MediaPart) else content.text
    fields: dict[str, Any] = {"chat_id": chat_id(letter.chat)}
    if letter.to.thread not in (None, GENERAL) and kind_of(letter.chat) != "private":
        fields["message_thread_id"] = int(letter.to.thread or 0)
    if text is not None:
        name = "caption" if isinstance(content, MediaPart) else "text"
        fields[name] = text.text if way.markup or not content.markup else text.visible
        if way.markup:
            fields["parse_mode"] = "HTML"
    if isinstance(content, MediaPart):
        fields |= look(way.method, content)
    if letter.reply_to is not None:
        fields["reply_parameters"] = {"message_id": int(letter.reply_to), "allow_sending_without_reply": True}
    return fields


def look(method: str, media: MediaPart) -> dict[str, Any]:
    """What helps a client show the file before it is loaded; a document stays one."""
    known = {"width": media.width, "height": media.height, "duration": media.duration and round(media.duration)}
    wanted = {
        "sendVideo": ("width", "height", "duration"),
        "sendAnimation": ("width", "height", "duration"),
        "sendAudio": ("duration",),
        "sendVoice": ("duration",),
    }.get(method, ())
    more = {"sendVideo": {"supports_streaming": True}, "sendDocument": {"disable_content_type_detection": True}}
    return {name: known[name] for name in wanted if known[name]} | more.get(method, {})


def form(fields: dict[str, Any]) -> tuple[FormPart, ...]:
    """In a form, numbers and nested objects stand as JSON."""
    return tuple(
        FormPart(name, value.encode() if isinstance(value, str) else to_json(value)) for name, value in fields.items()
    )


def file(way: Way, media: MediaPart) -> FormPart:
    content = media.data if media.data is not None else FileRef(media.facts)
    return FormPart(way.method.removeprefix("send").lower(), content, media.facts.name, media.mime)


# --- What the reply means ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """The first part of the letter is there, or another way to place it is left."""

    letter: Letter
    way: Way

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.letter.to).map(self._placed).lash(lambda cause: self._otherwise(reply, cause))

    def _placed(self, message: Any) -> Step:
        letter, notes = self.letter, self.way.notes
        shown = str(letter.to)
        if letter.chat != letter.to.id:
            shown, notes = letter.chat, (*notes, f"the group {letter.to.id} is now {letter.chat}")
        if letter.reply_to is not None and not_a_reply(message):
            notes = (*notes, "not as a reply: the message replied to is gone")
        receipt = Receipt(letter.parts[0][0], text_at(message, "message_id") or None, shown, notes)
        return replace(write(replace(letter, parts=letter.parts[1:], reply_to=None)), delivered=(receipt,))

    def _otherwise(self, reply: HttpReply, cause: SendError) -> Result[Step, SendError]:
        letter, body = self.letter, read_json(reply).value_or(None)
        chat = text_at(body, "parameters", "migrate_to_chat_id")
        if kind_of(chat or "0") == "group" and CHAT.fullmatch(chat) and not letter.moved:
            step = ask(replace(letter, chat=chat, moved=True), self.way)
            return Success(replace(step, learned=(Learned(moved_key(letter.to.id), chat),)))
        way = other_way(self.way, letter.parts[0][1], text_at(body, "description").casefold())
        return Failure(cause) if way is None else Success(ask(letter, way))


def other_way(way: Way, content: Content, said: str) -> Way | None:
    """Another way to place what was refused, if what was ``said`` (in lower case) leaves one. No way is tried twice."""
    if way.markup and "can't parse entities" in said:
        return replace(way, markup=False, notes=(*way.notes, "as plain text"))
    if way.method == "sendPhoto" and any(word in said for word in ("photo_", "image_process_failed", "for a photo")):
        return as_file(way)
    if way.method == "sendVoice" and "voice_messages_forbidden" in said and isinstance(content, MediaPart):
        # The recipient's privacy setting. OGG sent as audio might be made a voice message again.
        if content.mime in METHODS[Kind.AUDIO][1]:
            return Way("sendAudio", way.markup, (*way.notes, "as audio"))
        return as_file(way)
    return None


def not_a_reply(message: Any) -> bool:
    """A whole message (one that names its chat) quotes what it replies to, also where that is in another chat."""
    quotes = value_at(message, "reply_to_message") or value_at(message, "external_reply")
    return value_at(message, "chat") is not None and not quotes


TABLE: dict[str, type[SendError]] = {
    # There are no stable codes: words of the description, in any case; the first that is found counts.
    **dict.fromkeys(("chat not found", "user not found", "chat_id is empty", "PEER_ID_INVALID"), InvalidRecipient),
    **dict.fromkeys(("bot was blocked", "user is deactivated", "can't initiate conversation"), InvalidRecipient),
    **dict.fromkeys(("bot was kicked", "bot is not a member", "can't send messages to bots"), InvalidRecipient),
    **dict.fromkeys(
        ("group chat was upgraded", "group chat was deactivated", "group chat was deleted"), InvalidRecipient
    ),
    **dict.fromkeys(("message thread not found", "TOPIC_DELETED"), InvalidRecipient),
    **dict.fromkeys(("not enough rights", "no rights to send", "administrator rights", "CHAT_RESTRICTED"), Denied),
    **dict.fromkeys(("TOPIC_CLOSED", "_FORBIDDEN"), Denied),
}

BY_STATUS: dict[int, dict[str, type[SendError]]] = {
    # A malformed token is "Not Found"; a server that does not serve this bot says 421.
    404: {"": Denied},
    421: {"": Denied},
}


def read(reply: HttpReply, to: Recipient | None) -> Result[Any, SendError]:
    """The ``result`` of a good answer, or the failure that it is."""
    if not 200 <= reply.status < 300:
        return Failure(refusal(reply, read_json(reply).value_or(None), to))
    body: Result[Any, SendError] = read_json(reply).alt(lambda malformed: malformed)
    return body.bind(lambda said: _result(reply, said, to))


def _result(reply: HttpReply, body: Any, to: Recipient | None) -> Result[Any, SendError]:
    if value_at(body, "ok") is True:
        return Success(value_at(body, "result"))
    if value_at(body, "ok") is False:
        return Failure(refusal(reply, body, to))
    return Failure(Malformed(reply.status, reply.reason, detail="the answer says neither yes nor no"))


def refusal(reply: HttpReply, body: Any, to: Recipient | None) -> SendError:
    """``{ok: false, error_code, description, parameters: {retry_after}}``; the wait in seconds."""
    said, wait = text_at(body, "description"), value_at(body, "parameters", "retry_after")
    return failure(
        reply,
        code=next((word for word in TABLE if word.casefold() in said.casefold()), ""),
        detail=said.removeprefix(reply.reason).removeprefix(": ") if reply.reason else said,
        table=TABLE | BY_STATUS.get(reply.status, {}),
        wait=None if wait is None else at_least(wait),
        recipient=str(to or ""),
    )


# --- Asking beforehand ------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; or whether the chat is there for us, which asks for the token too. Some servers take POST alone."""
    method, chat = ("getMe", "") if recipient is None else ("getChat", known.get(moved_key(recipient.id), recipient.id))
    request = json_request("POST", url_of(at, method), {"chat_id": chat_id(chat)} if chat else {}, repeatable=True)
    return Exchange(request, There(recipient), Scope(at.name, at.own.bot_token.name, chat))


@dataclass(frozen=True, slots=True)
class There:
    recipient: Recipient | None

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.recipient).map(lambda _: Done())


def rehearse(request: Any) -> HttpReply:
    """What Telegram would answer."""
    chat = {"id": 1, "type": "private"}
    message = {"message_id": 1, "date": 0, "chat": chat, "reply_to_message": {"message_id": 1, "date": 0, "chat": chat}}
    return HttpReply(200, "OK", (), json.dumps({"ok": True, "result": message}).encode())


CHANNEL = Channel(
    platform="telegram",
    settings=Settings,
    capabilities=Capabilities(media=True, voice=True, reply=True),
    limits=Limits(
        text=(Length(4096, Unit.CODE_POINTS), RAW, ENTITIES),
        caption=(Length(1024, Unit.CODE_POINTS), RAW, ENTITIES),
        any_file=50 * MIB,
        voice=VOICE,
        voice_captioned=True,
    ),
    dialect=TELEGRAM_HTML,
    # One a second in a chat (with short bursts), 20 a minute in a group, 30 a second in all:
    # https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
    pace=(Pace(5, 5.0, By.CHAT), Pace(20, 60.0, By.METHOD), Pace(30, 1.0, By.CREDENTIAL)),
    describe=describe,
    recipient=recipient,
    default_recipient=default_recipient,
    default_key="chat_id",
    probe=probe,
    rehearse=rehearse,
    same=same,
)
