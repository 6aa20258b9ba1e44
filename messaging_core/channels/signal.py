"""Signal, which has no API of its own, by one of two programs that are a device of an account:

signal-cli's daemon (mode ``jsonrpc``, https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc) or
signal-cli-rest-api (mode ``rest``, https://bbernhard.github.io/signal-cli-rest-api/). Neither knows a message again, so
nothing here is safe to repeat.
"""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote as quote_url

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Limits, Sort, key
from messaging_core.channels.failures import LONGEST, failure
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
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, Undelivered, in_order
from messaging_core.markup.dialect import Rendered, StyleKind
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.signal import SIGNAL, SIGNAL_STYLED
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Prose, Span
from messaging_core.message import Content, Ids, MediaPart, Outgoing, Recipient
from messaging_core.secrecy import shortened
from messaging_core.wire.http import (
    JSON_TYPE,
    FileRef,
    HttpReply,
    HttpRequest,
    Spliced,
    at,
    at_least,
    json_request,
    read_json,
    segment,
    text_at,
    to_json,
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``signal`` channel."""

    http_url: str = key(Sort.URL, "Address of the daemon, `http://127.0.0.1:8080`.")
    account: str = key(Sort.ID, "Number of the account that sends, `+4915112345678`.")
    mode: str = key(
        Sort.CHOICE,
        "Which program it is: signal-cli's daemon, or signal-cli-rest-api.",
        default="jsonrpc",
        choices=("jsonrpc", "rest"),
    )
    to: str | None = key(Sort.ID, "Default recipient: a number, user id, username or group.", default=None)


TEXT = Length(64_000, Unit.BYTES, Of.RAW)
"""Over 2,000 bytes the daemon sends the text as an attachment that clients show as text, up to 64 KiB."""

FILE = 100_000_000
"""Bytes; clients take no more. The file travels inside the JSON, a third larger, and the daemon keeps it in memory."""


# --- Recipients -------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"\+[1-9][0-9]{1,14}")
PUNCTUATION = re.compile(r"[ ()./\u00a0-]")
USER_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
USERNAME = re.compile(r"(?:u:)?([a-z_][a-z0-9_]*\.[0-9]{2,9})", re.IGNORECASE)


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """A number in international form, a user's id, ``name.01``, or ``group:`` and the group's id.

    ``group.`` and the id in base64 once more is how signal-cli-rest-api spells a group.
    """
    if text.startswith(("group:", "group.")):
        group = text[6:] if text[5] == ":" else _bytes(text[6:]).decode("ascii", "replace")
        if _bytes(group):
            return Success(Recipient(group, "group", shown=f"group:{group}"))
    elif NUMBER.fullmatch(number := PUNCTUATION.sub("", text)):
        return Success(Recipient(number, "number"))
    elif USER_ID.fullmatch(text):
        return Success(Recipient(text.lower(), "user"))
    elif username := USERNAME.fullmatch(text):
        return Success(Recipient(username[1], "username"))
    return Failure(
        InvalidRecipient(text, "a number (+49151...), a user's id (UUID), a username (name.01) or group:<id in base64>")
    )


def _bytes(text: str) -> bytes:
    """What base64 stands for; empty where it is none."""
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return b""


def same(text: str) -> str:
    """One form for every spelling of a recipient; only in a group's id do capitals count."""
    found = recipient(text).value_or(None)
    if found is None:
        return text.casefold()
    return str(found) if found.kind == "group" else found.id.casefold()


# --- Requests ---------------------------------------------------------------------------------------------------------

QUOTED = re.compile(r"([1-9][0-9]{0,15})(?::(\S+))?")


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that is replied to: when it was sent (Unix milliseconds), and by whom (number or user id)."""

    timestamp: int
    author: str


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """One request for each part; the reply belongs to the first."""
    quote = read_quote(outgoing)
    if outgoing.reply_to is not None and quote is None:
        expected = "reply_to: expected timestamp:author (milliseconds, then a number or user id)"
        return Failure(InvalidArguments("message_send", (expected,)))
    send = by_rest if at.own.mode == "rest" else by_rpc
    return Success(
        in_order(
            tuple(
                send(at, outgoing.recipient, content, part, ids, quote if part.index == 1 else None)
                for part, content in outgoing.numbered
            )
        )
    )


def read_quote(outgoing: Outgoing) -> Quote | None:
    """``timestamp:author``; in a chat with one person the author may be left out: it is that person."""
    found = QUOTED.fullmatch(outgoing.reply_to or "")
    if found is None:
        return None
    author = outgoing.recipient if found[2] is None else recipient(found[2]).value_or(None)
    return Quote(int(found[1]), author.id) if author is not None and author.kind in ("number", "user") else None


def by_rpc(
    at: Configured[Settings], to: Recipient, content: Content, part: Part, ids: Ids, quote: Quote | None
) -> Exchange:
    """``send`` of the JSON-RPC interface: the text as it is, and its styles as ranges."""
    text = content.caption if isinstance(content, MediaPart) else content.text
    params: dict[str, Any] = {"account": at.own.account, **_to_rpc(to), "message": text.text if text else ""}
    if text and text.styles and content.markup:
        params["textStyle"] = [str(style) for style in text.styles]
    if quote:
        params |= {"quoteTimestamp": quote.timestamp, "quoteAuthor": quote.author}
    if isinstance(content, MediaPart):
        params["attachments"] = [_data_uri(content, quote_url(content.facts.name, safe=""))]
    request = _post(f"{at.own.http_url}/api/v1/rpc", _call("send", params, ids.part(part.index)), content)
    return Exchange(request, Called(Sent(to, part, content.notes)), _scope(at, to), part)


def _to_rpc(to: Recipient) -> dict[str, Any]:
    match to.kind:
        case "group":
            return {"groupId": [to.id]}
        case "username":
            return {"username": [to.id]}
        case _:
            return {"recipient": [to.id]}


def _call(method: str, params: dict[str, Any], id: str) -> dict[str, Any]:
    """Without an id it would be a notification, which is not answered."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def by_rest(
    at: Configured[Settings], to: Recipient, content: Content, part: Part, ids: Ids, quote: Quote | None
) -> Exchange:
    """``POST /v2/send``. The mode of the text is always named: what holds without is a setting of the server."""
    text = content.caption if isinstance(content, MediaPart) else content.text
    marked = styled(text) if text and text.styles and content.markup else None
    body: dict[str, Any] = {
        "number": at.own.account,
        "recipients": [_twice(to.id) if to.kind == "group" else to.id],
        "message": marked if marked is not None else text.text if text else "",
        "text_mode": "normal" if marked is None else "styled",
    }
    if quote:
        body |= {"quote_timestamp": quote.timestamp, "quote_author": quote.author}
    if isinstance(content, MediaPart):
        # The name is taken as it stands, up to the next semicolon.
        body["base64_attachments"] = [_data_uri(content, content.facts.name.replace(";", "_"))]
    request = _post(f"{at.own.http_url}/v2/send", body, content)
    return Exchange(request, Posted(Sent(to, part, content.notes)), _scope(at, to), part)


