"""The tool ``gateway``: from the arguments of a call to the exchange that does it, and back to a sentence.

::

    arguments ── parse ─▶ GatewayCall ── describe ─▶ Exchange (HTTP or WebSocket) ─▶ Done ── report ─▶ sentence
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core.config.settings import Gateway
from messaging_core.errors import (
    InvalidArguments,
    RecipientBlocked,
    Refusal,
    TooLarge,
)
from messaging_core.flow import Done, Exchange, Part, Scope
from messaging_core.gateway.answers import Answered, AnsweredByFrame, Taken, Told
from messaging_core.gateway.protocol import (
    DEEPEST,
    LARGEST,
    SENDER,
    AnswerTo,
    Post,
    channel_problems,
    problems_of,
    read_object,
    read_post,
    to_text,
)
from messaging_core.gateway.targets import (
    EVERYONE,
    EXPECTED,
    ROOT,
    Address,
    Through,
    is_client_path,
    permitted_by,
    read_address,
    read_target,
    same_host,
    to_connect,
)
from messaging_core.message import Ids
from messaging_core.secrecy import Text
from messaging_core.tools import Tool
from messaging_core.wire.http import (
    HttpRequest,
    bearer,
    json_request,
    to_json,
)
from messaging_core.wire.websocket import WebSocketRequest

NAME = "gateway"
ACTIONS = ("send", "broadcast", "status")
DESCRIPTION = (
    "Low-level access to the local message gateway: send one raw message to the programs and pages connected to it, "
    "broadcast to all of them, or ask for its status. To write to a person, use message_send."
)


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do."},
        "payload": {
            "type": "object",
            "description": "The message. Needed for send and broadcast. Further members are passed on as they are.",
            "properties": {
                "type": {
                    "type": "string",
                    "description": "Kind of message, as its readers know it.",
                    "default": "text",
                },
                "content": {"type": "string", "description": "The text of the message.", "minLength": 1},
                "target": {
                    "type": "string",
                    "description": (
                        "Needed for send: /ws for every client there, /ws/<name> for one, a configured channel's "
                        "name, or a ws:// or http:// URL of the gateway. A broadcast needs none."
                    ),
                },
            },
            "additionalProperties": True,
        },
    },
    "required": ["action"],
    "additionalProperties": False,
}

GATEWAY = Tool(NAME, DESCRIPTION, to_text(_SCHEMA))
"""The tool as a model sees it."""


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """What the caller asked for. ``post`` None: the status. ``target``: as written; ``*`` for a broadcast that names
    none, empty for the status of the configured gateway."""

    action: str
    post: Post | None = None
    target: str = ""

    @property
    def channel(self) -> str | None:
        """The configured channel that the message is to go out by, where it is for one."""
        return read_target(self.target).map(lambda to: to.channel if isinstance(to, Through) else None).value_or(None)


# --- Parsing ----------------------------------------------------------------------------------------------------------


def parse(arguments: Any) -> Result[GatewayCall, InvalidArguments]:
    """The call, or every problem with its arguments. Whether the target is permitted is for :func:`describe`."""
    if not isinstance(arguments, Mapping):
        return Failure(InvalidArguments(NAME, ("expected an object",)))
    action, payload = arguments.get("action"), arguments.get("payload")
    problems = [f"{ascii(name)[:60]}: unknown" for name in arguments if name not in ("action", "payload")]
    if action not in ACTIONS:
        state = "missing" if action is None else "unknown"
        problems.insert(0, f"action: {state}; expected one of {', '.join(ACTIONS)}")
    elif payload is None and action != "status":
        problems.append(f"payload: missing; {action} needs type, content{' and target' if action == 'send' else ''}")
    elif payload is not None and not isinstance(payload, Mapping):
        problems.append("payload: expected an object")
    elif payload is not None:
        problems += [f"payload.{problem}" for problem in _payload_problems(action, payload)]
    if problems:
        return Failure(InvalidArguments(NAME, tuple(problems)))
    return Success(_call(str(action), payload or {}))


def _payload_problems(action: str, payload: Mapping[str, Any]) -> list[str]:
    if action == "status":
        return _target_problems(action, payload.get("target"))
    problems = [*problems_of(payload, broadcast=False, needs_target=False)]
    # What is handed over in code, or written as an escape, may hold what UTF-8 cannot, such as half a surrogate pair.
    if not problems and not is_successful(read_object(_dumped(payload))):
        problems.append(
            f"content: what the payload holds cannot be written as JSON in UTF-8, {DEEPEST} levels deep at most"
        )
    return problems + _target_problems(action, payload.get("target")) + [*channel_problems(payload)]


def _dumped(payload: Mapping[str, Any]) -> str:
    try:
        return to_text(dict(payload))
    except (ValueError, TypeError, RecursionError):
        return ""


def _target_problems(action: str, target: Any) -> list[str]:
    if target is None:
        return ["target: missing; where is it to go?"] if action == "send" else []
    if not isinstance(target, str):
        return ["target: expected a text"]
    if "://" in target:
        read = read_address(target)
        return [] if is_successful(read) else [f"target: {read.failure()}"]
    if action == "send":
        everyone = "target: for everyone there is the action broadcast"
        known = is_successful(read_target(target))
        return [everyone] if target == EVERYONE else [] if known else [f"target: {EXPECTED}, or a URL"]
    if action == "broadcast" and target == EVERYONE:
        return []
    return [f"target: {action} takes the URL of a gateway, or none"]


def _call(action: str, payload: Mapping[str, Any]) -> GatewayCall:
    target = payload.get("target") or (EVERYONE if action == "broadcast" else "")
    if action == "status":
        return GatewayCall(action, None, target)
    return GatewayCall(action, read_post({**payload, "target": EVERYONE}).unwrap(), target)


# --- Describing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a call goes: the gateway's address, and whether it is the configured one (only that gets the token)."""

    address: Address
    own: bool


