"""What a reader of each platform sees: strict readers, each telling sign by sign what is shown and how.

Telegram's is Telegram's own. The others here are written from the platforms' descriptions of their markup, not from our
renderers; Discord's is in ``judges``. A reader raises ``Refused`` for what its platform would refuse or show wrongly.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser

import tdjson

from messaging_core.markup.dialect import Rendered
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Block, Code, Document, Prose, Span, Table

Seen = list[tuple[str, int]]
"""Signs that can be seen, each with its marks; what is code is nothing else."""


class Refused(Exception):
    """The platform would not take this, or would not show what was meant."""


def seen(text: str, marks: int = 0) -> Seen:
    marks = CODE if marks & CODE else marks
    return [(sign, marks) for sign in text if not sign.isspace() and unicodedata.category(sign) not in ("Cf", "Cc")]


def meant(document: Document, *, heading: int = BOLD) -> Seen:
    """What the tree says: every leaf, in order. ``heading``: the marks that a heading adds."""
    found: Seen = []
    for block in document.blocks:
        found += _meant(block, heading)
    return found


def _meant(block: Block, heading: int) -> Seen:
    if isinstance(block, Prose):
        return _spans(block.spans, heading if block.heading else 0)
    if isinstance(block, Code):
        return seen(block.text, CODE)
    if isinstance(block, Table):
        return [sign for row in block.rows for cell in row for sign in _spans(cell, 0)]
    return []


def _spans(spans: Iterable[Span], more: int) -> Seen:
    return [sign for span in spans for sign in seen(span.text, span.marks | more)]


def missing(wanted: Seen, shown: Seen) -> Seen:
    """What of ``wanted`` is not in ``shown``, in this order: nothing, if it is a subsequence."""
    rest = iter(shown)
    for place, sign in enumerate(wanted):
        if not any(sign == other for other in rest):
            return wanted[place : place + 20]
    return []


# --- Telegram ---------------------------------------------------------------------------------------------------------

tdjson.td_execute(b'{"@type":"setLogVerbosityLevel","new_verbosity_level":0}')
_TELEGRAM_MARKS = {"Bold": BOLD, "Italic": ITALIC, "Strikethrough": STRIKE, "Code": CODE, "Pre": CODE, "PreCode": CODE}


@dataclass
class Entity:
    kind: str
    text: str
    url: str = ""
    language: str = ""


def telegram(html: str) -> tuple[str, list[Entity], Seen]:
    """The visible text, the entities and the signs, as Telegram's own library parses ``html``."""
    request = {"@type": "parseTextEntities", "text": html, "parse_mode": {"@type": "textParseModeHTML"}}
    answer = json.loads(tdjson.td_execute(json.dumps(request).encode()) or b"{}")
    if answer["@type"] != "formattedText":
        raise Refused(answer)
    units = answer["text"].encode("utf-16-le")
    marks = [0] * (len(units) // 2 + 1)
    entities = []
    for entity in answer["entities"]:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        kind = entity["type"]["@type"].removeprefix("textEntityType")
        text = units[2 * start : 2 * end].decode("utf-16-le")
        entities.append(Entity(kind, text, entity["type"].get("url", ""), entity["type"].get("language", "")))
        for unit in range(start, end):
            marks[unit] |= _TELEGRAM_MARKS.get(kind, 0)
    shown: Seen = []
    at = 0
    for sign in answer["text"]:
        shown += seen(sign, marks[at])
        at += 2 if ord(sign) > 0xFFFF else 1
    return answer["text"], entities, shown


def telegram_mentions(text: str) -> list[str]:
    """What Telegram's own library would ring in a text."""
    answer = json.loads(tdjson.td_execute(json.dumps({"@type": "getTextEntities", "text": text}).encode()) or b"{}")
    units = text.encode("utf-16-le")
    return [
        units[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")
        for entity in answer["entities"]
        if entity["type"]["@type"] == "textEntityTypeMention"
    ]


# --- Slack and WhatsApp -----------------------------------------------------------------------------------------------

_SIGNS = {"*": BOLD, "_": ITALIC, "~": STRIKE}
_SLACK_TOKEN = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]+))?>")
_WEB = re.compile(r"(?<![A-Za-z0-9])https?://(?=[^\W_]|\[)[^\s`\u200b]*[^\s`\u200b*_~]", re.IGNORECASE)
"""An address has a host: it begins with a letter, a digit or the bracket of a number, never with a sign of formatting."""
ZERO_WIDTH = "\u200b"


