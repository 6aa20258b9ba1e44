"""A configured text with a place for the content: ``{"text": "{{content}}"}``.

The content is put in by one pass and escaped for its place, so that content which itself holds ``{{content}}``, quotes
or line ends
stays content.
"""

import json
from dataclasses import dataclass
from enum import Enum
from html import escape
from urllib.parse import quote, quote_plus

from messaging_core.secrecy import Secret, Text, joined

MARK = "{{content}}"


class Place(Enum):
    """What surrounds the content, by the request's Content-Type."""

    JSON = "json"
    FORM = "form"
    MARKUP = "markup"
    TEXT = "text"
    URL = "url"


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the content goes; ``quoted``: inside a JSON string, so that only the string's inside is put there."""

    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """Pieces in order: text, named secrets, slots."""

    pieces: tuple[str | Secret | Slot, ...]

    def fill(self, content: str, place: Place) -> Text:
        """The text with ``content``, escaped for ``place``, in every slot."""
        return joined(*(_escaped(content, place, p.quoted) if isinstance(p, Slot) else p for p in self.pieces))


def read_template(text: str) -> Template:
    """``text`` cut at each ``{{content}}``; a slot knows whether it stands inside a JSON string.

    >>> read_template('{"text": "{{content}}"}').pieces
    ('{"text": "', Slot(quoted=True), '"}')
    """
    pieces: list[str | Secret | Slot] = []
    quoted = False
    for index, literal in enumerate(text.split(MARK)):
        if index:
            pieces.append(Slot(quoted))
        if literal:
            pieces.append(literal)
        quoted ^= _quotes(literal) % 2 == 1
    return Template(tuple(pieces))


def place_of(content_type: str) -> Place:
    """What a body of this type wants its content escaped as.

    >>> place_of("application/vnd.api+json; charset=utf-8")
    <Place.JSON: 'json'>
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")):
        return Place.JSON
    if kind.endswith(("/xml", "+xml", "/html")):
        return Place.MARKUP
    return Place.FORM if kind == "application/x-www-form-urlencoded" else Place.TEXT


def _quotes(literal: str) -> int:
    """How many quotation marks open or close a JSON string here."""
    count = 0
    escaped = False
    for sign in literal:
        if escaped:
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == '"':
            count += 1
    return count


def _escaped(content: str, place: Place, quoted: bool) -> str:
    match place:
        case Place.JSON:
            string = json.dumps(content, ensure_ascii=False)
            return string[1:-1] if quoted else string
        case Place.FORM:
            return quote_plus(content)
        case Place.URL:
            return quote(content, safe="")
        case Place.MARKUP:
            return escape(content)
        case Place.TEXT:
            return content
