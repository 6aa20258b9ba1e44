"""SMTP: hand one described mail to a server, over a connection that is kept for the next one.

What the server says is a :class:`~messaging_core.wire.mail.MailReply`, whatever it says; what it means is for the
channel to tell. Only what is no reply becomes an error here: no connection, no encryption, no answer. A mail whose
final dot was not sent has not arrived (RFC 5321, 4.2.5): up to there everything is ``Unreachable``; after it,
``Unanswered``.
"""

import base64
import io
import smtplib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from threading import Lock
from typing import NoReturn, TypeAlias

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_adapters.clock import Clock, SystemClock
from messaging_adapters.http_body import FileChangedError, OpenFile, open_file
from messaging_adapters.watched import WatchedFile
from messaging_core.config.settings import Http
from messaging_core.errors import Denied, Invalid, SendError, Unanswered, Unreachable
from messaging_core.flow import Exchange
from messaging_core.message import FileFacts
from messaging_core.secrecy import Secrets
from messaging_core.wire.mail import (
    MailReply,
    MailRequest,
    Piece,
    Said,
    Stage,
    beyond_ascii,
    in_base64,
    octets,
    stuffed,
    written,
)

IDLE = 30.0
"""Seconds for which an unused connection is kept; servers end them after a few minutes at most."""

LONGEST_REPLY = 64 * 1024
"""Bytes of all lines of one reply; a line has no more than 512 (RFC 5321, 4.5.3.1.5)."""


class SmtpEdge:
    """Performs the mail exchanges of one configuration; may be shared by threads.

    ``http``: its time-outs and the certificates that it trusts hold for mail too.
    """

    def __init__(self, http: Http, secrets: Secrets, clock: Clock | None = None) -> None:
        self._http, self._secrets, self._clock = http, secrets, clock or SystemClock()
        self._lock = Lock()
        self._idle: dict[_Place, list[tuple[float, _Session]]] = {}

    def __call__(self, exchange: Exchange) -> Result[MailReply, SendError]:
        return self.send(exchange.request, exchange.within)

    def send(self, request: MailRequest, within: float | None = None) -> Result[MailReply, SendError]:
        """The server's reply; else ``Unreachable``, ``Unanswered``, ``Denied``, ``Invalid`` or ``MediaUnreadable``.
        ``within``: seconds for the whole conversation."""
        until = self._clock.monotonic() + (inf if within is None else within)
        try:
            return Success(self._clean(self._perform(request, _Patience(self._http.within(within), until))))
        except _Refused as refused:
            return Success(self._clean(MailReply(refused.stage, refused.said)))
        except _Stopped as stopped:
            return Failure(stopped.error)

    def close(self) -> None:
        with self._lock:
            sessions = [session for kept in self._idle.values() for _, session in kept]
            self._idle.clear()
        for session in sessions:
            session.close()

    def _perform(self, request: MailRequest, patience: "_Patience") -> MailReply:
        with ExitStack() as files:
            content = None if request.mail is None else _opened(written(request.mail), files)
            return self._hand_over(request, content, patience)

    def _hand_over(self, request: MailRequest, content: "Opened | None", patience: "_Patience") -> MailReply:
        place = _Place.of(request)
        session = self._kept(place, patience) or self._connected(request, patience)
        try:
            reply = session.hand_over(request, content)
        except BaseException:
            session.abandon()
            raise
        with self._lock:
            self._idle.setdefault(place, []).append((self._clock.monotonic(), session))
        return reply

    def _kept(self, place: "_Place", patience: "_Patience") -> "_Session | None":
        """A connection that is there and still answers. Those that were not used for a while are closed on the way."""
        while True:
            with self._lock:
                kept = self._idle.get(place, [])
                if not kept:
                    return None
                since, session = kept.pop()
            session.patient(patience)
            if self._clock.monotonic() - since < IDLE and session.answers():
                return session
            session.abandon()

    def _connected(self, request: MailRequest, patience: "_Patience") -> "_Session":
        session = _Session(patience, self._clock.monotonic)
        try:
            session.connect(request, patience.http.connect_timeout, self._context)
            if request.password is not None:
                session.log_in(request.username or "", self._secrets[request.password.name])
        except BaseException:
            session.abandon()
            raise
        return session

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """One for all connections: making one reads every certificate that is trusted."""
        try:
            return ssl.create_default_context(cafile=self._http.ca_file)
        except OSError as error:
            _stop(Unreachable(f"the certificates to trust cannot be read ({error.strerror})"), error)

    def _clean(self, reply: MailReply) -> MailReply:
        """Servers repeat what they were told: the user's name, an address, in the worst case more."""

        def clean(said: Said) -> Said:
            return replace(said, text=self._secrets.redact(said.text))

        return replace(reply, said=clean(reply.said), refused=tuple((one, clean(said)) for one, said in reply.refused))


