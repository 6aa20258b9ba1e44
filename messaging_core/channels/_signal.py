"""What the two programs share by which Signal is reached: what is sent for whom, files inside JSON, and failures."""

import base64
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.failures import LONGEST
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
from messaging_core.flow import Done, Part, Receipt, Scope, Step, Undelivered
from messaging_core.markup.dialect import Rendered
from messaging_core.message import Content, MediaPart, Recipient
from messaging_core.secrecy import shortened
from messaging_core.wire.http import (
    JSON_TYPE,
    FileRef,
    HttpReply,
    HttpRequest,
    Spliced,
    at_least,
    json_request,
    text_at,
    to_json,
)

# --- What is sent -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks: the channel's name in the settings, the number that sends, and where its program is."""

    channel: str
    number: str
    http_url: str

    def scope(self, to: Recipient | None = None) -> Scope:
        return Scope(self.channel, self.number, to.id if to else "")


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that is replied to: when it was sent (Unix milliseconds), and by whom (number or user id)."""

    timestamp: int
    author: str


@dataclass(frozen=True, slots=True)
class Draft:
    """One part as it is to be sent. ``id``: the part's, for what wants one of each request."""

    to: Recipient
    part: Part
    content: Content
    id: str
    quote: Quote | None

    @property
    def text(self) -> Rendered:
        """The text or caption; where its styles are not wanted, without them."""
        content = self.content
        text = (content.caption if isinstance(content, MediaPart) else content.text) or Rendered("", "")
        return text if content.markup else Rendered(text.text, text.visible)

    @property
    def sent(self) -> "Sent":
        return Sent(self.to, self.part, self.content.notes)


BASE64 = ";base64,"


def data_uri(content: MediaPart, name: str) -> str:
    """The file as https://www.rfc-editor.org/rfc/rfc2397 has it; where the shell reads it, up to where its bytes go."""
    return f"data:{content.mime};filename={name}{BASE64}{base64.b64encode(content.data or b'').decode()}"


def post(url: str, document: dict[str, Any], content: Content) -> HttpRequest:
    """``document`` as JSON, of which a file, if there is one, is the last value: it is streamed into its place."""
    if not isinstance(content, MediaPart) or content.data is not None:
        return json_request("POST", url, document)
    begin, mark, end = to_json(document).rpartition(BASE64.encode())
    body = Spliced((begin + mark, FileRef(content.facts, base64=True), end))
    return HttpRequest("POST", url, (("Content-Type", JSON_TYPE),), body)


# --- What became of it ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sent:
    """A part on its way, of which a program's reply tells the rest."""

    to: Recipient
    part: Part
    notes: tuple[str, ...]

    def end(
        self, reply: HttpReply, timestamp: str, failed: tuple[Undelivered, ...], all_failed: bool
    ) -> Result[Step, SendError]:
        """``timestamp`` is the id. The members of a group are told one by one; where nobody was reached, the first
        reason is the failure.
        """
        if all_failed and failed:
            return Failure(failed[0].cause)
        if not timestamp:
            return Failure(Malformed(reply.status, reply.reason, detail="the answer has no timestamp"))
        return Success(Done((Receipt(self.part, timestamp, str(self.to), self.notes),), failed))


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def named(one: Any, otherwise: str) -> str:
    """How a reply names somebody."""
    return next(filter(None, (text_at(one, name) for name in ("number", "username", "uuid"))), otherwise)


def absent(to: Recipient | None, account: Account) -> SendError:
    """A probe found no ``to``; None: not even the account."""
    if to is None:
        return Denied(detail=f"the program at http_url has no account {account.number}")
    why = "the account is not in this group" if to.kind == "group" else "not registered with Signal"
    return InvalidRecipient(str(to), "", why)


WORDS: dict[type[SendError], tuple[str, ...]] = {
    # Of the error texts of both programs, in lower case; the first that is found counts
    Denied: (
        "untrusted identity",
        "not a group member",
        "notagroupmember",
        "account does not exist",
        "valid account parameter",
    ),
    InvalidRecipient: (
        "unregistered",
        "is not registered",
        "group not found",
        "groupnotfound",
        "invalid group id",
        "no group with",
        "invalid phone number",
    ),
    Invalid: ("attachmentinvalid",),
    RateLimited: ("rate limit", "captcha"),
    Unavailable: ("network failure", "ioexception", "timeout", "timed out"),
}


def by_words(text: str, recipient: str, otherwise: type[SendError] = Rejected, **more: Any) -> SendError:
    """The error that a program's ``text`` tells of."""
    lower = text.lower()
    kind = next((kind for kind, words in WORDS.items() if any(word in lower for word in words)), otherwise)
    return error_of(kind, recipient, detail=text, **more)


def error_of(
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
