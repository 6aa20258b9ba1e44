"""What becomes of a link: hidden behind its label, shown once, or shown as ``label (address)``."""

from collections.abc import Callable, Iterable
from itertools import groupby

from messaging_core.markup.addresses import pretends, shown_once, urlsplit_safely
from messaging_core.markup.tree import CODE, Link, Span, with_addresses

Hides = Callable[[str, str], bool]
"""Whether the dialect can hide the address (second) behind the label (first)."""


def nothing(_label: str, _url: str) -> bool:
    """For dialects that cannot hide an address."""
    return False


def web(_label: str, url: str) -> bool:
    """An http or https address with a host, without white space."""
    if not url.lower().startswith(("https://", "http://")) or len(url.split()) > 1 or url[-1].isspace():
        return False
    parts = urlsplit_safely(url)
    return parts is not None and parts[0] != ""


def expose(spans: tuple[Span, ...], hides: Hides) -> tuple[Span, ...]:
    """``spans`` with every link that must not or cannot be hidden written out."""
    for _, _, link in spans:
        if link is not None and not link.bare:
            return _all_exposed(spans, hides)
    return spans


def _all_exposed(spans: tuple[Span, ...], hides: Hides) -> tuple[Span, ...]:
    result: list[Span] = []
    for link, group in groupby(spans, _link):
        same = tuple(group)
        result += same if link is None or link.bare else _exposed(link, same, hides)
    return tuple(result)


def _link(span: Span) -> Link | None:
    return span.link


def _plain(spans: tuple[Span, ...]) -> list[Span]:
    return [
        plain
        for span in spans
        for plain in ([Span(span.text, span.marks)] if span.marks & CODE else with_addresses(span.text, span.marks))
    ]


def _exposed(link: Link, spans: tuple[Span, ...], hides: Hides) -> Iterable[Span]:
    label = "".join(span.text for span in spans)
    if shown_once(label, link.url):
        return spans if hides(label, link.url) else _plain(spans)
    if hides(label, link.url) and not pretends(label, link.url):
        return spans
    plain = _plain(spans)
    if not link.url or link.url.startswith("#"):
        return plain  # a place in the same text: there is nothing to open
    address = Span(link.url, link=Link(link.url, link.serial, bare=True) if web("", link.url) else None)
    if link.url.startswith("mailto:"):
        address = Span(link.url.removeprefix("mailto:"))
    return [*plain, Span(" ("), address, Span(")")]