def describe(call: GatewayCall, gateway: Gateway, ids: Ids) -> Result[Exchange, Refusal]:
    """The one exchange that does it. Refused: ``RecipientBlocked``, ``InvalidArguments``, ``TooLarge``.

    The configured gateway is addressed as the settings spell it, whatever name the target gave it.
    """
    if "://" not in call.target:
        return _at(call, _Place(_own(gateway, "http"), own=True), gateway, ids)
    return read_address(call.target).alt(_not_readable).bind(lambda to: _placed(call, to, gateway, ids))


def _not_readable(problem: str) -> Refusal:
    return InvalidArguments(NAME, (f"payload.target: {problem}",))


def _own(gateway: Gateway, scheme: str, path: str = "") -> Address:
    return Address(scheme, to_connect(gateway.host), gateway.port, path)


def _placed(call: GatewayCall, to: Address, gateway: Gateway, ids: Ids) -> Result[Exchange, Refusal]:
    own = not to.secure and to.port == gateway.port and same_host(to.host, to_connect(gateway.host))
    if own:
        return _at(call, _Place(_own(gateway, to.scheme, to.path), own=True), gateway, ids)
    if any(permitted_by(entry, to) for entry in gateway.allowed_targets):
        return _at(call, _Place(to, own=False), gateway, ids)
    return Failure(RecipientBlocked(NAME, call.target, "gateway.allowed_targets"))


def _at(call: GatewayCall, place: _Place, gateway: Gateway, ids: Ids) -> Result[Exchange, Refusal]:
    if call.post is None:
        return Success(_ask_status(place, gateway))
    post = Post(call.post.type, call.post.content, _inner(call, place), call.post.id or ids.part(1), call.post.extra)
    size = len(to_json(post.document()))
    if size > LARGEST:
        return Failure(TooLarge("The gateway message", size, LARGEST))
    if place.address.is_socket:
        return _by_socket(call, post, place, gateway)
    return _by_http(call, post, place, gateway)


def _inner(call: GatewayCall, place: _Place) -> str:
    """The target as the gateway knows it: its own grammar, or the path of the URL."""
    if call.action == "broadcast":
        return EVERYONE
    if "://" not in call.target:
        return call.target
    path = place.address.path
    return path if is_client_path(path) else EVERYONE if path == BROADCAST else ROOT


SEND, BROADCAST, STATUS = "/api/send", "/api/broadcast", "/api/status"


def _by_socket(call: GatewayCall, post: Post, place: _Place, gateway: Gateway) -> Result[Exchange, Refusal]:
    if place.own and not is_client_path(place.address.path):
        return Failure(_wrong_path(call, "/ws or /ws/<name>"))
    assert post.id is not None
    address = place.address if not place.own else _own(gateway, "ws", ROOT)
    request = WebSocketRequest(
        address.socket, (to_text(post.document()),), AnswerTo(post.id), _token(place, gateway), (SENDER,), place.own
    )
    return Success(_exchange(request, AnsweredByFrame(call.target, post.id), call, gateway))


def _by_http(call: GatewayCall, post: Post, place: _Place, gateway: Gateway) -> Result[Exchange, Refusal]:
    address, path = place.address, place.address.path
    known = is_client_path(path) or path in ("", SEND, BROADCAST)
    if place.own and not known:
        return Failure(_wrong_path(call, "/ws, /ws/<name>, /api/send or /api/broadcast"))
    whole = post.target == EVERYONE
    url = address.origin + ((BROADCAST if whole else SEND) if known else path)
    # The gateway takes an id but once; what stands behind a channel, or another's gateway, may not be so careful.
    repeatable = place.own and not isinstance(read_target(post.target).value_or(None), Through)
    request = json_request("POST", url, post.document(), headers=_token(place, gateway), repeatable=repeatable)
    then = Answered(call.target, str(post.id)) if known else Taken(call.target)
    return Success(_exchange(request, then, call, gateway))


def _wrong_path(call: GatewayCall, expected: str) -> Refusal:
    return InvalidArguments(NAME, (f"payload.target: {call.target} takes no messages; expected the path {expected}",))


def _ask_status(place: _Place, gateway: Gateway) -> Exchange:
    url = place.address.origin + STATUS
    request = HttpRequest("GET", url, _token(place, gateway), repeatable=True)
    return Exchange(request, Told(place.address.origin), Scope(NAME, method="status"))


def _token(place: _Place, gateway: Gateway) -> tuple[tuple[str, Text], ...]:
    return (bearer(gateway.token),) if place.own and gateway.token is not None else ()


def _exchange(request: Any, then: Any, call: GatewayCall, gateway: Gateway) -> Exchange:
    credential = gateway.token.name if gateway.token else ""
    return Exchange(request, then, Scope(NAME, credential, call.target, call.action), Part(1, 1))


# --- Reporting --------------------------------------------------------------------------------------------------------


def report(call: GatewayCall, done: Done) -> str:
    """What the model reads of a call that was done."""
    receipt = done.delivered[0]
    return f"Gateway {receipt.recipient}: {receipt.notes[0]}" if call.action == "status" else receipt.notes[0]
