"""WebSocket: connect, send what is described, wait for the frame that answers, close."""

import logging
import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Timer
from typing import Any, Literal
from urllib.parse import urlsplit

from returns.result import Failure, Result, Success
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI, ProxyError
from websockets.http11 import Response
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from messaging_core.config.settings import Http
from messaging_core.errors import Invalid, SendError, Unanswered, Unreachable
from messaging_core.flow import Exchange
from messaging_core.gateway.targets import is_loopback
from messaging_core.secrecy import Secrets
from messaging_core.wire.http import HttpReply
from messaging_core.wire.websocket import Close, Until, WebSocketReply, WebSocketRequest, WireWebSocket, on_wire

LARGEST_FRAME = 4 * 1024 * 1024
"""Bytes of one received frame; a larger one ends the connection (close code 1009)."""

GOODBYE = 2.0
"""Seconds that the closing handshake may take: what was waited for has come by then."""

_PERMITTED = re.compile(r"[\t\x20-\x7e]*")
UNSENDABLE = Invalid(detail="the request cannot be sent: its URL or a header holds signs that are not permitted there")

_SILENT = logging.Logger("messaging.websocket", logging.CRITICAL)
"""The library logs whole headers at DEBUG, the token among them."""


class WebSocketEdge:
    """Performs the WebSocket exchanges of one configuration; may be shared by threads. One connection for each.

    Errors: ``Unreachable`` (no frame left), ``Unanswered`` (one may have), ``Invalid`` (no request can be made of it).
    None of their texts holds a URL, a host or a secret. A refused upgrade and a close are replies; redirects are
    refused upgrades. Loopback is never reached by a proxy.
    """

    def __init__(self, http: Http, secrets: Secrets) -> None:
        self._http, self._secrets = http, secrets

    def __call__(self, exchange: Exchange) -> Result[WebSocketReply, SendError]:
        request: WebSocketRequest = exchange.request
        http = self._http.within(exchange.within)
        edge = self if http is self._http else WebSocketEdge(http, self._secrets)
        return edge.send(request, on_wire(request, self._secrets))

    def send(self, request: WebSocketRequest, wire: WireWebSocket) -> Result[WebSocketReply, SendError]:
        """One whole exchange, and what came of it."""
        if not all(
            _PERMITTED.fullmatch(text) for text in (wire.url, *(text for pair in wire.headers for text in pair))
        ):
            return Failure(UNSENDABLE)
        try:
            connection = self._connected(request, wire)
        except _RefusedError as refused:
            return Success(WebSocketReply(refused=self._clean(refused.response)))
        except (OSError, EOFError, InvalidHandshake) as error:
            return Failure(Unreachable(self._why(error)))
        except (ValueError, InvalidURI):
            return Failure(UNSENDABLE)
        with connection, _deadline(connection, self._http.read_timeout):
            return self._converse(connection, request)

    def _connected(self, request: WebSocketRequest, wire: WireWebSocket) -> ClientConnection:
        secure = wire.url.lower().startswith("wss:")
        return connect(
            wire.url,
            ssl=self._tls if secure else None,
            subprotocols=[Subprotocol(name) for name in request.subprotocols] or None,
            compression=None,
            additional_headers=list(wire.headers),
            user_agent_header="agent-messaging",
            proxy=self._proxy(wire.url),
            open_timeout=self._http.connect_timeout,
            close_timeout=GOODBYE,
            ping_interval=None,
            max_size=LARGEST_FRAME,
            logger=_SILENT,
            create_connection=_Connection,
        )

    def _proxy(self, url: str) -> str | Literal[True] | None:
        """None for this machine; else the configured one; else (True) the environment's."""
        if is_loopback(urlsplit(url).hostname or ""):
            return None
        return self._secrets[self._http.proxy.name] if self._http.proxy else True

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._http.ca_file)

    def _converse(self, connection: ClientConnection, request: WebSocketRequest) -> Result[WebSocketReply, SendError]:
        end = time.monotonic() + self._http.read_timeout
        try:
            for frame in request.frames:
                connection.send(frame)
            answer = None if request.until is None else _answer(connection, request.until, end)
        except TimeoutError:
            return Failure(self._late())
        except ConnectionClosed as closed:
            return self._closed(closed, end)
        return Success(WebSocketReply(answer) if answer is not None else _goodbye(connection))

    def _closed(self, closed: ConnectionClosed, end: float) -> Result[WebSocketReply, SendError]:
        if closed.rcvd is not None:
            reason = self._secrets.redact(closed.rcvd.reason)
            return Success(WebSocketReply(close=Close(int(closed.rcvd.code), reason)))
        if closed.sent is not None and closed.sent.code == 1009:
            return Failure(Unanswered(f"a frame of more than {LARGEST_FRAME} bytes came instead of an answer"))
        if closed.sent is not None and closed.sent.code != 1000:
            return Failure(Unanswered("the answer breaks the WebSocket protocol"))
        if time.monotonic() >= end:
            return Failure(self._late())
        return Failure(Unanswered("the connection was lost before an answer came"))

    def _late(self) -> SendError:
        return Unanswered(f"no answer after {self._http.read_timeout:g} s")

    def _clean(self, response: Response) -> HttpReply:
        headers = tuple((name, self._secrets.redact(value)) for name, value in response.headers.raw_items())
        body = self._secrets.redact(bytes(response.body or b"").decode("utf-8", "replace")).encode()
        return HttpReply(response.status_code, self._secrets.redact(response.reason_phrase), headers, body)

    def _why(self, error: Exception) -> str:
        """Why there is no connection, in plain words: a library's own may hold the address."""
        match error:
            case ssl.SSLCertVerificationError():
                why = "TLS certificate not accepted"
            case ssl.SSLError():
                why = "no TLS connection could be agreed on"
            case socket.gaierror():
                why = "name not found"
            case TimeoutError():
                why = f"no WebSocket after {self._http.connect_timeout:g} s"
            case ProxyError():
                why = "the proxy did not let the connection through"
            case FileNotFoundError() | PermissionError() | IsADirectoryError():
                why = "the file of trusted certificates (ca_file) cannot be used"
            case OSError():
                return "could not connect"
            case _:
                why = "the far end does not speak WebSocket"
        return f"could not connect: {why}"


class _RefusedError(Exception):
    """The upgrade was not granted."""

    def __init__(self, response: Response) -> None:
        self.response = response


class _Connection(ClientConnection):
    """A connection that takes every refused upgrade as its answer: the library would follow redirects."""

    def handshake(self, *args: Any, **options: Any) -> None:
        try:
            super().handshake(*args, **options)
        except InvalidStatus as refused:
            raise _RefusedError(refused.response) from None


@contextmanager
def _deadline(connection: ClientConnection, seconds: float) -> Iterator[None]:
    """Cut the connection when the time is over: a send to a far end that reads nothing blocks, and no time-out
    reaches it.
    """
    cut = Timer(seconds, _cut, (connection.socket,))
    cut.daemon = True
    cut.start()
    try:
        yield
    finally:
        cut.cancel()


def _cut(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _answer(connection: ClientConnection, until: Until, end: float) -> str:
    """The first text frame that answers; ``TimeoutError`` when the time is over, however much else comes."""
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        frame = connection.recv(timeout=left)
        if isinstance(frame, str) and until(frame):
            return frame


def _goodbye(connection: ClientConnection) -> WebSocketReply:
    connection.close()
    return WebSocketReply(close=Close(connection.close_code or 1006, connection.close_reason or ""))
