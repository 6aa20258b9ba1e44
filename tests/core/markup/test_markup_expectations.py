"""Single faults of converters that readers reported, each with what is right instead."""

import pytest

from messaging_core.markup.blank import is_blank
from messaging_core.markup.controls import strip_controls
from messaging_core.markup.discord import DISCORD
from messaging_core.markup.email_html import EMAIL_HTML
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.matrix_html import MATRIX_HTML
from messaging_core.markup.plain import PLAIN
from messaging_core.markup.signal import SIGNAL
from messaging_core.markup.slack_mrkdwn import SLACK_MRKDWN
from messaging_core.markup.split import render, split, truncate
from messaging_core.markup.tables import width
from messaging_core.markup.telegram_html import TELEGRAM_HTML
from messaging_core.markup.terminal import TERMINAL
from messaging_core.markup.tree import Document, parse, verbatim
from messaging_core.markup.whatsapp import WHATSAPP
from tests.core.markup.readers import telegram, telegram_mentions
from tests.core.markup.samples import DIALECTS

TELEGRAM = (Length(4096, Unit.CODE_POINTS), Length(32_768, Unit.BYTES, Of.RAW))
DISCORD_LIMIT = (Length(2000, Unit.CODE_POINTS, Of.RAW),)


def entities(text: str) -> set[tuple[str, str]]:
    return {(entity.kind, entity.text) for entity in telegram(render(parse(text), TELEGRAM_HTML).text)[1]}


def test_names_with_underscores_are_no_emphasis() -> None:
    text = "Valve pump_a_inlet opened, battery_low is false"
    assert render(parse(text), TELEGRAM_HTML).text == text


def test_an_open_fence_runs_to_the_end() -> None:
    assert ("PreCode", "make deploy && echo ok") in entities("Run this:\n```sh\nmake deploy && echo ok\n")


def test_a_fence_in_a_fence_is_content() -> None:
    assert ("PreCode", "# T\n```py\nx = 1\n```\nend") in entities(
        "Sample:\n\n````md\n# T\n```py\nx = 1\n```\nend\n````\nafter_it"
    )


def test_a_link_keeps_every_sign_of_its_address() -> None:
    url = "https://maps.example/wiki/Ring_(road)_3?x=1&y=2"
    _, (entity,), _ = telegram(render(parse(f"[ring_road (north)]({url})"), TELEGRAM_HTML).text)
    assert (entity.text, entity.url) == ("ring_road (north)", url)
    assert render(parse(f"[ring]({url})"), DISCORD).text == f"[ring]({url})"


def test_a_quote_is_one_entity_over_its_lines() -> None:
    assert entities("> rule 1.\n> rule 2!\n\nafter.") == {("BlockQuote", "rule 1.\nrule 2!")}


def test_bold_around_italic_is_one_entity() -> None:
    assert entities("***a** b*") == {("Italic", "a b"), ("Bold", "a")}


def test_slack_escapes_three_signs_once_and_code_too() -> None:
    text = "R&D says 3 < 5 > 2, `a && b <c>` and R&amp;D"
    assert (
        render(parse(text), SLACK_MRKDWN).text == "R&amp;D says 3 &lt; 5 &gt; 2, `a &amp;&amp; b &lt;c&gt;` and R&amp;D"
    )


def test_slack_guards_only_what_would_format() -> None:
    text = "arch x86_64, glob *.py, tilde ~ and under_score_d \\*not bold\\*"
    assert (
        render(parse(text), SLACK_MRKDWN).text == "arch x86_64, glob *.py, tilde ~ and under_score_d *not bold\u200b*"
    )


def test_slack_and_whatsapp_set_bold_inside_words_apart() -> None:
    for dialect in (SLACK_MRKDWN, WHATSAPP):
        assert render(parse("foo**bar**baz"), dialect).text == "foo\u200b*bar*\u200bbaz"


def test_discord_leaves_addresses_alone() -> None:
    written = render(parse("see https://d.example/f/_x-_9Q_/edit and **ok**"), DISCORD).text
    assert written == "see https://d.example/f/_x-_9Q_/edit and **ok**"


