"""What a refusing HTTP answer means, written once; each channel adds a table of its platform's codes."""

from collections.abc import Mapping
from typing import TypeAlias

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
from messaging_core.secrecy import shortened
from messaging_core.wire.http import HttpReply, wait_of

Table: TypeAlias = Mapping[str, type[SendError]]
"""A platform's code -> the error that it is."""

AMBIGUOUS = frozenset({502, 504, *range(520, 528)})
"""Statuses by which a gateway says that it does not know what became of the request behind it."""

LONGEST = 300
"""Characters of the platform's own words."""


def failure(
    reply: HttpReply,
    *,
    code: str = "",
    detail: str = "",
    table: Table | None = None,
    wait: float | None = None,
    recipient: str = "",
) -> SendError:
    """The error that ``reply`` is: by the platform's ``code`` where ``table`` has it, else by the HTTP status. A
    success status without a code or words says neither yes nor no.

    ``detail``: the platform's own words, cut to :data:`LONGEST`. ``wait``: seconds, where the body names them; the
    longer of it and the
    ``Retry-After`` header counts. ``recipient``: as named by the error where the table says that the recipient is at
    fault.
    """
    status, reason, detail = reply.status, reply.reason, shortened(" ".join(detail.split()), LONGEST)
    waits = [seconds for seconds in (wait, wait_of(reply)) if seconds is not None]
    after = max(waits, default=None)
    kind = (table or {}).get(code) or _by_status(status)
    if kind is Rejected and status < 300 and not code and not detail:
        return Malformed(status, reason, detail="the answer says neither yes nor no")
    if kind is RateLimited:
        return RateLimited(status, reason, code, detail, after)
    if kind is Unavailable:
        return Unavailable(status, reason, code, detail, status in AMBIGUOUS, after)
    if kind is InvalidRecipient:
        return InvalidRecipient(recipient, "", detail or code, status, reason)
    if 300 <= status < 400:
        return Rejected(status, reason, code, detail or "the server redirects; a send does not follow")
    assert issubclass(kind, Invalid | Denied | Rejected), kind
    return kind(status, reason, code, detail)


def _by_status(status: int) -> type[SendError]:
    if status == 429:
        return RateLimited
    if status in (408, 425) or status >= 500:
        return Unavailable
    if status in (401, 403, 407):
        return Denied
    return Invalid if status >= 400 else Rejected
