"""Where a block stands: gaps, list signs, indentation and quote signs, for every dialect that writes lines of text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from messaging_core.markup.dialect import Piece
from messaging_core.markup.links import Hides, expose, nothing
from messaging_core.markup.tables import aligned, links_of
from messaging_core.markup.tree import BOLD, CODE, Block, Code, Document, Item, Path, Prose, Quote, Span, Table

RULE = "\u2500" * 10
OPEN_BOX, CHECKED_BOX = "\u2610", "\u2611"


@dataclass(frozen=True, slots=True)
class Look:
    """What a dialect shows where it has no markup. ``quote``: what stands before each quoted line, once for each
    level up to ``quotes``.

    ``quote_shown``: the reader sees those signs (else they are markup); code never has them, so that it can be copied.
    ``keep_bullet``: the list sign stays before a task box.
    """

    bullet: str = "• "
    quote: str = "> "
    quotes: int = 8
    quote_shown: bool = True
    keep_bullet: bool = False


class Place(NamedTuple):
    """What goes before a block (raw and as the reader sees it): ``gap`` unless it is the first of its part,
    ``first``, and ``rest`` at each further line.
    """

    gap: str
    shown_gap: str
    first: str
    rest: str
    shown_first: str
    shown_rest: str


def common(one: Path, other: Path) -> int:
    """How many containers both stand in."""
    if one is other:
        return len(one)
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine is not theirs and mine != theirs:
            break
        count += 1
    return count


_TOP = Place("\n\n", "\n\n", "", "", "", "")
_BELOW_HEADING = Place("\n", "\n", "", "", "", "")


def place(look: Look, block: Block, before: Block | None) -> Place:
    """Where ``block`` goes when it follows ``before``."""
    path = block.path
    # What stands outside of a quote or an entry is not below the heading in it.
    below_heading = isinstance(before, Prose) and before.heading > 0 and before.path == path[: len(before.path)]
    if not path:
        return _BELOW_HEADING if below_heading else _TOP
    earlier: Path = before.path if before is not None else ()
    shared = common(earlier, path)
    close = below_heading or (
        before is not None
        and (_tight(before) or _tight(block))
        and (shared == len(path) == len(earlier) or _same_list(earlier, path, shared))
        and not _next_loose_entry(block, earlier, shared)
    )
    plain_gap = "\n" if close else "\n\n"
    first, rest = _signs(look, path, shared)
    levels = _quotes(look, path) if look.quote and not isinstance(block, Code) else 0
    if not levels:
        return Place(plain_gap, plain_gap, first, rest, first, rest)
    sign = look.quote * levels
    joined = 0 if isinstance(before, Code) else _quotes(look, path[:shared])
    gap = "\n" if close else f"\n{look.quote * joined}\n"
    if look.quote_shown:
        return Place(gap, gap, sign + first, sign + rest, sign + first, sign + rest)
    return Place(gap, plain_gap, sign + first, sign + rest, first, rest)


def _quotes(look: Look, path: Path) -> int:
    return min(look.quotes, len([container for container in path if isinstance(container, Quote)]))


def _tight(block: Block) -> bool:
    return isinstance(block, Prose) and block.tight


def _same_list(one: Path, other: Path, shared: int) -> bool:
    """True if both stand in one list (whether or not in the same entry)."""
    for container in one[:shared]:
        if isinstance(container, Item):
            return True
    if shared < len(one) and shared < len(other):
        mine, theirs = one[shared], other[shared]
        return isinstance(mine, Item) and isinstance(theirs, Item) and mine.list == theirs.list
    return False


def _next_loose_entry(block: Block, earlier: Path, shared: int) -> bool:
    """True if ``block`` begins an entry after another of a loose list, whatever tight list ended the entry before."""
    return isinstance(block, Prose) and not block.tight and len(block.path) == shared + 1 <= len(earlier)


def _signs(look: Look, path: Path, shared: int) -> tuple[str, str]:
    """List signs of the entries that begin here, indentation for those that began before."""
    first = rest = ""
    for depth, container in enumerate(path):
        if isinstance(container, Quote):
            continue
        sign = look.bullet if container.number is None else f"{container.number}. "
        indent = " " * len(sign)
        if container.checked is not None:
            box = f"{CHECKED_BOX if container.checked else OPEN_BOX} "
            sign = sign + box if look.keep_bullet or container.number is not None else box
        first += indent if depth < shared else sign
        rest += indent
    return first, rest


def adapt(hides: Hides = nothing, *, tables: bool = True) -> Callable[[Document], Document]:
    """The ``prepare`` of a dialect: links written out that it cannot hide, tables aligned where ``tables``, with
    their links below, as aligned text has none.
    """

    def prepare(document: Document) -> Document:
        return Document(tuple(adapted(document.blocks)), document.verbatim)

    def adapted(blocks: Sequence[Block]) -> Iterator[Block]:
        for block in blocks:
            if isinstance(block, Prose):
                yield exposed(block, hides)
            elif tables and isinstance(block, Table):
                yield aligned(block)
                links = links_of(block)
                if links is not None:
                    yield exposed(links, hides)
            else:
                yield block

    return prepare


def exposed(block: Prose, hides: Hides) -> Prose:
    """``block`` with the links written out that ``hides`` does not allow to be hidden."""
    spans = expose(block.spans, hides)
    return block if spans is block.spans else block._replace(spans=spans)


def shown(block: Prose, at: Place) -> Sequence[Span]:
    """The spans of ``block`` as they are shown: a heading is bold, and each further line begins with what belongs
    there.
    """
    spans = bold(block.spans) if block.heading else block.spans
    if not at.rest:
        return spans
    return [
        Span(span.text.replace("\n", "\n" + at.rest), span.marks, span.link) if "\n" in span.text else span
        for span in spans
    ]


def styled(block: Block, at: Place) -> tuple[str, Sequence[Span]]:
    """What begins the block, and its text in spans: for a platform whose only marks are styles, or that has none."""
    if isinstance(block, Prose):
        return at.first, shown(block, at)
    if isinstance(block, Code):
        return heading_line(at.first), (Span(block.text, CODE),)
    return at.first, (Span(RULE),)


def bold(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    return tuple([Span(span.text, span.marks | BOLD, span.link) for span in spans])


def heading_line(sign: str) -> str:
    """The line for list signs that stand before something that needs lines of its own, such as a code block."""
    return sign.rstrip() + "\n" if sign.strip() else ""


def join(pieces: Sequence[Piece]) -> tuple[str, str]:
    """Raw and visible text of ``pieces``, one after the other."""
    raw: list[str] = []
    visible: list[str] = []
    for piece in pieces:
        if raw:
            raw.append(piece.gap)
            visible.append(piece.shown_gap)
        raw.append(piece.text)
        visible.append(piece.visible)
    return "".join(raw), "".join(visible)
