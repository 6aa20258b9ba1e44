"""signal-cli's daemon: JSON-RPC over HTTP.

https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as quote_url

from returns.result import Failure, Result, Success

from messaging_core.channels._signal import (
    Account,
    Draft,
    Sent,
    absent,
    by_words,
    data_uri,
    error_of,
    items,
    named,
    post,
)
from messaging_core.channels.failures import failure
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Rejected,
    SendError,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Step, Undelivered
from messaging_core.message import MediaPart, Recipient
from messaging_core.wire.http import HttpReply, Spliced, at, json_request, read_json, text_at, to_json

PATH = "/api/v1/rpc"

# --- Sending ----------------------------------------------------------------------------------------------------------


def send(account: Account, draft: Draft) -> Exchange:
    """The text as it is, and its styles as ranges."""
    text, content, quote = draft.text, draft.content, draft.quote
    params: dict[str, Any] = {"account": account.number, **_to(draft.to), "message": text.text}
    if text.styles:
        params["textStyle"] = [str(style) for style in text.styles]
    if quote:
        params |= {"quoteTimestamp": quote.timestamp, "quoteAuthor": quote.author}
    if isinstance(content, MediaPart):
        params["attachments"] = [data_uri(content, quote_url(content.facts.name, safe=""))]
    request = post(f"{account.http_url}{PATH}", _call("send", params, draft.id), content)
    return Exchange(request, Called(draft.sent), account.scope(draft.to), draft.part)


def _to(to: Recipient) -> dict[str, Any]:
    return {{"group": "groupId", "username": "username"}.get(to.kind, "recipient"): [to.id]}


def _call(method: str, params: dict[str, Any], id: str) -> dict[str, Any]:
    """Without an id it would be a notification, which is not answered."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


@dataclass(frozen=True, slots=True)
class Called:
    """The daemon answered: 200 for results and for errors alike."""

    sent: Sent

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, str(self.sent.to)).bind(lambda result: self._end(reply, result))

    def _end(self, reply: HttpReply, result: Any) -> Result[Step, SendError]:
        results = items(at(result, "results"))
        failed = tuple(_missed(one, str(self.sent.to)) for one in results if text_at(one, "type") != "SUCCESS")
        return self.sent.end(reply, text_at(result, "timestamp"), failed, len(failed) == len(results))


# --- Replies ----------------------------------------------------------------------------------------------------------

CODES: dict[str, type[SendError]] = {
    # Of JSON-RPC, and the daemon's own: https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
    **dict.fromkeys(("-1", "-32700", "-32600", "-32601", "-32602"), Invalid),
    **dict.fromkeys(("-3", "-32603"), Unavailable),
    "-4": Denied,
    "-5": RateLimited,
    "-6": Denied,
}

TYPES: dict[str, tuple[type[SendError], str]] = {
    # The type of a result: https://github.com/AsamK/signal-cli, JsonSendMessageResult
    "UNREGISTERED_FAILURE": (InvalidRecipient, "not registered with Signal"),
    "IDENTITY_FAILURE": (Denied, "their safety number changed: trust it with signal-cli first"),
    "RATE_LIMIT_FAILURE": (RateLimited, "Signal asks to wait, or for a captcha"),
    "PROOF_REQUIRED_FAILURE": (RateLimited, "Signal asks to wait, or for a captcha"),
    "NETWORK_FAILURE": (Unavailable, ""),
}

HINTS = {
    404: "no signal-cli daemon answers at http_url",
    405: "no signal-cli daemon answers at http_url",
    421: "the daemon wants to be called by the address that it listens on",
}


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """``result``; or ``error``, whose data may say it of each recipient."""
    if reply.status != 200:
        return Failure(failure(reply, detail=HINTS.get(reply.status, "")))
    body: Result[Any, SendError] = read_json(reply)
    return body.bind(lambda body: _result(reply, body, recipient))


def _result(reply: HttpReply, body: Any, recipient: str) -> Result[Any, SendError]:
    error = at(body, "error")
    if error is None:
        missing = Malformed(reply.status, reply.reason, detail="the answer has no result")
        return Failure(missing) if at(body, "result") is None else Success(at(body, "result"))
    results = items(at(error, "data", "response", "results"))
    failed = [one for one in results if text_at(one, "type") not in ("", "SUCCESS")]
    if failed:
        return Failure(_missed(failed[0], recipient).cause)
    code, text = text_at(error, "code"), text_at(error, "message")
    return Failure(by_words(text, recipient, CODES.get(code, Rejected), code=code))


def _missed(one: Any, otherwise: str) -> Undelivered:
    who, why = named(at(one, "recipientAddress"), otherwise), text_at(one, "type")
    kind, detail = TYPES.get(why, (Rejected, ""))
    return Undelivered(who, error_of(kind, who, code=why, detail=detail, wait=at(one, "retryAfterSeconds")))


# --- Probes -----------------------------------------------------------------------------------------------------------


def ask(account: Account, to: Recipient | None) -> Exchange:
    """Whether the daemon has the account; whether it is in the group, or somebody is registered."""
    if to is None:
        call = _call("listAccounts", {}, "probe")
    else:
        method = "listGroups" if to.kind == "group" else "getUserStatus"
        call = _call(method, {"account": account.number, **_to(to)}, "probe")
    request = json_request("POST", f"{account.http_url}{PATH}", call, repeatable=True)
    return Exchange(request, Listed(to, account), account.scope())


@dataclass(frozen=True, slots=True)
class Listed:
    """The daemon's list of what was asked for. One that serves a single account has no list of accounts."""

    to: Recipient | None
    account: Account

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.to is None and text_at(read_json(reply).value_or(None), "error", "code") == "-32601":
            return Success(Done())
        return read(reply, str(self.to or "")).bind(self._judge)

    def _judge(self, result: Any) -> Result[Step, SendError]:
        fine = any(self._is_it(one) for one in items(result))
        return Success(Done()) if fine else Failure(absent(self.to, self.account))

    def _is_it(self, one: Any) -> bool:
        if self.to is None:
            return text_at(one, "number") == self.account.number
        if self.to.kind == "group":
            return text_at(one, "id") == self.to.id and at(one, "isMember") is True
        return at(one, "isRegistered") is True


def rehearse(request: Any) -> HttpReply:
    """What the daemon would answer where all goes well."""
    asked = {} if isinstance(request.body, Spliced) else json.loads(request.body)
    answers: dict[str, Any] = {
        "listAccounts": {"error": {"code": -32601, "message": "Method not implemented"}},
        "listGroups": {"result": [{"id": text_at(asked, "params", "groupId", 0), "isMember": True}]},
        "getUserStatus": {"result": [{"isRegistered": True}]},
    }
    sent = {"result": {"timestamp": 1, "results": [{"type": "SUCCESS"}]}}
    return HttpReply(200, "OK", (), to_json({"jsonrpc": "2.0", **answers.get(text_at(asked, "method"), sent)}))
