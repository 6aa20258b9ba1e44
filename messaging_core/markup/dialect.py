"""What a dialect is: how one platform writes the tree down.

A dialect works block by block. ``prepare`` turns what the platform lacks into what it has (a table becomes aligned
text, a link that cannot be hidden becomes ``label (address)``), ``write`` writes one block where it stands, ``bind``
puts written blocks together. Because a part of a message is nothing but some of its written blocks bound together,
markup never leaks from one part into the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from messaging_core.markup.tree import Block, Document


class StyleKind(Enum):
    """The styles that Signal knows; the value is its spelling in ``textStyle``."""

    BOLD = "BOLD"
    ITALIC = "ITALIC"
    STRIKETHROUGH = "STRIKETHROUGH"
    MONOSPACE = "MONOSPACE"
    SPOILER = "SPOILER"


@dataclass(frozen=True, slots=True, order=True)
class Style:
    """A styled stretch of a text. ``start``, ``length``: UTF-16 code units."""

    start: int
    length: int
    kind: StyleKind

    def __str__(self) -> str:
        return f"{self.start}:{self.length}:{self.kind.value}"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text as one platform takes it.

    ``text``: what goes into the text field, markup included. ``visible``: what the reader sees of it. ``formatted``:
    the alternative with markup where there is one (HTML for Matrix and mail, colours for a terminal). ``styles``:
    ranges over ``text`` (Signal).
    """

    text: str
    visible: str
    formatted: str | None = None
    styles: tuple[Style, ...] = ()


# A tuple, as it is made for every block and a frozen dataclass takes four times as long to make.
class Piece(NamedTuple):
    """One block, written. ``gap``, ``shown_gap``: what goes before it (raw, visible) unless it is the first of its
    part.

    ``html``: its formatted alternative, without the containers around it. ``styles``: with offsets into ``visible``.
    ``around``: the most signs that binding adds to ``text``, or to the HTML where there is some, besides ``gap``.
    """

    block: Block
    gap: str
    shown_gap: str
    text: str
    visible: str
    html: str | None = None
    styles: tuple[Style, ...] = ()
    around: int = 0
    begun: int = 0
    """So many of the block's containers began before it."""


class Write(Protocol):
    """Write ``block``, which follows ``before`` (None: nothing). ``mentions``: whether they may ring."""

    def __call__(self, block: Block, before: Block | None, mentions: bool, /) -> Piece: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One platform's markup, as the three steps that :mod:`messaging_core.markup.split` takes."""

    name: str
    prepare: Callable[[Document], Document]
    write: Write
    bind: Callable[[Sequence[Piece]], Rendered]
