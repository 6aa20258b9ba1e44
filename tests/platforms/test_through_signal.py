"""Signal through both of its programs: styles, quotes, groups, and answers that hold more than one truth."""

import pytest

from messaging_adapters.registry import INSTALLED
from tests.adapters.loopback import reply
from tests.material import png
from tests.platforms.doors import SIGNAL, SIGNAL_REST, doors
from tests.platforms.signal import GROUP, UUID, Signal, rest_error, rpc_error

pytestmark = pytest.mark.skipif("signal" not in INSTALLED, reason="there is no channel signal")
BOTH = doors(SIGNAL, SIGNAL_REST)


def test_styles_cover_just_their_words_counted_in_utf_16(tmp_path):
    with SIGNAL.open(tmp_path) as (front, far_end):
        front.send(text="👍🏽 **bold** and *it* `code 😀` ~~old~~ end")
    (one,) = far_end.messages
    assert one.text == "👍🏽 bold and it code 😀 old end"
    assert sorted(one.styles) == [
        ("BOLD", "bold"),
        ("ITALIC", "it"),
        ("MONOSPACE", "code 😀"),
        ("STRIKETHROUGH", "old"),
    ]


def test_the_rest_service_is_told_how_to_read_the_text(tmp_path):
    """By name, since the default is the server's own; what is no markup is escaped."""
    with SIGNAL_REST.open(tmp_path) as (front, far_end):
        front.send(text="**bold** \\*no\\* a_b ~x~ `c`")
        front.messenger.call_tool("message", {"channel": "main", "content": "*raw* ~x~"})
    styled, raw = far_end.messages
    assert styled.mode == "styled" and "**bold**" in styled.text and "\\*no\\*" in styled.text
    assert raw.mode == "normal" and raw.text == "*raw* ~x~" and far_end.refused == []


@BOTH
def test_a_reply_needs_time_and_author(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        assert front.send(text="a", reply_to=f"1712345678901:{UUID}", channel="main").ok
        assert front.send(text="b", reply_to="1712345678901", channel="main").ok  # in a chat with one person
        group = front.send(text="c", reply_to="1712345678901", channel="main", recipient=f"group:{GROUP}")
        wrong = front.send(text="d", reply_to="yesterday", channel="main")
    assert [one.quote for one in far_end.messages] == [(1712345678901, UUID), (1712345678901, "+15550003333")]
    assert not group.ok and not wrong.ok and "reply_to" in group.message and "reply_to" in wrong.message


@BOTH
def test_a_group_and_a_username_are_reached(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        assert front.send(text="x", recipient=f"group:{GROUP}").ok
        assert front.send(text="y", recipient="alice.01").ok
    assert len(far_end.messages) == 2 and far_end.refused == []


@BOTH
def test_a_number_that_is_not_on_signal_is_failed_by_name(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient="+15550004444")
    assert result.details["status"] == "failed" and far_end.messages == []
    assert "registered" in result.message and "+15550004444" in result.message


def test_members_of_a_group_who_were_not_reached_are_named(tmp_path):
    far_end = Signal()
    far_end.failing["+15550006666"] = "NETWORK_FAILURE"
    with SIGNAL.open(tmp_path, far_end) as (front, _):
        result = front.send(text="x", recipient=f"group:{GROUP}")
    assert result.details["status"] == "partial" and len(far_end.messages) == 1 and len(far_end.calls) == 1
    assert "+15550006666" in result.message and "+15550005555" not in result.message


def test_two_hundred_with_a_failure_inside_is_no_success(tmp_path):
    """The daemon answers every error with 200, and some failures inside a result."""
    failed = {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {
            "timestamp": 1,
            "results": [{"recipientAddress": {"number": "+15550003333"}, "type": "NETWORK_FAILURE"}],
        },
    }
    for item in (reply(json=failed), rpc_error(-3, "I/O error"), rpc_error(-32603, "Internal error")):
        with SIGNAL.open(tmp_path) as (front, far_end):
            far_end.script("send", *[item] * 6)
            result = front.send(text="x")
        assert not result.ok and result.details["status"] in ("failed", "unconfirmed"), result.message


def test_a_rate_limit_is_told_with_its_wait_and_not_waited_for_a_day(tmp_path):
    far_end = Signal()
    far_end.failing["+15550003333"] = "RATE_LIMIT_FAILURE"
    with SIGNAL.open(tmp_path, far_end) as (front, _):
        result = front.send(text="x")
        assert sum(front.clock.slept) < 60
    assert result.details["error"]["class"] == "RateLimited" and "FAKE-challenge" not in result.message


@pytest.mark.parametrize("array", [False, True])
def test_both_forms_of_the_rest_answer_are_read(array, tmp_path):
    with SIGNAL_REST.open(tmp_path, Signal(rest=True, array=array)) as (front, far_end):
        result = front.send(text="x")
    assert result.ok and result.details["ids"] == [str(far_end.messages[0].timestamp)]


@pytest.mark.parametrize("array", [False, True])
def test_a_201_with_errors_is_no_success(array, tmp_path):
    answer = {"timestamp": "1", "errors": {"recipients": [{"number": "+15550003333", "reason": "unregistered"}]}}
    with SIGNAL_REST.open(tmp_path) as (front, far_end):
        far_end.script("send", reply(201, json=[answer] if array else answer))
        result = front.send(text="x")
    assert not result.ok and "unregistered" in result.message.lower()


def test_a_429_of_the_rest_service_may_have_delivered(tmp_path):
    """It has answered so although the message was there: it is not repeated."""
    item = reply(429, json={"error": "Rate limit", "challenge_tokens": ["FAKE-challenge"], "account": "+15550002222"})
    with SIGNAL_REST.open(tmp_path) as (front, far_end):
        far_end.script("send", item, placed=True)
        result = front.send(text="x")
    assert not result.ok and len(far_end.messages) == 1 and "FAKE-challenge" not in result.message


@BOTH
def test_a_refusal_in_words_is_passed_on(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        no = rest_error if door is SIGNAL_REST else lambda text: rpc_error(-4, text)
        far_end.script("send", no("Untrusted Identity for +15550003333"))
        result = front.send(media_path=front.file("a.png", png()), caption="c")
    assert not result.ok and "ntrusted" in result.message and far_end.messages == []


@BOTH
@pytest.mark.parametrize("to", ["15550003333", "group:short", "alice", "+15550003333,+15550005555"])
def test_what_is_no_signal_recipient_leaves_nothing(door, to, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient=to)
    assert result.details["status"] == "refused" and far_end.calls == [] and far_end.refused == []
