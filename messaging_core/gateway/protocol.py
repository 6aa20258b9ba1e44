"""What travels between the gateway and those who use it: messages, acknowledgements, outcomes, errors, close codes.

::

    POST /api/send, /api/broadcast   {type, content, target, id?, ...}              ─▶ outcome
    client ─▶ gateway (WebSocket)    {type, content, target, id?, ...}              ─▶ {"type": "receipt", ...outcome}
                                     {"type": "ack", "id"}                          ─▶ nothing
    gateway ─▶ client                {id, type, content, target, from, time, ...}   no greeting before the first
    outcome                          {id, status, message, clients?, code?, ...}

Both ends read and write by this module. It knows no socket, no clock and no framework.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, TypeAlias

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core.gateway.targets import EVERYONE, EXPECTED, Target, Through, read_target

LARGEST = 1_000_000
"""Bytes of one body, or of one frame from a client."""

LARGEST_FRAME = 1024 * 1024
"""Bytes of one frame to a client: what it holds beside the message fits, and common clients take no more unasked."""

DEEPEST = 100
"""Levels of arrays and objects within one another: what was read is written again by whoever holds it, and must never
exhaust a stack there.
"""

SUBPROTOCOL = "messaging"
"""Offered by a client that wants to be sure whom it talks to (RFC 6455, 1.9); not needed."""

SENDER = "messaging.send"
"""Offered by one who only sends: it gets receipts, no messages, and counts as nobody's reader."""

BEARER = "bearer."
"""Before a token (base64url, no padding) offered as a subprotocol: pages cannot set headers on a WebSocket."""

OWN_TYPES = ("ack", "receipt", "error")
"""Types of the protocol's own frames: a message cannot have them."""

GIVEN_BY: Mapping[str, str] = {"text": "the content", "channel": "the target"}
"""Arguments of ``message_send`` that a message for a channel cannot also have of its own: one of the two would be lost.
"""

OWN_MEMBERS = ("from", "time")
"""Members that the gateway itself gives every message."""

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_ID = re.compile(r"[!-~]{1,128}")


class CloseCode(IntEnum):
    """Why the gateway closes a WebSocket: RFC 6455, 7.4.1, and IANA's registry; 4000 and up are for private use."""

    GOING_AWAY = 1001
    """The gateway shuts down; everything handed over was sent before."""
    UNSUPPORTED = 1003
    """A binary frame came."""
    NOT_UTF8 = 1007
    POLICY = 1008
    """Too slow: what waited for this client went over its limit."""
    TOO_BIG = 1009
    INTERNAL = 1011
    TRY_AGAIN = 1013
    """No room for another client."""
    REPLACED = 4000
    """Another client connected under the same name; do not come back under it."""


# --- Faults -----------------------------------------------------------------------------------------------------------

FAULTS: Mapping[str, int] = {
    "invalid_json": 400,
    "unauthorized": 401,
    "forbidden_host": 403,
    "forbidden_origin": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "timeout": 408,
    "id_reused": 409,
    "too_large": 413,
    "unsupported_type": 415,
    "invalid": 422,
    "upgrade_required": 426,
    "internal": 500,
    "overloaded": 503,
    "shutting_down": 503,
}
"""What the gateway did not take, and the HTTP status that says so."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Not taken: nothing was sent. ``code`` is one of :data:`FAULTS`; ``id`` the message's, where it could be read."""

    code: str
    message: str
    id: str | None = None

    @property
    def http_status(self) -> int:
        return FAULTS[self.code]

    def document(self) -> dict[str, Any]:
        return {"id": self.id, "status": "refused", "code": self.code, "message": self.message}


