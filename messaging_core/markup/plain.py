"""Plain text: no markup at all, for platforms without any."""

from collections.abc import Sequence

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join, place, styled
from messaging_core.markup.tree import Block

LOOK = Look(bullet="- ")


def write(block: Block, before: Block | None, _mentions: bool) -> Piece:
    at = place(LOOK, block, before)
    first, spans = styled(block, at)
    text = first + "".join([span.text for span in spans])
    return Piece(block, at.gap, at.shown_gap, text, text)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    text, visible = join(pieces)
    return Rendered(text, visible)


PLAIN = Dialect("plain", adapt(), write, _bind)
