"""HTTP: one request out, one reply or the reason why there is none."""

import http.client
import os
import re
import socket
import ssl
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from email.utils import formatdate
from importlib import metadata
from math import inf
from typing import Any

import requests
from returns.result import Failure, Result, Success
from urllib3.exceptions import NameResolutionError, ProxyError

from messaging_adapters.clock import Clock, SystemClock
from messaging_adapters.http_body import FileChangedError, Streamed, opened
from messaging_adapters.http_destination import Destination, Destinations
from messaging_adapters.http_transport import (
    FAULTS,
    CertificatesError,
    Departure,
    Head,
    StaleError,
    Tls,
    Transport,
)
from messaging_core.config.settings import Http
from messaging_core.errors import Invalid, SendError, Unanswered, Unreachable
from messaging_core.flow import Exchange
from messaging_core.secrecy import Secrets
from messaging_core.wire.http import Headers, HttpReply, HttpRequest, WireRequest, on_wire

REPLY_CAP = 4 * 1024 * 1024
"""Bytes of a reply's body that are read; the rest is cut off with the connection."""

TRIES = 3
"""How many kept connections in a row may turn out to be closed, without a byte of the request having left."""


class HttpEdge:
    """Performs the HTTP exchanges of one configuration; may be shared by threads.

    ``pool_size``: connections kept for each host, no less than the threads that send to it (a further one is made for a
    thread that finds none, and closed after use). ``direct``: hosts and ports that the environment's proxies are not
    for. Errors: ``Unreachable`` (nothing left), ``Unanswered`` (it may have), ``MediaUnreadable`` (a file changed),
    ``Invalid`` (no HTTP request can be made of it). None of their texts holds a URL, a host or a secret.
    """

    def __init__(
        self,
        http: Http,
        secrets: Secrets,
        clock: Clock | None = None,
        *,
        pool_size: int = 64,
        reply_cap: int = REPLY_CAP,
        direct: Collection[tuple[str, int]] = (),
    ) -> None:
        self._http, self._secrets, self._clock = http, secrets, clock or SystemClock()
        self._places = Destinations(http, secrets, direct)
        self._tls = Tls(http.ca_file)
        self._pool_size, self._reply_cap = pool_size, reply_cap
        self._transports: dict[int, Transport] = {}

    def __call__(self, exchange: Exchange) -> Result[HttpReply, SendError]:
        request: HttpRequest = exchange.request
        return self.send(on_wire(request, self._secrets, self._clock.now()), exchange.within)

    def send(self, wire: WireRequest, within: float | None = None) -> Result[HttpReply, SendError]:
        """One request as it leaves, and its reply whatever the status: redirects are not followed. ``within``: seconds
        for all of it."""
        patience = _Patience(self._http.within(within), self._clock.monotonic() + (inf if within is None else within))
        found = self._places.of(wire.url).alt(_as_send_error)
        if isinstance(wire.body, bytes):
            body = Streamed((wire.body,))
            return found.bind(lambda there: self._try(wire, *there, body, patience))
        with opened(wire.body) as files:
            ready = files.alt(_as_send_error)
            return found.bind(lambda there: ready.bind(lambda body: self._try(wire, *there, body, patience)))

    def close(self) -> None:
        """Close every kept connection."""
        for transport in self._transports.values():
            transport.close()

    def _transport(self) -> Transport:
        """This process's own: a connection that two processes write to would mix their requests."""
        process = os.getpid()
        found = self._transports.get(process)
        return found or self._transports.setdefault(process, Transport(self._tls, self._pool_size))

    def _try(
        self, wire: WireRequest, place: Destination, target: str, body: Streamed, patience: "_Patience"
    ) -> Result[HttpReply, SendError]:
        http, until = patience.http, patience.until
        for _ in range(TRIES):
            departure = Departure(place, target, http.read_timeout, http.read_timeout, self._clock.monotonic, until)
            try:
                return Success(self._perform(http, _prepared(wire, departure, body), place.logins))
            except FileChangedError as error:
                return Failure(error.refusal)
            except StaleError:
                continue
            except FAULTS as error:
                return Failure(_fault(departure, http.connect_timeout, error))
            except ValueError as error:
                if departure.begun:
                    raise
                return Failure(Invalid(detail=_unsendable(error)))
        return Failure(Unreachable("could not connect: the server closes every connection"))

    def _perform(self, http: Http, prepared: requests.PreparedRequest, logins: Secrets) -> HttpReply:
        timeouts = (http.connect_timeout, http.read_timeout)
        raw = self._transport().send(prepared, stream=True, timeout=timeouts).raw
        headers = _dated(tuple(raw.headers.items()), self._clock.now())
        body = b"".join(_body(raw, self._reply_cap))
        reply = HttpReply(raw.status, raw.reason or "", headers, _decoded(headers, body, self._reply_cap))
        return _without(logins, reply)


@dataclass(frozen=True, slots=True)
class _Patience:
    """``http``: with no time-out beyond ``until``, the monotonic moment at which all is over."""

    http: Http
    until: float


def _fault(departure: Departure, connect_timeout: float, error: Exception) -> SendError:
    """What came of it, by whether a byte may have left; why, in plain words."""
    if not departure.begun:
        why = _why_unreachable(error, connect_timeout)
        return Unreachable(f"could not connect: {why}" if why else "could not connect")
    return Unanswered(_why_unanswered(error, departure))


def _as_send_error(error: SendError) -> SendError:
    return error


# --- Asking -----------------------------------------------------------------------------------------------------------

_FRAMING = frozenset({"content-length", "transfer-encoding"})
_BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