TOO_DEEP = Fault("invalid_json", f"it is nested more than {DEEPEST} levels deep")


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Post:
    """One message to be passed on. ``target`` as written; ``extra``: the other members as a JSON object's text, or
    empty.
    """

    type: str
    content: str
    target: str = EVERYONE
    id: str | None = None
    extra: str = ""

    def document(self) -> dict[str, Any]:
        """The message as JSON members, in the order in which they are shown."""
        own = {"id": self.id, "type": self.type, "content": self.content, "target": self.target}
        return {name: value for name, value in own.items() if value is not None} | self.members

    @property
    def members(self) -> dict[str, Any]:
        """The members beside the protocol's own."""
        found: dict[str, Any] = json.loads(self.extra) if self.extra else {}
        return found

    @property
    def digest(self) -> str:
        """The same for messages that say the same to the same target, whatever their id."""
        return hashlib.sha256(to_text({**self.document(), "id": None}).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Ack:
    """A client has seen the message ``id``."""

    id: str


ClientFrame: TypeAlias = Post | Ack


def read_object(raw: str | bytes) -> Result[dict[str, Any], Fault]:
    """A JSON object (RFC 8259) that can be written again: UTF-8, no NaN, no lone surrogates, nested no deeper than
    :data:`DEEPEST`.
    """
    try:
        value = json.loads(raw if isinstance(raw, str) else raw.decode("utf-8-sig"))
        if not isinstance(value, dict):
            return Failure(Fault("invalid", "it must be a JSON object"))
        if _is_deeper(value, DEEPEST):
            return Failure(TOO_DEEP)
        to_text(value).encode()
    except RecursionError:
        return Failure(TOO_DEEP)
    except ValueError:
        return Failure(Fault("invalid_json", "it is not JSON in UTF-8"))
    return Success(value)


def _is_deeper(value: dict[str, Any], levels: int) -> bool:
    level: list[Any] = [value]
    for _ in range(levels):
        members = (inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer))
        level = [inner for inner in members if isinstance(inner, dict | list)]
    return bool(level)


def read_post(value: Mapping[str, Any], *, broadcast: bool = False) -> Result[Post, Fault]:
    """A message from JSON members; every problem is named. ``broadcast``: it goes to everyone, and names no target."""
    problems = problems_of(value, broadcast=broadcast)
    given = value.get("id")
    known = given if isinstance(given, str) and _ID.fullmatch(given) else None
    if problems:
        return Failure(Fault("invalid", "; ".join(problems), known))
    extra = {name: member for name, member in value.items() if name not in ("type", "content", "target", "id")}
    target = EVERYONE if broadcast else str(value["target"])
    return Success(
        Post(str(value.get("type") or "text"), str(value["content"]), target, known, to_text(extra) if extra else "")
    )


def problems_of(value: Mapping[str, Any], *, broadcast: bool, needs_target: bool = True) -> tuple[str, ...]:
    """What is wrong with the members of a message, each problem naming its member; empty where nothing is.

    ``needs_target`` False: the target is judged elsewhere (the tool's may be a URL).
    """
    problems: list[str] = []
    kind = value.get("type")
    if kind is not None and not (isinstance(kind, str) and _TYPE.fullmatch(kind)):
        problems.append("type: expected a letter, then at most 63 letters, digits or _ . : -")
    elif kind in OWN_TYPES:
        problems.append(f"type: {kind!r} is the protocol's own")
    content = value.get("content")
    if not isinstance(content, str):
        problems.append("content: missing" if content is None else "content: expected a text")
    elif not content:
        problems.append("content: is empty")
    identity = value.get("id")
    if identity is not None and not (isinstance(identity, str) and _ID.fullmatch(identity)):
        problems.append("id: expected 1 to 128 printable ASCII characters without blanks")
    problems += [f"{name}: is given by the gateway" for name in OWN_MEMBERS if name in value]
    if needs_target:
        problems += _target_problems(value.get("target"), broadcast)
        problems += channel_problems(value)
    return tuple(problems)


def channel_problems(value: Mapping[str, Any]) -> tuple[str, ...]:
    """What a channel cannot take of a message that is for one."""
    target = value.get("target")
    through = isinstance(target, str) and isinstance(read_target(target).value_or(None), Through)
    if not through:
        return ()
    kind = ("type: a channel takes text",) if value.get("type") not in (None, "text") else ()
    return (*kind, *(f"{name}: is given by {by}" for name, by in GIVEN_BY.items() if name in value))


