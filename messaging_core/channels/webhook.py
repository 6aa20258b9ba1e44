"""Any HTTP endpoint: method, headers and body as configured (signing by https://www.standardwebhooks.com)."""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Fault, Known, Sort, key
from messaging_core.channels.failures import failure
from messaging_core.errors import InvalidRecipient, Refusal, SendError
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, in_order
from messaging_core.markup.plain import PLAIN
from messaging_core.message import Content, Ids, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret, Text, pieces, shortened
from messaging_core.wire.http import (
    JSON_TYPE,
    Body,
    HttpReply,
    HttpRequest,
    StandardWebhooks,
    at,
    read_json,
    text_at,
    to_json,
)
from messaging_core.wire.template import MARK, Place, Template, place_of, read_template

BODILESS = ("GET", "HEAD", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``webhook`` channel."""

    url: Template = key(Sort.URL_TEMPLATE, "Where the request goes; `{{content}}` in it is replaced, percent-encoded.")
    method: str = key(Sort.METHOD, "The HTTP method.", default="POST")
    headers: tuple[tuple[str, Text], ...] = key(Sort.HEADERS, "Headers of the request.", default=())
    body_template: Template | None = key(
        Sort.TEMPLATE,
        "The body; every `{{content}}` is replaced, escaped for JSON, XML, form or text by the Content-Type.",
        default=None,
    )
    signing_secret: Secret | None = key(
        Sort.SECRET, "Signs each request by Standard Webhooks: `whsec_` and base64 of 24 to 64 bytes.", default=None
    )


def check(values: Mapping[str, Any]) -> Iterator[Fault]:
    """What would lose the content, or make a body that the endpoint cannot read, is found when loading."""
    url, template = str(values.get("url", "")), values.get("body_template")
    method = str(values.get("method", "POST")).upper()
    content_type = _content_type(tuple((values.get("headers") or {}).items()))
    if template is not None and MARK not in template:
        yield Fault("body_template", "the content would be lost", f"put {MARK} where the content goes")
    if template is None and method in BODILESS and MARK not in url:
        yield Fault("method", f"{method} without a body would lose the content", f"use POST, or put {MARK} in the URL")
    if template is not None and MARK in template and place_of(content_type) is Place.JSON:
        filled = read_template(template).fill("x", Place.JSON)
        try:
            json.loads("".join(map(str, pieces(filled))))
        except ValueError as error:
            yield Fault(
                "body_template", f"not valid JSON once filled in ({error})", "or set another Content-Type header"
            )
    secret = values.get("signing_secret")
    if secret is not None:
        try:
            size = len(base64.b64decode(secret.removeprefix("whsec_"), validate=True))
        except binascii.Error:
            size = 0
        if not 24 <= size <= 64:
            yield Fault("signing_secret", "not base64 of 24 to 64 bytes", "`whsec_` and the base64 of the key")


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    return Failure(InvalidRecipient(text, "none: the configured URL decides where it goes"))


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(in_order(tuple(place(at, ids, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], ids: Ids, part: Part, content: Content) -> Exchange:
    """One request with the content in the body, the URL, or both."""
    assert isinstance(content, TextPart)
    own, text = at.own, content.text.text
    headers = own.headers
    body: Body = b""
    if own.body_template is not None:
        filled = own.body_template.fill(text, place_of(_content_type(headers)))
        body = filled.encode() if isinstance(filled, str) else filled
    elif own.method not in BODILESS:
        headers = (*(pair for pair in headers if pair[0].lower() != "content-type"), ("Content-Type", JSON_TYPE))
        body = to_json({"content": text})
    if own.body_template is not None and not _has(headers, "content-type"):
        headers = (*headers, ("Content-Type", JSON_TYPE))
    seal = StandardWebhooks(own.signing_secret, ids.part(part.index)) if own.signing_secret else None
    request = HttpRequest(own.method, own.url.fill(text, Place.URL), headers, body, seal=seal)
    return Exchange(request, Placed(part, content.notes), Scope(at.name), part)


def _content_type(headers: tuple[tuple[str, Text], ...]) -> str:
    return next((str(value) for name, value in headers if name.lower() == "content-type"), JSON_TYPE)


def _has(headers: tuple[tuple[str, Text], ...], wanted: str) -> bool:
    return any(name.lower() == wanted for name, _ in headers)


@dataclass(frozen=True, slots=True)
class Placed:
    """Any 2xx is delivered; an id, where the endpoint gives one as JSON, is kept."""

    part: Part
    notes: tuple[str, ...]

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if not 200 <= reply.status < 300:
            return Failure(failure(reply, detail=_detail(reply)))
        body = read_json(reply).value_or(None)
        return Success(Done((Receipt(self.part, text_at(body, "id") or None, FIXED.shown, self.notes),)))


def _detail(reply: HttpReply) -> str:
    """The endpoint's own words: the usual fields of JSON, else a short plain text; a page of HTML says nothing."""
    body = read_json(reply).value_or(None)
    for path in (("error", "message"), ("error",), ("message",), ("detail",), ("errorDescription",)):
        if isinstance(at(body, *path), str):
            return text_at(body, *path)
    text = reply.body[:4000].decode("utf-8", "replace").strip()
    return "" if text.startswith(("<", "{", "[")) else shortened(text, 200)


def rehearse(request: Any) -> HttpReply:
    return HttpReply(200, "OK")


FIXED = Recipient("", "webhook", shown="the webhook")

CHANNEL = Channel(
    platform="webhook",
    settings=Settings,
    capabilities=Capabilities(),
    dialect=PLAIN,
    raw=True,
    describe=describe,
    recipient=recipient,
    fixed_recipient=FIXED,
    rehearse=rehearse,
    check=check,
)
