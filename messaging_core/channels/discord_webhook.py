"""Discord by an incoming webhook: one URL, one channel, no account (https://docs.discord.com/developers/resources/webhook)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels import _discord
from messaging_core.channels.channel import By, Capabilities, Channel, Configured, Fault, Known, Limits, Pace, Sort, key
from messaging_core.errors import InvalidRecipient, Refusal, SendError
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, in_order
from messaging_core.markup.discord import DISCORD
from messaging_core.message import Content, Ids, MediaPart, Outgoing, Recipient
from messaging_core.secrecy import Secret
from messaging_core.wire.http import HttpReply, HttpRequest, json_request, text_at


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``discord-webhook`` channel."""

    url: Secret = key(Sort.SECRET_URL, "The webhook's URL, used as written (with `wait=true` added).")
    thread_id: str | None = key(Sort.ID, "A thread of the webhook's channel to write to.", default=None)


def check(values: Mapping[str, Any]) -> Iterator[Fault]:
    """With these ends the URL expects another sender's payload; of two threads one would silently win."""
    path, _, query = str(values.get("url", "")).partition("?")
    path = path.rstrip("/")
    if values.get("thread_id") and re.search(r"(?:^|&)thread_id=", query):
        yield Fault("thread_id", "the URL names a thread already", "keep one of them")
    if path.endswith(("/slack", "/github")):
        yield Fault("url", "ends as for another sender's payload", "leave out what follows the webhook's token")


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    return Failure(InvalidRecipient(text, "none: the webhook's URL decides where it goes"))


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(in_order(tuple(place(at, outgoing, ids, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], outgoing: Outgoing, ids: Ids, part: Part, content: Content) -> Exchange:
    """One message. ``wait=true``, since without it a message that could not be stored gives no error."""
    thread = outgoing.recipient.thread or at.own.thread_id
    query = (("wait", "true"), *((("thread_id", thread),) if thread else ()))
    body = _discord.message_body(content, outgoing.mute)
    if isinstance(content, MediaPart):
        multipart = _discord.with_file(body, content, ids.boundary)
        request = HttpRequest("POST", (at.own.url,), (_discord.AGENT,), multipart, query)
    else:
        request = json_request("POST", (at.own.url,), body, headers=(_discord.AGENT,), query=query)
    return Exchange(request, Placed(part, content.notes), Scope(at.name, at.own.url.name), part)


@dataclass(frozen=True, slots=True)
class Placed:
    """The message is there: 200 with its id, or an answer without a body (204, or what stands in for Discord)."""

    part: Part
    notes: tuple[str, ...]

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        silent = 200 <= reply.status < 300 and not reply.body.strip()
        return _discord.read(HttpReply(204) if silent else reply, FIXED.shown).map(
            lambda message: Done((Receipt(self.part, text_at(message, "id") or None, FIXED.shown, self.notes),))
        )


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """``GET`` of the webhook itself says whether it is there; its answer holds the token, so nothing of it is kept."""
    request = HttpRequest("GET", (at.own.url,), (_discord.AGENT,), repeatable=True)
    return Exchange(request, there, Scope(at.name, at.own.url.name))


def there(reply: HttpReply, /) -> Result[Step, SendError]:
    return _discord.read(reply, FIXED.shown).map(lambda _: Done())


FIXED = Recipient("", "webhook", shown="the webhook's channel")

CHANNEL = Channel(
    platform="discord-webhook",
    settings=Settings,
    capabilities=Capabilities(media=True),
    limits=Limits(text=(_discord.CONTENT,), caption=(_discord.CONTENT,), any_file=_discord.FILE),
    dialect=DISCORD,
    pace=(Pace(5, 2.0, By.CREDENTIAL), Pace(30, 60.0, By.CREDENTIAL)),
    describe=describe,
    recipient=recipient,
    fixed_recipient=FIXED,
    probe=probe,
    rehearse=_discord.rehearse,
    check=check,
    cut_raw=(2000, "..."),
)
