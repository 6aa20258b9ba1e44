"""Telegram's HTML: the tags that ``parse_mode: HTML`` knows, and nothing else.

Any other tag, an unclosed or a crossed one makes the server refuse the message.
https://core.telegram.org/bots/api#html-style

An ``@name`` in text rings, and no switch of ``sendMessage`` stops it: U+2060 (word joiner, invisible) behind the
``@`` does. Links to ``tg://user?id=`` ring too and are written out.
"""

import re
from collections.abc import Sequence
from html import escape as html_escape

from messaging_core.markup.addresses import urlsplit_safely
from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import RULE, Look, adapt, heading_line, place, shown
from messaging_core.markup.links import web
from messaging_core.markup.nesting import Tags, nest
from messaging_core.markup.tree import CODE, Block, Code, Link, Path, Prose, Quote, Rule, Span

GUARD = "\u2060"
_NAME = re.compile(r"(?<!\w)@(?=\w)")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_OPEN, _CLOSE = "<blockquote>", "</blockquote>"
_AROUND = len(_OPEN + _CLOSE)
_LOOK = Look(quote="", quote_shown=False)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def hides(_label: str, url: str) -> bool:
    """Telegram drops links to hosts without a dot, and to anything but the web, without a word."""
    parts = urlsplit_safely(url) if web("", url) else None
    return parts is not None and "." in parts[0].strip(".")


def _anchor(link: Link) -> str:
    # A bare address is found by the reader's client; only where a mention could be found in it, it is marked as a link.
    if link.bare and ("@" not in link.url or not hides("", link.url)):
        return ""
    return f'<a href="{html_escape(link.url)}">'


_TAGS = Tags.named("b", "i", "s", "code", _anchor)


def _silent(span: Span) -> Span:
    if "@" not in span.text or span.marks & CODE or (span.link is not None and span.link.bare):
        return span
    return Span(_guarded(span.text), span.marks, span.link)


def _guarded(text: str) -> str:
    return _NAME.sub("@" + GUARD, text)


def _seen(spans: Sequence[Span]) -> str:
    """What is sent where the markup is refused: there a name in code would ring, too."""
    return "".join([_guarded(span.text) if span.marks & CODE else span.text for span in spans])


def _write(block: Block, before: Block | None, mentions: bool) -> Piece:
    at = place(_LOOK, block, before)
    around = _AROUND if block.path and _quote_of(block.path) else 0
    if isinstance(block, Prose):
        spans = shown(block, at)
        visible = at.first + "".join([span.text for span in spans])
        if not mentions and "@" in visible:
            spans = tuple(map(_silent, spans))
            visible = at.first + _seen(spans)
        text = at.first + nest(spans, _TAGS, escape)
    elif isinstance(block, Code):
        sign = heading_line(at.first)
        language = block.language if _LANGUAGE.fullmatch(block.language) else ""
        code = escape(block.text)
        inner = f'<code class="language-{language}">{code}</code>' if language else code
        text, visible = f"{sign}<pre>{inner}</pre>", sign + (block.text if mentions else _guarded(block.text))
    else:
        assert isinstance(block, Rule)
        text = visible = at.first + RULE
    return Piece(block, at.gap, at.shown_gap, text, visible, around=around)


def _quote_of(path: Path) -> Quote | None:
    """The outermost quote; Telegram has no quotes in quotes."""
    for container in path:
        if isinstance(container, Quote):
            return container
    return None


def _bind(pieces: Sequence[Piece]) -> Rendered:
    raw: list[str] = []
    visible: list[str] = []
    quoted: Quote | None = None
    for piece in pieces:
        path = piece.block.path
        quote = _quote_of(path) if path else None
        if quoted is not None and quote != quoted:
            raw.append(_CLOSE)
        if raw:
            raw.append(piece.gap)
            visible.append(piece.shown_gap)
        if quote is not None and quote != quoted:
            raw.append(_OPEN)
        quoted = quote
        raw.append(piece.text)
        visible.append(piece.visible)
    if quoted is not None:
        raw.append(_CLOSE)
    return Rendered("".join(raw), "".join(visible))


TELEGRAM_HTML = Dialect("telegram-html", adapt(hides), _write, _bind)
