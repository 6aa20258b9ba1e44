"""What a gateway's answers mean, over HTTP and over WebSocket alike."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.failures import failure
from messaging_core.errors import Denied, Invalid, Malformed, Rejected, SendError, Unanswered, Unavailable
from messaging_core.flow import Done, Part, Receipt, Step, Undelivered
from messaging_core.gateway.protocol import FAULTS, NOBODY, OUTCOMES, CloseCode, read_object, to_text
from messaging_core.gateway.status import summary
from messaging_core.wire.http import HttpReply, at, read_json, text_at, to_json, wait_of
from messaging_core.wire.websocket import Close, WebSocketReply, WebSocketRequest

OPEN_END = "; it may have arrived"
"""How the account of an unconfirmed send ends, the channel's behind the gateway as well as ours."""

KINDS: Mapping[str, type[SendError]] = {
    **dict.fromkeys(("failed", "refused", NOBODY), Rejected),
    **dict.fromkeys(("unauthorized", "forbidden_host", "forbidden_origin"), Denied),
    **dict.fromkeys(("overloaded", "shutting_down", "timeout"), Unavailable),
    **dict.fromkeys(
        (code for code, status in FAULTS.items() if status in (400, 404, 405, 409, 413, 415, 422, 426)), Invalid
    ),
}
"""The code or status of an outcome that is no success -> the error that it is."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The gateway answered over HTTP with the outcome of the message ``id``."""

    target: str
    id: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        body = read_json(reply).value_or(None)
        if text_at(body, "status") in OUTCOMES:
            return _outcome(body, reply, self.target, self.id)
        if 200 <= reply.status < 300:
            return Failure(Malformed(reply.status, reply.reason, detail="the answer is none of a gateway's"))
        return Failure(_said(body, reply))


@dataclass(frozen=True, slots=True)
class AnsweredByFrame:
    """The gateway answered over WebSocket with the outcome of the message ``id``, or closed, or did not let us in."""

    target: str
    id: str

    def __call__(self, reply: WebSocketReply, /) -> Result[Step, SendError]:
        if reply.refused is not None:
            return Failure(_refused(reply.refused))
        if reply.frame is not None:
            return read_object(reply.frame).alt(_unreadable).bind(self._read)
        return Failure(_closed(reply.close or Close(1005)))

    def _read(self, body: dict[str, Any]) -> Result[Step, SendError]:
        return _outcome(body, HttpReply(0), self.target, self.id)


@dataclass(frozen=True, slots=True)
class Taken:
    """An endpoint of somebody else, listed in ``allowed_targets``: any 2xx is delivered."""

    target: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        if 200 <= reply.status < 300:
            return Success(Done((Receipt(Part(1, 1), None, self.target, (f"taken with {reply.status}",)),)))
        return Failure(failure(reply))


def _outcome(body: Any, reply: HttpReply, target: str, id: str) -> Result[Step, SendError]:
    status, code, message = text_at(body, "status"), text_at(body, "code"), text_at(body, "message")
    if status in ("delivered", "partial"):
        receipt = Receipt(Part(1, 1), text_at(body, "id") or id, target, (message,))
        lost = (Undelivered(target, Rejected(detail=message)),) if status == "partial" else ()
        return Success(Done((receipt,), lost))
    if status == "unconfirmed" or code == "internal":
        return Failure(Unanswered(message.removesuffix(OPEN_END)))
    return Failure(_error(code or status, message, reply))


def _error(code: str, message: str, reply: HttpReply) -> SendError:
    """The error that a gateway's word makes; its message says all, so the code is left out of the sentence."""
    kind, status = KINDS.get(code, Rejected), reply.status or None
    if kind is Unavailable:
        return Unavailable(status, reply.reason, "", message, after=wait_of(reply))
    assert issubclass(kind, Invalid | Denied | Rejected), kind
    return kind(status, reply.reason, "", message)


def _unreadable(_: Any) -> SendError:
    return Malformed(detail="the answer is no JSON object")


def _refused(reply: HttpReply) -> SendError:
    """An upgrade that was not granted: nothing was sent, whatever the status."""
    error = _said(read_json(reply).value_or(None), reply)
    if isinstance(error, Unavailable):
        return replace(error, may_have_arrived=False)
    if reply.status < 300:
        return Rejected(reply.status, reply.reason, detail="there is no WebSocket at that address")
    return error


def _said(body: Any, reply: HttpReply) -> SendError:
    """The error of a reply that is no outcome: by the gateway's word, or by the status where it is not ours."""
    code, message = text_at(body, "code"), text_at(body, "message")
    return _error(code, message, reply) if code in KINDS else failure(reply, detail=message)


def _closed(close: Close) -> SendError:
    """A connection that was closed before the answer came, by its code (RFC 6455, 7.4.1; IANA)."""
    code, word = str(close.code), f"{close.code} {close.reason}".strip()
    detail = f"closed before the receipt came ({word})"
    match close.code:
        case CloseCode.UNSUPPORTED | CloseCode.NOT_UTF8 | CloseCode.TOO_BIG | 1002:
            return Invalid(None, "", code, detail)
        case 3000 | 3003:
            return Denied(None, "", code, detail)
        case CloseCode.POLICY:
            return Rejected(None, "", code, detail)
        case CloseCode.TRY_AGAIN:
            return Unavailable(None, "", code, detail)
        case _:
            return Unanswered(detail)


# --- Status -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """The gateway at ``where`` said how it is: a sentence, and the document as JSON, in the receipt's notes."""

    where: str

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        body = read_json(reply).value_or(None)
        if reply.status != 200:
            return Failure(_said(body, reply))
        if not isinstance(body, dict) or "connections" not in body:
            return Failure(Malformed(reply.status, reply.reason, detail="the answer is no status of a gateway"))
        return Success(Done((Receipt(None, None, self.where, (summary(body), to_text(body))),)))


def status_document(done: Done) -> dict[str, Any] | None:
    """The status document that a finished ``status`` call brought."""
    notes = done.delivered[0].notes if done.delivered else ()
    return read_object(notes[1]).value_or(None) if len(notes) == 2 else None


def rehearse(request: Any) -> Any:
    """What the gateway would answer, so that a call can be listed without a network."""
    if isinstance(request, WebSocketRequest):
        told = read_object(request.frames[0]).unwrap()
        return WebSocketReply(to_text({"type": "receipt", **_rehearsed(told)}))
    if request.method == "GET":
        return HttpReply(
            200, "OK", (), to_json({"status": "ok", "version": "0", "uptime": 0, "connections": {"total": 0}})
        )
    return HttpReply(200, "OK", (), to_json(_rehearsed(read_object(request.body).unwrap())))


def _rehearsed(post: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": text_at(post, "id"),
        "status": "delivered",
        "clients": 1,
        "message": "Handed to 1 client",
        "to": at(post, "target"),
    }
