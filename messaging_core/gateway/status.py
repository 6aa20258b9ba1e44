"""What the gateway says of itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from messaging_core.wire.http import at, text_at


@dataclass(frozen=True, slots=True)
class Counts:
    """Since the start. ``accepted``: messages taken; each was ``delivered`` (to a client at least, or by a channel), or
    ``failed`` (all else).

    ``handed``: frames given to clients. ``acknowledged``: of those, by their clients. ``refused``: requests and
    frames that were not taken. ``connected``: clients that came. ``dropped``: of those, for being too slow.
    """

    accepted: int = 0
    delivered: int = 0
    failed: int = 0
    handed: int = 0
    acknowledged: int = 0
    refused: int = 0
    connected: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The whole. ``uptime``: seconds. ``connections``: clients by path. ``queued``, ``queued_bytes``: frames that
    wait for clients. ``sending``: messages that a channel has in hand.
    """

    version: str
    uptime: float
    channels: tuple[str, ...]
    connections: tuple[tuple[str, int], ...]
    limit: int
    counts: Counts
    queued: int = 0
    queued_bytes: int = 0
    sending: int = 0
    closing: bool = False

    def document(self) -> dict[str, Any]:
        return {
            "status": "closing" if self.closing else "ok",
            "version": self.version,
            "uptime": round(self.uptime, 3),
            "channels": list(self.channels),
            "connections": {
                "total": sum(count for _, count in self.connections),
                "limit": self.limit,
                "by_path": dict(self.connections),
            },
            "counts": asdict(self.counts),
            "queue": {"frames": self.queued, "bytes": self.queued_bytes, "sending": self.sending},
        }


def summary(document: Mapping[str, Any]) -> str:
    """The document in one sentence, for a model or a person.

    >>> summary({"status": "ok", "version": "1", "uptime": 61, "connections": {"total": 1}, "channels": ["ops"]})
    'ok, version 1, up 61 s, 1 client connected, channels: ops'
    """
    clients = at(document, "connections", "total")
    count = clients if isinstance(clients, int) else 0
    channels = at(document, "channels")
    names = ", ".join(str(name) for name in channels) if isinstance(channels, list) else ""
    uptime = at(document, "uptime")
    up = f"{uptime:.0f} s" if isinstance(uptime, int | float) else "?"
    connected = f"{count} client{'' if count == 1 else 's'} connected"
    state, version = text_at(document, "status"), text_at(document, "version")
    return f"{state}, version {version}, up {up}, {connected}, channels: {names or 'none'}"
