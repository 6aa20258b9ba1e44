"""Mail as a value, and as the octets that go over the wire.

A :class:`MailRequest` says whom to talk to and what to hand over; :func:`written` turns its :class:`Mail` into
pieces: bytes as they are, and files that the shell streams in base64. Nothing is left to the clock, to chance or to
the version of a library: equal mails give equal octets. Every line ends in CRLF and is shorter than 998 octets (RFC
5322, 2.1.1); the pieces hold ASCII only, but for an address whose local part is not (RFC 6531).
"""

import base64
import codecs
import quopri
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef

CRLF = b"\r\n"
LINE = 78
"""Characters of a header line, where there is a blank to fold at (RFC 5322, 2.1.1)."""

WHOLE_LINE = 57
"""Octets that make one line of 76 in base64."""

Security: TypeAlias = Literal["tls", "starttls", "either", "none"]
"""How the connection is secured: TLS from the first octet; STARTTLS, which must be offered; whichever of the two the
server speaks; not at all.
"""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with the mail. ``name`` is what the reader sees it called; ``mime`` is its type."""

    name: str
    mime: str
    content: bytes | FileRef


@dataclass(frozen=True, slots=True)
class Mail:
    """What the reader gets. ``headers``: in order, values made by :func:`unstructured`, :func:`mailbox` or of ASCII
    tokens.

    ``text``: the plain form, "" where there is nothing to say. ``html``: the same as HTML, whole. ``boundary``: not
    to be met in the content. A control sign in a header would be the beginning of another header: such a mail cannot
    be made.
    """

    headers: tuple[tuple[str, str], ...]
    text: str
    html: str | None = None
    attachments: tuple[Attachment, ...] = ()
    boundary: str = "=_part"

    def __post_init__(self) -> None:
        if any(_CONTROLS.search(name + value) for name, value in self.headers):
            raise ValueError("a header holds a control sign")


@dataclass(frozen=True, slots=True)
class MailRequest:
    """One mail to hand over. ``sender`` and ``recipients`` are of the envelope: addresses alone.

    ``mail`` None: talk to the server, log in, and hand over nothing (a probe). ``repeatable`` is False: a server
    keeps no key by which it would know a mail again, though one that is repeated has the same Message-ID, which some
    readers' servers fold into one.
    """

    host: str
    port: int
    security: Security
    sender: str
    recipients: tuple[str, ...] = ()
    mail: Mail | None = None
    username: str | None = None
    password: Secret | None = None
    repeatable: bool = False

    def shown(self) -> dict[str, Any]:
        """For people who look at what would be sent: the content as written here, not as it is encoded."""
        mail = self.mail or Mail((), "")
        files = [{"file": one.name, "content_type": one.mime} for one in mail.attachments]
        return {
            "method": "MAIL",
            "url": f"smtp://{self.host}:{self.port}",
            "headers": dict(mail.headers),
            "body": {
                "from": self.sender,
                "to": list(self.recipients),
                "text": mail.text,
                **({"html": mail.html} if mail.html is not None else {}),
                **({"attachments": files} if files else {}),
            },
        }


Stage: TypeAlias = Literal["connect", "login", "sender", "recipients", "content", "accepted"]
"""How far the server went along; "accepted": it took the mail (or, for a probe, let us in)."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply of the server: the code of three digits and its text on one line (RFC 5321, 4.2)."""

    code: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class MailReply:
    """The reply that decided, at which stage, and what was said of each recipient that was refused."""

    stage: Stage
    said: Said
    refused: tuple[tuple[str, Said], ...] = ()


# --- Headers ----------------------------------------------------------------------------------------------------------

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BLANKS = re.compile("[\x00-\x20\x7f-\x9f\u2028\u2029]+")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")


def one_line(text: str) -> str:
    """``text`` on one line: controls and runs of blanks become one blank each."""
    return _BLANKS.sub(" ", text).strip()


