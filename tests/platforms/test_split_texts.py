"""Long texts as their readers get them: whole, in order, within the limit as the platform counts it, nothing cut open."""

import re
import time

import pytest

from tests.material import png
from tests.platforms.doors import DISCORD, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, doors

LIMITED = doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
"""The models refuse what is over the platform's own limit, so a delivered text was within it."""


@LIMITED
@pytest.mark.parametrize(
    "sign", ["🎯", "ü", "図", "e\u0301", "👩‍👩‍👧‍👦", "🇩🇪"], ids=["emoji", "umlaut", "cjk", "combined", "family", "flag"]
)
def test_no_sign_is_lost_or_cut_open(door, sign, tmp_path):
    """Whatever the unit of the limit, and however many code points a sign has."""
    count = 8600 // len(sign)
    with door.open(tmp_path, max_parts=100) as (front, far_end):
        result = front.send(text=sign * count)
    parts = [one.text for one in door.arrived(far_end)]
    assert "".join(parts) == sign * count and len(parts) > 1, result.message
    assert all(len(part) % len(sign) == 0 and part.startswith(sign) for part in parts)
    assert far_end.refused == []


def test_telegram_counts_code_points(tmp_path):
    """4300 signs beyond the basic plane are 8600 UTF-16 units, and two messages."""
    with TELEGRAM.open(tmp_path) as (front, far_end):
        front.send(text="🎯" * 4300)
    assert [len(text) for text in far_end[42].texts] == [4096, 204]


@LIMITED
def test_every_row_of_a_long_table_is_shown_once_in_order(door, tmp_path):
    rows = "\n".join(f"| n{row} | {row} | r |" for row in range(1, 221))
    with door.open(tmp_path, max_parts=100) as (front, far_end):
        result = front.send(text=f"| Name | Value | Remark |\n|---|---|---|\n{rows}")
    parts = [one.text for one in door.arrived(far_end)]
    assert result.ok and far_end.refused == []
    assert re.findall(r"\bn(\d+)\b", "\n".join(parts)) == [str(row) for row in range(1, 221)]
    assert all(re.search(rf"\bn{row}\b[^\n]*\b{row}\b[^\n]*\br\b", "\n".join(parts)) for row in (1, 110, 220))
    assert "|---|" not in "".join(parts)


@doors(DISCORD, WEBHOOK)
def test_code_behind_an_endless_info_line_ends_and_keeps_its_fences(door, tmp_path):
    text = "```" + "x" * 1900 + "\n" + "\n".join(f"row {row}" for row in range(1, 301)) + "\n```"
    began = time.monotonic()
    with door.open(tmp_path, max_parts=100) as (front, far_end):
        result = front.send(text=text)
    parts = [one.text for one in door.arrived(far_end)]
    assert result.ok and len(parts) <= 12 and time.monotonic() - began < 5
    assert all(part.count("```") == 2 for part in parts if "row " in part)
    assert re.findall(r"row (\d+)", "\n".join(parts)) == [str(row) for row in range(1, 301)]


@doors(DISCORD, SLACK, WHATSAPP)
def test_each_part_of_long_code_opens_and_closes_its_fence(door, tmp_path):
    text = "before\n\n```python\n" + "\n".join(f"print({line})" for line in range(900)) + "\n```\n\nafter"
    with door.open(tmp_path) as (front, far_end):
        assert front.send(text=text).ok
    parts = [one.text for one in door.arrived(far_end)]
    assert len(parts) > 2 and all(part.count("```") % 2 == 0 for part in parts)
    assert re.findall(r"print\((\d+)\)", "\n".join(parts)) == [str(line) for line in range(900)]
    if door is DISCORD:
        assert all("```python\n" in part for part in parts if "print" in part)


def test_text_that_fits_no_caption_is_a_text_of_its_own(tmp_path):
    with TELEGRAM.open(tmp_path) as (front, far_end):
        result = front.send(text="word " * 300, media_path=front.file("p.png", png()))
    assert [one.method for one in far_end[42].messages] == ["sendPhoto", "sendMessage"]
    assert " ".join(far_end[42].texts).split() == ["word"] * 300 and "follows as text" in result.message


def test_a_cut_says_so_and_never_goes_through_markup(tmp_path):
    text = "status line. " * 314 + "**bold end** tail & more `code`"
    for more in ("", " more" * 9, " x" * 400):
        with TELEGRAM.open(tmp_path, overflow="truncate") as (front, far_end):
            result = front.send(text=text + more)
        (one,) = far_end[42].messages
        assert far_end.refused == [] and one.text.startswith("status line. status line.")
        assert 4000 < len(one.text) <= 4096 and f"cut to {len(one.text)} of" in result.message


def test_with_overflow_reject_a_long_text_leaves_nothing(tmp_path):
    with TELEGRAM.open(tmp_path, overflow="reject") as (front, far_end):
        result = front.send(text="x" * 4097)
        exact = front.send(text="x" * 4096)
    assert result.details["error"]["class"] == "TooLarge" and "4096" in result.message and exact.ok
    assert far_end.calls == ["sendMessage"]


def test_no_part_begins_or_ends_inside_a_link(tmp_path):
    url = "https://p.example/en/" + "seg/" * 40 + "a?x=1"
    text = f"**[Model A]({url})** or **[Model B](https://p.example/b)**.\n\n" + "Lorem ipsum dolor. " * 400
    with TELEGRAM.open(tmp_path) as (front, far_end):
        front.send(text=text)
    first = far_end[42].messages[0]
    assert first.text.startswith("Model A or Model B.") and ("TextUrl", "Model A", url) in first.entities
    assert all("p.example" not in text for text in far_end[42].texts) and far_end.refused == []


@LIMITED
def test_more_parts_than_allowed_become_one_file(door, tmp_path):
    """With the whole text in it, and the result says so."""
    text = "\n".join(f"line {number} of a very long log" for number in range(3000))
    with door.open(tmp_path, max_parts=3) as (front, far_end):
        result = front.send(text=text)
    (one,) = door.arrived(far_end)
    assert one.file.data.decode() == text and one.file.name == "message.md" and "as a file" in result.message
    assert result.ok and result.details["ids"] == [one.id]


@LIMITED
def test_a_long_reply_with_a_file_keeps_its_order(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        arguments = {"reply_to": door.reply[0], "channel": "main"} if door.reply else {}
        result = front.send(media_path=front.file("p.png", png()), caption="word " * 2000, **arguments)
    arrived = door.arrived(far_end)
    assert arrived[0].file.data == png() and " ".join(one.text for one in arrived).split() == ["word"] * 2000
    assert result.ok and result.details["ids"] == [one.id for one in arrived]
    if door.reply:
        assert arrived[0].reply_to == door.reply[0]
