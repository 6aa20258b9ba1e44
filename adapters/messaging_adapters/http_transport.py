"""The connections under :mod:`messaging_adapters.http_requests`: a transport adapter that sends what it is given.

What is different from the stock one, and why:

- The request target leaves byte for byte as described. ``requests`` and ``urllib3`` would rewrite it (``%2E`` to ``.``)
  and log it: they only ever see the root, so that no log record or exception can hold a path (Telegram's has a token).
- The TLS context is made once, where ``requests`` loads the certificates anew for each connection.
- A :class:`Departure` knows whether a byte may have left: that, and not the class of an exception, tells "unreachable"
  from "unanswered".
- The whole answer has one deadline; a server that drips bytes cannot extend it.
"""

import http.client
import io
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from messaging_adapters.http_destination import Destination
from messaging_adapters.watched import WatchedFile


class StaleError(Exception):
    """The server had closed a kept connection: the first write failed, so nothing left and another one may be used."""


@dataclass(slots=True)
class Departure:
    """One request on its way. ``until``: the monotonic moment at which it is given up, whatever else moves.
    ``begun``: a byte of it may have left. ``sent``: all of it was handed over."""

    place: Destination
    target: str
    send_timeout: float
    answer_timeout: float
    monotonic: Callable[[], float]
    until: float
    begun: bool = False
    sent: bool = False

    @property
    def over(self) -> bool:
        return self.monotonic() >= self.until


class Head(dict[str, str | bytes]):
    """The header fields, and the departure that they belong to. Its repr shows no values: one may be a token."""

    departure: Departure

    def __repr__(self) -> str:
        return f"Head({', '.join(self)})"

    def copy(self) -> "Head":
        twin = Head(self)
        twin.departure = self.departure
        return twin


# --- Connections ------------------------------------------------------------------------------------------------------