def test_discord_mentions_show_as_typed_unless_allowed() -> None:
    document = parse("<@123456789012345678> @everyone")
    assert render(document, DISCORD).text == "\\<@123456789012345678> @everyone"
    assert render(document, DISCORD, mentions=True).text == "<@123456789012345678> @everyone"


def test_telegram_names_do_not_ring_unless_allowed() -> None:
    document = parse("ask @some_name or mail a@host.test, [me](tg://user?id=1)")
    inert, allowed = render(document, TELEGRAM_HTML), render(document, TELEGRAM_HTML, mentions=True)
    assert telegram_mentions(inert.visible) == []
    assert telegram_mentions(allowed.visible) == ["@some_name"]
    assert "tg://" in inert.visible and "<a" not in inert.text


def test_signal_ranges_move_with_what_is_written_out() -> None:
    rendered = render(parse("[spec](https://a.example/s) 🎯 **due Monday** [c.example](https://c.example)"), SIGNAL)
    assert rendered.text == "spec (https://a.example/s) 🎯 due Monday c.example"
    assert [str(style) for style in rendered.styles] == ["30:10:BOLD"]


def test_matrix_has_both_texts() -> None:
    rendered = render(parse("**two** lines\nnext & <last>"), MATRIX_HTML)
    assert rendered.text == "two lines\nnext & <last>"
    assert rendered.formatted == "<p><strong>two</strong> lines<br>next &amp; &lt;last&gt;</p>"
    assert render(verbatim("*a*"), MATRIX_HTML).formatted is None


@pytest.mark.parametrize("text", ["", "  \n\t ", "\u200b\u2060\ufeff", "\u2800", "<!-- x -->", "[](https://h.test)"])
def test_nothing_to_see_is_no_part(text: str) -> None:
    for dialect in DIALECTS:
        assert split(parse(text), dialect, (Length(100, Unit.BYTES),)) == ()
        assert is_blank(render(parse(text), dialect).visible)


def test_code_points_are_counted_where_the_platform_counts_them() -> None:
    parts = split(parse("🎯" * 4300), TELEGRAM_HTML, TELEGRAM)
    assert [len(part.visible) for part in parts] == [4096, 204]


def test_an_emoji_of_several_signs_is_never_cut() -> None:
    family = "👨‍👩‍👧"
    parts = split(parse(family * 100), PLAIN, (Length(101, Unit.CODE_POINTS),))
    assert all(set(part.visible.replace(family, "")) == set() for part in parts)


def test_a_fence_opens_again_with_its_language() -> None:
    text = "```py\n" + "x" * 1900 + "\n" + "\n".join(f"row {i}" for i in range(1, 301)) + "\n```"
    parts = split(parse(text), DISCORD, DISCORD_LIMIT)
    assert all(part.text.startswith("```py\n") and part.text.endswith("\n```") for part in parts)
    assert "\n".join(part.visible for part in parts) == text[6:-4]


def test_code_is_cut_at_an_empty_line_where_there_is_one_near() -> None:
    text = "\n\n".join(f"def f_{i}():\n    a = {i}\n    return a" for i in range(9))
    parts = split(parse(f"```py\n{text}\n```"), PLAIN, (Length(120, Unit.CODE_POINTS),))
    assert len(parts) > 2 and all(part.visible.startswith("def") for part in parts)
    assert "\n\n".join(part.visible for part in parts) == text


def test_rows_of_a_table_are_not_cut() -> None:
    table = "| Name | Value |\n|---|---|\n" + "\n".join(f"| n{i} | {i} |" for i in range(1, 221))
    parts = split(parse(table), TELEGRAM_HTML, (Length(500, Unit.CODE_POINTS),))
    rows = [line for part in parts for line in part.visible.split("\n")]
    assert len(parts) > 2 and len(rows) == 222
    assert [line.split() for line in rows[2:]] == [[f"n{i}", "|", str(i)] for i in range(1, 221)]


