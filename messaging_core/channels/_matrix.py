"""What every request to a Matrix homeserver has, and what every reply of one means."""

from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.failures import failure
from messaging_core.errors import Denied, Invalid, InvalidRecipient, Malformed, RateLimited, Rejected, SendError
from messaging_core.flow import Done, Exchange, Part, Scope, Step, Then
from messaging_core.secrecy import Secret
from messaging_core.wire.http import (
    HttpReply,
    HttpRequest,
    at,
    at_least,
    bearer,
    json_request,
    read_json,
    text_at,
)


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks: the channel's name in the settings, the base URL of its homeserver, and its token there."""

    channel: str
    homeserver: str
    token: Secret

    def get(self, path: str, then: Then) -> Exchange:
        request = HttpRequest("GET", self._url(path), (bearer(self.token),), repeatable=True)
        return Exchange(request, then, self.scope())

    def put(self, path: str, value: dict[str, Any], then: Then, chat: str, part: Part | None = None) -> Exchange:
        """Either has an id of its own in the path, or is the whole of what is kept there: a repeat changes nothing."""
        request = json_request("PUT", self._url(path), value, headers=(bearer(self.token),), repeatable=True)
        return Exchange(request, then, self.scope(chat), part)

    def post(self, path: str, value: dict[str, Any], then: Then, scope: Scope) -> Exchange:
        """A repeat makes another of what this makes."""
        return Exchange(json_request("POST", self._url(path), value, headers=(bearer(self.token),)), then, scope)

    def _url(self, path: str) -> str:
        return f"{self.homeserver}/_matrix/client/v3{path}"

    def scope(self, chat: str = "", method: str = "") -> Scope:
        return Scope(self.channel, self.token.name, chat, method)


CODES: dict[str, type[SendError]] = {
    # https://spec.matrix.org/latest/client-server-api/#standard-error-response
    **dict.fromkeys(("M_FORBIDDEN", "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_LOCKED", "M_USER_SUSPENDED"), Denied),
    **dict.fromkeys(("M_USER_DEACTIVATED", "M_GUEST_ACCESS_FORBIDDEN", "M_CONSENT_NOT_GIVEN"), Denied),
    **dict.fromkeys(("M_TOO_LARGE", "M_BAD_JSON", "M_NOT_JSON", "M_INVALID_PARAM", "M_UNRECOGNIZED"), Invalid),
    **dict.fromkeys(("M_RESOURCE_LIMIT_EXCEEDED", "M_USER_LIMIT_EXCEEDED"), Rejected),
    **dict.fromkeys(("M_NOT_FOUND", "M_BAD_ALIAS"), InvalidRecipient),
    "M_LIMIT_EXCEEDED": RateLimited,
}


def read(reply: HttpReply, recipient: str = "") -> Result[Any, SendError]:
    """The body of a good answer, or the failure that it is; waits come in milliseconds, or as ``Retry-After``."""
    if 200 <= reply.status < 300:
        return read_json(reply)
    body = read_json(reply).value_or(None)
    wait = at(body, "retry_after_ms")
    return Failure(
        failure(
            reply,
            code=_code(reply, text_at(body, "errcode")),
            detail=text_at(body, "error"),
            table=CODES,
            wait=None if wait is None else at_least(wait / 1000 if isinstance(wait, int | float) else wait),
            recipient=recipient,
        )
    )


def _code(reply: HttpReply, code: str) -> str:
    """With ``M_UNKNOWN`` the status counts: a user that there is not is 404 ``M_UNKNOWN`` in Synapse."""
    return "M_NOT_FOUND" if code == "M_UNKNOWN" and reply.status == 404 else code


def read_text(reply: HttpReply, name: str, recipient: str) -> Result[str, SendError]:
    """The text under ``name`` in a good answer; without it the answer is none of a homeserver."""
    missing = Malformed(reply.status, reply.reason, detail=f"the answer has no {name}")
    return read(reply, recipient).bind(
        lambda body: Success(text_at(body, name)) if text_at(body, name) else Failure(missing)
    )


@dataclass(frozen=True, slots=True)
class Fine:
    """A good answer is all that was asked for; ``done`` is what then holds."""

    recipient: str = ""
    done: Done = Done()

    def __call__(self, reply: HttpReply, /) -> Result[Step, SendError]:
        return read(reply, self.recipient).map(lambda _: self.done)
