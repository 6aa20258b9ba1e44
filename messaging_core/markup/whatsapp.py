"""WhatsApp's marks. No labels of links, no headings, and no escapes; see :mod:`runs` for what is done about signs.

https://faq.whatsapp.com/539178204879377
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join
from messaging_core.markup.runs import ZERO_WIDTH, Hand, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Block, Code, Document, Link, Prose

_LIST_OR_QUOTE = re.compile(r"\s*(?:[>*-]|\d{1,9}\.)(?:\s|$)")


def escape(text: str, line_start: bool, _mentions: bool) -> str:
    return ZERO_WIDTH + text if line_start and _LIST_OR_QUOTE.match(text) else text


def code(text: str) -> str | None:
    return None if "`" in text else f"`{text}`"


def code_block(written: Code) -> str:
    return f"```\n{re.sub('``(?=`)', '``' + ZERO_WIDTH, written.text)}\n```"


def link(shown: str, _target: Link, ends: bool) -> str | None:
    """A bare address; a space ends it where nothing else would."""
    return None if "`" in shown else shown if ends else f"{shown} "


_prepare = adapt()


def prepare(document: Document) -> Document:
    """No marks on addresses: their signs could be taken for a part of the address."""
    prepared = _prepare(document)
    return replace(prepared, blocks=tuple(map(_with_plain_addresses, prepared.blocks)))


def _with_plain_addresses(block: Block) -> Block:
    if not isinstance(block, Prose) or not any(span.link is not None for span in block.spans):
        return block
    return replace(block, spans=tuple(span if span.link is None else replace(span, marks=0) for span in block.spans))


_HAND = Hand(
    look=Look(bullet="- ", quotes=1, quote_shown=False, code_quoted=False, keep_bullet=True),
    signs=((STRIKE, "~"), (BOLD, "*"), (ITALIC, "_")),
    escape=escape,
    code=code,
    link=link,
    block=code_block,
    guarded="*_~`",
    words=True,
)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


WHATSAPP = Dialect("whatsapp", prepare, partial(write, _HAND), _bind)
