"""What holds for every text in every dialect: the markup is valid, everything that was said is there, and as it was said."""

import pytest
from hypothesis import given, settings

from messaging_core.markup.blank import is_blank
from messaging_core.markup.dialect import Dialect, Rendered
from messaging_core.markup.split import render, split, truncate
from messaging_core.markup.tree import BOLD, Document, parse, verbatim
from tests.core.markup import readers
from tests.core.markup.readers import Seen
from tests.core.markup.samples import ANSWER, DIALECTS, TIGHT, examples, long_texts, texts

READERS = {
    "telegram-html": lambda rendered: readers.telegram(rendered.text)[2],
    "slack-mrkdwn": lambda rendered: readers.slack(rendered.text),
    "whatsapp": lambda rendered: readers.whatsapp(rendered.text),
    "signal": readers.signal,
    "signal-styled": lambda rendered: readers.signal_styled(rendered.text),
    "matrix-html": lambda rendered: readers.html(rendered.formatted or ""),
    "email-html": lambda rendered: readers.html(rendered.formatted or "", ["html", "head", "meta", "body"]),
    "terminal": lambda rendered: readers.terminal(rendered.formatted or ""),
}
HEADING = {"whatsapp": 0}
"""The marks that a heading gets, where it is not bold (or bold already when it is prepared)."""
READ = [dialect for dialect in DIALECTS if dialect.name in READERS]


def shown(dialect: Dialect, rendered: Rendered, document: Document) -> Seen:
    if document.verbatim and dialect.name in ("matrix-html", "email-html", "terminal"):
        assert rendered.formatted is None
        return readers.seen(rendered.text)
    return READERS[dialect.name](rendered)


def as_it_can(dialect: Dialect, signs: Seen) -> Seen:
    """``signs`` without what the dialect cannot show: marks on the signs of marks."""
    if dialect.name in ("slack-mrkdwn", "whatsapp"):
        return [(sign, 0 if sign in "*_~`" else marks) for sign, marks in signs]
    return signs


def check(dialect: Dialect, document: Document) -> None:
    whole = render(document, dialect)
    seen = as_it_can(dialect, shown(dialect, whole, document))
    wanted = as_it_can(dialect, readers.meant(dialect.prepare(document), heading=HEADING.get(dialect.name, BOLD)))
    assert readers.missing(wanted, seen) == [], (whole.text, whole.formatted)
    if dialect.name != "matrix-html" and dialect.name != "email-html":
        assert [sign for sign, _ in seen] == [sign for sign, _ in readers.seen(whole.visible)], whole.text


@pytest.mark.parametrize("dialect", READ, ids=lambda dialect: dialect.name)
def test_the_examples_of_the_specifications_show_what_they_say(dialect: Dialect) -> None:
    for example in examples():
        check(dialect, parse(example))
        check(dialect, verbatim(example))


@pytest.mark.parametrize("dialect", READ, ids=lambda dialect: dialect.name)
def test_an_answer_shows_what_it_says(dialect: Dialect) -> None:
    check(dialect, parse(ANSWER))
    check(dialect, verbatim(ANSWER))


@pytest.mark.parametrize("dialect", READ, ids=lambda dialect: dialect.name)
@settings(max_examples=100, deadline=None)
@given(text=texts)
def test_any_text_shows_what_it_says(dialect: Dialect, text: str) -> None:
    check(dialect, parse(text))
    check(dialect, verbatim(text))


@pytest.mark.parametrize("dialect", READ, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "text",
    [
        "a<code>http://h/*a*</code>",
        "a**http://h/*a**a*",
        "`a``a`http://h/_a_/",
        "**http://**\\",
        "**see http://)**a",
        "_`a``http://h/`a_",
        "<i>http://</i>*a*<",
        "http://[>_a_",
        "FTP://h.test/_a_/b HTTPS://h.test/_a_/b",
        "[x](<ftp://h.test/*a*/b>) *b*",
        "<s><code>http://a</code></s>",
        "[a```a](http://a)",
        "[a.com](<http://b.test/```c>)",
    ],
)
def test_what_looks_like_an_address_beside_formatting_shows_what_it_says(dialect: Dialect, text: str) -> None:
    """Glued to a word, without a host, in code that cannot be shown as code, joined from two stretches of one look."""
    check(dialect, parse(text))
    check(dialect, verbatim(text))


def visible(text: str) -> str:
    """``text`` but for white space, invisible signs and the signs that begin quoted lines."""
    return "".join(sign for sign, _ in readers.seen(text) if sign != ">" and not is_blank(sign))


def check_parts(dialect: Dialect, document: Document) -> None:
    lengths = TIGHT[dialect.name]
    parts = split(document, dialect, lengths)
    whole = render(document, dialect)
    for part in parts:
        assert not is_blank(part.visible)
        assert all(length.holds(part) for length in lengths), [length.size(part) for length in lengths]
        if dialect.name in READERS:
            shown(dialect, part, document)
    assert "".join(visible(part.visible) for part in parts) == visible(whole.visible)
    assert split(document, dialect, lengths) == parts
    short = truncate(document, dialect, lengths)
    assert all(length.holds(short) for length in lengths)
    if len(parts) > 1:
        assert short.visible.endswith("…")
        if dialect.name in READERS:
            shown(dialect, short, document)
    else:
        assert visible(short.visible) == visible(whole.visible)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=30, deadline=None)
@given(text=long_texts)
def test_parts_of_any_text_keep_the_limit_and_lose_nothing(dialect: Dialect, text: str) -> None:
    check_parts(dialect, parse(text))
    check_parts(dialect, verbatim(text))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_parts_of_an_answer_keep_the_limit_and_lose_nothing(dialect: Dialect) -> None:
    check_parts(dialect, parse(ANSWER * 3))
    check_parts(dialect, parse("".join(examples())))


@pytest.mark.parametrize("dialect", READ, ids=lambda dialect: dialect.name)
def test_formatting_goes_on_in_the_next_part(dialect: Dialect) -> None:
    """A bold text over several parts is bold in each of them."""
    document = parse("**" + "bold words " * 300 + "end**")
    parts = split(document, dialect, TIGHT[dialect.name])
    seen = [sign for part in parts for sign in shown(dialect, part, document)]
    assert len(parts) > 1
    assert {marks for _, marks in seen} == {BOLD}
