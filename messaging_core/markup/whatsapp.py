"""WhatsApp's marks. No labels of links, no headings, and no escapes; see :mod:`runs` for what is done about signs.

https://faq.whatsapp.com/539178204879377
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from messaging_core.markup.addresses import scheme
from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, bold, join
from messaging_core.markup.runs import ZERO_WIDTH, Hand, without_escape, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Block, Code, Document, Link, Prose

_LIST_OR_QUOTE = re.compile(r"\s*(?:[>*-]|\d{1,9}\.)(?:\s|$)")


def escape(text: str, line_start: bool, _mentions: bool) -> str:
    return ZERO_WIDTH + text if line_start and _LIST_OR_QUOTE.match(text) else text


def code(text: str) -> str | None:
    return None if "`" in text else f"`{text}`"


def code_block(written: Code) -> str:
    return f"```\n{re.sub('``(?=`)', '``' + ZERO_WIDTH, written.text)}\n```"


def link(shown: str, target: Link, ends: bool) -> str | None:
    """A bare address of the web; a space ends it where nothing else would."""
    if "`" in shown or scheme(target.url) not in ("https", "http"):
        return None
    return shown if ends else f"{shown} "


_prepare = adapt()


def prepare(document: Document) -> Document:
    """Headings are bold; addresses have no marks, whose signs could be taken for a part of them."""
    prepared = _prepare(document)
    return replace(prepared, blocks=tuple(map(_prepared, prepared.blocks)))


def _prepared(block: Block) -> Block:
    block = without_escape(block)
    if not isinstance(block, Prose):
        return block
    spans = bold(block.spans) if block.heading else block.spans
    if any(span.link is not None for span in spans):
        spans = tuple(span if span.link is None else span._replace(marks=0) for span in spans)
    return block._replace(spans=spans) if spans is not block.spans else block


def _heading(_level: int) -> str | None:
    return ""  # bold already


_HAND = Hand(
    look=Look(bullet="- ", quotes=1, quote_shown=False, keep_bullet=True),
    signs=((STRIKE, "~"), (BOLD, "*"), (ITALIC, "_")),
    escape=escape,
    code=code,
    link=link,
    block=code_block,
    guarded="*_~`",
    words=True,
    heading=_heading,
)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


WHATSAPP = Dialect("whatsapp", prepare, partial(write, _HAND), _bind)
