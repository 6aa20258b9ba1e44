"""Discord by a bot: channels, threads, and persons by DM (https://docs.discord.com/developers/resources/message).

A person is written to in a DM channel, which is opened first and then known. Each message carries a nonce by which the
platform knows a repeat, so that an unanswered request may be sent again.
"""

import base64
import re
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels import _discord
from messaging_core.channels.channel import By, Capabilities, Channel, Configured, Known, Limits, Pace, Sort, key
from messaging_core.errors import InvalidArguments, InvalidRecipient, Malformed, Refusal, SendError
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Scope, Step, after, in_order
from messaging_core.markup.discord import DISCORD
from messaging_core.message import Content, Ids, MediaPart, Outgoing, Recipient
from messaging_core.secrecy import Secret, Text, joined
from messaging_core.wire.http import HttpReply, HttpRequest, json_request, text_at
from messaging_core.wire.http import at as value_at


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``discord`` channel."""

    bot_token: Secret = key(Sort.SECRET, "The bot's token, without `Bot ` before it.")
    channel_id: str | None = key(Sort.ID, "Default channel or thread: its id, or `user:<id>`.", default=None)
    api_base: str = key(Sort.URL, "Another API, version included.", default="https://discord.com/api/v10")


# --- Recipients -------------------------------------------------------------------------------------------------------

FORMS = (
    ("channel", re.compile(r"(?:channel:)?([1-9][0-9]{0,19})(?:/([1-9][0-9]{0,19}))?")),
    ("channel", re.compile(r"<#([1-9][0-9]{0,19})>(?:/([1-9][0-9]{0,19}))?")),
    ("user", re.compile(r"user:([1-9][0-9]{0,19})()")),
    ("user", re.compile(r"<@!?([1-9][0-9]{0,19})>()")),
)
"""All ids look alike, so the writing says whose it is. A thread's id serves as a channel's."""


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """``111``, ``channel:111``, ``<#111>``, in a thread ``111/222``; a person ``user:333``, ``<@333>``."""
    for kind, form in FORMS:
        if found := form.fullmatch(text):
            id, thread = found.groups()
            shown = f"user:{id}" if kind == "user" else f"{id}/{thread}" if thread else id
            return Success(Recipient(id, kind, thread or None, shown))
    return Failure(InvalidRecipient(text, "a channel or thread id, <channel>/<thread>, or user:<id>"))


def same(text: str) -> str:
    """An id is an id, however it is written (no person's is a channel's); a name is one with or without ``@``."""
    name = text.casefold().removeprefix("@")
    return recipient(text).map(lambda found: str(found).removeprefix("user:")).value_or(name)


# --- What is asked for ------------------------------------------------------------------------------------------------


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    to, reply_to = outgoing.recipient, outgoing.reply_to
    if reply_to is not None and not _discord.ID.fullmatch(reply_to):
        return Failure(InvalidArguments("message_send", (f"reply_to: {reply_to!r} is no message id (a number)",)))
    if to.thread is not None and not _discord.ID.fullmatch(to.thread):
        return Failure(InvalidRecipient(f"{to.id}/{to.thread}", "the id of a thread (a number)"))
    if to.kind != "user":
        return Success(write(at, outgoing, ids, to.thread or to.id))
    if dm := known.get(dm_key(at, to.id)):
        return Success(write(at, outgoing, ids, dm))
    return Success(after(open_dm(at, to), InDm(at, outgoing, ids)))


def write(at: Configured[Settings], outgoing: Outgoing, ids: Ids, channel: str) -> Step:
    return in_order(tuple(place(at, outgoing, ids, channel, part, content) for part, content in outgoing.numbered))


