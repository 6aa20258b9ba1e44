"""How much of a rendered text a platform takes."""

import json
from dataclasses import dataclass
from enum import Enum

from messaging_core.markup.dialect import Rendered
from messaging_core.markup.units import Unit, measure


class Of(Enum):
    """What is counted of a rendered text."""

    VISIBLE = "visible"
    """What the reader sees, markup taken away."""
    RAW = "raw"
    """The text field as it is sent, markup included."""
    JSON = "json"
    """Both texts as they stand inside a JSON document: text and its HTML alternative, escapes counted."""


# Looking a member up in an enumeration takes longer than measuring a short text.
_VISIBLE, _RAW = Of.VISIBLE, Of.RAW
_CODE_POINTS, _STRETCHES = Unit.CODE_POINTS, Unit.STRETCHES


@dataclass(frozen=True, slots=True)
class Length:
    """At most ``limit`` ``unit`` of ``of``."""

    limit: int
    unit: Unit
    of: Of = Of.VISIBLE

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError("a limit is at least 1")

    def size(self, rendered: Rendered) -> int:
        """How much ``rendered`` takes of this limit."""
        return self.size_of(rendered.text, rendered.visible, rendered.formatted)

    def size_of(self, text: str, visible: str, formatted: str | None) -> int:
        """How much a text, raw, as it is seen and formatted, takes of this limit."""
        unit, of = self.unit, self.of
        if of is _VISIBLE:
            return len(visible) if unit is _CODE_POINTS else measure(visible, unit)
        if of is _RAW:
            no_markup = unit is _STRETCHES and text == visible
            return 0 if no_markup else measure(text, unit)
        return in_json(text, unit) + (in_json(formatted, unit) if formatted else 0)

    def holds(self, rendered: Rendered) -> bool:
        return self.size(rendered) <= self.limit


def in_json(text: str, unit: Unit) -> int:
    """The length of ``text`` between the quotes of a JSON string that escapes no more than it must."""
    return measure(json.dumps(text, ensure_ascii=False), unit) - 2


__all__ = ["Length", "Of", "Unit", "in_json", "measure"]
