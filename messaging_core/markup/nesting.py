"""Spans as nested tags: every tag that is opened is closed in order, and one that goes on is not interrupted without
need.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Link, Span


@dataclass(frozen=True, slots=True)
class Tags:
    """``opening``, ``closing``: the tags of each mark. ``anchor``: the opening tag of a link, empty where it needs
    none.
    """

    opening: Mapping[int, str]
    closing: Mapping[int, str]
    anchor: Callable[[Link], str]

    @classmethod
    def named(cls, bold: str, italic: str, strike: str, code: str, anchor: Callable[[Link], str]) -> "Tags":
        names = {BOLD: bold, ITALIC: italic, STRIKE: strike, CODE: code}
        return cls(
            {mark: f"<{name}>" for mark, name in names.items()},
            {mark: f"</{name}>" for mark, name in names.items()},
            anchor,
        )


_MARKS = (BOLD, ITALIC, STRIKE, CODE)
_KEYS: dict[int, list[int | Link]] = {marks: [mark for mark in _MARKS if marks & mark] for marks in range(16)}


def nest(spans: Sequence[Span], tags: Tags, escape: Callable[[str], str]) -> str:
    """``spans`` as text in tags. Of several tags that open at one place, the one that goes on longest is outermost;
    code is innermost.
    """
    out: list[str] = []
    stack: list[int | Link] = []
    for place, (text, marks, link) in enumerate(spans):
        if link is None and not stack:
            if not marks:
                out.append(escape(text))
                continue
            if marks in tags.opening and (place + 1 == len(spans) or not spans[place + 1].marks & marks):
                out += tags.opening[marks], escape(text), tags.closing[marks]
                continue
        wanted = _KEYS[marks]
        if link is not None and tags.anchor(link):
            wanted = [link, *wanted]
        if stack and stack != wanted:
            kept = next((depth for depth, key in enumerate(stack) if key not in wanted), len(stack))
            while len(stack) > kept:
                out.append(_closing(stack.pop(), tags))
        if len(stack) < len(wanted):
            new = [key for key in wanted if key not in stack]
            if len(new) > 1:
                new.sort(key=lambda key: -_reach(spans, place, key))
            for key in new:
                stack.append(key)
                out.append(tags.anchor(key) if isinstance(key, Link) else tags.opening[key])
        out.append(escape(text))
    while stack:
        out.append(_closing(stack.pop(), tags))
    return "".join(out)


def _closing(key: int | Link, tags: Tags) -> str:
    return "</a>" if isinstance(key, Link) else tags.closing[key]


def _reach(spans: Sequence[Span], place: int, key: int | Link) -> int:
    if key == CODE:
        return 0
    end = place
    while end < len(spans) and (spans[end].link == key if isinstance(key, Link) else spans[end].marks & key):
        end += 1
    return end - place
