"""The units that platforms count text in."""

from enum import Enum


class Unit(Enum):
    """What one counts as."""

    CODE_POINTS = "characters"
    UTF16 = "UTF-16 units"
    BYTES = "bytes"
    STRETCHES = "formatted stretches"
    """Elements of HTML in which everything else is escaped: Telegram's entities."""


_CODE_POINTS, _BYTES, _STRETCHES = Unit.CODE_POINTS, Unit.BYTES, Unit.STRETCHES


def measure(text: str, unit: Unit) -> int:
    """The length of ``text`` in ``unit``.

    >>> [measure("a🎯", unit) for unit in (Unit.CODE_POINTS, Unit.UTF16, Unit.BYTES)]
    [2, 3, 5]
    """
    if unit is _CODE_POINTS or (unit is _BYTES and text.isascii()):
        return len(text)
    if unit is _BYTES:
        return len(text.encode("utf-8", "surrogatepass"))
    if unit is _STRETCHES:
        return text.count("</")
    return utf16(text)


def utf16(text: str) -> int:
    """The number of UTF-16 code units: signs above U+FFFF count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
