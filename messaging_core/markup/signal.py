"""Signal: plain text with ranges, or the marks of signal-cli-rest-api's ``text_mode: styled``.

Ranges (``textStyle`` of the JSON-RPC interface) are exact. The styled mode reads ``*italic* **bold** ~strike~
||spoiler|| `mono``` and a backslash before one of these signs. Signal has no hidden links, headings or lists: they
are typed.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered, Style, StyleKind
from messaging_core.markup.layout import Look, adapt, join, place, styled
from messaging_core.markup.runs import ZERO_WIDTH, Hand
from messaging_core.markup.runs import write as write_runs
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Block, Code, Link, Span
from messaging_core.markup.units import utf16

_LOOK = Look()
_KINDS = (
    (BOLD, StyleKind.BOLD),
    (ITALIC, StyleKind.ITALIC),
    (STRIKE, StyleKind.STRIKETHROUGH),
    (CODE, StyleKind.MONOSPACE),
)


def _write(block: Block, before: Block | None, _mentions: bool) -> Piece:
    at = place(_LOOK, block, before)
    first, spans = styled(block, at)
    text = first + "".join([span.text for span in spans])
    return Piece(block, at.gap, at.shown_gap, text, text, styles=_styles(spans, utf16(first)))


def _styles(spans: Sequence[Span], start: int) -> tuple[Style, ...]:
    """The ranges of ``spans``, of which the first begins at ``start``; what goes on over several spans is one range."""
    done: list[Style] = []
    begun: dict[StyleKind, int] = {}
    for span in (*spans, Span("")):
        for mark, kind in _KINDS:
            if span.marks & mark:
                begun.setdefault(kind, start)
            elif kind in begun:
                since = begun.pop(kind)
                done.append(Style(since, start - since, kind))
        start += utf16(span.text)
    return tuple(sorted(done, key=lambda style: (style.start, -style.length)))


def _bind(pieces: Sequence[Piece]) -> Rendered:
    styles: list[Style] = []
    at = 0
    for place_, piece in enumerate(pieces):
        at += utf16(piece.gap) if place_ else 0
        styles += [replace(style, start=style.start + at) for style in piece.styles]
        at += utf16(piece.text)
    return Rendered(*join(pieces), styles=tuple(styles))


SIGNAL = Dialect("signal", adapt(), _write, _bind)


# --- Styled mode ------------------------------------------------------------------------------------------------------

_SIGNS = re.compile(r"[*~|`]")


def escape(text: str, _line_start: bool = False, _mentions: bool = False) -> str:
    # A backslash at the end would escape the sign of ours that follows.
    return _SIGNS.sub(r"\\\g<0>", text) + (ZERO_WIDTH if text.endswith("\\") else "")


def _code(text: str) -> str:
    return f"`{escape(text)}`"


def _block(code: Code) -> str:
    return _code(code.text)


def _link(text: str, link: Link, _ends: bool) -> str | None:
    """An address is written like any other text."""
    return None if link.bare else text


_HAND = Hand(
    look=_LOOK,
    signs=((STRIKE, "~"), (BOLD, "**"), (ITALIC, "*")),
    escape=escape,
    code=_code,
    link=_link,
    block=_block,
)


def _bind_styled(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


SIGNAL_STYLED = Dialect("signal-styled", adapt(), partial(write_runs, _HAND), _bind_styled)
