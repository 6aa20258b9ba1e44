"""signal-cli-rest-api (https://bbernhard.github.io/signal-cli-rest-api/)."""

import base64
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels._signal import Account, Draft, Sent, absent, by_words, data_uri, items, named, post
from messaging_core.channels.failures import failure
from messaging_core.errors import SendError, Unavailable
from messaging_core.flow import Done, Exchange, Step, Undelivered
from messaging_core.markup.dialect import Rendered, StyleKind
from messaging_core.markup.signal import SIGNAL_STYLED
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Prose, Span
from messaging_core.message import MediaPart, Recipient
from messaging_core.wire.http import HttpReply, HttpRequest, at, read_json, segment, text_at, to_json

# --- Sending ----------------------------------------------------------------------------------------------------------


def send(account: Account, draft: Draft) -> Exchange:
    """The mode of the text is always named: what holds without is a setting of the server."""
    text, to, content, quote = draft.text, draft.to, draft.content, draft.quote
    body: dict[str, Any] = {
        "number": account.number,
        "recipients": [_twice(to.id) if to.kind == "group" else to.id],
        "message": styled(text) if text.styles else text.text,
        "text_mode": "styled" if text.styles else "normal",
    }
    if quote:
        body |= {"quote_timestamp": quote.timestamp, "quote_author": quote.author}
    if isinstance(content, MediaPart):
        # The name is taken as it stands, up to the next semicolon.
        body["base64_attachments"] = [data_uri(content, content.facts.name.replace(";", "_"))]
    request = post(f"{account.http_url}/v2/send", body, content)
    return Exchange(request, Posted(draft.sent), account.scope(to), draft.part)


def _twice(group: str) -> str:
    """How a group is spelled here: the id, which is base64, in base64."""
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


@dataclass(frozen=True, slots=True)
class Posted:
    """The message was taken: 201 also where some were not reached. Newer versions answer with a list."""

    sent: Sent

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, str(self.sent.to)).bind(lambda body: self._end(reply, body))

    def _end(self, reply: HttpReply, body: Any) -> Result[Step, SendError]:
        body = at(body, 0) if isinstance(body, list) else body
        failed = tuple(_missed(one, str(self.sent.to)) for one in items(at(body, "errors", "recipients")))
        return self.sent.end(reply, text_at(body, "timestamp"), failed, self.sent.to.kind != "group")


def _missed(one: Any, otherwise: str) -> Undelivered:
    who = named(one, otherwise)
    return Undelivered(who, by_words(text_at(one, "reason"), who))


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
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


def ask(account: Account, to: Recipient | None) -> Exchange:
    """Whether the program has the account; whether it is in the group, or a number is registered."""
    number = segment(account.number)
    if to is not None and to.kind == "group":
        path = f"/v1/groups/{number}/{segment(_twice(to.id))}"
    elif to is not None and to.kind == "number":
        path = f"/v1/search/{number}?numbers={segment(to.id)}"
    else:
        path, to = f"/v1/groups/{number}", None
    request = HttpRequest("GET", account.http_url + path, repeatable=True)
    return Exchange(request, Found(to, account), account.scope())


@dataclass(frozen=True, slots=True)
class Found:
    """Groups of the account, a list of numbers, or a group, where we may be no longer."""

    to: Recipient | None
    account: Account

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if self.to is not None and self.to.kind == "group" and reply.status == 404:
            return Failure(absent(self.to, self.account))
        return read(reply, str(self.to or "")).bind(self._judge)

    def _judge(self, body: Any) -> Result[Step, SendError]:
        listed = self.to is not None and self.to.kind == "number"
        fine = any(at(one, "registered") is True for one in items(body)) if listed else at(body, "member") is not False
        return Success(Done()) if fine else Failure(absent(self.to, self.account))


def rehearse(request: Any) -> HttpReply:
    """What the program would answer where all goes well."""
    if request.url.endswith("/v2/send"):
        return HttpReply(201, "Created", (), to_json({"timestamp": "1"}))
    return HttpReply(200, "OK", (), to_json([{"registered": True}]))
