"""Bare web addresses in a text: where they are, and when a label pretends to be another one."""

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import urlsplit

_START = re.compile(r"(?<![A-Za-z0-9])(?:https?://|ftp://|www\.)(?=[^\W_]|\[)", re.IGNORECASE)
_HINTS = ("://", "www.", "Www.", "WWW.")
_STOP = re.compile(
    r"[\s<>`|\"\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\uff08\uff09\u300c-\u300f\u3010\u3011\u201c\u201d]|\*\*"
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
    # Looking for what every address has is far faster than looking for every way to begin one.
    for hint in sorted(place for sign in _HINTS for place in _places(sign, text)):
        if hint < end:
            continue
        match = _START.match(text, max(end, hint - 5)) or _START.match(text, max(end, hint - 4))
        match = match or _START.match(text, max(end, hint - 3)) or _START.match(text, hint)
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


def _places(sign: str, text: str) -> Iterator[int]:
    place = text.find(sign)
    while place >= 0:
        yield place
        place = text.find(sign, place + 1)


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