def unstructured(text: str) -> str:
    """``text`` as the value of a header such as Subject: as it is where it can be, else in encoded words (RFC 2047).

    What looks like an encoded word is encoded itself, so that no reader finds a line end or a header in it.

    >>> unstructured("All is well"), unstructured("Grüße")
    ('All is well', '=?utf-8?b?R3LDvMOfZQ==?=')
    """
    text = one_line(text)
    plain = text.isascii() and "=?" not in text and all(len(word) < LINE for word in text.split(" "))
    return text if plain else " ".join(_encoded_words(text))


def mailbox(name: str, address: str) -> str:
    """``Name <address>`` for From and To; the address alone where there is no name.

    >>> mailbox("Bot, Inc.", "bot@example.org")
    '"Bot, Inc." <bot@example.org>'
    """
    name = one_line(name)
    if not name:
        return address
    if not name.isascii() or "=?" in name:
        return f"{unstructured(name)} <{address}>"
    return f"{name if _ATOMS.fullmatch(name) else _quoted(name)} <{address}>"


def _encoded_words(text: str) -> Iterator[str]:
    """At most 75 characters each, and no character cut in two (RFC 2047, 2 and 5)."""
    word = b""
    for character in text:
        octets = character.encode("utf-8", "replace")
        if len(word) + len(octets) > 45:
            yield _encoded_word(word)
            word = b""
        word += octets
    yield _encoded_word(word)


def _encoded_word(octets: bytes) -> str:
    return f"=?utf-8?b?{base64.b64encode(octets).decode()}?="


def _quoted(text: str) -> str:
    return '"' + re.sub(r'([\\"])', r"\\\1", text) + '"'


def _header(name: str, value: str) -> bytes:
    """One header, folded at blanks; a value's own blanks stay when a reader unfolds it."""
    lines = [f"{name}:"]
    for word in value.split(" "):
        if word and len(lines[-1]) + 1 + len(word) > LINE and lines != [f"{name}:"]:
            lines.append("")
        lines[-1] += " " + word
    return CRLF.join(line.encode() for line in lines) + CRLF


# --- The whole mail ---------------------------------------------------------------------------------------------------

Piece: TypeAlias = bytes | FileRef
"""Octets that begin at the start of a line and end with CRLF; or a file, to be written in base64."""


def written(mail: Mail) -> tuple[Piece, ...]:
    """The octets of ``mail`` in order (https://www.rfc-editor.org/rfc/rfc5322,
    https://www.rfc-editor.org/rfc/rfc2045).
    """
    pieces: list[Piece] = [*(_header(name, value) for name, value in mail.headers), _header("MIME-Version", "1.0")]
    if not mail.attachments:
        pieces += _body(mail)
    else:
        pieces += (_multipart("mixed", mail.boundary), CRLF)
        if mail.text or mail.html:
            pieces += (_open(mail.boundary), *_body(mail))
        for attachment in mail.attachments:
            pieces += (_open(mail.boundary), *_attached(attachment))
        pieces.append(_close(mail.boundary))
    return tuple(_joined(pieces))


def octets(pieces: tuple[Piece, ...]) -> int:
    """How long the mail is, each file counted as base64 with its line ends (RFC 1870, 4)."""
    return sum(len(piece) if isinstance(piece, bytes) else _in_base64(piece.facts.size) for piece in pieces)