def slack(text: str) -> Seen:
    """mrkdwn: ``&`` only as one of three entities, ``<`` only around links, pairs on one line and at the edges of words."""
    return _lines(text, _slack_line)


def whatsapp(text: str) -> Seen:
    return _lines(text, _whatsapp_line)


def _lines(text: str, read: Callable[[str], Seen]) -> Seen:
    shown: Seen = []
    parts = re.split(r"```\n(.*?)\n```", text, flags=re.DOTALL)
    for place, part in enumerate(parts):
        if place % 2:
            shown += seen(unescape(part) if read is _slack_line else part, CODE)
        elif "```" in part:
            raise Refused(f"an open fence: {part!r}")
        else:
            for line in part.split("\n"):
                shown += read(line.removeprefix("> "))
    return shown


def _slack_line(line: str) -> Seen:
    if re.search(r"&(?!amp;|lt;|gt;)", line):
        raise Refused(f"a bare ampersand: {line!r}")
    atoms: list[str] = []
    at = 0
    for token in _SLACK_TOKEN.finditer(line):
        atoms += [*_text_atoms(line[at : token.start()]), f"<{token[0]}"]
        at = token.end()
    atoms += _text_atoms(line[at:])
    return _styled(atoms, 0)


def _text_atoms(text: str) -> list[str]:
    if "<" in text or ">" in text:
        raise Refused(f"a bare angle bracket: {text!r}")
    return [unescape(atom) if atom[0] == "&" else atom for atom in re.findall(r"&(?:amp|lt|gt);|.", text)]


def _whatsapp_line(line: str) -> Seen:
    atoms: list[str] = []
    at = 0
    for address in _WEB.finditer(line):
        atoms += [*line[at : address.start()], f"<{address[0]}"]
        at = address.end()
    return _styled([*atoms, *line[at:]], 0)


def _styled(atoms: list[str], marks: int) -> Seen:
    """``atoms``: signs, and links as ``<`` with all their signs."""
    shown: Seen = []
    at = 0
    while at < len(atoms):
        atom = atoms[at]
        end = _closing(atoms, at) if atom in (*_SIGNS, "`") else None
        if end is not None and atom == "`":
            shown += seen("".join(atom[1:] if len(atom) > 1 else atom for atom in atoms[at + 1 : end]), CODE)
            at = end
        elif end is not None:
            shown += _styled(atoms[at + 1 : end], marks | _SIGNS[atom])
            at = end
        elif len(atom) > 1:
            token = _SLACK_TOKEN.fullmatch(atom[1:])
            label = (token[2] or token[1]) if token else atom[1:]
            shown += seen(unescape(label) if token else label, marks)
        else:
            shown += seen(atom, marks)
        at += 1
    return shown


def _closing(atoms: list[str], at: int) -> int | None:
    """Where the run that would begin at ``at`` ends."""
    before = atoms[at - 1] if at else ""
    if before[-1:].isalnum() or at + 1 >= len(atoms) or _blank(atoms[at + 1]):
        return None
    for end in range(at + 2, len(atoms)):
        after = atoms[end + 1] if end + 1 < len(atoms) else ""
        word_goes_on = after[len(after) > 1 :][:1].isalnum()
        if atoms[end] == atoms[at] and not _blank(atoms[end - 1]) and not word_goes_on:
            return end
    return None


def _blank(atom: str) -> bool:
    return atom.isspace() or atom == ZERO_WIDTH


# --- Signal -----------------------------------------------------------------------------------------------------------

_SIGNAL_MARKS = {"BOLD": BOLD, "ITALIC": ITALIC, "STRIKETHROUGH": STRIKE, "MONOSPACE": CODE}


def signal(rendered: Rendered) -> Seen:
    length = len(rendered.text.encode("utf-16-le")) // 2
    marks = [0] * (length + 1)
    for style in rendered.styles:
        if style.start < 0 or style.length < 1 or style.start + style.length > length:
            raise Refused(f"a range outside of the text: {style}")
        for unit in range(style.start, style.start + style.length):
            marks[unit] |= _SIGNAL_MARKS[style.kind.value]
    shown: Seen = []
    at = 0
    for sign in rendered.text:
        shown += seen(sign, marks[at])
        at += 2 if ord(sign) > 0xFFFF else 1
    return shown