class _Sending(HTTPConnection):
    """What both kinds of connection do in their own way; written over the public methods of ``http.client``."""

    _fresh = False
    _departure: Departure | None = None
    _reused = False
    _held = b""

    def connect(self) -> None:
        super().connect()
        self._fresh = True

    def request(  # type: ignore[override]
        self,
        method: str,
        url: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        assert isinstance(headers, Head)
        departure = headers.departure
        if self.sock is None:
            self.connect()
        self._reused, self._fresh = not self._fresh, False
        self.timeout = departure.send_timeout
        self.response_class = partial(_Answer, departure)  # type: ignore[assignment]
        self._departure, self._held = departure, b""
        try:
            super().request(method, url, body=body, headers=headers, **options)  # type: ignore[arg-type]
            if self._held:
                self._first(departure, self._held)
            departure.sent = True
        finally:
            self._departure = None

    def putrequest(self, method: str, url: str, *args: Any, **options: Any) -> None:
        """The exact target, in place of the harmless one that the layers above were shown."""
        assert self._departure is not None
        target = self._departure.target
        super().putrequest(
            method, self._departure.place.root + target if self.proxy_is_forwarding else target, *args, **options
        )

    def send(self, data: Any) -> None:
        """Hold the head back until the first of the body is there, so that a short request is one packet."""
        departure = self._departure
        if departure is None or departure.begun:
            if departure is not None and departure.over:
                raise TimeoutError
            super().send(data)
        elif not self._held:
            self._held = bytes(data)
        else:
            self._first(departure, self._held + data)

    def _first(self, departure: Departure, data: bytes) -> None:
        self._held = b""
        departure.begun = True
        try:
            count = self.sock.send(data)
        except (BrokenPipeError, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            if not self._reused:
                raise
            departure.begun = False
            raise StaleError from None
        if count < len(data):
            super().send(memoryview(data)[count:])


class PlainConnection(_Sending):
    pass


class TlsConnection(_Sending, HTTPSConnection):
    pass


class PlainPool(HTTPConnectionPool):
    ConnectionCls = PlainConnection  # type: ignore[assignment]


class TlsPool(HTTPSConnectionPool):
    ConnectionCls = TlsConnection  # type: ignore[assignment]


POOLS = {"http": PlainPool, "https": TlsPool}
MOST_HOSTS = 10_000
"""More hosts than a configuration and its servers ever name: no pool is closed to make room while it is in use."""


@cache
def socks_pools() -> dict[str, Any]:
    """The same over a SOCKS proxy; that needs the package PySocks, so it is made when there is one."""
    from urllib3.contrib import socks

    class PlainSocks(_Sending, socks.SOCKSConnection):
        pass

    class TlsSocks(_Sending, socks.SOCKSHTTPSConnection):
        pass

    class PlainSocksPool(socks.SOCKSHTTPConnectionPool):
        ConnectionCls = PlainSocks

    class TlsSocksPool(socks.SOCKSHTTPSConnectionPool):
        ConnectionCls = TlsSocks

    return {"http": PlainSocksPool, "https": TlsSocksPool}


# --- Answers ----------------------------------------------------------------------------------------------------------


class _Answer(http.client.HTTPResponse):
    """An answer that has to be there whole by its deadline, with the interim ones (1xx) before it skipped."""

    def __init__(self, departure: Departure, sock: socket.socket, *args: Any, **options: Any) -> None:
        until = min(departure.monotonic() + departure.answer_timeout, departure.until)
        super().__init__(_Watched(sock, departure.monotonic, until), *args, **options)  # type: ignore[arg-type]

    def begin(self) -> None:
        super().begin()
        while 101 < self.status < 200:
            # http.client skips "100 Continue" alone, and would take "103 Early Hints" for the answer.
            self.headers = self.msg = None  # type: ignore[assignment]
            super().begin()


@dataclass(frozen=True, slots=True)
class _Watched:
    """A socket to read from until a deadline."""

    sock: socket.socket
    monotonic: Callable[[], float]
    until: float

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(WatchedFile(self.sock, self.monotonic, self.until))


# --- The adapter ------------------------------------------------------------------------------------------------------


class Tls:
    """The one TLS context of all connections, made when needed; ``ca_file`` None: the environment's, or the usual."""

    def __init__(self, ca_file: str | None) -> None:
        self._trusted = ca_file or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        with self._lock:
            if self._context is None:
                self._context = _context(self._trusted or str(DEFAULT_CA_BUNDLE_PATH))
            return self._context


class CertificatesError(Exception):
    """The file of trusted certificates cannot be used."""


def _context(trusted: str) -> ssl.SSLContext:
    try:
        if os.path.isdir(trusted):
            return ssl.create_default_context(capath=trusted)
        return ssl.create_default_context(cafile=trusted)
    except (OSError, ssl.SSLError, ValueError):
        raise CertificatesError from None


class _Bare(requests.Response):
    """A response that is no more than its raw form; the rest would be built for nobody, at every send."""

    def __init__(self) -> None:
        pass


class Transport(HTTPAdapter):
    """Sends requests whose headers are a :class:`Head`; keeps ``size`` connections a host, and makes more if needed."""

    def __init__(self, tls: Tls, size: int) -> None:
        self._tls = tls
        self._pools: dict[Destination, HTTPConnectionPool] = {}
        super().__init__(pool_connections=MOST_HOSTS, pool_maxsize=size)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        if proxy.lower().startswith("https:"):
            options["proxy_ssl_context"] = self._tls.context()
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = socks_pools() if proxy.lower().startswith("socks") else POOLS
        return manager

    def get_connection_with_tls_context(
        self, request: requests.PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> HTTPConnectionPool:
        place = _place(request)
        pool = self._pools.get(place)
        if pool is None:
            pool = self._pools[place] = self._pool(place)
        return pool

    def _pool(self, place: Destination) -> HTTPConnectionPool:
        try:
            manager = self.proxy_manager_for(place.proxy) if place.proxy else self.poolmanager
        except ValueError:
            raise requests.exceptions.InvalidProxyURL from None
        options = {"ssl_context": self._tls.context()} if place.scheme == "https" else {}
        pool: HTTPConnectionPool = manager.connection_from_host(
            place.host, place.port, place.scheme, pool_kwargs=options
        )
        return pool

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """The context has it all; files named here would be read again for each connection."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """What the layers below may see and log."""
        place = _place(request)
        forwarded = place.scheme == "http" and place.proxy is not None and not place.proxy.lower().startswith("socks")
        return place.root + "/" if forwarded else "/"

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """The least of it: no cookies are kept between sends."""
        response = _Bare()
        response.raw = resp
        return response


def _place(request: requests.PreparedRequest) -> Destination:
    head: Any = request.headers
    place: Destination = head.departure.place
    return place


FAULTS: tuple[type[Exception], ...] = (
    requests.RequestException,
    HTTPError,
    http.client.HTTPException,
    OSError,
    CertificatesError,
    StaleError,
)
"""What a request that met with the world may raise (TLS errors are OSErrors)."""