def place(
    at: Configured[Settings], outgoing: Outgoing, ids: Ids, channel: str, part: Part, content: Content
) -> Exchange:
    """One message (https://docs.discord.com/developers/resources/message#create-message)."""
    reply_to = outgoing.reply_to if part.index == 1 else None
    more: dict[str, Any] = {"nonce": ids.part(part.index), "enforce_nonce": True}
    if reply_to is not None:
        more["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
        if outgoing.mute:
            more["allowed_mentions"] = {"parse": [], "replied_user": False}
    body = _discord.message_body(content, outgoing.mute, **more)
    url, headers = f"{at.own.api_base}/channels/{channel}/messages", headers_of(at)
    placed = Placed(part, str(outgoing.recipient), reply_to is not None, content.notes)
    scope = Scope(at.name, at.own.bot_token.name, channel)
    if not isinstance(content, MediaPart):
        return Exchange(json_request("POST", url, body, headers=headers, repeatable=True), placed, scope, part)
    if content.voice:
        ordinary = replace(content, voice=False, notes=(*content.notes, "as audio"))
        instead = place(at, outgoing, ids, channel, part, ordinary)
        if not content.duration or content.caption is not None:
            return instead
        body["flags"] = IS_VOICE_MESSAGE
        spoken = {"duration_secs": content.duration, "waveform": FLAT}
        multipart = _discord.with_file(body, content, ids.boundary, **spoken)
        placed = replace(placed, instead=instead)
    else:
        multipart = _discord.with_file(body, content, ids.boundary)
    return Exchange(HttpRequest("POST", url, headers, multipart, repeatable=True), placed, scope, part)


IS_VOICE_MESSAGE = 8192
"""One audio file with its length and wave form, and no text: https://docs.discord.com/developers/resources/message#voice-messages"""

FLAT = base64.b64encode(bytes([128] * 64)).decode()
"""The wave form that clients draw: up to 256 amplitudes of 0 to 255. What is spoken is not looked at here."""

NO_VOICE = ("50013", "50159", "50160", "50161", "50173")
"""A missing right (it might be that for voice messages alone), or the file or the channel not taken for one."""


def headers_of(at: Configured[Settings]) -> tuple[tuple[str, Text], ...]:
    return (("Authorization", joined("Bot ", at.own.bot_token)), _discord.AGENT)


# --- What the reply means ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """The message is there; or, where the platform takes no voice message, ``instead`` is left."""

    part: Part
    recipient: str
    reply: bool
    notes: tuple[str, ...]
    instead: Exchange | None = None

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return _discord.read(reply, self.recipient).map(self._placed).lash(self._otherwise)

    def _placed(self, message: Any) -> Step:
        gone = ("not as a reply: the message replied to is gone",) if self.reply and not_a_reply(message) else ()
        return Done((Receipt(self.part, text_at(message, "id") or None, self.recipient, (*self.notes, *gone)),))

    def _otherwise(self, cause: SendError) -> Result[Step, SendError]:
        refused = getattr(cause, "code", "") in NO_VOICE
        return Failure(cause) if self.instead is None or not refused else Success(self.instead)


def not_a_reply(message: Any) -> bool:
    """A reply is of type 19 and holds the message replied to; an ordinary message is of type 0."""
    nothing = isinstance(message, dict) and message.get("referenced_message", message) is None
    return nothing or value_at(message, "type") == 0


# --- Direct messages --------------------------------------------------------------------------------------------------


def dm_key(at: Configured[Settings], user: str) -> str:
    """Where it is kept which DM channel this bot has with a person."""
    return f"discord.dm.{at.name}.{user}"


def open_dm(at: Configured[Settings], to: Recipient) -> Exchange:
    """Nothing is visible yet; a DM that is there is given again: https://docs.discord.com/developers/resources/user#create-dm"""
    url = f"{at.own.api_base}/users/@me/channels"
    request = json_request("POST", url, {"recipient_id": to.id}, headers=headers_of(at), repeatable=True)
    return Exchange(request, Opened(dm_key(at, to.id), str(to)), Scope(at.name, at.own.bot_token.name, method="dm"))


@dataclass(frozen=True, slots=True)
class Opened:
    """The DM channel is there."""

    key: str
    recipient: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return _discord.read(reply, self.recipient).bind(lambda channel: self._known(reply, text_at(channel, "id")))

    def _known(self, reply: HttpReply, id: str) -> Result[Step, SendError]:
        if not _discord.ID.fullmatch(id):
            return Failure(Malformed(reply.status, reply.reason, detail="the answer names no DM channel"))
        return Success(Done(learned=(Learned(self.key, id),)))


@dataclass(frozen=True, slots=True)
class InDm:
    """What is to be written when the DM channel is known."""

    at: Configured[Settings]
    outgoing: Outgoing
    ids: Ids

    def __call__(self, opened: Done, /) -> Step:
        (dm,) = (lesson for lesson in opened.learned if isinstance(lesson, Learned))
        return write(self.at, self.outgoing, self.ids, dm.value)


# --- Asking beforehand ------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Who we are; or whether the channel is there for us; or that there is such a person (who may yet refuse a DM)."""
    if recipient is None:
        path, chat = "/users/@me", ""
    elif recipient.kind == "user":
        path, chat = f"/users/{recipient.id}", ""
    else:
        chat = recipient.thread or recipient.id
        path = f"/channels/{chat}"
    request = HttpRequest("GET", at.own.api_base + path, headers_of(at), repeatable=True)
    return Exchange(request, There(str(recipient or "")), Scope(at.name, at.own.bot_token.name, chat))


@dataclass(frozen=True, slots=True)
class There:
    recipient: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return _discord.read(reply, self.recipient).map(lambda _: Done())


CHANNEL = Channel(
    platform="discord",
    settings=Settings,
    capabilities=Capabilities(media=True, voice=True, reply=True),
    limits=Limits(text=(_discord.CONTENT,), caption=(_discord.CONTENT,), any_file=_discord.FILE, voice=("audio/ogg",)),
    dialect=DISCORD,
    # 50 a second in all, and by channel what the headers say, usually 5 in 5 s:
    # https://docs.discord.com/developers/topics/rate-limits
    pace=(Pace(5, 5.0, By.CHAT), Pace(50, 1.0, By.CREDENTIAL)),
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.channel_id,
    default_key="channel_id",
    probe=probe,
    rehearse=_discord.rehearse,
    same=same,
)