def signal_styled(text: str) -> Seen:
    """``*italic* **bold** ***both*** ~strike~ `mono```, and a backslash before one of the signs."""
    shown: Seen = []
    marks = 0
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and text[at + 1 : at + 2] in tuple("*~|`"):
            shown += seen(text[at + 1], marks)
            at += 2
            continue
        if sign == "`":
            marks ^= CODE
        elif sign == "~":
            marks ^= STRIKE
        elif sign == "*":
            count = len(text[at:]) - len(text[at:].lstrip("*"))
            if count > 3:
                raise Refused(f"{count} asterisks")
            marks ^= {1: ITALIC, 2: BOLD, 3: BOLD | ITALIC}[count]
            at += count - 1
        elif sign == "|" and text[at + 1 : at + 2] == "|":
            raise Refused("a spoiler")
        else:
            shown += seen(sign, marks)
        at += 1
    if marks:
        raise Refused("an open run")
    return shown


# --- HTML -------------------------------------------------------------------------------------------------------------

_HTML_MARKS = {"strong": BOLD, "em": ITALIC, "del": STRIKE, "code": CODE, "pre": CODE}
_MATRIX = {
    "del",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "p",
    "a",
    "ul",
    "ol",
    "sup",
    "sub",
    "li",
    "b",
    "i",
    "u",
    "strong",
    "em",
    "s",
    "code",
    "hr",
    "br",
    "div",
    "table",
}
_MATRIX |= {"thead", "tbody", "tr", "th", "td", "caption", "pre", "span", "img", "details", "summary"}
_VOID = {"br", "hr", "meta"}
_BLOCKS = {"p", "ul", "ol", "li", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "table", "hr"}


@dataclass
class Html(HTMLParser):
    """Every tag closed in its order, only known ones, none in the other's place, at most 100 deep."""

    known: set[str] = field(default_factory=lambda: set(_MATRIX))
    open: list[str] = field(default_factory=list)
    shown: Seen = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.known:
            raise Refused(f"<{tag}>")
        parent = self.open[-1] if self.open else ""
        if tag == "li" and parent not in ("ul", "ol"):
            raise Refused("an entry outside of a list")
        if parent in ("ul", "ol") and tag != "li":
            raise Refused(f"<{tag}> in a list")
        if tag in _BLOCKS and any(outer in ("p", "h1", "strong", "em", "del", "a", "code") for outer in self.open):
            raise Refused(f"<{tag}> in {self.open}")
        if tag == "a" and "a" in self.open:
            raise Refused("a link in a link")
        if tag == "a" and (dict(attrs)["href"] or "").split(":")[0].lower() not in (
            "https",
            "http",
            "ftp",
            "mailto",
            "magnet",
            "tel",
        ):
            raise Refused(f"{attrs}")
        if tag not in _VOID:
            self.open.append(tag)
            if len(self.open) > 100:
                raise Refused("more than 100 deep")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise Refused(f"</{tag}> closes something else")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("ul", "ol"):
            raise Refused(f"{data!r} between entries")
        marks = 0
        for tag in self.open:
            marks |= _HTML_MARKS.get(tag, BOLD if tag in ("h1", "h2", "h3", "h4", "h5", "h6") else 0)
        self.shown += seen(data, marks)


def html(text: str, known: Iterable[str] = ()) -> Seen:
    reader = Html(known={*_MATRIX, *known})
    reader.feed(text)
    reader.close()
    if reader.open:
        raise Refused(f"not closed: {reader.open}")
    return reader.shown


# --- Terminal ---------------------------------------------------------------------------------------------------------

_SGR = re.compile(r"\x1b\[([0-9;]+)m")
_ON = {"1": BOLD, "3": ITALIC, "9": STRIKE, "36": CODE}
_OFF = {"22": BOLD, "23": ITALIC, "29": STRIKE, "39": CODE}


def terminal(text: str) -> Seen:
    shown: Seen = []
    marks = 0
    for place, part in enumerate(_SGR.split(text)):
        if place % 2:
            for code in part.split(";"):
                marks = marks | _ON[code] if code in _ON else marks & ~_OFF[code]
        elif re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", part):
            raise Refused(f"a control sign: {part!r}")
        else:
            shown += seen(part, marks)
    if marks:
        raise Refused("not switched off")
    return shown