def test_a_list_goes_on_with_its_number() -> None:
    text = "\n".join(f"{i}. entry number {i}" for i in range(3, 40))
    parts = split(parse(text), MATRIX_HTML, (Length(700, Unit.BYTES, Of.JSON),))
    assert len(parts) > 1
    for part in parts:
        first = part.visible.split(".")[0]
        assert (part.formatted or "").startswith(f'<ol start="{first}"><li>entry number {first}</li>')


def test_the_rest_of_an_entry_has_no_second_number() -> None:
    parts = split(parse("3. " + "word " * 100 + "\n4. b"), TELEGRAM_HTML, (Length(200, Unit.CODE_POINTS),))
    assert [part.visible.count("3.") for part in parts] == [1, 0, 0]
    assert "4. b" in parts[-1].visible


def test_a_heading_stays_with_its_text() -> None:
    parts = split(parse("x " * 80 + "\n\n# Title\n\n" + "y " * 60), TELEGRAM_HTML, (Length(200, Unit.CODE_POINTS),))
    assert [part.visible[:5] for part in parts] == ["x x x", "Title"]


def test_a_link_is_not_cut() -> None:
    url = "https://p.example/en/" + "seg/" * 40 + "a?x=1"
    parts = split(parse("w " * 90 + f"[Model A is here]({url}) end"), TELEGRAM_HTML, (Length(190, Unit.CODE_POINTS),))
    assert [part.visible.count("Model A is here") for part in parts] == [0, 1]


def test_the_first_part_may_be_a_caption() -> None:
    parts = split(parse("word " * 300), TELEGRAM_HTML, TELEGRAM, first=(Length(1024, Unit.CODE_POINTS),))
    assert [len(part.visible) <= limit for part, limit in zip(parts, (1024, 4096), strict=True)] == [True, True]
    assert " ".join(part.visible for part in parts).split() == ["word"] * 300


def test_truncating_ends_with_an_ellipsis_and_no_open_markup() -> None:
    short = truncate(parse("status line. " * 314 + "**bold end** tail & more `code`"), TELEGRAM_HTML, TELEGRAM)
    assert short.visible.endswith("…") and 4000 < len(short.visible) <= 4096
    assert truncate(parse("**a**"), TELEGRAM_HTML, TELEGRAM) == render(parse("**a**"), TELEGRAM_HTML)


def test_labels_that_pretend_show_where_they_lead() -> None:
    def shown(text: str) -> str:
        return render(parse(text), TELEGRAM_HTML).visible

    assert shown("[https://bank.example](https://evil.test)") == "https://bank.example (https://evil.test)"
    assert shown("[bank.example](https://evil.test/bank.example)") == "bank.example (https://evil.test/bank.example)"
    assert shown("[bank.example](https://bank.example/)") == "bank.example"
    assert shown("[README.md](https://h.test/README.md)") == "README.md"
    assert shown("[here](/relative)") == "here (/relative)"


def test_text_nested_ten_thousand_deep_is_shown() -> None:
    for mark in ("> ", "- ", "1. "):
        for dialect in DIALECTS:
            assert "needle" in render(parse(mark * 10_000 + "needle"), dialect).visible


def test_east_asian_columns_line_up() -> None:
    text = render(parse("|a|b|\n|-|-|\n|漢字|x|\n|abcd|y|"), PLAIN).visible
    assert len({width(line.split("|")[0]) for line in text.split("\n") if "|" in line}) == 1


def test_a_terminal_gets_no_sequence_of_the_text() -> None:
    assert strip_controls("a\x1b]0;title\x07b\x1b[2Jc\x9b31md\r\ne\rf\x08") == "abcd\nef"
    assert strip_controls("x\x1b]52;c;never ended\nnext line") == "x\nnext line"
    assert render(parse("a\u202eb\x1b[31mc"), TERMINAL).text == "a\\u202ebc"


