"""Environment variables in a configuration: ``${NAME}``, ``${NAME:-default}``, and ``$${`` for a literal ``${``.

They are put in after parsing and only inside texts, so that a variable can never change the structure of the file. A
``$`` without a brace is a ``$``. A default goes as far as the next ``}``; it holds where the variable is not set or
empty.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from returns.result import Failure, Result, Success

_OPENING = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")
_SHOWN = re.compile(r"\$\{[A-Za-z0-9_.-]{0,40}\}?")


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with its variables put in. ``names``: which; ``empty``: those set, but empty, without a default."""

    text: str
    names: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Filled(names={self.names}, empty={self.empty})"


@dataclass(frozen=True, slots=True)
class Gap:
    """A placeholder that cannot be filled: what is wrong, what would be right. ``at``: where in the text it begins."""

    problem: str
    hint: str
    at: int
    malformed: bool = False


def fill(text: str, environment: Mapping[str, str]) -> Result[Filled, tuple[Gap, ...]]:
    """``text`` with every placeholder replaced; what a variable holds is not looked into again.

    >>> fill("price $5, ${WHO:-all}, $${WHO}", {}).unwrap().text
    'price $5, all, ${WHO}'
    """
    if "${" not in text:
        return Success(Filled(text))
    pieces: list[str] = []
    names: list[str] = []
    empty: list[str] = []
    gaps: list[Gap] = []
    end = 0
    for match in _OPENING.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        name, default = match["name"], match["default"]
        if match.group() == "$${":
            pieces.append("${")
        elif name is None or (default is not None and "${" in default):
            gaps.append(_malformed(text, match.start()))
        else:
            value = environment.get(name, "") or default
            names.append(name)
            if value is not None:
                pieces.append(value)
            elif name in environment:
                empty.append(name)
            else:
                hint = f"set it, or give a default: ${{{name}:-...}}"
                gaps.append(Gap(f"the environment variable {name} is not set", hint, match.start()))
    pieces.append(text[end:])
    return Failure(tuple(gaps)) if gaps else Success(Filled("".join(pieces), tuple(names), tuple(empty)))


def _malformed(text: str, at: int) -> Gap:
    shown = _SHOWN.match(text, at)
    assert shown is not None
    hint = "write ${NAME} or ${NAME:-default}, or $${ for a literal ${"
    return Gap(f"{shown.group()} is not a placeholder", hint, at, malformed=True)
