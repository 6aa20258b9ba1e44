"""Secrets by name, and the one way to take their values out of foreign text.

A description never holds a secret: it holds ``Secret(name)`` in its place (see :mod:`messaging_core.wire.http`). The
values live in one :class:`Secrets`, which the shell gives to ``on_wire`` at each try and to :func:`redact` for every
text
that came from outside (replies, exceptions). What is sent is never redacted.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from html import escape
from typing import Any
from urllib.parse import quote, quote_plus, unquote

SHORTEST_REDACTED = 6
"""Characters. A shorter value stands in ordinary words: masking it would destroy the text and show where it stood."""

MASK = "***"


@dataclass(frozen=True, slots=True, order=True)
class Secret:
    """The name of a secret, standing where its value will be: ``Secret("telegram.bot_token")``."""

    name: str

    def __str__(self) -> str:
        return f"{{{self.name}}}"


Text = str | tuple[str | Secret, ...]
"""A text that may name secrets: plain, or pieces in order: ``("Bearer ", Secret("matrix-ops.access_token"))``."""


def pieces(text: Text) -> tuple[str | Secret, ...]:
    return (text,) if isinstance(text, str) else text


def joined(*texts: Text | Secret) -> Text:
    """One text after another; plain if none names a secret.

    >>> joined("Bearer ", Secret("m.access_token"))
    ('Bearer ', Secret(name='m.access_token'))
    """
    flat: list[str | Secret] = []
    for text in texts:
        for piece in (text,) if isinstance(text, Secret) else pieces(text):
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            elif piece != "":
                flat.append(piece)
    if not flat:
        return ""
    return flat[0] if len(flat) == 1 and isinstance(flat[0], str) else tuple(flat)


def shown(text: Text) -> str:
    """The text with each secret as its name in braces, for people: ``https://api.telegram.org/bot{tg.bot_token}/``."""
    return "".join(str(piece) for piece in pieces(text))


class Secrets(Mapping[str, str]):
    """Values by name. Neither its repr nor its pickle shows a value."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def __reduce__(self) -> tuple[type["Secrets"], tuple[()]]:
        return (Secrets, ())

    def reveal(self, text: Text) -> str:
        """The text with the values in their places: only for the wire. An unknown name is a bug (``KeyError``)."""
        if isinstance(text, str):
            return text
        return "".join(piece if isinstance(piece, str) else self._values[piece.name] for piece in text)

    @property
    def short(self) -> tuple[str, ...]:
        """Names of the secrets that are too short to be looked for in foreign text."""
        return tuple(name for name, value in self._values.items() if 0 < len(value) < SHORTEST_REDACTED)

    @cached_property
    def _looked_for(self) -> tuple[str, ...]:
        """Each form of each value, the longest first."""
        return tuple(sorted({*_forms(self._values.values())}, key=len, reverse=True))

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(re.escape, self._looked_for)), re.IGNORECASE) if self._looked_for else None

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(
            form[:length].casefold() for form in self._looked_for for length in range(SHORTEST_REDACTED, len(form))
        )

    def redact(self, foreign: str) -> str:
        """``foreign`` with every known value, in each form it may have taken, replaced by ``***``; and with each
        beginning of one before a mark that something was cut off."""
        if self._pattern is None or len(foreign) < SHORTEST_REDACTED:
            return foreign
        pieces = _CUT_OFF.split(self._pattern.sub(MASK, foreign))
        return "".join((*map(self._whole, pieces[:-1]), pieces[-1])) if len(pieces) > 1 else pieces[0]

    def _whole(self, text: str) -> str:
        """``text`` without the beginning of a value that is its end."""
        longest = len(self._looked_for[0])
        start = next(
            (at for at in range(max(len(text) - longest, 0), len(text)) if text[at:].casefold() in self._beginnings),
            None,
        )
        return text if start is None else text[:start] + MASK


CUT = "…"
"""Stands where a text was cut off. Without it nobody could tell the beginning of a secret from another word."""

_CUT_OFF = re.compile(r"(?=…|\.\.\.)")


def shortened(text: str, most: int) -> str:
    """``text``, or its first ``most`` characters and the mark that something was cut off.

    >>> shortened("abcdef", 4)
    'abcd…'
    """
    return text if len(text) <= most else text[:most] + CUT


def _forms(values: Iterable[str]) -> Iterator[str]:
    """A value and its secret ends: as they are and as each way of writing them would have them."""
    for value in values:
        for plain in {value, *_ends(value)}:
            if len(plain) >= SHORTEST_REDACTED:
                yield from (
                    form for form in {*_written(plain), *_in_base64(plain.encode())} if len(form) >= SHORTEST_REDACTED
                )


def _written(plain: str) -> Iterator[str]:
    """As it is, with its bytes read as Latin-1, on one line, percent-encoded, as text in JSON, Python and HTML."""
    for text in {plain, plain.encode().decode("latin-1"), " ".join(plain.split())}:
        yield text
        yield from (quote(text, safe=""), quote(text), quote_plus(text), quote(text, safe=":/?&=@"))
        for escaped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]):
            yield from (escaped, escaped.replace("/", "\\/"))
        yield from (
            text.encode("unicode_escape").decode("ascii"),
            text.encode("ascii", "backslashreplace").decode("ascii"),
        )
        yield from (escape(text), escape(text, quote=False), escape(text).replace("&#x27;", "&#39;"))


def _in_base64(raw: bytes) -> Iterator[str]:
    """At each of the three alignments, without the characters at both ends that depend on the neighbours."""
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        core = whole[(0, 2, 3)[shift] : len(whole) - (1 if (shift + len(raw)) % 3 else 0)]
        yield from (core, core.replace("+", "-").replace("/", "_"), core.replace("/", "\\/"), quote(core, safe=""))


_AUTHORITY = re.compile(r"[^/?#\\]*")


def _ends(value: str) -> Iterator[str]:
    """What is quoted without the rest. Of a URL: path and query, each long segment (the token), the login as it is
    written, as it is meant and as it is sent. Of a signing secret: the key."""
    yield value.removeprefix("whsec_")
    _, separator, rest = value.partition("://")
    if separator:
        _, slash, path = rest.partition("/")
        if slash and len(path) >= SHORTEST_REDACTED:
            yield "/" + path
        for segment in re.split(r"[/?&=#]", path):
            if len(segment) >= LONG:
                yield segment
                yield unquote(segment)
        login, at, _ = _AUTHORITY.match(rest)[0].rpartition("@")  # type: ignore[index]
        if at:
            for text in (login, unquote(login)):
                user, _, password = text.partition(":")
                yield from (text, user, password)


LONG = 16
"""Characters of a segment of a URL that is taken for a token; shorter ones are words."""


def redact(secrets: Secrets, foreign: str) -> str:
    """``foreign`` without any value of ``secrets``; the pure function behind every text that came from outside."""
    return secrets.redact(foreign)


def scrub(secrets: Secrets, value: Any) -> Any:
    """An error or receipt with every text in it redacted: what a platform or a library says may hold what it was
    told."""
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, tuple):
        return tuple(scrub(secrets, one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        before = {name: getattr(value, name) for name in value.__dataclass_fields__}
        changed = {name: clean for name, old in before.items() if (clean := scrub(secrets, old)) != old}
        return replace(value, **changed) if changed else value
    return value
