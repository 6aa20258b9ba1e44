"""A configured text with a place for the content: ``{"text": "{{content}}"}``.

The content is put in by one pass and escaped for its place, so that content which itself holds ``{{content}}``, quotes
or line ends
stays content.
"""

import json
import re
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
    """Where the content goes; ``quoted``: inside a JSON string, so that only the string's inside is put there.
    ``around``: how many strings this JSON is itself the text of."""

    quoted: bool = False
    around: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """Pieces in order: text, named secrets, slots."""

    pieces: tuple[str | Secret | Slot, ...]

    def fill(self, content: str, place: Place) -> Text:
        """The text with ``content``, escaped for ``place``, in every slot."""
        return joined(*(_escaped(content, place, p) if isinstance(p, Slot) else p for p in self.pieces))


def read_template(text: str) -> Template:
    """``text`` cut at each ``{{content}}``; a slot knows whether it stands inside a JSON string.

    >>> read_template('{"text": "{{content}}"}').pieces
    ('{"text": "', Slot(quoted=True, around=0), '"}')
    """
    pieces: list[str | Secret | Slot] = []
    quoted = False
    inner = _inner_slots(text)
    for index, literal in enumerate(text.split(MARK)):
        if index:
            pieces.append(inner.get(index, Slot(quoted)))
        if literal:
            pieces.append(literal)
        quoted ^= _quotes(literal) % 2 == 1
    return Template(tuple(pieces))


_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def _inner_slots(text: str) -> dict[int, Slot]:
    """The slots in strings that hold JSON themselves, such as Lark's ``"content": "{\\"text\\": ...}"``, by their
    number."""
    found: dict[int, Slot] = {}
    for string in _STRING.finditer(text):
        if MARK in string[1] and (inner := _json_in(string[1])):
            before = text.count(MARK, 0, string.start())
            slots = (piece for piece in inner.pieces if isinstance(piece, Slot))
            found |= {before + n: Slot(slot.quoted, slot.around + 1) for n, slot in enumerate(slots, 1)}
    return found


def _json_in(string: str) -> Template | None:
    """The template that a JSON string's inside is, if it makes an object or objects: brackets alone may be a text's."""
    try:
        template = read_template(json.loads(f'"{string}"'))
        made = json.loads(str(template.fill("x", Place.JSON)))
    except (ValueError, RecursionError):
        return None
    return template if any(isinstance(one, dict) for one in (made if isinstance(made, list) else [made])) else None


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


def _escaped(content: str, place: Place, slot: Slot) -> str:
    match place:
        case Place.JSON:
            string = json.dumps(content, ensure_ascii=False)
            text = string[1:-1] if slot.quoted else string
            for _ in range(slot.around):
                text = json.dumps(text, ensure_ascii=False)[1:-1]
            return text
        case Place.FORM:
            return quote_plus(content)
        case Place.URL:
            return quote(content, safe="")
        case Place.MARKUP:
            return escape(content)
        case Place.TEXT:
            return content
