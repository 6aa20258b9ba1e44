"""The terminal that the program runs on (type ``cli``): what is there before any account is."""

from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Sort, key
from messaging_core.errors import InvalidRecipient, Refusal, SendError
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, Step, in_order
from messaging_core.markup.controls import show_direction, strip_controls
from messaging_core.markup.terminal import TERMINAL
from messaging_core.message import Content, Ids, Outgoing, Recipient, TextPart
from messaging_core.wire.terminal import Stream, TerminalReply, TerminalRequest


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``cli`` channel."""

    stream: Stream = key(Sort.CHOICE, "Where it is written.", default="stdout", choices=("stdout", "stderr"))


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    return Failure(InvalidRecipient(text, "none: the terminal has one reader"))


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    return Success(in_order(tuple(place(at, part, content) for part, content in outgoing.numbered)))


def place(at: Configured[Settings], part: Part, content: Content) -> Exchange:
    """One write of the text and a line end. Control and escape sequences are gone before our own colours are added."""
    assert isinstance(content, TextPart)
    plain = show_direction(strip_controls(content.text.text))
    coloured = content.text.formatted if content.markup else None
    request = TerminalRequest(at.own.stream, _line(plain), None if coloured is None else _line(coloured))
    return Exchange(request, Placed(part, content.notes), Scope(at.name), part)


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


@dataclass(frozen=True, slots=True)
class Placed:
    """Written and flushed."""

    part: Part
    notes: tuple[str, ...]

    def __call__(self, reply: TerminalReply, /) -> Result[Step, SendError]:
        return Success(Done((Receipt(self.part, None, FIXED.shown, self.notes),)))


def rehearse(request: Any) -> TerminalReply:
    return TerminalReply(len(request.text))


FIXED = Recipient("", "terminal", shown="the terminal")

CHANNEL = Channel(
    platform="cli",
    settings=Settings,
    capabilities=Capabilities(),
    dialect=TERMINAL,
    describe=describe,
    recipient=recipient,
    fixed_recipient=FIXED,
    rehearse=rehearse,
)
