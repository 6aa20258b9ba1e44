"""WebSocket exchanges as values (RFC 6455): connect, send frames, wait for the one that answers, close.

A request is final but for ``Secret(name)`` in place of secret values; :func:`on_wire` puts them in at each try.
"""

from dataclasses import dataclass, field
from typing import Protocol

from messaging_core.secrecy import Secrets, Text
from messaging_core.wire.http import Headers, HttpReply

SWITCHED = 101
"""The status of an upgrade that was granted (RFC 6455, 4.2.2)."""


class Until(Protocol):
    """Whether a received text frame is the one waited for; comparable and picklable. Other frames are passed over."""

    def __call__(self, frame: str, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class WebSocketRequest:
    """Connect to ``url`` (ws or wss), send ``frames`` (texts) in order, and wait ``until`` a frame answers; then close.

    ``until`` None: nothing is waited for but the end of the closing handshake. ``repeatable``: sending it twice does no
    harm.
    """

    url: Text
    frames: tuple[str, ...] = ()
    until: Until | None = None
    headers: tuple[tuple[str, Text], ...] = ()
    subprotocols: tuple[str, ...] = ()
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """The far end closed: its code (RFC 6455, 7.4; IANA's registry) and reason. 1005: it gave no code."""

    code: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WebSocketReply:
    """What came of it: ``frame`` is the one waited for; else ``close`` says how the far end closed before it came.

    ``refused``: the answer to an upgrade that was not granted; then nothing was sent.
    """

    frame: str | None = None
    close: Close | None = None
    refused: HttpReply | None = None


@dataclass(frozen=True, slots=True)
class WireWebSocket:
    """A request with its secrets in place: made for one try, never kept, and without a repr that shows anything."""

    url: str = field(repr=False)
    headers: Headers = field(repr=False)


def on_wire(request: WebSocketRequest, secrets: Secrets) -> WireWebSocket:
    """The address and headers as they leave, secrets in place."""
    headers = tuple((name, secrets.reveal(value)) for name, value in request.headers)
    return WireWebSocket(secrets.reveal(request.url), headers)
