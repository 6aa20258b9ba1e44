"""A scripted HTTP server on the loopback interface: what a client sent, byte for byte, and every way in which a
server can fail it.

::

    with Loopback(reply(json={"ok": True}), reset(), hang()) as server:
        ...                                   # the client speaks to server.url
        server.requests[0].json()             # what it sent; .method .target .header("...") .body .parts() .raw
        server.connections                    # how many connections were made

One script item answers one request, in the order in which requests come; afterwards every request gets ``default``
(200 ``{}``). ``Loopback(respond=function)`` instead asks ``function(request)`` for the item. ``Loopback(tls=True)``
speaks TLS; clients trust it by ``server.ca_file``. Items:

=================================  ==================================================================
``reply(200, json=..., body=...)`` an answer; Content-Length is added
``.later(0.2)``                    ... after 0.2 s
``.drip(every=0.05, size=1)``      ... a byte at a time
``.claiming(1000)``                ... with that Content-Length, whatever its body is, then closed
``.breaking_off(5)``               ... reset after 5 bytes of the body
``.closing()``                     ... the connection is closed after it
``.reading_slowly(0.1)``           ... after the request was read a little at a time
``redirect(url, 307)``             an answer that sends elsewhere
``huge(10**9)``                    an answer with so many bytes
``raw(b"...", then="close")``      these bytes
``reset(), close(), hang()``       nothing but this, after the request was read
=================================  ==================================================================

``reset(read="nothing")`` does it before a byte is read, ``read="head"`` before the body is.

``nowhere()`` is a URL that refuses connections. Other servers of the suite may be built on ``Loopback`` with
``respond``.
"""

import contextlib
import functools
import http.client
import json as _json
import re
import socket
import ssl
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

Read = Literal["all", "head", "nothing"]
Then = Literal["keep", "close", "reset", "hang"]


# --- What was sent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FormPart:
    """One part of a multipart body, read leniently."""

    head: bytes
    content: bytes

    @property
    def header_lines(self) -> list[str]:
        return self.head.decode().split("\r\n")

    @property
    def name(self) -> str:
        return self._quoted("name")

    @property
    def filename(self) -> str:
        return self._quoted("filename")

    @property
    def content_type(self) -> str | None:
        found = re.search(r"(?im)^content-type: *(.*?)\r?$", self.head.decode())
        return found[1] if found else None

    def _quoted(self, key: str) -> str:
        found = re.search(rf'; {key}="([^"]*)"', self.head.decode())
        return found[1] if found else ""


