"""What a Markdown parser must not read as Markdown, hidden from it and brought back in whatever it makes of the text.

Each hidden sign becomes a private-use sign that the text does not hold. Hidden are

- the emphasis signs of bare addresses: ``https://h.test/_a_/b`` has no emphasis;
- the signs of formulas, ``$a_1 * b_1$``, ``$$...$$``, ``\\(...\\)`` and ``\\[...\\]``: what is inside shows as typed.

And where Chinese, Japanese or Korean writing, which has no spaces, stands right beside ``**``, a sign that counts as a
letter goes between ``**`` and punctuation inside: ``**\uff1a**\u8bf7`` would else be no emphasis, by a rule made for
words with spaces. https://github.com/commonmark/commonmark-spec/issues/650
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

import regex

from messaging_core.markup.addresses import bare_addresses

_EMPHASIS = re.compile("[_*~]")
_HIDDEN = "_*~\\[]<>-+=#"

# No alternative goes over the beginning of another formula, so that a text of beginnings alone is read once.
_FORMULA = re.compile(
    r"\$\$(?P<display>[^$`]+)\$\$"
    r"|(?<![\w\\$])\$(?=\S)(?P<inline>[^$`\n]+)(?<=\S)\$(?![\w$])"
    r"|(?<!\\)\\\[(?P<square>(?:[^`\\]|\\[^\[\]()])+)\\\]"
    r"|(?<!\\)\\\((?P<round>(?:[^`\\\n]|\\[^\[\]()\n])+)\\\)"
)
_OF_FORMULAS = re.compile(r"[\\^_{]")
_TO_HIDE = re.compile(r"\\(?!\|)|[_*~\[\]<]|(?<=\n)[ ]*[-+=>#]")  # a table cell needs its escaped bars

_NOT_ASCII = re.compile(r"[^\x00-\x7f][^\x00-\x7f]*")  # three times as fast as with "+"
_WRITING = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\u30fc]")
_BEFORE_THE_END = regex.compile(r"[[\p{P}\p{S}]--[\p{Ps}\p{Pi}\\*~_]]", flags=regex.VERSION1)
_BEHIND_THE_START = regex.compile(r"[\p{Ps}\p{Pi}\p{S}\"'`]")


class Mask:
    """``text``: what to give to the parser. ``unmask`` undoes it. ``used``: whether anything is hidden at all."""

    __slots__ = ("_back", "_signs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._back: dict[int, str] = {}
        self._signs: dict[str, str] = {}
        for hide in (_in_addresses, _in_formulas, _beside_writing):
            self.text = hide(self.text, self._sign)

    @property
    def used(self) -> bool:
        return bool(self._back)

    def unmask(self, text: str) -> str:
        return text if text.isascii() else text.translate(self._back)

    def _sign(self, hidden: str) -> str:
        """The sign that stands for ``hidden``; for "", one that is nothing."""
        if not self._back:
            self._back = dict(zip(_unused(self.text, len(_HIDDEN) + 1), (*_HIDDEN, ""), strict=True))
            self._signs = {sign: chr(code) for code, sign in self._back.items()}
        return self._signs[hidden]


Sign = Callable[[str], str]


def _in_addresses(text: str, sign: Sign) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in bare_addresses(text):
        address = text[start:end]
        if _EMPHASIS.search(address):
            pieces += text[at:start], _without_emphasis(address, sign)
            at = end
    return "".join((*pieces, text[at:])) if pieces else text


def _without_emphasis(address: str, sign: Sign) -> str:
    if "\\" in address:  # what stands behind a backslash is escaped already
        return re.sub(r"(?<!\\)[_*~]", partial(_hidden, sign), address)
    return address.replace("_", sign("_")).replace("*", sign("*")).replace("~", sign("~"))


def _in_formulas(text: str, sign: Sign) -> str:
    if "$" not in text and "\\(" not in text and "\\[" not in text:
        return text
    return _FORMULA.sub(partial(_formula, sign), text)


def _formula(sign: Sign, found: re.Match[str]) -> str:
    written = found[found.lastgroup or 0]
    if "\n\n" in written or "~~~" in written or not (found["display"] or _OF_FORMULAS.search(written)):
        return found[0]
    hidden = _TO_HIDE.sub(partial(_hidden, sign), written)
    start = found.start(found.lastgroup or 0) - found.start()
    return found[0][:start] + hidden + found[0][start + len(written) :]


def _beside_writing(text: str, sign: Sign) -> str:
    if text.isascii():
        return text
    pieces: list[str] = []
    done = 0
    for stretch in _NOT_ASCII.finditer(text):
        for place in _set_apart(text, *stretch.span()):
            pieces += text[done:place], sign("")
            done = place
    return "".join((*pieces, text[done:])) if pieces else text


def _set_apart(text: str, start: int, end: int) -> Iterator[int]:
    """Where signs of emphasis right before or right behind ``text[start:end]`` need a letter on their other side."""
    if start and text[start - 1] in "*~" and _WRITING.match(text, start):
        while start and text[start - 1] in "*~":
            start -= 1
        if start and _BEFORE_THE_END.match(text, start - 1):
            yield start
    if end < len(text) and text[end] in "*~" and _WRITING.match(text, end - 1):
        while end < len(text) and text[end] in "*~":
            end += 1
        if _BEHIND_THE_START.match(text, end):
            yield end


def _hidden(sign: Sign, mark: re.Match[str]) -> str:
    return mark[0][:-1] + sign(mark[0][-1])


def _unused(text: str, count: int) -> list[int]:
    usual = list(range(0xF0000, 0xF0000 + count))
    if not any(chr(code) in text for code in usual):
        return usual
    signs = set(text)
    return [code for code in range(0xF0000, 0xF0000 + len(signs) + count) if chr(code) not in signs][:count]
