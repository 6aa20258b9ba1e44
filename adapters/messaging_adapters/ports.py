"""What a messenger reaches the world by. Every port can be swapped: for a test, a queue, another HTTP library.

::

    ports = standard(configuration)                            what the machine offers
    ports = replace(ports, approver=Callback(ask_my_chat))     with one port swapped
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TextIO

from messaging_adapters.approval import Approver, approver_of
from messaging_adapters.audit_log import AuditLog, audit_log, default_path
from messaging_adapters.clock import Clock, SystemClock
from messaging_adapters.files import ground, look
from messaging_adapters.limiter import Limiter
from messaging_adapters.logs import keep_clean
from messaging_adapters.machine_counts import MachineCounts
from messaging_adapters.registry import INSTALLED
from messaging_core.channels import Registry
from messaging_core.config.settings import Configuration
from messaging_core.flow import Perform
from messaging_core.gateway.targets import is_loopback, to_connect
from messaging_core.media import Ground
from messaging_core.message import FileFacts
from messaging_core.secrecy import Secrets
from messaging_core.wire.http import HttpRequest
from messaging_core.wire.mail import MailRequest
from messaging_core.wire.terminal import TerminalRequest
from messaging_core.wire.websocket import WebSocketRequest


class Look(Protocol):
    """Look at a file: what it is, where it really lies, and (``digest``) its SHA-256. Never raises."""

    def __call__(self, path: str, *, digest: bool = False) -> FileFacts: ...


class Edges(Mapping[type, Perform]):
    """One shell for each kind of request, made when the first request of its kind comes: its library is imported
    then."""

    def __init__(self, makers: Mapping[type, Callable[[], Perform]]) -> None:
        self._makers = dict(makers)
        self._made: dict[type, Perform] = {}

    def __getitem__(self, kind: type) -> Perform:
        found = self._made.get(kind)
        return found if found is not None else self._made.setdefault(kind, self._makers[kind]())

    def __iter__(self) -> Iterator[type]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def close(self) -> None:
        """Close what was opened."""
        for edge in self._made.values():
            closing: Any = getattr(edge, "close", None)
            if closing is not None:
                closing()


@dataclass(frozen=True)
class Ports:
    """Everything outside. ``look``: at a file. ``ground``: where files may lie."""

    secrets: Secrets
    edges: Mapping[type, Perform]
    ground: Ground
    look: Look
    approver: Approver
    audit: AuditLog
    limiter: Limiter
    clock: Clock = field(default_factory=SystemClock)
    registry: Registry = field(default=INSTALLED)


def standard(
    configuration: Configuration,
    *,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    registry: Registry = INSTALLED,
    environ: Mapping[str, str] | None = None,
) -> Ports:
    """The ports of this machine."""
    settings, secrets = configuration.settings, configuration.secrets
    environ = os.environ if environ is None else environ
    clock = SystemClock()

    def http() -> Perform:
        from messaging_adapters.http_requests import HttpEdge

        host, port = to_connect(settings.gateway.host), settings.gateway.port
        return HttpEdge(settings.http, secrets, clock, direct=((host, port),) if is_loopback(host) else ())

    def terminal() -> Perform:
        from messaging_adapters.terminal import TerminalEdge

        return TerminalEdge(stdout or sys.stdout, stderr or sys.stderr, environ)

    def mail() -> Perform:
        from messaging_adapters.smtp import SmtpEdge

        return SmtpEdge(settings.http, secrets, clock)

    def websocket() -> Perform:
        from messaging_adapters.websocket import WebSocketEdge

        return WebSocketEdge(settings.http, secrets)

    log = audit_log(settings.security.audit, environ, secrets, clock)
    pace = _pace_file(environ)
    records = (*log.paths, *((pace.parent, pace) if pace else ()))
    private = (*((settings.where,) if settings.where else ()), *map(str, records))
    place = ground(settings.media_roots, private, allow_hidden=settings.allow_hidden_media)
    keep_clean(secrets)
    return Ports(
        secrets,
        Edges({HttpRequest: http, TerminalRequest: terminal, MailRequest: mail, WebSocketRequest: websocket}),
        place,
        partial(look, roots=place.roots),
        approver_of(settings.security.approval, clock),
        log,
        Limiter(clock, MachineCounts(pace, clock, _namespace(secrets)) if pace else None),
        clock,
        registry,
    )


def _pace_file(environ: Mapping[str, str]) -> Path | None:
    """Beside the audit log's default place, in the user's state folder, where there is one."""
    log = default_path(environ)
    return None if log is None else log.with_name("pace.json")


def _namespace(secrets: Secrets) -> str:
    """The same for the same accounts, in whichever process; programs with other accounts do not share a pace.

    Too short to tell anything of a secret by.
    """
    return hashlib.sha256("\0".join(sorted(secrets.values())).encode()).hexdigest()[:8]
