"""Slack's mrkdwn, for the ``text`` of a message.

``&``, ``<`` and ``>`` are escaped everywhere, code included, which takes every mention its force (send ``parse:
none`` and no ``link_names``). There is no escape for ``* _ ~ ```; see :mod:`runs` for what is done.
https://docs.slack.dev/messaging/formatting-message-text
"""

import re
from collections.abc import Sequence
from functools import partial

from messaging_core.markup.dialect import Dialect, Piece, Rendered
from messaging_core.markup.layout import Look, adapt, join
from messaging_core.markup.links import web
from messaging_core.markup.runs import ZERO_WIDTH, Hand, write
from messaging_core.markup.tree import BOLD, ITALIC, STRIKE, Code, Link

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
    return f"```\n{re.sub('``(?=`)', '``' + ZERO_WIDTH, text)}\n```"


def hides(label: str, url: str) -> bool:
    """``|`` and ``>`` would end the label."""
    return (web(label, url) or url.startswith("mailto:")) and "|" not in label and ">" not in label


def link(shown: str, target: Link, _ends: bool) -> str:
    url = escape(target.url, False, False).replace("|", "%7C")
    if not target.bare:
        return f"<{url}|{shown}>"
    return f"<{url}>" if target.url == shown else f"<{url}|{escape(shown, False, False)}>"


_HAND = Hand(
    look=Look(quotes=1, quote_shown=False),
    signs=((STRIKE, "~"), (BOLD, "*"), (ITALIC, "_")),
    escape=escape,
    code=code,
    link=link,
    block=block,
    guarded="*_~`",
    words=True,
    code_in_links=False,
)


def _bind(pieces: Sequence[Piece]) -> Rendered:
    return Rendered(*join(pieces))


SLACK_MRKDWN = Dialect("slack-mrkdwn", adapt(hides), partial(write, _HAND), _bind)
