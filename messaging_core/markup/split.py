"""A document whole, in parts, or cut short: always the rendered result is measured, and the tree is cut, not the text.

Blocks are written one by one and bound while they fit. What does not fit into a part of its own is cut: between
lines, else between words, else between grapheme clusters; never inside a link unless the link alone is too long. The
rest of a cut block is a block again, with the same language, list entry and styles, so nothing has to be closed or
opened anew.
"""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

import regex

from messaging_core.markup.blank import is_blank
from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.tables import flat
from messaging_core.markup.tree import CODE, Block, Code, Document, Prose, Span, Table

ELLIPSIS = "…"


def render(document: Document, dialect: Dialect, *, mentions: bool = False) -> Rendered:
    """The whole ``document``. ``mentions``: whether names in it may ring."""
    pieces = _written(dialect.prepare(document).blocks, dialect, mentions)
    return _bound(pieces, document, dialect)


def split(
    document: Document,
    dialect: Dialect,
    lengths: tuple[Length, ...],
    *,
    first: tuple[Length, ...] | None = None,
    mentions: bool = False,
) -> tuple[Rendered, ...]:
    """``document`` in as few parts as fit ``lengths`` each, in order; the first part also ``first`` (a caption's
    limits).

    No part is blank: a document in which there is nothing to see has none. Limits under 100 may be exceeded by a
    single sign and what stands around it.
    """
    cutter = _Cutter(dialect, lengths, mentions)
    return tuple(rendered for _, rendered in cutter.shown(document, lengths if first is None else first))


def truncate(document: Document, dialect: Dialect, lengths: tuple[Length, ...], *, mentions: bool = False) -> Rendered:
    """``document`` whole if it fits, else its beginning with an ellipsis."""
    parts = _Cutter(dialect, lengths, mentions).shown(document, lengths)
    nothing: tuple[list[Piece], Rendered] = ([], _bound((), document, dialect))
    _, whole = next(parts, nothing)
    if next(parts, None) is None:
        return whole
    room = tuple(replace(length, limit=max(1, length.limit - _ELLIPSIS_ROOM[length.of])) for length in lengths)
    head, _ = next(_Cutter(dialect, room, mentions).shown(document, room), nothing)
    blocks = [piece.block for piece in head]
    ending = _trailing_off(blocks[-1])
    if ending is None:
        ending = Prose((Span(ELLIPSIS),))
    else:
        blocks.pop()
        head.pop()
    last = dialect.write(ending, blocks[-1] if blocks else None, mentions)
    return _bound((*head, last), document, dialect)


def _bound(pieces: Sequence[Piece], document: Document, dialect: Dialect) -> Rendered:
    rendered = dialect.bind(pieces)
    # A verbatim text has nothing to format, and HTML would lose its white space.
    return replace(rendered, formatted=None) if document.verbatim else rendered


_ELLIPSIS_ROOM = {Of.VISIBLE: 8, Of.RAW: 8, Of.JSON: 24}
"""An ellipsis in the largest of units, with what stands around it."""


def _trailing_off(block: Block) -> Block | None:
    """``block`` with an ellipsis at its end; None if it needs one of its own behind it."""
    if isinstance(block, Code):
        return block._replace(text=block.text.rstrip() + ELLIPSIS)
    if isinstance(block, Prose) and block.spans:
        last = block.spans[-1]
        if last.link is None and not last.marks & CODE:
            return block._replace(spans=(*block.spans[:-1], last._replace(text=last.text.rstrip() + ELLIPSIS)))
        return block._replace(spans=(*block.spans, Span(ELLIPSIS)))
    return None