@dataclass(frozen=True, slots=True)
class _Place:
    """What two requests must have in common to share a connection."""

    host: str
    port: int
    security: str
    username: str | None
    password: str

    @classmethod
    def of(cls, request: MailRequest) -> "_Place":
        name = request.password.name if request.password else ""
        return cls(request.host, request.port, request.security, request.username, name)


@dataclass(frozen=True, slots=True)
class _Patience:
    """``http``: with no time-out beyond ``until``, the monotonic moment at which the conversation is given up."""

    http: Http
    until: float


class _Refused(Exception):
    """The server said no, at a stage that ends the send."""

    def __init__(self, stage: Stage, said: Said) -> None:
        super().__init__(stage)
        self.stage, self.said = stage, said


class _Stopped(Exception):
    """There was no reply, or none that could be asked for."""

    def __init__(self, error: SendError) -> None:
        super().__init__(str(error))
        self.error = error


def _stop(error: SendError, cause: BaseException | None = None) -> NoReturn:
    raise _Stopped(error) from cause


class _Smtp(smtplib.SMTP):
    """Each reply has to be there whole within the time-out, and short: ``smtplib`` would wait so long for each piece of
    it, and keep whatever comes."""

    def __init__(self, patience: _Patience, monotonic: Callable[[], float]) -> None:
        super().__init__(timeout=patience.http.read_timeout, local_hostname="localhost")
        self.patience, self._monotonic = patience, monotonic

    def getreply(self) -> tuple[int, bytes]:
        sock = self.sock
        if sock is None:
            raise smtplib.SMTPServerDisconnected("closed before")
        seconds = self.patience.http.read_timeout
        until = min(self._monotonic() + seconds, self.patience.until)
        watched = WatchedFile(sock, self._monotonic, until, LONGEST_REPLY)
        with io.BufferedReader(watched) as self.file:
            try:
                return super().getreply()
            finally:
                # What came behind the reply answers no question of ours: nobody is to take it for the next answer.
                self.file = None
                if self.sock is not None:
                    sock.settimeout(seconds)


