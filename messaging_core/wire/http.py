"""HTTP requests and replies as values, and how a request is sealed just before it leaves.

A request is final but for ``Secret(name)`` in place of secret values, and at most one :data:`Seal`, a signature over
the body and
the time. :func:`on_wire` is the last pure step: the shell runs it at each try, so that a repeat never carries a stale
signature. A URL that a server named gets no credential.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias
from urllib.parse import quote

from returns.result import Failure, Result, Success

from messaging_core.errors import Malformed
from messaging_core.message import FileFacts
from messaging_core.secrecy import Secret, Secrets, Text, joined

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FileRef:
    """The bytes of a file, streamed by the shell: it opens once, compares with the facts, and refuses a file that
    changed. ``base64``: not as they are but encoded, on one line, for a document that has the file inside.
    """

    facts: FileFacts
    base64: bool = False


@dataclass(frozen=True, slots=True)
class FormPart:
    """One part of a multipart body. ``filename`` None: a plain field."""

    name: str
    content: "bytes | FileRef"
    filename: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Multipart:
    """A ``multipart/form-data`` body: parts in order, and the boundary (given, so that equal inputs give equal
    requests)."""

    parts: tuple[FormPart, ...]
    boundary: str


@dataclass(frozen=True, slots=True)
class Spliced:
    """One document made of pieces, in order: JSON with files inside it, without ever being in memory as a whole."""

    pieces: tuple[bytes | FileRef, ...]

    def shown(self) -> Any:
        """The document with each file's name and size in its place, as JSON where it is that."""
        text = "".join(
            piece.decode("utf-8", "replace")
            if isinstance(piece, bytes)
            else json.dumps(f"({piece.facts.name}, {piece.facts.size} bytes)", ensure_ascii=False)[1:-1]
            for piece in self.pieces
        )
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


Body: TypeAlias = bytes | tuple[str | Secret, ...] | Multipart | FileRef | Spliced
"""Bytes; or text pieces with secrets in their places (sent as UTF-8); or a multipart description; or a file as it
is; or a document with files inside."""


@dataclass(frozen=True, slots=True)
class StandardWebhooks:
    """Sign by Standard Webhooks 1.0.0 (https://www.standardwebhooks.com): HMAC-SHA256 over ``{id}.{timestamp}.{body}``.

    ``secret`` names a value ``whsec_`` + base64; ``id`` is the message's, the same at every try.
    """

    secret: Secret
    id: str


