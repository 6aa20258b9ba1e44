"""Tables as aligned text, for everything that shows code in one width but no tables."""

import unicodedata
from collections.abc import Iterable
from itertools import chain, groupby, zip_longest
from operator import attrgetter
from typing import TypeAlias

import regex

from messaging_core.markup.addresses import shown_once
from messaging_core.markup.links import expose, nothing
from messaging_core.markup.tree import Align, Cell, Code, Link, Prose, Span, Table

_WIDEST = 60
"""A column is padded to at most this: one long cell must not push all others off the screen."""


def aligned(table: Table) -> Code:
    """``table`` as a code block: columns padded by what the signs take on a screen (East Asian ones two), a line
    below the head.
    """
    rows = [[_lines(cell) for cell in row] for row in table.rows]
    widths = [min(_WIDEST, max([size for cell in column for _, size in cell])) for column in zip(*rows, strict=True)]
    written = ["\n".join(_row(row, widths, table.aligns)) for row in rows]
    return Code(
        "\n".join((*written[:1], "-+-".join("-" * size for size in widths), *written[1:])), path=table.path, table=True
    )


def links_of(table: Table) -> Prose | None:
    """The labels in ``table`` behind which an address is hidden, each once, as a line of links; None without any."""
    found: dict[tuple[str, str], Link] = {}
    for cell in chain.from_iterable(table.rows):
        if all(span.link is None for span in cell):
            continue
        for link, spans in groupby(cell, attrgetter("link")):
            label = " ".join(text_of(spans).split())
            if link is not None and label and not shown_once(label, link.url):
                found.setdefault((label, link.url), link)
    between = Span(" \u00b7 ")
    line = [span for (label, _), link in found.items() for span in (between, Span(label, link=link))]
    return Prose(tuple(line[1:]), table.path) if line else None


def flat(table: Table) -> Code:
    """``table`` aligned, with its links and their addresses in the same text."""
    written, links = aligned(table), links_of(table)
    return (
        written
        if links is None
        else written._replace(text=f"{written.text}\n\n{text_of(expose(links.spans, nothing))}")
    )


def width(text: str) -> int:
    """Columns that ``text`` takes on a screen: East Asian signs and emoji take two.

    >>> width("ab"), width("漢字"), width("👨‍👩‍👧"), width("é")
    (2, 4, 2, 1)
    """
    return len(text) if text.isascii() else sum(map(_cluster_width, _CLUSTER.findall(text)))


_CLUSTER = regex.compile(r"\X")
_EMOJI_LOOK = "\ufe0f"


def _cluster_width(cluster: str) -> int:
    if _EMOJI_LOOK in cluster:
        return 2
    return max(map(_sign_width, cluster))


def _sign_width(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def text_of(spans: Iterable[Span]) -> str:
    return "".join([span.text for span in spans])


_Line: TypeAlias = tuple[str, int]
"""A line of a cell, and what it takes on a screen."""


def _lines(cell: Cell) -> list[_Line]:
    lines = [line.strip() for line in text_of(cell).split("\n")]
    return [(line, width(line)) for line in lines]


def _row(row: list[list[_Line]], widths: list[int], aligns: tuple[Align, ...]) -> list[str]:
    return [" | ".join(map(_padded, line, widths, aligns)).rstrip() for line in zip_longest(*row, fillvalue=("", 0))]


def _padded(line: _Line, size: int, align: Align) -> str:
    text, taken = line
    missing = max(0, size - taken)
    if align == "Right":
        return " " * missing + text
    if align == "Center":
        return " " * (missing // 2) + text + " " * (missing - missing // 2)
    return text + " " * missing
