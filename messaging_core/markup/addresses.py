"""Bare web addresses in a text: where they are, and when a label pretends to be another one."""

import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlsplit

_START = re.compile(r"(?<![A-Za-z0-9])(?:https?://|ftp://|www\.)(?=[^\s<>])", re.IGNORECASE)
_HINT = re.compile(r"://|[wW]{3}\.")
_STOP = re.compile(
    r"[\s<>`|\"\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\uff08\uff09\u300c-\u300f\u3010\u3011\u201c\u201d]|\*\*"
)
_LAST = "?!.,:;*_~'\\"
_BRACKET = re.compile(r"[()\[\]]")
_OPENED_BY = {")": "(", "]": "["}


def bare_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Where addresses stand in ``text`` (start, end): after GFM's extended autolinks, closing signs of the sentence
    left out.

    >>> text = "(see https://h.test/_a_/b_(c).)"
    >>> [text[a:b] for a, b in bare_addresses(text)]
    ['https://h.test/_a_/b_(c)']

    https://github.github.com/gfm/#autolinks-extension-
    """
    end = stop = 0
    # Looking for what every address has is ten times as fast as looking for every way to begin one.
    for hint in _HINT.finditer(text):
        if hint.start() < end:
            continue
        match = _START.match(text, max(end, hint.start() - 5)) or _START.match(text, max(end, hint.start() - 4))
        match = match or _START.match(text, max(end, hint.start() - 3)) or _START.match(text, hint.start())
        if match is None:
            continue
        start = match.start()
        if stop <= start:
            found = _STOP.search(text, match.end())
            stop = found.start() if found else len(text)
        end = _unopened_bracket(text, match.end(), stop)
        end = match.end() + len(text[match.end() : end].rstrip(_LAST))
        if end > match.end():
            yield start, end


def _unopened_bracket(text: str, start: int, stop: int) -> int:
    """Where the first closing bracket stands that was not opened since ``start``; ``stop`` if there is none before."""
    depth = {"(": 0, "[": 0}
    for found in _BRACKET.finditer(text, start, stop):
        sign = found[0]
        if sign in depth:
            depth[sign] += 1
        else:
            depth[_OPENED_BY[sign]] -= 1
            if depth[_OPENED_BY[sign]] < 0:
                return found.start()
    return stop


# --- Emphasis signs inside addresses ----------------------------------------------------------------------------------

_MARKS = "_*~"
_BARE_MARK = re.compile(r"(?<!\\)[_*~]")  # behind a backslash it is escaped already


class Mask:
    """Hides the emphasis signs of bare addresses from a Markdown parser, which would read ``/_a_/`` as emphasis.

    Each becomes a private-use sign that the text does not hold, and ``unmask`` brings it back in whatever the parser
    made of it.
    """

    __slots__ = ("_back", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._back: dict[int, str] = {}
        lower = text if "://" in text or "www." in text else text.lower()
        if "://" not in lower and "www." not in lower:
            return
        pieces: list[str] = []
        hidden: dict[str, str] = {}
        at = 0
        for start, end in bare_addresses(text):
            address = text[start:end]
            if not any(mark in address for mark in _MARKS):
                continue
            if not self._back:
                self._back = dict(zip(_unused(text, len(_MARKS)), _MARKS, strict=True))
                hidden.update((mark, chr(sign)) for sign, mark in self._back.items())
            address = _BARE_MARK.sub(partial(_hide, hidden), address)
            pieces += text[at:start], address
            at = end
        if pieces:
            self.text = "".join((*pieces, text[at:]))

    @property
    def used(self) -> bool:
        return bool(self._back)

    def unmask(self, text: str) -> str:
        return text if text.isascii() else text.translate(self._back)


def _hide(signs: dict[str, str], mark: re.Match[str]) -> str:
    return signs[mark[0]]


def _unused(text: str, count: int) -> list[int]:
    usual = list(range(0xF0000, 0xF0000 + count))
    if not any(chr(code) in text for code in usual):
        return usual
    signs = set(text)
    return [code for code in range(0xF0000, 0xF0000 + len(signs) + count) if chr(code) not in signs][:count]


# --- Labels that look like addresses ----------------------------------------------------------------------------------

_DOMAIN = r"(?:[\w-]{1,63}\.){1,8}"
_NAMED = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{1,20}}://|www\.)|(?<![\w.-]){_DOMAIN}(?:com|org|net|edu|gov|mil|int|io|co|info|biz)(?![\w-])"
)
_WHOLE = re.compile(rf"(?:[\w.+-]{{1,64}}@)?({_DOMAIN}[^\W\d_]{{2,24}})(?::\d+)?(?:[/?#].*)?")
_FILE = re.compile(
    r"[\w.-]+\.(?:bash|bat|c|cc|cfg|conf|cpp|cs|css|csv|go|h|hpp|html?|ini|ipynb|java|jpe?g|js|json|jsx|kt|lock|log|md|mjs"
    r"|php|pdf|png|ps1|py|pyi|rb|rs|rst|scss|sh|sql|svg|swift|tex|toml|ts|tsx|txt|xml|ya?ml)"
)
_LOOKED_AT = 300


def shown_once(label: str, url: str) -> bool:
    """True if ``label`` is ``url`` itself, apart from the scheme, ``www.`` and a final slash.

    >>> shown_once("c.example", "https://c.example/"), shown_once("spec", "https://c.example/")
    (True, False)
    """
    return _core(label) == _core(url)


def pretends(label: str, url: str) -> bool:
    """True if ``label`` looks like an address other than ``url``: a reader would believe to be led there.

    A file name is none where the address ends with it, and a bare host is none where the address is on it.

    >>> pretends("https://bank.example", "https://evil.test/"), pretends("README.md", "https://h.test/README.md")
    (True, False)
    """
    if "." not in label and "://" not in label and "\u3002" not in label and "\uff0e" not in label:
        return False
    plain = _core(label)
    if plain == _core(url):
        return False
    label = _plain(label)[:_LOOKED_AT]
    whole = _WHOLE.fullmatch(label)
    if whole and whole[1] == _host(url) and whole[1] == label.rstrip("/"):
        return False
    if whole and _FILE.fullmatch(label):
        path = urlsplit_safely(url)
        if path and path[1].casefold().rstrip("/").endswith("/" + label):
            return False
    return bool(whole or _NAMED.search(label))


def _plain(text: str) -> str:
    kept = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFKC", kept).casefold().strip().replace("\u3002", ".")


def _core(address: str) -> str:
    plain = address.strip().casefold() if address.isascii() else _plain(address)
    for start in ("mailto:", "https://", "http://", "www."):
        plain = plain.removeprefix(start)
    return plain.removesuffix("/")


def urlsplit_safely(url: str) -> tuple[str, str] | None:
    """Host and path of ``url`` in lower case host, or None where it cannot be read."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return None


def _host(url: str) -> str:
    parts = urlsplit_safely(url)
    return parts[0] if parts else ""


def scheme(url: str) -> str:
    """The scheme of ``url`` in lower case, or "" where it has none.

    >>> scheme("HTTPS://h.test"), scheme("/path"), scheme("mailto:a@b.test")
    ('https', '', 'mailto')
    """
    start, colon, _ = url.partition(":")
    return (
        start.lower()
        if colon and start.isascii() and start.replace("+", "").replace("-", "").replace(".", "").isalnum()
        else ""
    )