def _prepared(wire: WireRequest, departure: Departure, body: Streamed) -> requests.PreparedRequest:
    prepared = requests.PreparedRequest()
    prepared.method, prepared.url = wire.method, wire.url
    prepared.headers = _head(wire, departure, body.size)  # type: ignore[assignment]
    prepared.body = body if body.whole is None else body.whole or None  # type: ignore[assignment]
    return prepared


def _head(wire: WireRequest, departure: Departure, size: int) -> Head:
    """The fields as described, in order; values of a repeated name joined, which means the same (RFC 9110, 5.3)."""
    head = Head()
    head.departure = departure
    spelt: dict[str, str] = {}
    for name, value in wire.headers:
        lower = name.lower()
        if lower in _FRAMING:
            continue
        before = f"{head[spelt[lower]]!s}, " if lower in spelt else ""
        head[spelt.setdefault(lower, name)] = before + value
    if departure.place.authorization and "authorization" not in spelt:
        head["Authorization"] = departure.place.authorization
    if "user-agent" not in spelt:
        head["User-Agent"] = USER_AGENT
    if size or wire.method not in _BODILESS:
        head["Content-Length"] = str(size)
    for name, text in head.items():
        if isinstance(text, str) and not text.isascii():
            head[name] = text.encode("utf-8", "replace")
    return head


def _version() -> str:
    try:
        return metadata.version("agent-messaging")
    except metadata.PackageNotFoundError:
        return "0"


USER_AGENT = f"agent-messaging/{_version()}"


def _unsendable(error: ValueError) -> str:
    """Only which part a library refuses: its own words quote that part, and a header's value may be a secret."""
    text = str(error)
    part = next((part for part in ("header name", "header value", "method") if part in text.lower()), "URL")
    return f"the request cannot be sent: its {part} holds signs that are not permitted there"


# --- Being answered ---------------------------------------------------------------------------------------------------


def _dated(headers: Headers, now: float) -> Headers:
    """A wait that is a date is measured against the reply's own; where the server tells none, against its arrival, as a
    recipient with a clock notes it (RFC 9110, 6.6.1)."""
    told = {name.lower() for name, _ in headers}
    return (
        (*headers, ("Date", formatdate(now, usegmt=True))) if "retry-after" in told and "date" not in told else headers
    )


def _body(raw: Any, cap: int) -> Iterator[bytes]:
    """What comes, up to ``cap``. A body that breaks off is a reply all the same: its status was said."""
    left = cap
    try:
        while left > 0:
            block = raw.read1(min(left, 65536), decode_content=False)
            if not block:
                return
            left -= len(block)
            yield block
        raw.close()
    except FAULTS:
        raw.close()


def _decoded(headers: Headers, body: bytes, cap: int) -> bytes:
    """A body that was packed although nobody asked for it, unpacked up to ``cap``; as it came if it cannot be."""
    coding = next((value.strip().lower() for name, value in headers if name.lower() == "content-encoding"), "")
    if not body or coding not in ("gzip", "x-gzip", "deflate"):
        return body
    for bits in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            return zlib.decompressobj(bits).decompress(body, cap)
        except zlib.error:
            continue
    return body


def _without(logins: Secrets, reply: HttpReply) -> HttpReply:
    """The reply, should it quote what netrc or a proxy's address put into the request: no secret of the settings is."""
    if not logins:
        return reply
    text = logins.redact(reply.body.decode("utf-8", "surrogateescape"))
    headers = tuple((name, logins.redact(value)) for name, value in reply.headers)
    return HttpReply(reply.status, logins.redact(reply.reason), headers, text.encode("utf-8", "surrogateescape"))


# --- Why there is no answer -------------------------------------------------------------------------------------------


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from: a cause is kept in ``reason``, among the arguments, or as the context."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]


def _why_unreachable(error: Exception, connect_timeout: float) -> str:
    causes = tuple(_chain(error))
    for cause in causes:
        match cause:
            case ssl.SSLCertVerificationError():
                return f"TLS certificate not accepted: {_certificate(cause)}"
            case CertificatesError():
                return "the file of trusted certificates (ca_file) cannot be used"
            case NameResolutionError() | socket.gaierror():
                return "name not found"
    for cause in causes:
        match cause:
            case TimeoutError():
                return f"no connection after {connect_timeout:g} s"
            case ssl.SSLError():
                return "no TLS connection could be agreed on"
            case ProxyError():
                return "the proxy did not let the connection through"
            case requests.exceptions.InvalidSchema():
                return "a SOCKS proxy needs the package PySocks"
            case requests.exceptions.InvalidURL():
                return "the address of the server or of the proxy cannot be used"
    return ""


_OF_ANOTHER_HOST = {62: "it is for another host name", 64: "it is for another IP address"}
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH, whose own texts name the host."""


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    return _OF_ANOTHER_HOST.get(
        error.verify_code, re.sub(r"[^\w ()-]", "", error.verify_message or "") or "it cannot be verified"
    )


def _why_unanswered(error: Exception, departure: Departure) -> str:
    causes = tuple(_chain(error))
    if any(isinstance(cause, TimeoutError | requests.Timeout) for cause in causes):
        if departure.sent:
            return f"no answer after {departure.answer_timeout:g} s"
        if departure.over:
            return "the server had not taken the whole request when the time for the send was over"
        return f"the server took nothing more for {departure.send_timeout:g} s while the request was sent"
    for cause in causes:
        match cause:
            case http.client.RemoteDisconnected() | ConnectionError():
                return "the connection was closed before an answer came"
            case http.client.HTTPException():
                return "the answer is not HTTP"
    return "the connection was lost before an answer came"
