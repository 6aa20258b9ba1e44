"""Who may come in: the host they asked for, the page they come from, the token they bring.

A gateway on a loopback address without a token is open to the programs of this machine, and to no web page but its own:
pages of others reach loopback too (DNS rebinding, cross-site requests), so ``Host``, ``Origin`` and ``Content-Type``
are looked at everywhere.
"""

import base64
import binascii
import hmac
import re
from dataclasses import dataclass, field

from returns.result import Failure, Result, Success

from messaging_core.gateway.protocol import BEARER, SENDER, SUBPROTOCOL, Fault
from messaging_core.gateway.targets import is_loopback
from messaging_core.wire.http import JSON_TYPE

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([1-9][0-9]{0,4}))?")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Access:
    """What the gateway asks of a request. ``origins``: pages besides its own that may use it, as
    ``https://host:port``.
    """

    host: str
    token: str = field(default="", repr=False)
    origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Caller:
    """What a request says of who sent it: header values, None where there is none. ``offered``: subprotocols."""

    host: str | None = None
    origin: str | None = None
    authorization: str | None = field(default=None, repr=False)
    offered: tuple[str, ...] = field(default=(), repr=False)
    content_type: str | None = None
    content_encoding: str | None = None


def may_start(host: str, token: str) -> Result[None, str]:
    """Whether a gateway may listen on ``host``: only loopback without a token, and with one that a header can carry."""
    if token and not _TOKEN.fullmatch(token):
        return Failure("'gateway.token' may hold printable ASCII characters only, and no blanks")
    if token or is_loopback(host):
        return Success(None)
    return Failure(
        f"{host or 'every address'} can be reached from other machines: set 'gateway.token', or listen on 127.0.0.1"
    )


def is_origin(text: str) -> bool:
    """Whether it is the origin of a page as browsers write it (RFC 6454, 6.2): lower case, no path, no usual port."""
    found = _ORIGIN.fullmatch(text)
    return found is not None and (found[1], found[2]) not in (("http", "80"), ("https", "443"))


def admit(access: Access, caller: Caller, *, token_needed: bool = True) -> Result[None, Fault]:
    """The first thing that keeps the caller out, or nothing. ``token_needed`` False: for what anybody may see."""
    if not _host_known(access, caller.host):
        return Failure(Fault("forbidden_host", "the Host header names another host than this gateway"))
    if not _origin_known(access, caller):
        return Failure(Fault("forbidden_origin", "pages of that origin may not use this gateway"))
    if token_needed and access.token and not _token_right(access.token, caller):
        return Failure(Fault("unauthorized", "the bearer token is missing or wrong"))
    return Success(None)


def admit_body(caller: Caller) -> Result[None, Fault]:
    """Whether a body may be read: JSON as it is, neither compressed nor of a type that a page can send unasked."""
    kind, _, parameters = (caller.content_type or "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != JSON_TYPE or charset not in ("", "charset=utf-8"):
        return Failure(Fault("unsupported_type", "Content-Type must be application/json"))
    if (caller.content_encoding or "identity").lower() != "identity":
        return Failure(Fault("unsupported_type", "the body must not be compressed"))
    return Success(None)


def choose_subprotocol(offered: tuple[str, ...]) -> str | None:
    """The subprotocol to speak: one of ours where it is offered, none else; never the token."""
    return next((name for name in offered if name in (SENDER, SUBPROTOCOL)), None)


def token_as_subprotocol(token: str) -> str:
    """The token in a form that a page can send: base64url after ``bearer.``, no padding."""
    return BEARER + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _host_known(access: Access, host: str | None) -> bool:
    found = _HOST.fullmatch(host or "")
    if found is None:
        return False
    # Beyond loopback there is a token, which no rebound page has; and proxies and names in front are not known here.
    return not is_loopback(access.host) or is_loopback(found[1])


def _origin_known(access: Access, caller: Caller) -> bool:
    if caller.origin is None or caller.origin in access.origins:
        return True
    scheme, separator, authority = caller.origin.partition("://")
    return bool(separator) and scheme in ("http", "https") and authority.lower() == (caller.host or "").lower()


def _token_right(token: str, caller: Caller) -> bool:
    return any(hmac.compare_digest(token.encode(), given) for given in _tokens(caller))


def _tokens(caller: Caller) -> tuple[bytes, ...]:
    scheme, _, given = (caller.authorization or "").partition(" ")
    by_header = (given.strip().encode("utf-8", "replace"),) if scheme.lower() == "bearer" else ()
    return by_header + tuple(_decoded(name) for name in caller.offered if name.startswith(BEARER))


def _decoded(name: str) -> bytes:
    bare = name.removeprefix(BEARER)
    try:
        return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except (ValueError, binascii.Error):
        return b""
