"""A text as a small tree, and the one place that knows the Markdown parser.

The tree is kept flat: a document is a row of blocks, and each block names the containers (quotes, list items) that it
stands in. A text nested ten thousand deep is therefore no deeper for us than any other, a part of a document is again
a document, and no algorithm recurses. CommonMark with GFM's tables, strikethrough, task lists, alerts, footnotes and
bare addresses is read.

Simplified while reading, for every dialect alike: soft breaks are line breaks; comments are gone; ``<br>`` is a line
break, and ``<b> <i> <s> <code> <sup>`` and their like are styles where they are closed in the same block; all other
HTML is text. Containers deeper than ``DEEPEST`` add nothing more.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from pyromark import Markdown, Options

from messaging_core.markup.addresses import bare_addresses
from messaging_core.markup.controls import clean
from messaging_core.markup.mask import Mask

BOLD, ITALIC, STRIKE, CODE = 1, 2, 4, 8
"""Marks of a span; several at once are added up."""

DEEPEST = 24
"""Quotes and lists inside each other beyond this are shown at this depth: Matrix forbids tags over 100 deep, and no
screen shows more.
"""


# Tuples from here on: there are thousands of them, and a frozen dataclass takes four times as long to make and to
# compare.
class Link(NamedTuple):
    """Where a span leads. ``serial`` tells neighbours with one address apart. ``bare``: the text is the address
    itself.
    """

    url: str
    serial: int = 0
    bare: bool = False


class Span(NamedTuple):
    """A stretch of text of one look. ``marks``: ``BOLD | ITALIC | STRIKE | CODE`` added up. Line breaks are ``\\n``
    in ``text``.
    """

    text: str
    marks: int = 0
    link: Link | None = None


class Quote(NamedTuple):
    serial: int


class Item(NamedTuple):
    """Entry ``place`` of list ``list``, the first is 0. ``number``: as shown, in ordered lists. ``checked``: the state
    of its task box, if it has one.
    """

    list: int
    place: int
    number: int | None = None
    checked: bool | None = None


Path: TypeAlias = tuple[Quote | Item, ...]
"""The containers that a block stands in, outermost first."""


class Prose(NamedTuple):
    """A paragraph, or a heading of level ``heading`` (1-6). ``tight``: no blank line around it (an entry of a tight
    list).
    """

    spans: tuple[Span, ...]
    path: Path = ()
    heading: int = 0
    tight: bool = False


class Code(NamedTuple):
    """A code block, without its last line end. ``language``: the first word of its info string. ``table``: it is a
    table, aligned.
    """

    text: str
    language: str = ""
    path: Path = ()
    table: bool = False


Align: TypeAlias = Literal["None", "Left", "Center", "Right"]
Cell: TypeAlias = tuple[Span, ...]


class Table(NamedTuple):
    """``rows``: the first is the head. Every row has as many cells as ``aligns``."""

    aligns: tuple[Align, ...]
    rows: tuple[tuple[Cell, ...], ...]
    path: Path = ()


class Rule(NamedTuple):
    path: Path = ()


Block: TypeAlias = Prose | Code | Table | Rule


@dataclass(frozen=True, slots=True)
class Document:
    """A text. ``verbatim``: every sign shows as typed, there is no formatting at all."""

    blocks: tuple[Block, ...]
    verbatim: bool = False


def parse(text: str) -> Document:
    """Read ``text`` as Markdown. Any text can be read."""
    mask = Mask(clean(text))
    return Document(tuple(_Reader(mask).read(_MARKDOWN.events(mask.text))))


def verbatim(text: str) -> Document:
    """Take ``text`` as it stands: no sign of it means anything."""
    text = clean(text)
    reader = _Reader(Mask(""))
    reader.buffer.append(text)
    reader.flush()
    return Document((Prose(tuple(reader.spans)),) if text else (), verbatim=True)


def with_addresses(text: str, marks: int = 0) -> list[Span]:
    """``text`` with the bare addresses in it as links."""
    spans: list[Span] = []
    at = 0
    for start, end in bare_addresses(text) if "://" in text else ():
        address = text[start:end]
        if "://" not in address:
            continue
        if start > at:
            spans.append(Span(text[at:start], marks))
        spans.append(Span(address, marks, Link(address, bare=True)))
        at = end
    if at < len(text):
        spans.append(Span(text[at:], marks))
    return spans


# --- Reading the parser's events --------------------------------------------------------------------------------------

_MARKDOWN = Markdown(
    options=Options.ENABLE_TABLES
    | Options.ENABLE_STRIKETHROUGH
    | Options.ENABLE_TASKLISTS
    | Options.ENABLE_FOOTNOTES
    | Options.ENABLE_GFM
)

_STYLES = {"Strong": BOLD, "Emphasis": ITALIC, "Strikethrough": STRIKE}
_HTML_STYLES = {
    "b": BOLD,
    "strong": BOLD,
    "i": ITALIC,
    "em": ITALIC,
    "s": STRIKE,
    "del": STRIKE,
    "strike": STRIKE,
    "code": CODE,
    "kbd": CODE,
    "mark": BOLD,
    "u": 0,
    "ins": 0,
    "sup": 0,
    "sub": 0,
}
_SCRIPTS = {
    "sup": (
        "^",
        str.maketrans(
            "0123456789+-=()n",
            "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207c\u207d\u207e\u207f",
        ),
    ),
    "sub": (
        "_",
        str.maketrans(
            "0123456789+-=()",
            "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089\u208a\u208b\u208c\u208d\u208e",
        ),
    ),
}
"""What stands for text above or below the line where there is no sign of that kind for all of it; and those signs."""
_HTML_OPEN = 8
"""So many unclosed HTML styles are remembered; each closing one looks at them all."""


class _Reader:
    """Builds blocks from events. What is open is in the fields; what is done is in ``blocks``."""

    def __init__(self, mask: Mask) -> None:
        self.unmask = mask.unmask if mask.used else None
        self.blocks: list[Block] = []
        self.path: Path = ()
        self.paths: list[Path] = []
        self.lists: list[list[Any]] = []  # [serial, first number or None, entries so far]
        self.serial = 0
        self.buffer: list[str] = []
        self.spans: list[Span] = []
        self.marks = 0
        self.counts = {BOLD: 0, ITALIC: 0, STRIKE: 0}  # how many of each are open
        self.link: Link | None = None
        self.links: list[tuple[Link | None, int]] = []
        self.html: list[tuple[str, int]] = []
        self.tight = True
        self.language = ""
        self.level = 0
        self.note = ""
        self.rows: list[tuple[Cell, ...]] = []
        self.cells: list[Cell] = []
        self.aligns: tuple[Align, ...] = ()
        self.entered: list[int] = []  # for each open container: how many blocks there were before it

    def read(self, events: Iterable[Any]) -> list[Block]:
        unmask = self.unmask
        buffer = self.buffer
        for event in events:
            if type(event) is str:
                if event == "Rule":
                    self.end_prose()
                    self.blocks.append(Rule(self.path))
                else:
                    buffer.append("\n")
                continue
            kind, value = event.popitem()
            if kind == "Text":
                buffer.append(unmask(value) if unmask else value)
            elif kind == "Start":
                if type(value) is str:
                    style = _STYLES.get(value)
                    if style is not None:
                        self.begin_style(style)
                    else:
                        self.start(value, None)
                else:
                    self.start(*value.popitem())
            elif kind == "End":
                if type(value) is str:
                    style = _STYLES.get(value)
                    if style is not None:
                        self.end_style(style)
                    else:
                        self.end(value)
                else:
                    self.end(value.popitem()[0])
            elif kind == "Code":
                self.flush()
                self.spans.append(Span(unmask(value) if unmask else value, self.marks | CODE, self.link))
            elif kind == "InlineHtml":
                self.inline_html(unmask(value) if unmask else value)
            elif kind == "Html":
                buffer.append(unmask(value) if unmask else value)
            elif kind == "TaskListMarker":
                top = self.path[-1] if self.path else None
                if isinstance(top, Item) and len(self.paths) <= DEEPEST:
                    self.path = (*self.path[:-1], top._replace(checked=value))
                else:
                    buffer.append("\u2611 " if value else "\u2610 ")
            elif kind == "FootnoteReference":
                buffer.append(f"[{unmask(value) if unmask else value}]")
        self.end_prose()
        return self.blocks

    # Inline

    def begin_style(self, style: int) -> None:
        if not self.counts[style]:
            self.flush()
            self.marks |= style
        self.counts[style] += 1

    def end_style(self, style: int) -> None:
        self.counts[style] -= 1
        if not self.counts[style]:
            self.flush()
            self.marks &= ~style

    def flush(self) -> None:
        """Close the span that is being collected; bare addresses in it become links."""
        if not self.buffer:
            return
        text = "".join(self.buffer)
        self.buffer.clear()
        if self.link is None and "://" in text:
            self.spans += with_addresses(text, self.marks)
        elif text:
            self.spans.append(Span(text, self.marks, self.link))

    def inline_html(self, tag: str) -> None:
        if tag.startswith("<!--"):
            return
        name = tag.strip("</ \t\n>").split(maxsplit=1)[0].lower() if len(tag) < 200 else ""
        if name == "br":
            self.buffer.append("\n")
        elif name not in _HTML_STYLES:
            self.buffer.append(tag)
        elif tag.startswith("</"):
            self.close_html(name, tag)
        else:
            self.flush()
            self.html = [*self.html[1 - _HTML_OPEN :], (name, len(self.spans))]
            self.spans.append(Span(tag, self.marks, self.link))

    def close_html(self, name: str, tag: str) -> None:
        """Turn the text since the opening tag into styled text, and the tag itself into nothing."""
        opened = next((place for place in reversed(range(len(self.html))) if self.html[place][0] == name), None)
        if opened is None:
            self.buffer.append(tag)
            return
        self.flush()
        at = self.html[opened][1]
        del self.html[opened:]
        mark = _HTML_STYLES[name]
        inside = [Span(span.text, span.marks | mark, span.link) for span in self.spans[at + 1 :]]
        if mark == CODE:  # an address in code is no link
            inside = [span._replace(link=None) if span.link and span.link.bare else span for span in inside]
        self.spans[at:] = _off_the_line(name, inside) if name in _SCRIPTS else inside

    # Blocks

    def end_prose(self, heading: int = 0) -> None:
        """Close the paragraph that is being collected, if there is one."""
        if self.buffer:
            self.flush()
        if self.spans:
            self.blocks.append(Prose(tuple(self.spans), self.path, heading, self.tight and not heading))
            self.spans = []
        self.html.clear()

    def enter(self, container: Quote | Item) -> None:
        self.paths.append(self.path)
        self.entered.append(len(self.blocks))
        if len(self.path) < DEEPEST:
            self.path = (*self.path, container)

    def leave(self) -> None:
        self.end_prose()
        empty = len(self.blocks) == self.entered.pop()
        if empty and self.path is not self.paths[-1] and isinstance(self.path[-1], Item):
            self.blocks.append(Prose((), self.path, tight=True))  # an empty entry still has its sign
        self.path = self.paths.pop()

    def start(self, name: str, data: Any) -> None:
        if name == "Paragraph":
            self.end_prose()
            self.tight = False
            if self.note:
                self.buffer.append(self.note)
                self.note = ""
        elif name == "Link" or name == "Image":
            self.flush()
            self.links.append((self.link, len(self.spans)))
            if self.link is None or name == "Link":
                self.serial += 1
                url = data["dest_url"]
                email = data["link_type"] == "Email"
                url = self.unmask(url) if self.unmask else url
                self.link = Link(
                    f"mailto:{url}" if email else url, self.serial, data["link_type"] == "Autolink" or email
                )
        elif name == "Item":
            self.end_prose()
            serial, first, count = self.lists[-1]
            self.lists[-1][2] += 1
            self.enter(Item(serial, count, None if first is None else first + count))
        elif name == "List":
            self.end_prose()
            self.serial += 1
            self.lists.append([self.serial, data, 0])
        elif name == "CodeBlock":
            self.end_prose()
            info = "" if data == "Indented" else data["Fenced"]
            info = self.unmask(info) if self.unmask else info
            self.language = info.split(maxsplit=1)[0] if info.strip() else ""
        elif name == "BlockQuote":
            self.end_prose()
            self.serial += 1
            self.enter(Quote(self.serial))
            if data:
                self.blocks.append(Prose((Span(data, BOLD),), self.path, tight=True))
        elif name == "Table":
            self.end_prose()
            self.aligns = data
        elif name == "FootnoteDefinition":
            self.end_prose()
            self.note = f"[{self.unmask(data) if self.unmask else data}] "
        elif name == "Heading":
            self.end_prose()
            self.level = int(data["level"][1])
        elif name == "HtmlBlock":
            self.end_prose()
            self.tight = False

    def end(self, name: str) -> None:
        if name == "Paragraph":
            self.end_prose()
            self.tight = True
        elif name == "Link" or name == "Image":
            self.flush()
            outer, before = self.links.pop()
            if name == "Image" and len(self.spans) <= before and self.link is not None:
                self.spans.append(Span(self.link.url, self.marks, self.link))
            self.link = outer
        elif name == "Item" or name == "BlockQuote":
            self.leave()
        elif name == "List":
            self.lists.pop()
        elif name == "CodeBlock":
            text = "".join(self.buffer).removesuffix("\n")
            self.buffer.clear()
            if text.strip():
                self.blocks.append(Code(text, self.language, self.path))
        elif name == "Heading":
            self.end_prose(self.level)
        elif name == "TableCell":
            self.flush()
            self.html.clear()
            self.cells.append(tuple(self.spans))
            self.spans = []
        elif name in ("TableHead", "TableRow"):
            self.rows.append(tuple(self.cells))
            self.cells.clear()
        elif name == "Table":
            self.blocks.append(Table(self.aligns, tuple(self.rows), self.path))
            self.rows.clear()
        elif name == "HtmlBlock":
            text = _without_comments("".join(self.buffer)).strip()
            self.buffer[:] = [_BREAK.sub("\n", text)] if text else []
            self.end_prose()
            self.tight = True
        elif name == "FootnoteDefinition":
            if self.note:
                self.buffer.append(self.note)
                self.note = ""
            self.end_prose()


def _off_the_line(name: str, spans: list[Span]) -> list[Span]:
    sign, small = _SCRIPTS[name]
    text = "".join([span.text for span in spans])
    if all(ord(letter) in small for letter in text):
        return [span._replace(text=span.text.translate(small)) for span in spans]
    return [Span(sign), *spans] if len(text) == 1 else [Span(f"{sign}("), *spans, Span(")")]


_BREAK = re.compile(r"<br\s{0,9}/?>", re.IGNORECASE)


def _without_comments(text: str) -> str:
    if "<!--" not in text:
        return text
    kept: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return "".join((*kept, text[at:]))
