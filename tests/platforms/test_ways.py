"""Where a platform refuses one way and another is left; and answers that look like a success."""

import pytest

from messaging_core.channels.telegram import CHANNEL as TELEGRAM_CHANNEL
from tests.adapters.loopback import Item, raw, reply
from tests.material import MP3, ogg_opus, png
from tests.platforms import discord, slack, telegram, whatsapp
from tests.platforms.doors import DISCORD, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, doors

# --- Telegram ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(9999, 2), (2, 41), (6000, 4001)])
def test_a_picture_beyond_the_limits_goes_as_a_file_at_once(size, tmp_path):
    with TELEGRAM.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file("tall.png", png(*size)), caption="page")
    (one,) = far_end[42].messages
    assert (one.method, one.text) == ("sendDocument", "page") and "as a file" in result.message
    assert far_end.calls == ["sendDocument"]


@pytest.mark.parametrize(
    "why",
    [
        "Bad Request: PHOTO_INVALID_DIMENSIONS",
        "Bad Request: IMAGE_PROCESS_FAILED",
        "Bad Request: PHOTO_SAVE_FILE_INVALID",
        "Bad Request: file is too big for a photo; the maximum size is 10485760 bytes",
    ],
)
def test_a_picture_that_the_platform_refuses_goes_as_a_file(why, tmp_path):
    with TELEGRAM.open(tmp_path) as (front, far_end):
        far_end.script("sendPhoto", telegram.refusal(why))
        result = front.send(media_path=front.file("a.png", png()), caption="see *it*", reply_to="900", channel="main")
    (one,) = far_end[42].messages
    assert (one.method, one.text, one.reply_to, one.file.data) == ("sendDocument", "see it", 900, png())
    assert result.ok and "as a file" in result.message and result.details["ids"] == [str(one.id)]


def test_a_picture_that_is_refused_both_ways_leaks_no_path(tmp_path):
    """Neither to the model nor into any request; and nothing is sent in the picture's stead."""
    with TELEGRAM.open(tmp_path) as (front, far_end):
        far_end.script("sendDocument", telegram.refusal("Bad Request: file is too big"))
        result = front.send(media_path=front.file("tall.png", png(2, 60)), caption="page")
        audit = str(front.audit)
    assert result.details["status"] == "failed" and "file is too big" in result.message
    assert str(tmp_path) not in result.message and far_end[42].messages == [] and len(far_end.calls) == 1
    assert "tall.png" in audit


@pytest.mark.parametrize(
    "why", ["Bad Request: can't parse entities: Unsupported start tag", "Bad Request: CAN'T PARSE ENTITIES"]
)
def test_markup_that_is_refused_goes_once_as_plain_text(why, tmp_path):
    with TELEGRAM.open(tmp_path) as (front, far_end):
        far_end.script("sendMessage", telegram.refusal(why))
        result = front.send(text="**a** < `b` & c")
        far_end.script("sendPhoto", telegram.refusal(why))
        media = front.send(media_path=front.file("a.png", png()), caption="**a** < `b`")
        far_end.script("sendMessage", telegram.refusal(why), telegram.refusal(why))
        never = front.send(text="**a**")
    assert far_end[42].texts == ["a < b & c", "a < b"]
    assert all(one.entities == [] for one in far_end[42].messages)
    assert "as plain text" in result.message and "as plain text" in media.message
    assert never.details["status"] == "failed" and far_end.calls.count("sendMessage") == 4


def test_several_ways_after_each_other_end(tmp_path):
    """Markup refused, then the picture too: one message, as a plain file."""
    with TELEGRAM.open(tmp_path) as (front, far_end):
        far_end.script(
            "sendPhoto",
            telegram.refusal("Bad Request: can't parse entities: x"),
            telegram.refusal("Bad Request: IMAGE_PROCESS_FAILED"),
        )
        result = front.send(media_path=front.file("a.png", png()), caption="**a**")
    (one,) = far_end[42].messages
    assert (one.method, one.text, one.entities) == ("sendDocument", "a", [])
    assert "as plain text" in result.message and "as a file" in result.message


def test_html_at_every_length_is_taken(tmp_path):
    """Long texts full of markup: no part is refused, none is over the limit, and what is bold stays bold."""
    text = "\n\n".join(
        f"**point {n}** is `code {n}` and [a link](https://example.test/{n}?a=1&b=2) <b> &amp;" for n in range(200)
    )
    with TELEGRAM.open(tmp_path) as (front, far_end):
        result = front.send(text=text)
    assert result.ok and far_end.refused == []
    bold = [shown for one in far_end[42].messages for kind, shown, _ in one.entities if kind == "Bold"]
    links = [url for one in far_end[42].messages for kind, _, url in one.entities if kind == "TextUrl"]
    assert bold == [f"point {n}" for n in range(200)]
    assert links == [f"https://example.test/{n}?a=1&b=2" for n in range(200)]


