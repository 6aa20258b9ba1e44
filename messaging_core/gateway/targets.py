"""Whom a message at the gateway is for, and which gateways a tool call may talk to.

Server side (``target`` in a message)::

    /ws             every client connected there
    /ws/<name>      the client of that name
    *               every client
    <channel>       the outside world, through a configured channel

Client side the target may also be a URL, of the configured gateway or of one that is listed in ``allowed_targets``.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from returns.result import Failure, Result, Success

EVERYONE = "*"
ROOT = "/ws"

_CLIENT = re.compile(r"/ws(/[A-Za-z0-9][A-Za-z0-9._-]{0,63})?")
_CHANNEL = re.compile(r"[^\s/*:\x00-\x1f\x7f][^\s/:\x00-\x1f\x7f]{0,127}")
_URL = re.compile(r"(?:ws|wss|http|https)://[!-~]+", re.IGNORECASE)

EXPECTED = "expected /ws, /ws/<name>, * or the name of a channel"


@dataclass(frozen=True, slots=True)
class Clients:
    """Those who are connected at ``path``."""

    path: str


@dataclass(frozen=True, slots=True)
class Everyone:
    """Every client."""


@dataclass(frozen=True, slots=True)
class Through:
    """The outside world, by the configured channel of that name."""

    channel: str


Target: TypeAlias = Clients | Everyone | Through


def read_target(text: str) -> Result[Target, str]:
    """The target, or what is wrong with it.

    >>> read_target("/ws/page")
    <Success: Clients(path='/ws/page')>
    """
    if text == EVERYONE:
        return Success(Everyone())
    if is_client_path(text):
        return Success(Clients(text))
    if _CHANNEL.fullmatch(text):
        return Success(Through(text))
    return Failure(EXPECTED)


def is_client_path(path: str) -> bool:
    """Whether clients may connect there: ``/ws``, or ``/ws/`` and a name (1 to 64 letters, digits, ``.``, ``_``,
    ``-``).
    """
    return _CLIENT.fullmatch(path) is not None


# --- Hosts ------------------------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Whether ``host`` is this machine and reached by nobody else: ``localhost`` or a loopback address."""
    bare = host.strip("[]").lower()
    if bare in ("localhost", "localhost."):
        return True
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return False


def same_host(one: str, other: str) -> bool:
    """Whether two names are one host: equal, or localhost, 127.0.0.1 and ::1."""
    return _canonical(one) == _canonical(other)


def _canonical(host: str) -> str:
    bare = host.strip("[]").lower().rstrip(".")
    return "localhost" if bare in ("127.0.0.1", "::1") else bare


def bracketed(host: str) -> str:
    """``host`` as it stands in a URL: IPv6 addresses in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


def to_connect(host: str) -> str:
    """Where to connect to reach a gateway that listens on ``host``: the wildcard addresses are this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host.strip("[]"), host)


# --- URLs -------------------------------------------------------------------------------------------------------------

PORTS = {"ws": 80, "http": 80, "wss": 443, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A gateway's URL, taken apart: ``path`` is empty where the URL has none."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def origin(self) -> str:
        """The address for HTTP, without a path."""
        return f"{'https' if self.secure else 'http'}://{self._authority}"

    @property
    def socket(self) -> str:
        """The address for WebSocket, with its path."""
        return f"{'wss' if self.secure else 'ws'}://{self._authority}{self.path}"

    @property
    def secure(self) -> bool:
        return self.scheme in ("wss", "https")

    @property
    def is_socket(self) -> bool:
        return self.scheme in ("ws", "wss")

    @property
    def _authority(self) -> str:
        usual = self.port == PORTS[self.scheme]
        return bracketed(self.host) + ("" if usual else f":{self.port}")


def read_address(text: str) -> Result[Address, str]:
    """A ws, wss, http or https URL with a host; without user, query, fragment, escapes or ``..``, which two readers
    may read differently.

    >>> read_address("ws://localhost:16830/ws").map(lambda address: address.origin)
    <Success: http://localhost:16830>
    """
    if not _URL.fullmatch(text) or any(sign in text for sign in "\\%@?#\"'<>{}|^`"):
        return Failure("expected a ws, wss, http or https URL without user, query, fragment or escapes")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return Failure("the URL cannot be read")
    return _address(parts, port)


def _address(parts: SplitResult, port: int | None) -> Result[Address, str]:
    host, path = parts.hostname or "", "" if parts.path == "/" else parts.path
    if not host or port == 0:
        return Failure("the URL names no host")
    if "//" in path or any(segment in (".", "..") for segment in path.split("/")):
        return Failure("the URL's path is not plain")
    return Success(Address(parts.scheme.lower(), host.lower(), port or PORTS[parts.scheme.lower()], path))


def permitted_by(entry: str, address: Address) -> bool:
    """Whether an entry of ``allowed_targets`` covers the address.

    ``ws://other:9000/ws``: that URL. ``http://other:9000``: any path there, by that scheme. ``other:9000``: any
    path, by ws or http.
    """
    if "://" not in entry:
        return any(_covers(f"{scheme}://{entry}", address) for scheme in ("ws", "http"))
    return _covers(entry, address)


def _covers(entry: str, address: Address) -> bool:
    return read_address(entry).map(lambda listed: _same(listed, address)).value_or(False)


def _same(listed: Address, address: Address) -> bool:
    return (
        listed.scheme == address.scheme
        and same_host(listed.host, address.host)
        and listed.port == address.port
        and listed.path in ("", address.path)
    )