def test_a_terminal_gets_the_text_and_the_same_in_colours() -> None:
    rendered = render(parse("**b** and `c`\n\n- d"), TERMINAL)
    assert rendered.text == rendered.visible == "b and c\n\n• d"
    assert rendered.formatted == "\x1b[1mb\x1b[22m and \x1b[36mc\x1b[39m\n\n• d"
    assert render(verbatim("**b**"), TERMINAL).formatted is None


def test_entries_of_a_loose_list_stand_apart_even_behind_a_tight_one() -> None:
    text = "1. a\n\n   - x\n   - y\n\n2. b\n\n   - z"
    assert render(parse(text), PLAIN).text == "1. a\n   - x\n   - y\n\n2. b\n   - z"
    assert render(parse("- a\n  - b\n\n    c\n- d\n  > q\n- e"), PLAIN).text == "- a\n  - b\n\n    c\n- d\n>   q\n- e"


def test_code_in_a_quote_can_be_copied() -> None:
    assert render(parse("> a\n>\n> ```\n> b\n> c\n> ```\n>\n> d"), PLAIN).text == "> a\n\nb\nc\n\n> d"


def test_links_in_a_table_can_be_followed() -> None:
    document = parse("|a|b|\n|-|-|\n|[one](https://h.test/1)|2|\n|[one](https://h.test/1)|[two](https://h.test/2)|")
    table = "a   | b\n----+----\none | 2\none | two"
    assert render(document, TELEGRAM_HTML).text == (
        f'<pre>{table}</pre>\n\n<a href="https://h.test/1">one</a> · <a href="https://h.test/2">two</a>'
    )
    addresses = "one (https://h.test/1) · two (https://h.test/2)"
    assert render(document, PLAIN).text == render(document, EMAIL_HTML).text == f"{table}\n\n{addresses}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$a_1 * b_2 * c_3$ and $x\\,\\{y\\}$", "$a_1 * b_2 * c_3$ and $x\\,\\{y\\}$"),
        ("$$\nf(x) &= x^2 \\\\\n- g_1 * h_1 * i\n= 0\n$$", "$$\nf(x) &= x^2 \\\\\n- g_1 * h_1 * i\n= 0\n$$"),
        ("\\(a_1*b*c\\) and\n\\[\nx \\\\\n\\alpha_1\n\\]", "(a_1*b*c) and\n[\nx \\\\\n\\alpha_1\n]"),
        ("**$5** or **$6_000**, $x$*y*$z$ \\[a\\](b) $1-$2", "$5 or $6_000, $x$y$z$ [a](b) $1-$2"),
        ("|a|\n|-|\n|$x_1\\|y_1$|", "a\n---------\n$x_1|y_1$"),
        ("```\n$a_b$ \\(\n```\n\\)", "$a_b$ \\(\n\n)"),
    ],
)
def test_formulas_keep_every_sign_inside(text: str, shown: str) -> None:
    assert render(parse(text), PLAIN).text == shown


@pytest.mark.parametrize(
    ("text", "bold"),
    [
        ("**注意：**请", "注意："),
        ("请**「重要」**です", "「重要」"),
        ("这是**“引用”**的", "“引用”"),
        ("**강조(강)**은", "강조(강)"),
        ("他说**你好。**然后，强调", "你好。"),
        ("使用**`pip`**安装", "pip"),
        ("文本**✅ 完成**文本", "✅ 完成"),
    ],
)
def test_writing_without_spaces_may_stand_beside_emphasis(text: str, bold: str) -> None:
    html = render(parse(text), TELEGRAM_HTML).text
    assert ("Bold", bold) in {(entity.kind, entity.text) for entity in telegram(html.replace("code>", "u>"))[1]}
    assert "*" not in html


def test_no_part_has_more_entities_than_telegram_keeps() -> None:
    text = "\n".join(f"- **bold {i}**, `code` and [link](https://h.test/{i})" for i in range(60))
    parts = split(parse(text), TELEGRAM_HTML, (*TELEGRAM, Length(100, Unit.STRETCHES, Of.RAW)))
    assert [len(telegram(part.text)[1]) for part in parts] == [99, 81]
    assert len(split(verbatim("</b>" * 200), PLAIN, (Length(100, Unit.STRETCHES, Of.RAW), *TELEGRAM))) == 1