@dataclass(slots=True)
class _Part:
    """A part that is being filled, and what of each limit is taken."""

    limits: tuple[Length, ...]
    pieces: list[Piece]
    used: list[int]

    @classmethod
    def of(cls, limits: tuple[Length, ...], pieces: Sequence[Piece] = ()) -> "_Part":
        part = cls(limits, [], [0] * len(limits))
        for piece in pieces:
            part.add(piece)
        return part

    def costs(self, piece: Piece) -> list[int]:
        """The most that ``piece`` adds to this part, by each limit."""
        follows = bool(self.pieces)
        return [_cost(piece, length, follows) for length in self.limits]

    def excess(self, piece: Piece) -> int:
        """By how much ``piece`` goes over the limits, the worst of them; at most 0 if it fits."""
        return max(
            used + cost - length.limit
            for used, cost, length in zip(self.used, self.costs(piece), self.limits, strict=True)
        )

    def take(self, piece: Piece) -> bool:
        """Add ``piece`` if it fits."""
        used: list[int] = []
        follows = bool(self.pieces)
        for one, length in zip(self.used, self.limits, strict=True):
            size = one + _cost(piece, length, follows)
            if size > length.limit:
                return False
            used.append(size)
        self.used = used
        self.pieces.append(piece)
        return True

    def room(self) -> int:
        """So many signs at most go in: each takes at least one of every unit that measures text."""
        return min(
            length.limit - used
            for used, length in zip(self.used, self.limits, strict=True)
            if length.unit is not Unit.STRETCHES
        )

    def worth_filling(self) -> bool:
        return all(
            4 * (length.limit - used) >= length.limit for used, length in zip(self.used, self.limits, strict=True)
        )

    def add(self, piece: Piece) -> None:
        self.used = [used + cost for used, cost in zip(self.used, self.costs(piece), strict=True)]
        self.pieces.append(piece)

    def headings_at_end(self) -> list[Piece]:
        """Headings that would stand alone at the end, without what they are the heading of."""
        count = 0
        while count < len(self.pieces) and _is_heading(self.pieces[-1 - count].block):
            count += 1
        return self.pieces[len(self.pieces) - count :] if 0 < count < len(self.pieces) else []


def _is_heading(block: Block) -> bool:
    return isinstance(block, Prose) and block.heading > 0


def _cost(piece: Piece, length: Length, follows: bool) -> int:
    size = length.size_of(piece.text, piece.visible, piece.html)
    if follows:
        size += length.size_of(piece.gap, piece.shown_gap, None)
    if not piece.around or length.of is Of.VISIBLE or (length.of is Of.RAW and piece.html is not None):
        return size
    return size + (1 if length.unit is Unit.STRETCHES else piece.around)


_SHARE = {Of.RAW: 3, Of.JSON: 6}
"""What part of a limit an address may take: of JSON it takes two, once in each text."""


