"""Spans as nested tags: every tag that is opened is closed in order, and one that goes on is not interrupted without
need.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Link, Span


@dataclass(frozen=True, slots=True)
class Tags:
    """``bold`` to ``code``: names of tags. ``anchor``: the opening tag of a link, empty where it needs none."""

    bold: str
    italic: str
    strike: str
    code: str
    anchor: Callable[[Link], str]

    def open(self, key: "int | Link") -> str:
        return self.anchor(key) if isinstance(key, Link) else f"<{self.name(key)}>"

    def close(self, key: "int | Link") -> str:
        return "</a>" if isinstance(key, Link) else f"</{self.name(key)}>"

    def name(self, mark: int) -> str:
        return {BOLD: self.bold, ITALIC: self.italic, STRIKE: self.strike, CODE: self.code}[mark]


_MARKS = (BOLD, ITALIC, STRIKE, CODE)
_KEYS: dict[int, list[int | Link]] = {marks: [mark for mark in _MARKS if marks & mark] for marks in range(16)}


def nest(spans: Sequence[Span], tags: Tags, escape: Callable[[str], str]) -> str:
    """``spans`` as text in tags. Of several tags that open at one place, the one that goes on longest is outermost;
    code is innermost.
    """
    out: list[str] = []
    stack: list[int | Link] = []
    for place, span in enumerate(spans):
        if not span.marks and span.link is None and not stack:
            out.append(escape(span.text))
            continue
        link = span.link if span.link is not None and tags.anchor(span.link) else None
        if span.marks or link or stack:
            wanted = _KEYS[span.marks] if link is None else [link, *_KEYS[span.marks]]
            kept = next((depth for depth, key in enumerate(stack) if key not in wanted), len(stack))
            while len(stack) > kept:
                out.append(tags.close(stack.pop()))
            new = [key for key in wanted if key not in stack]
            if len(new) > 1:
                new.sort(key=lambda key: -_reach(spans, place, key))
            for key in new:
                stack.append(key)
                out.append(tags.open(key))
        out.append(escape(span.text))
    while stack:
        out.append(tags.close(stack.pop()))
    return "".join(out)


def _reach(spans: Sequence[Span], place: int, key: int | Link) -> int:
    if key == CODE:
        return 0
    end = place
    while end < len(spans) and (spans[end].link == key if isinstance(key, Link) else spans[end].marks & key):
        end += 1
    return end - place
