"""Secrets by name, and the one way to take their values out of foreign text.

A description never holds a secret: it holds ``Secret(name)`` in its place (see :mod:`messaging_core.wire.http`). The
values live in one :class:`Secrets`, which the shell gives to ``on_wire`` at each try and to :func:`redact` for every
text
that came from outside (replies, exceptions). What is sent is never redacted.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus

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
    def _pattern(self) -> re.Pattern[str] | None:
        forms = sorted(set(_forms(self._values.values())), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, forms)), re.IGNORECASE) if forms else None

    def redact(self, foreign: str) -> str:
        """``foreign`` with every known value, in each form it may have taken, replaced by ``***``."""
        return foreign if self._pattern is None else self._pattern.sub(MASK, foreign)


def _forms(values: Iterable[str]) -> Iterator[str]:
    """A value as it is, percent-encoded, backslash-escaped, in base64 at each of the three alignments; and, of a URL,
    its secret ends."""
    for value in values:
        for plain in (value, *_ends(value)):
            if len(plain) < SHORTEST_REDACTED:
                continue
            yield plain
            yield quote(plain, safe="")
            yield quote(plain)
            yield quote_plus(plain)
            yield plain.encode("unicode_escape").decode("ascii")
            raw = plain.encode()
            for shift in range(3):
                # The characters that depend on the neighbours are cut off at both ends.
                whole = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
                core = whole[(0, 2, 3)[shift] : len(whole) - (1 if (shift + len(raw)) % 3 else 0)]
                if len(core) >= SHORTEST_REDACTED:
                    yield core
                    yield core.replace("+", "-").replace("/", "_")


def _ends(value: str) -> Iterator[str]:
    """Of a secret URL, what libraries quote without the rest: path and query, and each long segment (the token)."""
    _, separator, rest = value.partition("://")
    if separator:
        _, slash, path = rest.partition("/")
        if slash and len(path) >= SHORTEST_REDACTED:
            yield "/" + path
        for segment in re.split(r"[/?&=#]", path):
            if len(segment) >= 16:
                yield segment
        user, at, _ = rest.partition("@")
        if at and "/" not in user:
            yield from user.split(":")


def redact(secrets: Secrets, foreign: str) -> str:
    """``foreign`` without any value of ``secrets``; the pure function behind every text that came from outside."""
    return secrets.redact(foreign)


def scrub(secrets: Secrets, value: Any) -> Any:
    """An error or receipt with every text in it redacted: what a platform or a library says may hold what it was told."""
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, tuple):
        return tuple(scrub(secrets, one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        before = {name: getattr(value, name) for name in value.__dataclass_fields__}
        changed = {name: clean for name, old in before.items() if (clean := scrub(secrets, old)) != old}
        return replace(value, **changed) if changed else value
    return value
