"""The terminal gets two texts, and the edge that knows the stream takes one of them."""

from messaging_core.channels.channel import Configured, Rules
from messaging_core.channels.terminal import Settings, place
from messaging_core.flow import Part
from messaging_core.markup.split import render
from messaging_core.markup.terminal import TERMINAL
from messaging_core.markup.tree import parse
from messaging_core.message import TextPart
from messaging_core.wire.terminal import TerminalRequest


def test_markdown_goes_with_colours_for_those_who_see_them() -> None:
    at = Configured("me", "cli", Settings(), Rules())
    request = place(at, Part(1, 1), TextPart(render(parse("**b** and `c`"), TERMINAL))).request
    assert request == TerminalRequest("stdout", "b and c\n", "\x1b[1mb\x1b[22m and \x1b[36mc\x1b[39m\n")
