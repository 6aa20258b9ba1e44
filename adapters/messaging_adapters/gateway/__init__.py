"""The gateway server: hands messages to programs and pages on this machine, and sends messages out through channels.

It needs the extra ``[gateway]``; this module imports without it.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Protocol

from returns.pipeline import is_successful

from messaging_core.config.settings import Settings
from messaging_core.gateway.access import is_origin, may_start
from messaging_core.secrecy import Secrets

OK, FAILED, USAGE = 0, 1, 2
"""Exit statuses of :func:`run`."""

LAST_PORT = 65535


class Deliver(Protocol):
    """Send through a channel, by the line that ``message_send`` takes: policy, limits and audit included.

    ``arguments`` are those of ``message_send`` (``text``, ``channel``, and what else the message had, such as
    ``recipient``), as they came: not yet looked at. The account has at least ``status`` (delivered, partial,
    unconfirmed, failed, refused) and ``message``, and may be ``Outcome.as_dict()``. Called from several threads;
    must not raise.
    """

    def __call__(self, arguments: Mapping[str, Any], /) -> Mapping[str, Any]: ...


def run(
    settings: Settings,
    secrets: Secrets,
    host: str | None = None,
    port: int | None = None,
    deliver: Deliver | None = None,
    *,
    channels: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    say: Callable[[str], None] | None = None,
) -> int:
    """Run the gateway until SIGTERM or SIGINT, and give the exit status: 0 ended as asked, 1 the address cannot be
    had, 2 wrong usage (a host that others can reach without a token; no port, no origin; the extra is not installed).

    ``host``, ``port``: instead of the settings'. ``channels``: names that ``deliver`` takes, told in the status.
    ``origins``: pages of other origins that may connect,
    ``https://host:port``. ``say``: takes each line for people; not given: stderr.
    """
    tell = say or _to_stderr
    host = settings.gateway.host if host is None else host
    port = settings.gateway.port if port is None else port
    token = secrets[settings.gateway.token.name] if settings.gateway.token else ""
    allowed = may_start(host, token)
    if not is_successful(allowed):
        tell(f"messaging: the gateway does not start: {allowed.failure()}")
        return USAGE
    if not 0 <= port <= LAST_PORT:
        tell(f"messaging: the gateway does not start: {port} is no port; expected 0 (any that is free) to {LAST_PORT}")
        return USAGE
    strange = [origin for origin in origins if not is_origin(origin)]
    if strange:
        tell(f"messaging: the gateway does not start: {strange[0]!a} is no origin; expected one like http://host:5173")
        return USAGE
    try:
        from messaging_adapters.gateway.server import listening, serve
    except ImportError as error:
        tell(f"messaging: the gateway needs {error.name}: pip install 'agent-messaging[gateway]'")
        return USAGE
    guarded = "with a token" if token else "without a token: for every program of this machine"
    try:
        gateway = listening(
            host,
            port,
            token=token,
            deliver=deliver,
            channels=channels,
            origins=origins,
            version=_version(),
            sending=settings.message_timeout_secs,
        )
        asyncio.run(serve(gateway, host, lambda url: tell(f"messaging: gateway on {url}, {guarded}")))
    except OSError as error:
        tell(f"messaging: the gateway cannot listen on {host}, port {port}: {_why(error)}")
        return FAILED
    except KeyboardInterrupt:
        return FAILED
    return OK


def _why(error: OSError) -> str:
    """The system's own words; asyncio's repeat the address. Names that are not found have codes below zero."""
    code = error.errno or 0
    return os.strerror(code) if code > 0 else error.strerror or type(error).__name__


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _version() -> str:
    try:
        return metadata.version("agent-messaging")
    except metadata.PackageNotFoundError:
        return "0"