def in_base64(content: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of any size as lines of 76 characters and CRLF (RFC 2045, 6.8)."""
    left = b""
    for block in content:
        left += block
        whole = len(left) - len(left) % WHOLE_LINE
        yield _lines(left[:whole])
        left = left[whole:]
    yield _lines(left)


def _lines(octets: bytes) -> bytes:
    line = base64.b64encode(octets)
    return b"".join([line[start : start + 76] + CRLF for start in range(0, len(line), 76)])


def stuffed(piece: bytes) -> bytes:
    """``piece`` with a dot before each dot that begins a line, since a lone one ends the mail (RFC 5321, 4.5.2)."""
    return re.sub(rb"(?m)^\.", b"..", piece)


def beyond_ascii(request: MailRequest) -> bool:
    """Whether the server must understand addresses outside ASCII (SMTPUTF8, RFC 6531)."""
    headers = () if request.mail is None else (value for _, value in request.mail.headers)
    return not all(text.isascii() for text in (request.sender, *request.recipients, *headers))


def _body(mail: Mail) -> list[bytes]:
    """The text; with HTML beside it, the plain form first and the better form last (RFC 2046, 5.1.4)."""
    if mail.html is None:
        return _text("plain", mail.text)
    inner = mail.boundary + "_body"
    return [
        _multipart("alternative", inner),
        CRLF,
        _open(inner),
        *_text("plain", mail.text),
        _open(inner),
        *_text("html", mail.html),
        _close(inner),
    ]


def _text(subtype: str, text: str) -> list[bytes]:
    """A text as it is where every line is short ASCII, else quoted-printable or base64, whichever is shorter."""
    raw = re.sub("\r\n?|\u2028|\u2029", "\n", text).encode("utf-8", "replace")
    raw += b"" if raw.endswith(b"\n") else b"\n"
    if re.fullmatch(rb"(?:[\t\x20-\x7e]{0,900}\n)*", raw):
        encoding, content = "7bit", raw.replace(b"\n", CRLF)
    else:
        quoted = quopri.encodestring(raw).replace(b"\n", CRLF)
        based = b"".join(in_base64((raw.replace(b"\n", CRLF),)))
        encoding, content = ("quoted-printable", quoted) if len(quoted) <= len(based) else ("base64", based)
    return [
        _header("Content-Type", f"text/{subtype}; charset=utf-8"),
        _header("Content-Transfer-Encoding", encoding),
        CRLF,
        content,
    ]


def _attached(attachment: Attachment) -> list[Piece]:
    """A file in base64. What may not be in base64 (a mail, a multipart) goes as mere octets (RFC 2046, 5.2.1)."""
    mime = "application/octet-stream" if attachment.mime.startswith(("message/", "multipart/")) else attachment.mime
    content = attachment.content
    return [
        _header("Content-Type", mime + (_charset(content) if mime.startswith("text/") else "")),
        _header("Content-Disposition", f"attachment; {_filename(attachment.name)}"),
        _header("Content-Transfer-Encoding", "base64"),
        CRLF,
        b"".join(in_base64((content,))) if isinstance(content, bytes) else content,
    ]


def _charset(text: bytes | FileRef) -> str:
    """Without one a text would be US-ASCII (RFC 2046, 4.1.2); what begins otherwise was not taken for a text."""
    head = text if isinstance(text, bytes) else text.facts.head
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "; charset=utf-16" if marked else "; charset=utf-8"


def _filename(name: str) -> str:
    """Beyond ASCII by RFC 2231. One form alone: readers differ on which of two they show."""
    name = one_line(name)
    if name.isascii() and len(name) < LINE and "=?" not in name:
        return f"filename={_quoted(name)}"
    return f"filename*=utf-8''{quote(name, safe='', errors='replace')}"


def _multipart(subtype: str, boundary: str) -> bytes:
    return _header("Content-Type", f'multipart/{subtype}; boundary="{boundary}"')


def _open(boundary: str) -> bytes:
    return CRLF + f"--{boundary}".encode() + CRLF


def _close(boundary: str) -> bytes:
    return CRLF + f"--{boundary}--".encode() + CRLF


def _in_base64(size: int) -> int:
    encoded = 4 * -(-size // 3)
    return encoded + 2 * -(-encoded // 76)


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Neighbouring bytes as one, so that a mail is a few pieces and not one for each line."""
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        yield b"".join(run)
        run = []
        yield piece
    yield b"".join(run)