Seal: TypeAlias = StandardWebhooks


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request. ``query`` is added to what the URL has; a name that the URL has already is left as written
    there.

    ``repeatable``: sending it twice does no harm (by method, or by a key the platform deduplicates on).
    """

    method: str
    url: Text
    headers: tuple[tuple[str, Text], ...] = ()
    body: Body = b""
    query: tuple[tuple[str, str], ...] = ()
    repeatable: bool = False
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request with its secrets in place: made for one try, never kept, and without a repr that shows anything."""

    method: str
    url: str = field(repr=False)
    headers: Headers = field(repr=False)
    body: bytes | Multipart | FileRef | Spliced = field(repr=False)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What the server answered: status, reason phrase, headers (names as sent), body (the shell caps its size)."""

    status: int
    reason: str = ""
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


# --- Describing -------------------------------------------------------------------------------------------------------

JSON_TYPE = "application/json"


def to_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; key order as given, so equal values give equal bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def json_request(
    method: str,
    url: Text,
    value: Any,
    *,
    headers: tuple[tuple[str, Text], ...] = (),
    query: tuple[tuple[str, str], ...] = (),
    repeatable: bool = False,
) -> HttpRequest:
    """A request whose body is ``value`` as JSON."""
    return HttpRequest(method, url, (("Content-Type", JSON_TYPE), *headers), to_json(value), query, repeatable)


def bearer(secret: Secret) -> tuple[str, Text]:
    """The ``Authorization`` header of RFC 6750."""
    return ("Authorization", joined("Bearer ", secret))


def segment(text: str) -> str:
    """``text`` percent-encoded for one path segment; dots too where the whole would be ``.`` or ``..``."""
    encoded = quote(text, safe="")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded


# --- The last pure step -----------------------------------------------------------------------------------------------


def on_wire(request: HttpRequest, secrets: Secrets, now: float) -> WireRequest:
    """``request`` as it leaves: secrets in place, query added, sealed at ``now`` (Unix seconds)."""
    url = _with_query(secrets.reveal(request.url), request.query)
    body = secrets.reveal(request.body).encode() if isinstance(request.body, tuple) else request.body
    headers = tuple((name, secrets.reveal(value)) for name, value in request.headers)
    if isinstance(body, Multipart):
        headers = (*headers, ("Content-Type", f"multipart/form-data; boundary={body.boundary}"))
    if request.seal is not None:
        assert isinstance(body, bytes), "only bytes can be signed"
        headers = (*headers, *_seal(request.seal, body, secrets, now))
    return WireRequest(request.method, url, headers, body)


def _with_query(url: str, query: tuple[tuple[str, str], ...]) -> str:
    if not query:
        return url
    base, hash_, fragment = url.partition("#")
    _, mark, present = base.partition("?")
    names = {pair.partition("=")[0] for pair in present.split("&")}
    added = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query if name not in names)
    if not added:
        return url
    glue = "" if base.endswith(("?", "&")) else "&" if mark else "?"
    return f"{base}{glue}{added}{hash_}{fragment}"


def _seal(seal: Seal, body: bytes, secrets: Secrets, now: float) -> Headers:
    timestamp = str(int(now))
    key = base64.b64decode(secrets[seal.secret.name].removeprefix("whsec_"))
    signed = f"{seal.id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return (("webhook-id", seal.id), ("webhook-timestamp", timestamp), ("webhook-signature", f"v1,{signature}"))


# --- Reading replies --------------------------------------------------------------------------------------------------


def read_json(reply: HttpReply) -> Result[Any, Malformed]:
    """The body as JSON, or what it is instead, told by its kind and never by its content."""
    try:
        return Success(json.loads(reply.body))
    except (ValueError, RecursionError):
        return Failure(Malformed(reply.status, reply.reason, detail=f"the answer is {_kind(reply)}, not JSON"))


def _kind(reply: HttpReply) -> str:
    if not reply.body.strip():
        return "empty"
    return "an HTML page" if b"<html" in reply.body[:2000].lower() else "no valid text of its kind"


def at(value: Any, *path: str | int) -> Any:
    """The value at ``path`` in parsed JSON, or None where there is none: foreign data is never indexed blindly.

    >>> at({"result": {"message_id": 7}}, "result", "message_id")
    7
    """
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and -len(value) <= key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_at(value: Any, *path: str | int) -> str:
    """The text (or whole number, as text) at ``path``; empty where there is none."""
    found = at(value, *path)
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else ""


LEAST_WAIT = 1.0
"""Seconds, where a platform's own figure is unreadable, zero or past."""


def wait_of(reply: HttpReply) -> float | None:
    """Seconds to wait by the ``Retry-After`` header: whole or decimal seconds, or an HTTP date (RFC 9110, 10.2.3).

    A date is measured against the reply's ``Date`` header, which the shell puts in where the server sent none. What
    cannot be read is the least wait.
    """
    value = reply.header("Retry-After")
    if value is None:
        return None
    try:
        return at_least(float(value))
    except ValueError:
        pass
    try:
        until = _timestamp(value)
        date = reply.header("Date")
        return at_least(until - _timestamp(date)) if date else LEAST_WAIT
    except (ValueError, TypeError, OverflowError):
        return LEAST_WAIT


def at_least(seconds: Any) -> float:
    """A wait that can be waited: finite, and no less than the least."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        try:
            seconds = float(seconds)
        except (TypeError, ValueError):
            return LEAST_WAIT
    return float(seconds) if 0 < seconds < 1e9 else LEAST_WAIT


def _timestamp(http_date: str) -> float:
    moment = parsedate_to_datetime(http_date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def as_planned(request: HttpRequest) -> HttpRequest:
    """The request with its query in the URL, for people and tests to look at."""
    return (
        replace(request, url=joined(request.url, _with_query("", request.query)), query=())
        if request.query
        else request
    )