def _twice(group: str) -> str:
    """How signal-cli-rest-api spells a group: the id, which is base64, in base64."""
    return f"group.{base64.b64encode(group.encode()).decode()}"


MARKS = {
    StyleKind.BOLD: BOLD,
    StyleKind.ITALIC: ITALIC,
    StyleKind.STRIKETHROUGH: STRIKE,
    StyleKind.MONOSPACE: CODE,
}


def styled(text: Rendered) -> str:
    """The text with its styles as signs, as ``text_mode: styled`` reads them: written anew from edge to edge."""
    units = text.text.encode("utf-16-le", "surrogatepass")
    ends = {edge for style in text.styles for edge in (style.start, style.start + style.length)}
    edges = sorted({0, len(units) // 2, *ends})
    spans = tuple(
        Span(
            units[2 * begin : 2 * end].decode("utf-16-le", "surrogatepass"),
            sum({MARKS.get(s.kind, 0) for s in text.styles if s.start <= begin and end <= s.start + s.length}),
        )
        for begin, end in pairwise(edges)
    )
    return SIGNAL_STYLED.write(Prose(spans), None, False).text


BASE64 = ";base64,"


def _data_uri(content: MediaPart, name: str) -> str:
    """The file as https://www.rfc-editor.org/rfc/rfc2397 has it; where the shell reads it, up to where its bytes go."""
    return f"data:{content.mime};filename={name}{BASE64}{base64.b64encode(content.data or b'').decode()}"


def _post(url: str, document: dict[str, Any], content: Content) -> HttpRequest:
    """``document`` as JSON, of which a file, if there is one, is the last value: it is streamed into its place."""
    if not isinstance(content, MediaPart) or content.data is not None:
        return json_request("POST", url, document)
    begin, mark, end = to_json(document).rpartition(BASE64.encode())
    body = Spliced((begin + mark, FileRef(content.facts, base64=True), end))
    return HttpRequest("POST", url, (("Content-Type", JSON_TYPE),), body)


def _scope(at: Configured[Settings], to: Recipient | None = None) -> Scope:
    return Scope(at.name, at.own.account, to.id if to else "")


# --- What replies mean ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A part on its way: what its timestamp, which is its id, and the failures of some of its recipients make of it."""

    to: Recipient
    part: Part
    notes: tuple[str, ...]

    def end(
        self, reply: HttpReply, timestamp: str, failed: tuple[Undelivered, ...], all_failed: bool
    ) -> Result[Step, SendError]:
        """The members of a group are told one by one; where nobody was reached, the first reason is the failure."""
        if all_failed and failed:
            return Failure(failed[0].cause)
        if not timestamp:
            return Failure(Malformed(reply.status, reply.reason, detail="the answer has no timestamp"))
        return Success(Done((Receipt(self.part, timestamp, str(self.to), self.notes),), failed))


@dataclass(frozen=True, slots=True)
class Called:
    """The daemon answered: 200 for results and for errors alike."""

    sent: Sent

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_rpc(reply, str(self.sent.to)).bind(lambda result: self._end(reply, result))

    def _end(self, reply: HttpReply, result: Any) -> Result[Step, SendError]:
        results = _items(at(result, "results"))
        failed = tuple(_missed(one, str(self.sent.to)) for one in results if text_at(one, "type") != "SUCCESS")
        return self.sent.end(reply, text_at(result, "timestamp"), failed, len(failed) == len(results))


@dataclass(frozen=True, slots=True)
class Posted:
    """The REST interface answered: 201 also where some were not reached. Newer ones answer with a list."""

    sent: Sent

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read_rest(reply, str(self.sent.to)).bind(lambda body: self._end(reply, body))

    def _end(self, reply: HttpReply, body: Any) -> Result[Step, SendError]:
        body = at(body, 0) if isinstance(body, list) else body
        failed = tuple(
            Undelivered(who, by_words(text_at(one, "reason"), who))
            for one in _items(at(body, "errors", "recipients"))
            for who in (_named(one, str(self.sent.to)),)
        )
        return self.sent.end(reply, text_at(body, "timestamp"), failed, self.sent.to.kind != "group")


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _named(one: Any, otherwise: str) -> str:
    return next(filter(None, (text_at(one, name) for name in ("number", "username", "uuid"))), otherwise)


def _missed(one: Any, otherwise: str) -> Undelivered:
    who, why = _named(at(one, "recipientAddress"), otherwise), text_at(one, "type")
    return Undelivered(who, by_type(why, who, at(one, "retryAfterSeconds")))


TYPES: dict[str, type[SendError]] = {
    # The type of a result: https://github.com/AsamK/signal-cli, JsonSendMessageResult
    "UNREGISTERED_FAILURE": InvalidRecipient,
    "IDENTITY_FAILURE": Denied,
    "RATE_LIMIT_FAILURE": RateLimited,
    "PROOF_REQUIRED_FAILURE": RateLimited,
    "NETWORK_FAILURE": Unavailable,
    "INVALID_PRE_KEY_FAILURE": Rejected,
}

MEANING = {
    "UNREGISTERED_FAILURE": "not registered with Signal",
    "IDENTITY_FAILURE": "their safety number changed: trust it with signal-cli first",
    "RATE_LIMIT_FAILURE": "Signal asks to wait, or for a captcha",
    "PROOF_REQUIRED_FAILURE": "Signal asks to wait, or for a captcha",
}

WORDS: tuple[tuple[str, type[SendError]], ...] = (
    # Of the error texts of both programs, in lower case; the first that is found counts
    ("untrusted identity", Denied),
    ("not a group member", Denied),
    ("notagroupmember", Denied),
    ("account does not exist", Denied),
    ("valid account parameter", Denied),
    ("unregistered", InvalidRecipient),
    ("is not registered", InvalidRecipient),
    ("group not found", InvalidRecipient),
    ("groupnotfound", InvalidRecipient),
    ("invalid group id", InvalidRecipient),
    ("no group with", InvalidRecipient),
    ("invalid phone number", InvalidRecipient),
    ("attachmentinvalid", Invalid),
    ("rate limit", RateLimited),
    ("captcha", RateLimited),
    ("network failure", Unavailable),
    ("ioexception", Unavailable),
    ("timeout", Unavailable),
    ("timed out", Unavailable),
)

CODES: dict[str, type[SendError]] = {
    # Of JSON-RPC, and the daemon's own: https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
    **dict.fromkeys(("-1", "-32700", "-32600", "-32601", "-32602"), Invalid),
    **dict.fromkeys(("-3", "-32603"), Unavailable),
    "-4": Denied,
    "-5": RateLimited,
    "-6": Denied,
}


def by_type(why: str, recipient: str, wait: Any = None) -> SendError:
    detail = MEANING.get(why, "")
    return _error(TYPES.get(why, Rejected), recipient, code=why, detail=detail, wait=wait)


def by_words(text: str, recipient: str, otherwise: type[SendError] = Rejected, **more: Any) -> SendError:
    lower = text.lower()
    kind = next((kind for words, kind in WORDS if words in lower), otherwise)
    return _error(kind, recipient, detail=text, **more)


def _error(
    kind: type[SendError],
    recipient: str,
    *,
    status: int | None = None,
    reason: str = "",
    code: str = "",
    detail: str = "",
    wait: Any = None,
) -> SendError:
    """An error of the kind. Where the network failed in the middle, some of it may have gone out."""
    detail = shortened(" ".join(detail.split()), LONGEST)
    if kind is InvalidRecipient:
        return InvalidRecipient(recipient, "", detail or code, status, reason)
    if kind is RateLimited:
        return RateLimited(status, reason, code, detail, None if wait is None else at_least(wait))
    if kind is Unavailable:
        return Unavailable(status, reason, code, detail, may_have_arrived=True)
    assert issubclass(kind, Denied | Invalid | Rejected), kind
    return kind(status, reason, code, detail)


def read_rpc(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """``result``; or ``error``, whose data may say it of each recipient."""
    if reply.status != 200:
        return Failure(failure(reply, detail=HINTS.get(reply.status, "")))
    return _json(reply).bind(lambda body: _result(reply, body, recipient))


def _json(reply: HttpReply) -> Result[Any, SendError]:
    return read_json(reply).alt(lambda malformed: malformed)


HINTS = {
    404: "no signal-cli daemon answers at http_url",
    405: "no signal-cli daemon answers at http_url",
    421: "the daemon wants to be called by the address that it listens on",
}


def _result(reply: HttpReply, body: Any, recipient: str) -> Result[Any, SendError]:
    error = at(body, "error")
    if error is None:
        missing = Malformed(reply.status, reply.reason, detail="the answer has no result")
        return Failure(missing) if at(body, "result") is None else Success(at(body, "result"))
    results = _items(at(error, "data", "response", "results"))
    failed = [one for one in results if text_at(one, "type") not in ("", "SUCCESS")]
    if failed:
        return Failure(_missed(failed[0], recipient).cause)
    code, text = text_at(error, "code"), text_at(error, "message")
    return Failure(by_words(text, recipient, CODES.get(code, Rejected), code=code))


def read_rest(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """The body of a 2xx; or 400 ``{"error"}`` for nearly everything else, told apart by its words.

    A 429 has come though the message was delivered (https://github.com/bbernhard/signal-cli-rest-api/issues/881).
    """
    if 200 <= reply.status < 300:
        return read_json(reply) if reply.body else Success({})
    text = text_at(read_json(reply).value_or(None), "error")
    if reply.status == 429:
        return Failure(Unavailable(reply.status, reply.reason, "", text or "rate limited", may_have_arrived=True))
    if reply.status != 400 or not text:
        return Failure(failure(reply, detail=text))
    return Failure(by_words(text, recipient, status=reply.status, reason=reply.reason))


# --- Probes -----------------------------------------------------------------------------------------------------------


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Whether the program has our account; whether a number or username is registered, and we are in a group.

    Signal limits how often the second may be asked; of a user's id it cannot be asked.
    """
    asked = None if recipient is None or recipient.kind == "user" else recipient
    return _ask_rest(at, asked) if at.own.mode == "rest" else _ask_rpc(at, asked)


def _ask_rpc(at: Configured[Settings], to: Recipient | None) -> Exchange:
    if to is None:
        call = _call("listAccounts", {}, "probe")
    else:
        method = "listGroups" if to.kind == "group" else "getUserStatus"
        call = _call(method, {"account": at.own.account, **_to_rpc(to)}, "probe")
    request = json_request("POST", f"{at.own.http_url}/api/v1/rpc", call, repeatable=True)
    return Exchange(request, Listed(to, at.own.account), _scope(at))


def _ask_rest(at: Configured[Settings], to: Recipient | None) -> Exchange:
    account = segment(at.own.account)
    if to is not None and to.kind == "group":
        path = f"/v1/groups/{account}/{segment(_twice(to.id))}"
    elif to is not None and to.kind == "number":
        path = f"/v1/search/{account}?numbers={segment(to.id)}"
    else:
        path, to = f"/v1/groups/{account}", None
    request = HttpRequest("GET", at.own.http_url + path, repeatable=True)
    return Exchange(request, Found(to, at.own.account), _scope(at))


@dataclass(frozen=True, slots=True)
class Listed:
    """The daemon's list of what was asked for. One that serves a single account has no list of accounts."""

    to: Recipient | None
    account: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.to is None and text_at(read_json(reply).value_or(None), "error", "code") == "-32601":
            return Success(Done())
        return read_rpc(reply, str(self.to or "")).bind(self._judge)

    def _judge(self, result: Any) -> Result[Step, SendError]:
        fine = any(self._is_it(one) for one in _items(result))
        return Success(Done()) if fine else Failure(_absent(self.to, self.account))

    def _is_it(self, one: Any) -> bool:
        if self.to is None:
            return text_at(one, "number") == self.account
        if self.to.kind == "group":
            return text_at(one, "id") == self.to.id and at(one, "isMember") is True
        return at(one, "isRegistered") is True


@dataclass(frozen=True, slots=True)
class Found:
    """The REST interface's word: groups of the account, a list of numbers, or a group, where we may be no longer."""

    to: Recipient | None
    account: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.to is not None and self.to.kind == "group" and reply.status == 404:
            return Failure(_absent(self.to, self.account))
        return read_rest(reply, str(self.to or "")).bind(self._judge)

    def _judge(self, body: Any) -> Result[Step, SendError]:
        listed = self.to is not None and self.to.kind == "number"
        fine = any(at(one, "registered") is True for one in _items(body)) if listed else at(body, "member") is not False
        return Success(Done()) if fine else Failure(_absent(self.to, self.account))


def _absent(to: Recipient | None, account: str) -> Denied | InvalidRecipient:
    if to is None:
        return Denied(detail=f"the program at http_url has no account {account}")
    return InvalidRecipient(
        str(to), "", "the account is not in this group" if to.kind == "group" else "not registered with Signal"
    )


def rehearse(request: Any) -> HttpReply:
    """What either program would answer where all goes well."""
    if request.url.endswith("/v2/send"):
        return HttpReply(201, "Created", (), to_json({"timestamp": "1"}))
    if not request.url.endswith("/api/v1/rpc"):
        return HttpReply(200, "OK", (), to_json([{"registered": True}]))
    asked = {} if isinstance(request.body, Spliced) else json.loads(request.body)
    answers: dict[str, Any] = {
        "listAccounts": {"error": {"code": -32601, "message": "Method not implemented"}},
        "listGroups": {"result": [{"id": text_at(asked, "params", "groupId", 0), "isMember": True}]},
        "getUserStatus": {"result": [{"isRegistered": True}]},
    }
    sent = {"result": {"timestamp": 1, "results": [{"type": "SUCCESS"}]}}
    return HttpReply(200, "OK", (), to_json({"jsonrpc": "2.0", **answers.get(text_at(asked, "method"), sent)}))


CHANNEL = Channel(
    platform="signal",
    settings=Settings,
    capabilities=Capabilities(media=True, reply=True),
    limits=Limits(text=(TEXT,), caption=(TEXT,), any_file=FILE),
    dialect=SIGNAL,
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.to,
    default_key="to",
    same=same,
    probe=probe,
    rehearse=rehearse,
)
