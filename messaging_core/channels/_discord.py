"""What the two Discord channels (bot and webhook) share: message objects, uploads, refusals."""

import json
import re
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.failures import failure
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidRecipient,
    Malformed,
    RateLimited,
    SendError,
    Unavailable,
)
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.message import Content, MediaPart
from messaging_core.secrecy import Text
from messaging_core.wire.http import FileRef, FormPart, HttpReply, Multipart, at, at_least, read_json, text_at, to_json

CONTENT = Length(2000, Unit.CODE_POINTS, Of.RAW)
"""Of the raw text, in code points: https://github.com/discord/discord-api-docs/issues/1315"""

FILE = 10 * 1024 * 1024
"""Bytes; the default since 2025-01-16: https://docs.discord.com/developers/reference#uploading-files"""

ID = re.compile(r"[1-9][0-9]{0,19}")
"""A snowflake, always as text: https://docs.discord.com/developers/reference#snowflakes"""

AGENT: tuple[str, Text] = ("User-Agent", "DiscordBot (agent-messaging, 0.1.0)")
"""Required in this form, else the edge may refuse the call: https://docs.discord.com/developers/reference#user-agent"""

CODES: dict[str, type[SendError]] = {
    # https://docs.discord.com/developers/topics/opcodes-and-status-codes#json-json-error-codes
    **dict.fromkeys(("10003", "10013", "50007", "50008", "50033", "50278"), InvalidRecipient),
    **dict.fromkeys(("10015", "40001", "40003", "50001", "50013", "50027", "160002", "160005", "50173"), Denied),
    **dict.fromkeys(("30015", "40005", "40067", "50006", "50035", "50045", "50083", "50109"), Invalid),
    **dict.fromkeys(("50159", "50160", "50161", "200000", "200001", "220001", "220002", "220003", "240000"), Invalid),
    **dict.fromkeys(("20016", "20028", "20029"), RateLimited),
    "130000": Unavailable,
}


def message_body(part: Content, mute: bool, **more: Any) -> dict[str, Any]:
    """The JSON of one message (https://docs.discord.com/developers/resources/message#create-message)."""
    text = part.caption if isinstance(part, MediaPart) else part.text
    body: dict[str, Any] = {} if text is None else {"content": text.text}
    if mute:
        body["allowed_mentions"] = {"parse": []}
    return {**body, **more}


def with_file(body: dict[str, Any], part: MediaPart, boundary: str, **attachment: Any) -> Multipart:
    """``body`` and the file as one multipart request (https://docs.discord.com/developers/reference#uploading-files)."""
    body = {**body, "attachments": [{"id": "0", "filename": part.facts.name, **attachment}]}
    content = part.data if part.data is not None else FileRef(part.facts)
    return Multipart(
        (
            FormPart("payload_json", to_json(body), content_type="application/json"),
            FormPart("files[0]", content, part.facts.name, part.mime),
        ),
        boundary,
    )


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """The body of a good answer (None after a 204, which has none), or the failure that it is."""
    if reply.status == 204:
        return Success(None)
    if not 200 <= reply.status < 300:
        return Failure(failure_of(reply, recipient))
    return read_json(reply).bind(lambda body: _object(reply, body))


def _object(reply: HttpReply, body: Any) -> Result[Any, Malformed]:
    """Every good answer with a body is an object; one without an ``id`` is taken too."""
    if isinstance(body, dict):
        return Success(body)
    return Failure(Malformed(reply.status, reply.reason, detail="the answer is no JSON object"))


def failure_of(reply: HttpReply, recipient: str = "") -> SendError:
    """A refusal: ``{code, message, errors, retry_after}``; of the waits in header and body (seconds) the longer."""
    body = read_json(reply).value_or(None)
    retry_after = at(body, "retry_after")
    return failure(
        reply,
        code=text_at(body, "code").removeprefix("0"),
        detail="; ".join(filter(None, (text_at(body, "message"), *_leaves(at(body, "errors"))))),
        table=CODES,
        wait=None if retry_after is None else at_least(retry_after),
        recipient=recipient,
    )


def _leaves(errors: Any, depth: int = 0) -> list[str]:
    """The messages at any depth of ``errors``: ``{"content": {"_errors": [{"code", "message"}]}}``."""
    if not isinstance(errors, dict) or depth > 20:
        return []
    found = [text_at(error, "message") for error in at(errors, "_errors") or ()]
    for name, value in errors.items():
        if name != "_errors":
            found += [f"{name}: {message}" if depth == 0 else message for message in _leaves(value, depth + 1)]
    return found


def rehearse(request: Any) -> HttpReply:
    """What Discord would answer: a message that is a reply, or a channel."""
    body = {"id": "1", "channel_id": "1", "type": 19, "referenced_message": {"id": "1", "channel_id": "1"}}
    return HttpReply(200, "OK", (), json.dumps(body).encode())