def _target_problems(target: Any, broadcast: bool) -> list[str]:
    if broadcast:
        return [] if target in (None, EVERYONE) else ["target: a broadcast goes to everyone; leave it out, or use send"]
    if not isinstance(target, str):
        return ["target: missing" if target is None else "target: expected a text"]
    return [] if is_successful(read_target(target)) else [f"target: {EXPECTED}"]


def target_of(post: Post) -> Target:
    """Whom a message that was read goes to."""
    return read_target(post.target).unwrap()


def read_frame(raw: str) -> Result[ClientFrame, Fault]:
    """What a client says: a message for other clients, or an acknowledgement."""
    return read_object(raw).bind(_frame)


def _frame(value: dict[str, Any]) -> Result[ClientFrame, Fault]:
    if value.get("type") == "ack":
        identity = value.get("id")
        if isinstance(identity, str) and _ID.fullmatch(identity):
            return Success(Ack(identity))
        return Failure(Fault("invalid", "id: an acknowledgement names the message that it is for"))
    return read_post(value).bind(_for_clients)


def _for_clients(post: Post) -> Result[ClientFrame, Fault]:
    if isinstance(target_of(post), Through):
        return Failure(Fault("invalid", "target: channels are reached by POST /api/send", post.id))
    return Success(post)


# --- Writing ----------------------------------------------------------------------------------------------------------


def to_text(value: Any) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def message_frame(post: Post, id: str, sender: str, now: float) -> str:
    """What a client receives. ``sender``: the path of the client that sent it, or ``api``. ``now``: Unix seconds."""
    own = {
        "id": id,
        "type": post.type,
        "content": post.content,
        "target": post.target,
        "from": sender,
        "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    return to_text(own | post.members)


def receipt_frame(outcome: Mapping[str, Any]) -> str:
    """The answer to a client's message."""
    return to_text({"type": "receipt", **outcome})


def error_frame(fault: Fault) -> str:
    """The answer to a client's frame that was not taken."""
    return to_text({"type": "error", **fault.document()})


@dataclass(frozen=True, slots=True)
class AnswerTo:
    """Whether a frame is the receipt for, or the error about, the message ``id``."""

    id: str

    def __call__(self, frame: str, /) -> bool:
        return read_object(frame).map(self._matches).value_or(False)

    def _matches(self, value: dict[str, Any]) -> bool:
        # An error without an id is about a frame that could not be read; whoever sent one frame knows which.
        return (value.get("type"), value.get("id")) in (("receipt", self.id), ("error", self.id), ("error", None))


# --- Outcomes ---------------------------------------------------------------------------------------------------------

OUTCOMES: Mapping[str, int] = {"delivered": 200, "partial": 200, "refused": 403, "failed": 502, "unconfirmed": 504}
"""How a message fared that a channel took in hand, and the HTTP status that says so."""

NOBODY = "nobody_there"
"""The code of a message that found no client: ``failed``, HTTP 404."""


def handed(post: Post, id: str, clients: int) -> dict[str, Any]:
    """The outcome of a message for clients: handed to ``clients`` of them, or failed since nobody is there."""
    where = "" if post.target == EVERYONE else f" at {post.target}"
    if not clients:
        message = f"Nobody is connected{where}"
        return {"id": id, "status": "failed", "code": NOBODY, "clients": 0, "message": message}
    message = f"Handed to {clients} client{'' if clients == 1 else 's'}{where}"
    return {"id": id, "status": "delivered", "clients": clients, "message": message}


def through_channel(id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome of a message for a channel: what the one who delivered it told, under the message's id.

    ``told`` has at least ``status`` and ``message``; what is none of the five outcomes is unconfirmed, never delivered.
    """
    status = told.get("status")
    known = status if status in OUTCOMES else "unconfirmed"
    return {**told, "id": id, "status": known, "message": str(told.get("message") or known)}


def http_status(outcome: Mapping[str, Any]) -> int:
    """The HTTP status of an outcome."""
    return 404 if outcome.get("code") == NOBODY else OUTCOMES[str(outcome["status"])]
