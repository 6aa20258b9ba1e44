"""Discord's Markdown, for bots and webhooks.

Mentions stay as typed: ``allowed_mentions`` is the switch. Only what would *show* as something else (``<@id>``,
``<t:0>``) is escaped, unless mentions are allowed. https://docs.discord.com/developers/reference#message-formatting

Inside code nothing can be escaped, and a fence is always three backticks: U+200B goes between three of them in the
text.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join
from messaging_core.markup.links import web
from messaging_core.markup.runs import ZERO_WIDTH, Hand, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Block, Code, Document, Link, Prose, Span

_ESCAPED = re.compile(
    r"[\\*_~`\[]|(?<=\])\(|\|(?=\|)|(?<=\|)\||<(?=[^ <:>]*(?::/|<|$)|[a-z][a-z0-9+.-]{1,30}:(?!\d)|[^\s<>@]{1,64}@)"
    r"|(?:(?<=http)|(?<=https)):(?=//)"  # what is no address to us is none there: its signs could not be escaped
    r"|(?P<live><(?=[@#:/]|a:|t:|id:|sound:))",
    re.IGNORECASE,
)
_SPECIAL = re.compile(r"[\\*_~`\[|<]")  # far faster to look for, and mostly not there
_AT_LINE_START = re.compile(r"(\s*)(#{1,3}(?=\s|$)|-#(?=\s|$)|>(?=\s|$|>>)|[-+](?=\s|$)|\d{1,9}(?=\.(?:\s|$)))")
_LANGUAGE = re.compile(r"[a-zA-Z0-9_+.#-]{1,30}")


def escape(text: str, line_start: bool, mentions: bool) -> str:
    if not _SPECIAL.search(text) and "://" not in text and "](" not in text:
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


_OPEN_BRACKET = re.compile(r"\[[^\]]*\Z")


def hides(label: str, url: str) -> bool:
    """Only web addresses can be hidden, and not behind a label that holds one, or a bracket that is not closed: such a
    link shows as it is typed.
    """
    return web(label, url) and "://" not in label and "discord.gg" not in label and not _OPEN_BRACKET.search(label)


def link(shown: str, target: Link, ends: bool) -> str:
    if target.bare and target.url != shown:
        return escape(shown, False, False)
    if target.url == shown:
        return (
            target.url
            if ends and target.url.startswith("http") and web("", target.url)
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


_prepare = adapt(hides)


def prepare(document: Document) -> Document:
    """No address is in italics or struck through whose own signs would end that: they cannot be escaped."""
    prepared = _prepare(document)
    return replace(prepared, blocks=tuple(map(_prepared, prepared.blocks)))


def _prepared(block: Block) -> Block:
    if not isinstance(block, Prose):
        return block
    for _, marks, link in block.spans:
        if link is not None and marks & (ITALIC | STRIKE):
            return block._replace(spans=tuple(map(_without_endings, block.spans)))
    return block


def _without_endings(span: Span) -> Span:
    if span.link is None or span.text != span.link.url:
        return span
    endings = (ITALIC if "*" in span.text else 0) | (STRIKE if "~~" in span.text else 0)
    return span._replace(marks=span.marks & ~endings) if span.marks & endings else span


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


DISCORD = Dialect("discord", prepare, partial(write, _HAND), _bind)