# --- Slack ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["not_in_channel", "invalid_auth", "missing_scope", "msg_too_long", "fatal_error", "something_new"]
)
def test_two_hundred_with_ok_false_is_no_success(code, tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        far_end.script("chat.postMessage", slack.refusal(code))
        result = front.send(text="x")
    assert not result.ok and code in result.message and far_end["C0123456789"].messages == []
    assert result.details["status"] == ("unconfirmed" if code == "fatal_error" else "failed")


@pytest.mark.parametrize(
    "item", [reply(body="ok"), reply(json=[]), reply(json={}), reply(json={"ok": "true"}), reply(body="")]
)
def test_two_hundred_that_says_nothing_is_unconfirmed(item, tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        far_end.script("chat.postMessage", item)
        result = front.send(text="x")
    assert result.details["status"] == "unconfirmed" and len(far_end.calls) == 1


def test_the_three_steps_of_a_file_carry_the_token_to_slack_alone(tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        front.send(media_path=front.file("a.png", png()), caption="c")
    assert far_end.calls == ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]
    assert far_end.leaks == [] and far_end.refused == [] and far_end.warn == []


@pytest.mark.parametrize(
    "place", ["http://169.254.169.254/latest", "https://slack.com.evil.test/x", "ftp://slack.com/x", "", "//x"]
)
def test_bytes_go_nowhere_but_to_slack(place, tmp_path):
    answer = reply(json={"ok": True, "upload_url": place, "file_id": "F1"})
    with SLACK.open(tmp_path) as (front, far_end):
        far_end.script("files.getUploadURLExternal", answer)
        result = front.send(media_path=front.file("a.png", png()), caption="c")
    assert result.details["status"] == "failed" and far_end.calls == ["files.getUploadURLExternal"]


@pytest.mark.parametrize("step", ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"])
def test_a_file_that_stops_at_a_step_is_not_there(step, tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        far_end.script(step, *[reply(500, body="oops")] * 6)
        result = front.send(media_path=front.file("a.png", png()), caption="c")
    assert not result.ok and far_end["C0123456789"].messages == []
    assert far_end.calls.count("files.completeUploadExternal") <= 1


# --- Discord ----------------------------------------------------------------------------------------------------------


def test_without_a_body_a_webhook_has_delivered_without_an_id(tmp_path):
    with WEBHOOK.open(tmp_path) as (front, far_end):
        far_end.script("webhook", reply(204), placed=True)
        result = front.send(text="x")
    assert result.ok and result.details["ids"] == [] and far_end["789"].texts == ["x"]


def test_a_dead_webhook_is_named_and_not_asked_again(tmp_path):
    with WEBHOOK.open(tmp_path) as (front, far_end):
        far_end.script("webhook", discord.refusal(404, 10015, "Unknown Webhook"))
        result = front.messenger.call_tool("message", {"channel": "main", "content": "x"})
    assert result.message == "Failed to send to main: 404 Not Found: 10015 Unknown Webhook" and len(far_end.calls) == 1


def test_raw_content_goes_out_as_it_is_and_is_cut_at_2000(tmp_path):
    with WEBHOOK.open(tmp_path) as (front, far_end):
        for content in ("**raw** <b> @everyone", "x" * 2001, "👩‍👩‍👧" * 500):
            assert front.messenger.call_tool("message", {"channel": "main", "content": content}).ok
    first, second, third = far_end["789"].texts
    assert first == "**raw** <b> @everyone" and second == "x" * 1997 + "..."
    assert len(third) <= 2000 and third.removesuffix("...") == "👩‍👩‍👧" * 399
    assert all(one.pings == [] for one in far_end["789"].messages)


@doors(DISCORD, WEBHOOK)
def test_nobody_is_rung_by_any_part_or_file(door, tmp_path):
    text = "@everyone @here <@&123> <@456> hi"
    with door.open(tmp_path) as (front, far_end):
        front.send(text=text)
        front.send(text=f"{text} {'word ' * 600} @here")
        front.send(media_path=front.file("a.txt", b"x"), caption="@everyone")
        if door is DISCORD:
            front.send(text="@everyone", reply_to="5000", channel="main")
            front.send(voice_path=front.file("a.ogg", ogg_opus()), text="@everyone")
    assert all(one.pings == [] and one.body["allowed_mentions"]["parse"] == [] for one in far_end["789"].messages)
    assert far_end["789"].texts[0].replace("\u2060", "").replace("\\", "") == text


def test_mentions_ring_where_the_channel_allows_them(tmp_path):
    with DISCORD.open(tmp_path, mentions="allow") as (front, far_end):
        front.send(text="<@456> hi")
    assert far_end["789"].messages[0].pings == ["<@456>"]


def test_in_slack_nobody_is_rung(tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        front.send(text="<!channel> @here <@U0000000001> & <b>")
        front.send(media_path=front.file("a.txt", b"x"), caption="<!everyone>")
    assert all(one.pings == [] for one in far_end["C0123456789"].messages) and far_end.refused == []


def test_a_bucket_that_is_empty_is_waited_for_before_the_next_message(tmp_path):
    """By the headers of a good answer, so that no refusal is needed to learn it."""
    empty = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "1.7", "X-RateLimit-Bucket": "b"}
    with DISCORD.open(tmp_path) as (front, far_end):
        far_end.script("message", reply(json={"id": "1", "channel_id": "789"}, headers=empty))
        front.send(text="first")
        assert front.clock.slept == []
        front.send(text="elsewhere", recipient="790")
        assert front.clock.slept == []
        front.send(text="second")
        assert 1.5 < sum(front.clock.slept) < 1.9


def test_a_wait_for_everybody_holds_every_channel_of_the_bot(tmp_path):
    with DISCORD.open(tmp_path) as (front, far_end):
        far_end.script("message", *[discord.limited(4.0, everywhere=True)] * 4)
        assert not front.send(text="x").ok
        waited = sum(front.clock.slept)
        assert front.send(text="y", recipient="790").ok
        assert sum(front.clock.slept) - waited > 3.5


@pytest.mark.parametrize(
    "body", ["<html>error code: 1015</html>", "", '{"code": 0}', '{"retry_after": "soon"}', '{"retry_after": -1}']
)
def test_too_many_without_a_readable_wait_is_tried_again_after_a_second_at_least(body, tmp_path):
    for door in (DISCORD, TELEGRAM, SLACK):
        with door.open(tmp_path) as (front, far_end):
            far_end.script(door.call, reply(429, body=body))
            assert front.send(text="x").ok and 1.0 <= sum(front.clock.slept) < 3
            assert len(door.arrived(far_end)) == 1


# --- WhatsApp ---------------------------------------------------------------------------------------------------------


def test_outside_the_window_the_error_says_so(tmp_path):
    with WHATSAPP.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient="+16505550099")
    assert "24 hours" in result.message and not result.ok


def test_a_picture_that_whatsapp_refuses_goes_as_a_document(tmp_path):
    with WHATSAPP.open(tmp_path) as (front, far_end):
        far_end.script("messages", whatsapp.refusal(400, 131053, "(#131053) Media upload error", details="bad image"))
        result = front.send(media_path=front.file("a.png", png()), caption="c")
    (one,) = far_end.messages
    assert (one.type, one.text, one.file.data, one.file.name) == ("document", "c", png(), "a.png")
    assert result.ok and "as a file" in result.message


def test_what_is_too_large_for_its_kind_goes_as_a_document(tmp_path):
    with WHATSAPP.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file("song.mp3", MP3 + bytes(17 * 1024 * 1024)), caption="c")
    assert far_end.messages[0].type == "document" and [one.text for one in far_end.messages if one.text] == ["c"]
    assert "as a file" in result.message and far_end.refused == []


def test_an_upload_that_whatsapp_refuses_leaves_nothing(tmp_path):
    """It does not know yet as what it would be shown, so there is no other way."""
    with WHATSAPP.open(tmp_path) as (front, far_end):
        far_end.script("media", whatsapp.refusal(400, 131053, "(#131053) Media upload error", details="bad image"))
        result = front.send(media_path=front.file("a.png", png()), caption="c")
    assert result.details["status"] == "failed" and "bad image" in result.message and far_end.messages == []


# --- All --------------------------------------------------------------------------------------------------------------


BROKEN: list[Item] = [
    raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{not}"),
    reply(body="<html>"),
    reply(json=None, body="null"),
]


@doors()
@pytest.mark.parametrize("item", BROKEN, ids=["half-json", "html", "null"])
def test_an_answer_that_cannot_be_read_is_never_a_success(door, item, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        far_end.script(door.call, *[item] * 4)
        result = front.send(text="x")
    assert result.details["status"] == "unconfirmed" and "may have arrived" in result.message


def test_too_large_is_refused_before_anything_leaves(tmp_path):
    """With the platform's limit in the error; the file is one of holes, so it costs nothing."""
    limits = {TELEGRAM: "50", DISCORD: "10", WEBHOOK: "10", WHATSAPP: "100"}
    for door in limits:
        with door.open(tmp_path) as (front, far_end):
            path = tmp_path / "big.bin"
            with path.open("wb") as file:
                file.truncate(120 * 1024 * 1024)
            result = front.send(media_path=str(path))
        assert result.details["error"]["class"] == "TooLarge" and far_end.calls == []
    assert TELEGRAM_CHANNEL.limits.any_file == 50_000_000 or TELEGRAM_CHANNEL.limits.any_file == 50 * 1024 * 1024
