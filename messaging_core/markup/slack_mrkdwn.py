"""Slack's mrkdwn, for the ``text`` of a message.

``&``, ``<`` and ``>`` are escaped everywhere, code included, which takes every mention its force (send ``parse:
none`` and no ``link_names``). There is no escape for ``* _ ~ ```; see :mod:`runs` for what is done.
https://docs.slack.dev/messaging/formatting-message-text
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join
from messaging_core.markup.links import web
from messaging_core.markup.runs import ZERO_WIDTH, Hand, without_escape, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Code, Document, Link

_MENTION = re.compile(r"&lt;([@#!][^\s<>&]{1,120})&gt;")


def escape(text: str, line_start: bool, mentions: bool) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if mentions:
        escaped = _MENTION.sub(r"<\1>", escaped)
    # An escaped ">" still begins a quote.
    return ZERO_WIDTH + escaped if line_start and escaped.lstrip().startswith("&gt;") else escaped


def code(text: str) -> str | None:
    return None if "`" in text else f"`{escape(text, False, False)}`"


def block(written: Code) -> str:
    text = escape(written.text, False, False)
    return f"```\n{_without_fences(text)}\n```"


def _without_fences(text: str) -> str:
    return re.sub("``(?=`)", "``" + ZERO_WIDTH, text)


def hides(label: str, url: str) -> bool:
    """``|`` and ``>`` would end the label."""
    return (web(label, url) or url.startswith("mailto:")) and "|" not in label and ">" not in label


def link(shown: str, target: Link, _ends: bool) -> str:
    url = escape(target.url, False, False).replace("|", "%7C").replace("`", "%60")
    label = _without_fences(escape(shown, False, False) if target.bare else shown)
    return f"<{url}>" if target.bare and label == url else f"<{url}|{label}>"


_prepare = adapt(hides)


def prepare(document: Document) -> Document:
    """No link is code: ``<url|label>`` in code would show as typed."""
    prepared = _prepare(document)
    return replace(prepared, blocks=tuple(map(without_escape, prepared.blocks)))


_HAND = Hand(
    look=Look(quotes=1, quote_shown=False),
    signs=((STRIKE, "~"), (BOLD, "*"), (ITALIC, "_")),
    escape=escape,
    code=code,
    link=link,
    block=block,
    guarded="*_~`",
    words=True,
)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


SLACK_MRKDWN = Dialect("slack-mrkdwn", prepare, partial(write, _HAND), _bind)