class _Cutter:
    """Fills parts. ``lengths``: what every part must keep."""

    def __init__(self, dialect: Dialect, lengths: tuple[Length, ...], mentions: bool) -> None:
        self.dialect = dialect
        self.lengths = lengths
        self.mentions = mentions

    def shown(self, document: Document, first: tuple[Length, ...]) -> Iterator[tuple[list[Piece], Rendered]]:
        """The parts in which there is something to see, as pieces and bound."""
        for pieces in self.parts(document, first):
            rendered = _bound(pieces, document, self.dialect)
            if not is_blank(rendered.visible):
                yield pieces, rendered

    def parts(self, document: Document, first: tuple[Length, ...]) -> Iterator[list[Piece]]:
        """``first``: what the first part must keep instead."""
        part = _Part.of(first)
        before: Block | None = None
        for block in self.dialect.prepare(document).blocks:
            if part.take(self.dialect.write(block, before, self.mentions)):
                before = block
                continue
            rest = _Rest(block)
            while True:
                whole = self.write(rest, before) if rest.size() <= part.room() else None
                if whole is not None and part.take(whole):
                    before = whole.block
                    break
                if part.pieces and (not part.worth_filling() or self.fits_alone(rest, before)):
                    carried = part.headings_at_end()
                    yield part.pieces[: len(part.pieces) - len(carried)]
                    part = _Part.of(self.lengths, carried)
                    continue
                rest = rest.cuttable(self.longest_address(part.limits))
                head = self.head(rest, before, part)
                if head is not None:
                    part.add(head)
                    before = head.block
                yield part.pieces
                part = _Part.of(self.lengths)
                if rest.size() == 0:
                    break
        if part.pieces:
            yield part.pieces

    def write(self, rest: "_Rest", before: Block | None) -> Piece:
        return self.dialect.write(rest.whole(), before, self.mentions)

    def fits_alone(self, rest: "_Rest", before: Block | None) -> bool:
        empty = _Part.of(self.lengths)
        return rest.size() <= empty.room() and empty.excess(self.write(rest, before)) <= 0

    def longest_address(self, limits: tuple[Length, ...]) -> int:
        """A longer address is written out and may be cut: hidden, it would leave no room for its label."""
        shares = [
            length.limit // _SHARE[length.of]
            for length in (*limits, *self.lengths)
            if length.of in _SHARE and length.unit is not Unit.STRETCHES
        ]
        return min(shares, default=sys.maxsize)

    def head(self, rest: "_Rest", before: Block | None, part: _Part) -> Piece | None:
        """Take from ``rest`` what still fits into ``part``: nothing, if it is not worth it and the part holds
        something already.
        """
        most = self.fitting(rest, before, part)
        if most == 0 and part.pieces:
            return None
        end, after = rest.cut_before(max(1, most))
        piece = self.dialect.write(rest.part(end), before, self.mentions)
        rest.start = after
        return piece

    def fitting(self, rest: "_Rest", before: Block | None, part: _Part) -> int:
        """How many signs of ``rest`` fit into ``part``, by trying."""

        def over(count: int) -> int:
            return part.excess(self.dialect.write(rest.part(rest.start + count), before, self.mentions))

        high = min(rest.size(), part.room())
        if high <= 0:
            return 0
        excess = over(high)
        if excess <= 0:
            return high
        low = max(0, high - excess)  # leaving out a sign saves at least one, if text is what goes over
        while low and over(low) > 0:
            low //= 2
        while high - low > 1 + low // 256:
            middle = (low + high) // 2
            if over(middle) <= 0:
                low = middle
            else:
                high = middle
        return low


