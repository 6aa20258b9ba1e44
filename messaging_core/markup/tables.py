"""Tables as aligned text, for everything that shows code in one width but no tables."""

from itertools import zip_longest

from wcwidth import wcswidth

from messaging_core.markup.tree import Align, Cell, Code, Table

_WIDEST = 60
"""A column is padded to at most this: one long cell must not push all others off the screen."""


def aligned(table: Table) -> Code:
    """``table`` as a code block: columns padded by what the signs take on a screen (East Asian ones two), a line below the head."""
    rows = [[_lines(cell) for cell in row] for row in table.rows]
    widths = [
        min(_WIDEST, max((width(line) for cell in column for line in cell), default=0))
        for column in zip_longest(*rows, fillvalue=[""])
    ]
    written = ["\n".join(_row(row, widths, table.aligns)) for row in rows]
    return Code("\n".join((*written[:1], "-+-".join("-" * size for size in widths), *written[1:])), path=table.path, table=True)


def width(text: str) -> int:
    """Columns that ``text`` takes on a screen."""
    if text.isascii():
        return len(text)
    size: int = wcswidth(text)
    return size if size >= 0 else len(text)


def text_of(cell: Cell) -> str:
    return "".join(span.text for span in cell)


def _lines(cell: Cell) -> list[str]:
    return [line.strip() for line in text_of(cell).split("\n")]


def _row(row: list[list[str]], widths: list[int], aligns: tuple[Align, ...]) -> list[str]:
    return [
        " | ".join(map(_padded, line, widths, aligns)).rstrip() for line in zip_longest(*row, fillvalue="")
    ]


def _padded(text: str, size: int, align: Align) -> str:
    missing = max(0, size - width(text))
    if align == "Right":
        return " " * missing + text
    if align == "Center":
        return " " * (missing // 2) + text + " " * (missing - missing // 2)
    return text + " " * missing