class _Session:
    """One connection, from the greeting on."""

    def __init__(self, patience: _Patience, monotonic: Callable[[], float]) -> None:
        self._timeout, self._monotonic = patience.http.read_timeout, monotonic
        self._smtp = _Smtp(patience, monotonic)
        self._smtp.command_encoding = "utf-8"

    def patient(self, patience: _Patience) -> None:
        """A kept connection goes by the time-outs of whoever uses it now."""
        self._timeout, self._smtp.patience = patience.http.read_timeout, patience
        if self._smtp.sock is not None:
            self._smtp.sock.settimeout(self._timeout)

    # --- Getting in -----------------------------------------------------------------------------------------------

    def connect(self, request: MailRequest, timeout: float, context: ssl.SSLContext) -> None:
        try:
            connection = socket.create_connection((request.host, request.port), timeout)
        except (OSError, UnicodeError) as error:
            _stop(Unreachable(_why(error, timeout)), error)
        try:
            encrypted = self._begin(connection, request, context)
            self._ask("connect", self._smtp.getreply, good=(220,))
            self._greet()
            if request.security != "none" and not encrypted:
                self._encrypt(request.host, context)
        except (OSError, smtplib.SMTPException) as error:
            connection.close()
            _stop(Unreachable(_why(error, self._timeout)), error)

    def _begin(self, connection: socket.socket, request: MailRequest, context: ssl.SSLContext) -> bool:
        """Whether the connection is encrypted from its first octet."""
        first = request.security == "tls" or (request.security == "either" and not _greeted(connection))
        connection.settimeout(self._timeout)
        self._smtp.sock = context.wrap_socket(connection, server_hostname=request.host) if first else connection
        return first

    def _encrypt(self, host: str, context: ssl.SSLContext) -> None:
        """Or not at all: a server, or someone between, that does not offer STARTTLS gets no password (RFC 3207, 6)."""
        if not self._smtp.has_extn("starttls"):
            _stop(Denied(detail="the server offers no encryption (STARTTLS), so nothing was sent"))
        self._smtp._host = host  # type: ignore[attr-defined]  # the name that the certificate must have
        self._ask("connect", lambda: self._smtp.starttls(context=context), good=(220,))
        self._greet()

    def _greet(self) -> None:
        """Our name is the address that we speak from (RFC 5321, 4.1.3): a host's name would tell about it."""
        here = self._socket.getsockname()[0]
        self._ask("connect", lambda: self._smtp.ehlo(f"[IPv6:{here}]" if ":" in here else f"[{here}]"))

    def log_in(self, username: str, password: str) -> None:
        offered = str(self._smtp.esmtp_features.get("auth", "")).upper().split()
        try:
            if "PLAIN" in offered:
                self._command("login", "AUTH PLAIN " + _base64(f"\0{username}\0{password}"), good=(235,))
            elif "LOGIN" in offered:
                self._command("login", "AUTH LOGIN", good=(334,))
                self._command("login", _base64(username), good=(334,))
                self._command("login", _base64(password), good=(235,))
            else:
                _stop(Denied(detail=f"no known way to log in: the server offers {' '.join(offered) or 'none'}"))
        except (OSError, smtplib.SMTPException) as error:
            _stop(Unreachable(_why(error, self._timeout)), error)

    # --- Handing over ---------------------------------------------------------------------------------------------

    def hand_over(self, request: MailRequest, content: "Opened | None") -> MailReply:
        """The mail in one transaction (RFC 5321, 3.3); for a probe a NOOP."""
        try:
            if content is None:
                return MailReply("accepted", self._command("sender", "NOOP"))
            self._command("sender", f"MAIL FROM:<{request.sender}>{self._options(request)}")
            refused = self._recipients(request.recipients)
            if len(refused) == len(request.recipients):
                self._command("recipients", "RSET")
                return MailReply("recipients", refused[-1][1], refused)
            self._command("content", "DATA", good=(354,))
            for run in _on_wire(content):
                self._check_time()
                self._socket.sendall(run)
            self._check_time()
        except _Refused as reply:
            self.answers()  # the transaction ends, so that the connection can be used again
            return MailReply(reply.stage, reply.said)
        except FileChangedError as error:
            _stop(error.refusal, error)
        except (OSError, smtplib.SMTPException) as error:
            _stop(Unreachable(f"{_why(error, self._timeout)}; the mail was not handed over"), error)
        return self._ended(refused)

    def _check_time(self) -> None:
        """As long as the final dot is not sent, giving up leaves no mail behind."""
        if self._monotonic() >= self._smtp.patience.until:
            raise TimeoutError

    def _ended(self, refused: tuple[tuple[str, Said], ...]) -> MailReply:
        """The final dot: from here on the server may have the mail, whatever becomes of its answer."""
        try:
            return MailReply("accepted", self._command("content", "."), refused)
        except _Refused as reply:
            return MailReply(reply.stage, reply.said, refused)
        except (OSError, smtplib.SMTPException) as error:
            why = (
                f"no answer after {self._timeout:g} s"
                if _timed_out(error)
                else "the connection broke before the answer"
            )
            _stop(Unanswered(why), error)

    def _options(self, request: MailRequest) -> str:
        """What the mail needs of what the server offers: SIZE (RFC 1870), addresses beyond ASCII (RFC 6531)."""
        offers, size = self._smtp.esmtp_features, octets(written(request.mail)) if request.mail else 0
        limit = str(offers.get("size", "")).strip()
        if limit.isdecimal() and 0 < int(limit) < size:
            _stop(Invalid(detail=f"the mail is too large: {size} bytes as encoded, the server takes {limit}"))
        if beyond_ascii(request) and "smtputf8" not in offers:
            _stop(Invalid(detail="the server takes only addresses in ASCII (it offers no SMTPUTF8)"))
        options = f" SIZE={size}" if "size" in offers else ""
        return options + (" BODY=8BITMIME SMTPUTF8" if beyond_ascii(request) else "")

    def _recipients(self, recipients: tuple[str, ...]) -> tuple[tuple[str, Said], ...]:
        """Those that the server refuses, and what it says of each. A server that leaves (421) ends the send."""
        refused: list[tuple[str, Said]] = []
        for recipient in recipients:
            try:
                self._command("recipients", f"RCPT TO:<{recipient}>", good=(250, 251, 252))
            except _Refused as reply:
                refused.append((recipient, reply.said))
                if reply.said.code == 421:
                    raise
        return tuple(refused)

    # --- The conversation -----------------------------------------------------------------------------------------

    def answers(self) -> bool:
        """Whether the server is still there, any unfinished transaction forgotten."""
        try:
            self._command("sender", "RSET")
            return True
        except (_Refused, OSError, smtplib.SMTPException):
            return False

    def close(self) -> None:
        """Say goodbye, and do not wait for more than a moment."""
        try:
            self.patient(_Patience(Http(read_timeout=1.0), inf))
            self._smtp.quit()
        except (OSError, smtplib.SMTPException):
            self.abandon()

    def abandon(self) -> None:
        """End the connection without a word: a mail without its final dot is thrown away by the server."""
        self._smtp.close()

    def _command(self, stage: Stage, line: str, good: tuple[int, ...] = ()) -> Said:
        return self._ask(stage, lambda: self._smtp.docmd(line), good)

    def _ask(self, stage: Stage, ask: Callable[[], tuple[int, bytes]], good: tuple[int, ...] = ()) -> Said:
        """The reply if it is a good one (any 2xx where none is named)."""
        try:
            code, text = ask()
        except smtplib.SMTPResponseException as error:
            code, text = error.smtp_code, error.smtp_error if isinstance(error.smtp_error, bytes) else b""
        if code < 200:
            raise smtplib.SMTPServerDisconnected("an answer that is none")
        said = Said(code, " ".join(text.decode("utf-8", "replace").split()))
        if code not in good and (good or code >= 300):
            raise _Refused(stage, said)
        return said

    @property
    def _socket(self) -> socket.socket:
        if self._smtp.sock is None:
            raise smtplib.SMTPServerDisconnected("closed before")
        return self._smtp.sock