class _Rest:
    """What is left of a block: its text from ``start`` on."""

    __slots__ = ("block", "start", "starts", "text")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.start = 0
        self.starts: list[int] = []
        self.text = ""

    def size(self) -> int:
        """Signs left, at most; exact once it is being cut."""
        if self.text:
            return len(self.text) - self.start
        block = self.block
        if isinstance(block, Prose):
            return sum([len(span.text) for span in block.spans])
        if isinstance(block, Code):
            return len(block.text)
        return (
            0
            if not isinstance(block, Table)
            else sum(len(span.text) for row in block.rows for cell in row for span in cell)
        )

    def cuttable(self, longest: int) -> "_Rest":
        """The same in a form that can be cut: tables as aligned text, addresses over ``longest`` written out."""
        if self.text:
            return self
        block = flat(self.block) if isinstance(self.block, Table) else self.block
        if isinstance(block, Prose):
            block = _with_long_addresses_out(block, longest)
            self.text = "".join([span.text for span in block.spans])
            self.starts = list(accumulate((len(span.text) for span in block.spans), initial=0))
        elif isinstance(block, Code):
            self.text = block.text
        self.block = block
        return self

    def whole(self) -> Block:
        return self.part(len(self.text)) if self.start else self.block

    def part(self, end: int) -> Block:
        """The block from ``start`` to ``end``."""
        block = self.block
        if isinstance(block, Code):
            return block._replace(text=self.text[self.start : end])
        if not isinstance(block, Prose):
            return block
        first = bisect_right(self.starts, self.start) - 1
        last = bisect_left(self.starts, end, lo=first)
        spans = list(block.spans[first:last])
        if spans:
            tail = spans[-1]
            spans[-1] = tail._replace(text=tail.text[: end - self.starts[last - 1]])
            head = spans[0]
            spans[0] = head._replace(text=head.text[self.start - self.starts[first] :])
        return block._replace(spans=tuple(spans))

    def cut_before(self, most: int) -> tuple[int, int]:
        """Where to end, and where to go on: at most ``most`` signs from ``start``, white space between left out."""
        if self.start + most >= len(self.text):
            return len(self.text), len(self.text)
        text = self.text[self.start : self.start + most + 1]
        place = text.rfind("\n\n", 2 * most // 3) if isinstance(self.block, Code) else 0
        if place <= 0:
            place = text.rfind("\n", most // 4)
        if place <= 0 and not (isinstance(self.block, Code) and self.block.table):
            place = next((found for found in _blanks_backwards(text) if found > most // 8), 0)
        if place > 0:
            place = self.outside_link(place)
        if place > 0 and text[place].isspace():
            return self.trimmed(self.start + place)
        if place <= 0:
            place = self.outside_link(_grapheme_end(self.text[self.start : self.start + most + 32], most))
        return self.trimmed(self.start + place)

    def outside_link(self, place: int) -> int:
        """``place`` itself, or the start of the link that it is in the middle of, unless the part would begin with
        that link.
        """
        if not isinstance(self.block, Prose):
            return place
        spans = self.block.spans
        at = self.start + place
        index = min(bisect_right(self.starts, at), len(spans)) - 1
        link = spans[index].link
        if link is None:
            return place
        while index and spans[index - 1].link == link:
            index -= 1
        begin = self.starts[index] - self.start
        return begin if 0 < begin < place else place

    def trimmed(self, place: int) -> tuple[int, int]:
        """``place``, before the white space that stands there and after it. In code only line ends are such."""
        end = after = place
        if isinstance(self.block, Code):
            while end > self.start + 1 and self.text[end - 1] == "\n":
                end -= 1
            while self.text[after : after + 1] == "\n":
                after += 1
            return end, after
        while end > self.start + 1 and self.text[end - 1].isspace():
            end -= 1
        while after < len(self.text) and self.text[after] == "\n":
            after += 1
        if after == place:
            while after < len(self.text) and self.text[after].isspace():
                after += 1
        return end, after


def _blanks_backwards(text: str) -> Iterator[int]:
    """Where ``text`` has white space that no combining sign or joiner holds on to, the last first."""
    for place in range(len(text) - 2, 0, -1):
        if text[place].isspace() and text[place] != "\xa0" and not _CLINGING.match(text, place + 1):
            yield place


_CLINGING = regex.compile(r"[\p{M}\u200d]")
_GRAPHEME = regex.compile(r"\X")


def _grapheme_end(text: str, most: int) -> int:
    """The last end of a grapheme cluster within ``most`` signs; ``most`` where the first cluster is longer."""
    end = 0
    for match in _GRAPHEME.finditer(text):
        if match.end() > most:
            break
        end = match.end()
    return end or most


def _with_long_addresses_out(block: Prose, longest: int) -> Prose:
    if not any(span.link is not None and len(span.link.url) > longest for span in block.spans):
        return block
    spans: list[Span] = []
    for link, group in groupby(block.spans, lambda span: span.link):
        if link is None or len(link.url) <= longest:
            spans += group
        else:
            spans += [Span(span.text, span.marks) for span in group]
            spans += () if link.bare else (Span(f" ({link.url})"),)
    return block._replace(spans=tuple(spans))


def _written(blocks: Sequence[Block], dialect: Dialect, mentions: bool) -> list[Piece]:
    before: tuple[Block | None, ...] = (None, *blocks)
    return [dialect.write(block, earlier, mentions) for block, earlier in zip(blocks, before, strict=False)]
