"""Discord's Markdown, for bots and webhooks.

Mentions stay as typed: ``allowed_mentions`` is the switch. Only what would *show* as something else (``<@id>``,
``<t:0>``) is escaped, unless mentions are allowed. https://docs.discord.com/developers/reference#message-formatting

Inside code nothing can be escaped, and a fence is always three backticks: U+200B goes between three of them in the
text.
"""

import re
from collections.abc import Sequence
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join
from messaging_core.markup.links import web
from messaging_core.markup.runs import ZERO_WIDTH, Hand, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Code, Link

_ESCAPED = re.compile(
    r"[\\*_~`\[]|\|(?=\|)|(?<=\|)\||<(?=[a-z]{0,9}https?:|[a-z][a-z0-9+.-]{1,30}:(?!\d)|[^\s<>@]{1,64}@|$)"
    r"|(?P<live><(?=[@#:/]|a:|t:|id:|sound:))",
    re.IGNORECASE,
)
_SPECIAL = re.compile(r"[\\*_~`\[|<]")  # far faster to look for, and mostly not there
_AT_LINE_START = re.compile(r"(\s*)(#{1,3}(?=\s|$)|-#(?=\s|$)|>(?=\s|$|>>)|[-+](?=\s|$)|\d{1,9}(?=\.(?:\s|$)))")
_LANGUAGE = re.compile(r"[a-zA-Z0-9_+.#-]{1,30}")


def escape(text: str, line_start: bool, mentions: bool) -> str:
    if not _SPECIAL.search(text):
        escaped = text
    elif mentions:
        escaped = _ESCAPED.sub(lambda sign: sign[0] if sign["live"] else "\\" + sign[0], text)
    else:
        escaped = _ESCAPED.sub(r"\\\g<0>", text)
    return (
        _AT_LINE_START.sub(_at_line_start, escaped, count=1)
        if line_start and _AT_LINE_START.match(escaped)
        else escaped
    )


def _at_line_start(found: re.Match[str]) -> str:
    blank, sign = found.groups()
    return f"{blank}{sign}\\" if sign.isdigit() else f"{blank}\\{sign}"


def code(text: str) -> str | None:
    """Inline code between one backtick or two: a number that does not occur in it."""
    runs = {len(run) for run in re.findall("`+", text)}
    if {1, 2} <= runs or any(run > 2 for run in runs):
        text, runs = re.sub("`(?=`)", "`" + ZERO_WIDTH, text), {1}
    fence = "``" if 1 in runs else "`"
    edge_left = " " if text.startswith("`") else ""
    edge_right = " " if text.endswith("`") else ""
    return f"{fence}{edge_left}{text}{edge_right}{fence}"


def block(written: Code) -> str:
    language = written.language if _LANGUAGE.fullmatch(written.language) else ""
    return f"```{language}\n{re.sub('``(?=`)', '``' + ZERO_WIDTH, written.text)}\n```"


def hides(label: str, url: str) -> bool:
    """Only web addresses can be hidden, and not behind a label that holds one: such a link shows as it is typed."""
    return web(label, url) and "://" not in label and "discord.gg" not in label


def link(shown: str, target: Link, ends: bool) -> str:
    if target.bare or target.url == shown:
        return (
            target.url
            if ends and web("", target.url)
            else f"<{target.url}>"
            if web("", target.url)
            else escape(shown, False, False)
        )
    label = shown.replace("]", "\\]")  # the opening ones are escaped everywhere
    return f"[{label}]({_address(target.url)})"


def _address(url: str) -> str:
    """``url`` so that the brackets around it end where they should: inner brackets are kept where each is closed at
    once.
    """
    if re.search(r"[()]", re.sub(r"\([^()\s]*\)", "", url)):
        url = url.replace("(", "%28").replace(")", "%29")
    for sign in "\\<>*~`|":
        url = url.replace(sign, f"%{ord(sign):02X}")
    return url


def _heading(level: int) -> str | None:
    return "#" * level + " " if level <= 3 else None


_HAND = Hand(
    look=Look(bullet="- ", quotes=1, quote_shown=False, keep_bullet=True),
    signs=((STRIKE, "~~"), (BOLD, "**"), (ITALIC, "*")),
    escape=escape,
    code=code,
    link=link,
    block=block,
    heading=_heading,
)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


DISCORD = Dialect("discord", adapt(hides), partial(write, _HAND), _bind)