@dataclass(frozen=True)
class Request:
    """One request. ``head``: request line and headers as they came; ``complete``: the whole body came. ``at``:
    monotonic seconds.
    """

    head: bytes
    body: bytes = b""
    complete: bool = True
    at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def raw(self) -> bytes:
        return self.head + b"\r\n\r\n" + self.body

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode()

    @property
    def target(self) -> str:
        return self.head.split(b"\r\n", 1)[0].split(b" ")[1].decode()

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def headers(self) -> list[tuple[str, str]]:
        """In order, names as they came."""
        lines = self.head.decode("utf-8", "surrogateescape").split("\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        return _json.loads(self.body)

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    def parts(self) -> list[FormPart]:
        """The parts of a multipart body, in order."""
        found = re.search(r'boundary="?([^";]+)"?', self.header("Content-Type") or "")
        assert found, "not a multipart body"
        pieces = (b"\r\n" + self.body).split(b"\r\n--" + found[1].encode())
        assert pieces[-1].startswith(b"--"), "the last boundary is missing"
        return [FormPart(*piece.removeprefix(b"\r\n").split(b"\r\n\r\n", 1)) for piece in pieces[1:-1]]

    def part(self, name: str) -> FormPart:
        return next(part for part in self.parts() if part.name == name)


# --- What is answered -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """What is done with one request: how much of it is read, what is sent, and what then becomes of the connection."""

    head: bytes = b""
    body: bytes | Callable[[], Iterable[bytes]] = b""
    read: Read = "all"
    then: Then = "keep"
    delay: float = 0.0
    every: float = 0.0
    size: int = 0
    stop_at: int | None = None
    reading: float = 0.0

    def later(self, seconds: float) -> "Item":
        return replace(self, delay=seconds)

    def drip(self, every: float = 0.05, size: int = 1) -> "Item":
        return replace(self, every=every, size=size)

    def claiming(self, length: int) -> "Item":
        head = re.sub(rb"(?i)content-length: \d+", b"Content-Length: %d" % length, self.head)
        return replace(self, head=head, then="close")

    def breaking_off(self, at: int) -> "Item":
        return replace(self, stop_at=at, then="reset")

    def closing(self) -> "Item":
        return replace(self, then="close")

    def unread(self, read: Read = "nothing") -> "Item":
        """Answer before the request is read, and close."""
        return replace(self, read=read, then="close")

    def reading_slowly(self, every: float) -> "Item":
        """Take 256 KiB of the request at a time, and rest between."""
        return replace(self, reading=every)

    def pieces(self) -> Iterator[bytes]:
        if callable(self.body):
            yield self.head
            yield from self.body()
            return
        body = self.body if self.stop_at is None else self.body[: self.stop_at]
        whole = self.head + body
        size = self.size or len(whole)
        for start in range(0, len(whole), size or 1):
            yield whole[start : start + size]


def _reason(status: int) -> str:
    return http.client.responses.get(status, "")


def reply(
    status: int = 200,
    *,
    json: Any = None,
    body: bytes | str = b"",
    headers: dict[str, str] | None = None,
    reason: str | None = None,
) -> Item:
    """An answer with its Content-Length (none for 204). ``json`` sets the body and its type."""
    fields = dict(headers or {})
    content = body.encode() if isinstance(body, str) else body
    if json is not None:
        content = _json.dumps(json).encode()
        fields.setdefault("Content-Type", "application/json")
    if status != 204:
        fields.setdefault("Content-Length", str(len(content)))
    said = _reason(status) if reason is None else reason
    lines = [f"HTTP/1.1 {status} {said}", *(f"{name}: {value}" for name, value in fields.items())]
    return Item(("\r\n".join(lines) + "\r\n\r\n").encode(), content)


def redirect(to: str, status: int = 307) -> Item:
    return reply(status, headers={"Location": to})


def huge(size: int, status: int = 200) -> Item:
    """``size`` bytes of body; what is left of them when the client has had enough is not sent."""
    block = b"x" * 65536

    def body() -> Iterator[bytes]:
        for start in range(0, size, len(block)):
            yield block[: min(len(block), size - start)]

    return Item(reply(status, headers={"Content-Length": str(size)}).head, body)


def raw(data: bytes, then: Then = "close") -> Item:
    return Item(data, then=then)


def reset(read: Read = "all") -> Item:
    return Item(read=read, then="reset")


def close(read: Read = "all") -> Item:
    return Item(read=read, then="close")


def hang(read: Read = "all") -> Item:
    return Item(read=read, then="hang")


def nowhere() -> str:
    """A URL at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


# --- The server -------------------------------------------------------------------------------------------------------


class Loopback:
    """See the module's docstring. ``names``: for whom the TLS certificate is."""

    def __init__(
        self,
        *script: Item,
        replies: Iterable[Item] = (),
        default: Item | None = None,
        respond: Callable[[Request], Item] | None = None,
        tls: bool = False,
        names: tuple[str, ...] = ("127.0.0.1", "localhost"),
    ) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._script = [*script, *replies]
        self._default = default or reply(json={})
        self._respond = respond
        self._tls = _server_context(names) if tls else None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.ca_file = str(_authority()[1]) if tls else None

    def __enter__(self) -> "Loopback":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        # A thread that is blocked in accept() is woken by shutdown, not by close.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wait_for(self, count: int, within: float = 5.0) -> list[Request]:
        """The requests, when ``count`` of them have come."""
        until = time.monotonic() + within
        while len(self.requests) < count and time.monotonic() < until:
            time.sleep(0.005)
        assert len(self.requests) >= count, f"{len(self.requests)} requests came, {count} were waited for"
        return self.requests

    def drop(self) -> None:
        """Close every open connection, as a server does with those that are idle for long."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        time.sleep(0.02)

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            self._open.add(connection)
            buffer = b""
            while not self._over.is_set():
                if self._coming().read == "nothing":
                    item = self._next(None)
                else:
                    found = self._request(connection, buffer)
                    if found is None:
                        break
                    request, buffer, item = found
                    item = item or self._next(request)
                if not self._act(connection, item):
                    break
        self._open.discard(connection)
        with contextlib.suppress(OSError):
            connection.close()

    def _coming(self) -> Item:
        with self._lock:
            return self._script[0] if self._script else self._default

    def _next(self, request: Request | None) -> Item:
        with self._lock:
            if self._script:
                return self._script.pop(0)
        return self._respond(request) if self._respond and request else self._default

    def _request(self, connection: socket.socket, buffer: bytes) -> tuple[Request, bytes, Item | None] | None:
        """The next request, what is left behind it, and the script item if it wants no more than the head."""
        while b"\r\n\r\n" not in buffer:
            data = connection.recv(65536)
            if not data:
                return None
            buffer += data
        head, rest = buffer.split(b"\r\n\r\n", 1)
        if self._coming().read == "head":
            request = Request(head, rest, complete=False)
            self.requests.append(request)
            return request, b"", self._next(request)
        length = int((Request(head).header("Content-Length")) or 0)
        assert Request(head).header("Transfer-Encoding") is None, "a chunked request"
        body = bytearray(rest)
        while len(body) < length:
            if self._coming().reading:
                time.sleep(self._coming().reading)
            data = connection.recv(262144)
            if not data:
                self.requests.append(Request(head, bytes(body), complete=False))
                return None
            body += data
        request = Request(head, bytes(body[:length]))
        self.requests.append(request)
        return request, bytes(body[length:]), None

    def _act(self, connection: socket.socket, item: Item) -> bool:
        """Do it; whether the connection stays."""
        if item.delay and self._over.wait(item.delay):
            return False
        for piece in item.pieces():
            connection.sendall(piece)
            if item.every and self._over.wait(item.every):
                return False
        match item.then:
            case "keep":
                return True
            case "hang":
                self._over.wait(60)
            case "reset":
                if item.head:
                    time.sleep(0.05)  # what was sent shall arrive before the reset does
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                _close_now(connection)
            case "close":
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
        return False


def _close_now(connection: socket.socket) -> None:
    """Without TLS's own farewell, so that the reset is all that is seen."""
    socket.socket(fileno=connection.detach()).close()


@functools.cache
def _authority() -> tuple[Any, Path]:
    """One certificate authority for the whole run, and the file that clients trust it by."""
    import trustme

    authority = trustme.CA()
    file = Path(tempfile.mkdtemp(prefix="loopback-")) / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return authority, file


@functools.cache
def _server_context(names: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _authority()[0].issue_cert(*names).configure_cert(context)
    return context
