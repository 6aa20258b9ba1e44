"""The tree as HTML, for what takes it beside a plain text: Matrix and mail.

Each block's text is written with its plain form beside it; binding puts lists and quotes around them. A part that
goes on in the middle of a list entry shows the rest of that entry outside of the list (it would get a second number),
and the list then goes on with its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

from messaging_core.markup import plain
from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import CHECKED_BOX, OPEN_BOX, adapt, common, exposed, join
from messaging_core.markup.links import Hides, nothing
from messaging_core.markup.nesting import Tags, nest
from messaging_core.markup.tables import flat
from messaging_core.markup.tree import Block, Code, Item, Link, Path, Prose, Quote, Span, Table


@dataclass(frozen=True, slots=True)
class Page:
    """What differs between takers of HTML. ``table``, ``quote``: attributes of these tags. ``around``: what goes
    around it all.
    """

    hides: Hides
    tables: bool
    table: str = ""
    quote: str = ""
    around: tuple[str, str] = ("", "")


def dialect(name: str, page: Page) -> Dialect:
    """The dialect that shows HTML as ``page`` says, with plain text beside it."""
    tags = Tags.named("strong", "em", "del", "code", partial(_anchor, page))
    return Dialect(name, adapt(page.hides, tables=not page.tables), partial(_write, page, tags), partial(_bind, page))


def _anchor(page: Page, link: Link) -> str:
    return f'<a href="{escape(link.url)}">' if page.hides("", link.url) else ""


# --- One block --------------------------------------------------------------------------------------------------------


def _write(page: Page, tags: Tags, block: Block, before: Block | None, mentions: bool) -> Piece:
    text = plain.write(_flat(block), before, mentions)
    begun = common(before.path, block.path) if before is not None else 0
    around = sum(
        _ITEM_ROOM if isinstance(container, Item) else _QUOTE_ROOM + len(page.quote) for container in block.path
    )
    return text._replace(
        block=block, html=_boxes(block.path[begun:]) + _html(page, tags, block), begun=begun, around=around
    )


# An opening tag for each container, and "<p></p>" where an entry goes on outside of its list.
_ITEM_ROOM = len('<ol start=\\"123456789\\"></ol><li></li>')
_QUOTE_ROOM = len("<blockquote></blockquote>")


def _flat(block: Block) -> Block:
    if isinstance(block, Table):
        return flat(block)
    return exposed(block, nothing) if isinstance(block, Prose) else block


def _boxes(begins: Path) -> str:
    return "".join(
        f"{CHECKED_BOX if container.checked else OPEN_BOX} "
        for container in begins
        if isinstance(container, Item) and container.checked is not None
    )


def _html(page: Page, tags: Tags, block: Block) -> str:
    if isinstance(block, Prose):
        inner = _inline(block.spans, tags)
        if block.heading:
            return f"<h{block.heading}>{inner}</h{block.heading}>"
        return inner if block.tight and block.path else f"<p>{inner}</p>"
    if isinstance(block, Code):
        language = f' class="language-{escape(block.language)}"' if block.language else ""
        return f"<pre><code{language}>{escape(block.text)}\n</code></pre>"
    if isinstance(block, Table):
        return _table(page, tags, block)
    return "<hr>"


def _inline(spans: Sequence[Span], tags: Tags) -> str:
    return nest(spans, tags, escape).replace("\n", "<br>")


def _table(page: Page, tags: Tags, table: Table) -> str:
    sides = [f' style="text-align:{align.lower()}"' if align != "None" else "" for align in table.aligns]
    head, *rows = (
        "<tr>"
        + "".join(f"<{kind}{side}>{_inline(cell, tags)}</{kind}>" for side, cell in zip(sides, row, strict=True))
        + "</tr>"
        for kind, row in zip(("th", *["td"] * len(table.rows)), table.rows, strict=False)
    )
    return f"<table{page.table}><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


# --- Blocks in lists and quotes ---------------------------------------------------------------------------------------


def _bind(page: Page, pieces: Sequence[Piece]) -> Rendered:
    text, visible = join(pieces)
    out: list[str] = [page.around[0]]
    inside: Path = ()
    earlier: Block | None = None
    listed: list[
        bool
    ] = []  # for each container: whether it has tags; an entry that goes on from an earlier part has none
    for piece in pieces:
        path = piece.block.path
        shared = common(inside, path)
        sibling = _siblings(inside, path, shared) and listed[shared]
        for depth in reversed(range(shared + sibling, len(inside))):
            out.append(_closing(inside[depth]) if listed[depth] else "")
        del listed[shared + sibling :]
        if sibling:
            out.append("</li><li>")
        for depth in range(shared + sibling, len(path)):
            container = path[depth]
            begins = isinstance(container, Quote) or depth >= piece.begun
            listed.append(begins)
            if begins:
                out.append(_opening(container, page))
        out.append(_spaced(piece, earlier, listed))
        inside, earlier = path, piece.block
    out += [_closing(container) for container, has in zip(reversed(inside), reversed(listed), strict=True) if has]
    return Rendered(text, visible, "".join((*out, page.around[1])))


def _spaced(piece: Piece, earlier: Block | None, listed: list[bool]) -> str:
    """The HTML of ``piece``, kept apart from what it would otherwise run together with."""
    html = piece.html or ""
    if not (isinstance(piece.block, Prose) and piece.block.tight and piece.block.path):
        return html
    if not listed[-1]:
        return f"<p>{html}</p>"
    follows = isinstance(earlier, Prose) and earlier.tight and earlier.path == piece.block.path
    return f"<br>{html}" if follows else html


def _siblings(one: Path, other: Path, shared: int) -> bool:
    if shared >= len(one) or shared >= len(other):
        return False
    mine, theirs = one[shared], other[shared]
    return isinstance(mine, Item) and isinstance(theirs, Item) and mine.list == theirs.list


def _opening(container: Quote | Item, page: Page) -> str:
    if isinstance(container, Quote):
        return f"<blockquote{page.quote}>"
    if container.number is None:
        return "<ul><li>"
    return "<ol><li>" if container.number == 1 else f'<ol start="{container.number}"><li>'


def _closing(container: Quote | Item) -> str:
    if isinstance(container, Quote):
        return "</blockquote>"
    return "</li></ul>" if container.number is None else "</li></ol>"