Opened: TypeAlias = tuple[bytes | OpenFile, ...]
"""The pieces of a mail, its files open: once, and before anything is said to the server."""


def _opened(pieces: tuple[Piece, ...], files: ExitStack) -> Opened:
    return tuple(piece if isinstance(piece, bytes) else _open(piece.facts, files) for piece in pieces)


def _open(facts: FileFacts, files: ExitStack) -> OpenFile:
    file = open_file(facts)
    if not is_successful(file):
        _stop(file.failure())
    files.callback(file.unwrap().close)
    return file.unwrap()


def _on_wire(content: Opened) -> Iterator[bytes]:
    """Lines of base64 have no dots, so files need no stuffing."""
    for piece in content:
        if isinstance(piece, bytes):
            yield stuffed(piece)
        else:
            yield from in_base64(piece)


def _greeted(connection: socket.socket) -> bool:
    """Whether the server speaks first, in the clear; one that begins with TLS waits for us."""
    connection.settimeout(1.0)
    try:
        connection.recv(1, socket.MSG_PEEK)
        return True
    except TimeoutError:
        return False


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _timed_out(error: BaseException) -> bool:
    """smtplib keeps the time-out that it ended a connection for as the context of its own exception."""
    return isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError)


def _why(error: BaseException, seconds: float) -> str:
    """In words, without an address."""
    if _timed_out(error):
        return f"no answer within {seconds:g} s"
    match error:
        case ssl.SSLCertVerificationError():
            return f"the server's certificate is not trusted ({error.verify_message})"
        case ssl.SSLError():
            return f"no encrypted connection ({error.reason or 'TLS failed'})"
        case socket.gaierror() | UnicodeError():
            return "the host is not known"
        case ConnectionRefusedError():
            return "could not connect: refused"
        case smtplib.SMTPServerDisconnected() | ConnectionError():
            return "the server closed the connection"
        case _:
            return "could not connect"
