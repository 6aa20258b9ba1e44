"""Plain text: no markup at all, for platforms without any."""

from collections.abc import Sequence

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import RULE, Look, adapt, heading_line, join, place, shown
from messaging_core.markup.tree import Block, Code, Prose

LOOK = Look(bullet="- ")


def write(block: Block, before: Block | None, _mentions: bool) -> Piece:
    at = place(LOOK, block, before)
    if isinstance(block, Prose):
        text = at.first + "".join([span.text for span in shown(block, at)])
    elif isinstance(block, Code):
        text = heading_line(at.first) + block.text
    else:
        text = at.first + RULE
    return Piece(block, at.gap, at.shown_gap, text, text)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    text, visible = join(pieces)
    return Rendered(text, visible)


PLAIN = Dialect("plain", adapt(), write, _bind)
