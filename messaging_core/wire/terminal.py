"""Writing to the terminal: what to write where, and what came of it."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class TerminalRequest:
    """One write and one flush of ``text`` (ends with a line end) to ``stream``; ``coloured`` instead where colours are
    shown."""

    stream: Stream
    text: str
    coloured: str | None = None
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class TerminalReply:
    """Written and flushed: ``written`` characters."""

    written: int