def test_no_name_rings_where_telegram_refuses_the_markup() -> None:
    rendered = render(parse("@john_doe `@jane_doe`\n\n```\n@jack_doe\n```"), TELEGRAM_HTML)
    assert telegram_mentions(rendered.visible) == []
    assert "<code>@jane_doe</code>" in rendered.text and "<pre>@jack_doe</pre>" in rendered.text


def test_text_above_and_below_the_line() -> None:
    text = "H<sub>2</sub>O x<sup>10</sup> e<sup>-x</sup> a<sub>i</sub> <sup>*b*</sup> <sup></sup> <sup>open"
    assert render(parse(text), PLAIN).text == "H\u2082O x\u00b9\u2070 e^(-x) a_i ^b  <sup>open"


def test_what_nobody_sees_ends_an_address() -> None:
    for sign in "\u200b\u2060\ufeff\u200f\u202c":
        spans = parse(f"https://h.test/a{sign}b").blocks[0].spans  # type: ignore[union-attr]
        assert [span.text for span in spans] == ["https://h.test/a", f"{sign}b"]


def test_an_address_that_ends_with_a_sign_without_escape_is_escaped() -> None:
    assert render(parse("<https://h.test/?a&b_>"), SLACK_MRKDWN).text == (
        "<https://h.test/?a&amp;b_|https://h.test/?a&amp;b>_"
    )


def test_a_document_is_a_value() -> None:
    assert parse("*a*\n\n- b") == parse("*a*\n\n- b")
    assert hash(parse("*a*\n\n- b")) == hash(parse("*a*\n\n- b"))
    assert parse("") == Document(())


def test_the_rest_of_an_entry_has_no_second_number_in_html() -> None:
    parts = split(parse("3. " + "word " * 100 + "\n4. b"), MATRIX_HTML, (Length(500, Unit.BYTES, Of.JSON),))
    assert [(part.formatted or "").count('<ol start="3">') for part in parts] == [1, *[0] * (len(parts) - 1)]
    assert (parts[-1].formatted or "").endswith('<ol start="4"><li>b</li></ol>')


def test_signs_on_a_screen_take_their_columns() -> None:
    assert [width(text) for text in ("ab", "漢字", "👨‍👩‍👧", "e\u0301")] == [2, 4, 2, 1]


def test_json_lengths_count_both_texts_with_their_escapes() -> None:
    rendered = render(parse('"a"\nb'), MATRIX_HTML)
    assert (rendered.text, rendered.formatted) == ('"a"\nb', "<p>&quot;a&quot;<br>b</p>")
    assert Length(100, Unit.BYTES, Of.JSON).size(rendered) == 8 + 25


def test_three_backticks_in_a_text_open_no_fence() -> None:
    for dialect in (SLACK_MRKDWN, WHATSAPP, DISCORD):
        assert "```" not in render(verbatim("see ```py there"), dialect).text


def test_discord_signs_of_the_text_are_escaped() -> None:
    assert render(verbatim("[a](https://h.test) *b* _c_ ||d|| ~e~"), DISCORD).text == (
        "\\[a]\\(https://h.test) \\*b\\* \\_c\\_ \\|\\|d\\|\\| \\~e\\~"
    )
    assert render(verbatim("# a\n- b\n> c\n1. d\n-# e"), DISCORD).text == "\\# a\n\\- b\n\\> c\n1\\. d\n\\-# e"


def test_discord_has_headings_of_three_levels() -> None:
    assert render(parse("### a\n\n#### b"), DISCORD).text == "### a\n**b**"


def test_a_part_that_is_nearly_full_is_not_filled_with_the_beginning_of_a_long_block() -> None:
    text = "x" * 160 + "\n\n" + "word " * 60
    assert split(parse(text), PLAIN, (Length(200, Unit.CODE_POINTS),))[0].visible == "x" * 160
