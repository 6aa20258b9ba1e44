"""The terminal: plain text, and the same with colours as its formatted alternative.

Escape sequences of the text itself are gone when it has been read; signs that turn the direction of writing are shown
by number, so that no text can look like another. https://no-color.org says when colours are shown; that is decided
where the stream is known.
"""

from collections.abc import Sequence
from dataclasses import replace

from messaging_core.markup.controls import show_direction
from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join, place, styled
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Block, Code, Document, Prose, Span

_LOOK = Look()
_SWITCHES = ((BOLD, "1", "22"), (ITALIC, "3", "23"), (STRIKE, "9", "29"), (CODE, "36", "39"))
_prepare = adapt()


def _harmless(document: Document) -> Document:
    prepared = _prepare(document)
    return replace(prepared, blocks=tuple(map(_without_direction, prepared.blocks)))


def _without_direction(block: Block) -> Block:
    if isinstance(block, Prose):
        if all(span.text.isascii() for span in block.spans):
            return block
        return block._replace(spans=tuple(span._replace(text=show_direction(span.text)) for span in block.spans))
    return block._replace(text=show_direction(block.text)) if isinstance(block, Code) else block


def _write(block: Block, before: Block | None, _mentions: bool) -> Piece:
    at = place(_LOOK, block, before)
    first, spans = styled(block, at)
    text = "".join([span.text for span in spans])
    return Piece(block, at.gap, at.shown_gap, first + text, first + text, html=first + _coloured(spans))


def _coloured(spans: Sequence[Span]) -> str:
    out: list[str] = []
    marks = 0
    for span in (*spans, Span("")):
        if span.marks != marks:
            off = [end for mark, _, end in _SWITCHES if marks & mark & ~span.marks]
            on = [begin for mark, begin, _ in _SWITCHES if span.marks & mark & ~marks]
            out.append(f"\x1b[{';'.join(off + on)}m")
            marks = span.marks
        out.append(span.text)
    return "".join(out)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    coloured = [part for place_, piece in enumerate(pieces) for part in (piece.gap if place_ else "", piece.html or "")]
    return Rendered(*join(pieces), formatted="".join(coloured))


TERMINAL = Dialect("terminal", _harmless, _write, _bind)
