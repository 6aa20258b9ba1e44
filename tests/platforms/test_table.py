"""Every cell of the capability table over real sockets, judged by what the far end holds."""

import pytest

from tests.adapters.loopback import reset
from tests.material import MP3, ogg_opus, png
from tests.platforms import telegram
from tests.platforms.doors import DISCORD, SIGNAL, SIGNAL_REST, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, Arrived, doors
from tests.platforms.far_end import GIF, HEIC, JPEG, M4A, MP4, PDF, SVG, TXT

REPLYING = doors(TELEGRAM, DISCORD, SLACK, WHATSAPP)

FILES = {
    "chart.png": png(),
    "photo.jpg": JPEG,
    "loop.gif": GIF,
    "drawing.svg": SVG,
    "camera.heic": HEIC,
    "paper.pdf": PDF,
    "film.mp4": MP4,
    "song.mp3": MP3,
    "song.m4a": M4A,
    "notes.txt": TXT,
    "unnamed": b"\0\1\2\3" * 9,
    "größe 図.txt": TXT,
    "ends.txt": b"\r\n--\r\n",
}


def agree(result, arrived: list[Arrived], parts: int | None = None) -> None:
    """What the result says is what the far end holds: the ids, in order, and the number of parts."""
    assert result.details["ids"] == [one.id for one in arrived], result.message
    assert result.details["parts"] == {"delivered": len(arrived), "of": parts or len(arrived)}
    assert all(one.id in result.message for one in arrived)


@doors()
def test_a_short_text_arrives_as_it_is(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="The build is green: 5 µm, 図, 👍🏽")
    (one,) = door.arrived(far_end)
    assert (one.text, one.to, one.file) == ("The build is green: 5 µm, 図, 👍🏽", door.default, None)
    agree(result, [one])
    assert far_end.refused == []


@doors()
def test_a_long_text_arrives_whole_in_order(door, tmp_path):
    lines = [f"line {number} of the report" for number in range(700)]
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="\n".join(lines))
    arrived = door.arrived(far_end)
    assert "\n".join(one.text for one in arrived).split("\n") == lines
    agree(result, arrived)
    assert result.ok and far_end.refused == []


MARKED = {
    "telegram": "bold, it, old and code\n- one\nlink",
    "discord": "**bold**, *it*, ~~old~~ and `code`\n- one\n[link](https://example.test/?a=1&b=2)",
    "slack": "*bold*, _it_, ~old~ and `code`\n- one\n<https://example.test/?a=1&amp;b=2|link>",
    "whatsapp": "*bold*, _it_, ~old~ and `code`\n- one\nlink (https://example.test/?a=1&b=2)",
}


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_markdown_arrives_in_the_platforms_own_dialect(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        front.send(text="**bold**, *it*, ~~old~~ and `code`\n\n- one\n\n[link](https://example.test/?a=1&b=2)")
    (one,) = door.arrived(far_end)
    wanted = MARKED[door.platform.removesuffix("-webhook")]
    assert one.text.replace("•", "-").replace("\n\n", "\n") == wanted
    if door is TELEGRAM:
        assert far_end[42].messages[0].entities == [
            ("Bold", "bold", ""),
            ("Italic", "it", ""),
            ("Strikethrough", "old", ""),
            ("Code", "code", ""),
            ("TextUrl", "link", "https://example.test/?a=1&b=2"),
        ]
    assert far_end.refused == []


@doors()
def test_every_kind_of_file_arrives_byte_for_byte_under_its_name(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        for name, data in FILES.items():
            result = front.send(media_path=front.file(name, data))
            one = door.arrived(far_end)[-1]
            assert (one.file.name, one.file.data, one.to) == (name, data, door.default), result.message
            agree(result, [one])
            assert str(tmp_path) not in result.message
    assert far_end.refused == []


METHODS = {
    "chart.png": "sendPhoto",
    "photo.jpg": "sendPhoto",
    "loop.gif": "sendAnimation",
    "drawing.svg": "sendDocument",
    "camera.heic": "sendDocument",
    "paper.pdf": "sendDocument",
    "film.mp4": "sendVideo",
    "song.mp3": "sendAudio",
    "song.m4a": "sendAudio",
    "notes.txt": "sendDocument",
}
TYPES = {
    "chart.png": "image",
    "photo.jpg": "image",
    "loop.gif": "document",
    "drawing.svg": "document",
    "camera.heic": "document",
    "paper.pdf": "document",
    "film.mp4": "video",
    "song.mp3": "audio",
    "song.m4a": "audio",
    "notes.txt": "document",
}


@pytest.mark.parametrize("name", METHODS)
def test_each_file_goes_by_the_way_that_shows_it(name, tmp_path):
    """By its content, under whatever name."""
    for door, ways in ((TELEGRAM, METHODS), (WHATSAPP, TYPES)):
        with door.open(tmp_path) as (front, far_end):
            front.send(media_path=front.file(name, FILES[name]))
        shown = far_end[42].messages[0].method if door is TELEGRAM else far_end.messages[0].type
        assert shown == ways[name] and far_end.refused == []


AWKWARD = ['say "hi".txt', "back\\slash.txt", "semi; filename=x.txt", "%22 percent%0d.txt", "dots..txt", " ends .txt"]


@doors()
@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_stays_inside_its_quotes(door, name, tmp_path):
    """Signs that a file name may hold on this machine end neither the header nor the quoted name."""
    with door.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file(name, TXT))
    (one,) = door.arrived(far_end)
    assert result.ok and one.file.data == TXT and far_end.refused == []
    assert (
        one.file.name.endswith(".txt") and not set(one.file.name) & set("\r\n/") and str(tmp_path) not in one.file.name
    )


@doors()
def test_a_name_with_a_line_end_adds_no_header(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        from messaging_core.message import Message

        path = front.file('re"port\r\nX-Evil: 1\\end.pdf', PDF)
        outcome = front.messenger.send(Message(media_path=path, text="see"))
    (one,) = door.arrived(far_end)
    assert outcome.ok and far_end.refused == []
    assert one.file.data == PDF and not set(one.file.name) & set("\r\n")


# --- Voice ------------------------------------------------------------------------------------------------------------


@doors(TELEGRAM, DISCORD, WHATSAPP)
@pytest.mark.parametrize("name", ["note.ogg", "note.opus", "note.oga"])
def test_opus_arrives_as_a_voice_message(door, name, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(voice_path=front.file(name, ogg_opus(3)))
    (one,) = door.arrived(far_end)
    assert one.voice and one.file.data == ogg_opus(3)
    agree(result, [one])
    assert "as audio" not in result.message and far_end.refused == []


@doors(TELEGRAM, DISCORD, WHATSAPP)
def test_mp3_is_voice_where_it_may_be_and_audio_elsewhere_as_told(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(voice_path=front.file("summary.mp3", MP3))
    (one,) = door.arrived(far_end)
    assert one.file.data == MP3 and one.voice == (door is TELEGRAM)
    assert ("as audio" in result.message) == (door is not TELEGRAM)


@doors(TELEGRAM, DISCORD, WHATSAPP)
def test_words_with_a_voice_message_are_not_lost(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(voice_path=front.file("note.ogg", ogg_opus()), text="In short: **yes**.")
    arrived = door.arrived(far_end)
    assert arrived[0].voice and "In short:" in "".join(one.text for one in arrived)
    agree(result, arrived)
    assert ("the caption follows as text" in result.message) == (len(arrived) == 2)
    assert far_end.refused == []


@doors(WEBHOOK, SLACK, SIGNAL, SIGNAL_REST)
def test_where_there_is_no_voice_the_refusal_names_who_can(door, tmp_path):
    def config(url):
        return {"channels": {**door.config(url)["channels"], "tg": {"type": "telegram", **TELEGRAM.settings(url)}}}

    from tests.platforms.far_end import front as open_front

    far_end = door.model()
    with open_front(far_end, config, tmp_path) as front:
        result = front.send(voice_path=front.file("note.ogg", ogg_opus()), channel="main")
    assert not result.ok and far_end.calls == []
    assert "Channels that can: tg" in result.message and "voice_as: audio" in result.message


@doors(WEBHOOK, SLACK, SIGNAL, SIGNAL_REST)
def test_voice_as_audio_sends_the_file_and_says_so(door, tmp_path):
    with door.open(tmp_path, voice_as="audio") as (front, far_end):
        result = front.send(voice_path=front.file("note.ogg", ogg_opus()))
    (one,) = door.arrived(far_end)
    assert one.file.data == ogg_opus() and result.ok and "as audio" in result.message and far_end.refused == []


def test_a_channel_without_voice_messages_gets_a_file(tmp_path):
    """Discord's refusal of the voice message, and Telegram's for a person who takes none."""
    with DISCORD.open(tmp_path) as (front, far_end):
        result = front.send(voice_path=front.file("note.ogg", ogg_opus()), recipient="790")
    (one,) = DISCORD.arrived(far_end)
    assert result.ok and not one.voice and one.file.data == ogg_opus() and "as audio" in result.message
    with TELEGRAM.open(tmp_path) as (front, far_end):
        opus = front.send(voice_path=front.file("note.ogg", ogg_opus()), recipient="68")
        mp3 = front.send(voice_path=front.file("note.mp3", MP3), recipient="68")
    assert [one.method for one in far_end[68].messages] == ["sendDocument", "sendAudio"]
    assert "as a file" in opus.message and "as audio" in mp3.message


# --- Replies ----------------------------------------------------------------------------------------------------------


@doors(TELEGRAM, DISCORD, SLACK, WHATSAPP, SIGNAL, SIGNAL_REST)
def test_a_reply_is_tied_to_the_message_that_is_there(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="yes", reply_to=door.reply[0], channel="main")
        with_file = front.send(media_path=front.file("a.png", png()), reply_to=door.reply[0], channel="main")
    arrived = door.arrived(far_end)
    assert [one.reply_to for one in arrived] == [door.reply[0]] * 2
    assert result.ok and with_file.ok and "not as a reply" not in result.message + with_file.message
    assert far_end.refused == []


@REPLYING
def test_a_reply_to_what_is_gone_is_delivered_and_says_so(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="yes", reply_to=door.reply[1], channel="main")
        with_file = front.send(media_path=front.file("a.png", png()), reply_to=door.reply[1], channel="main")
    arrived = door.arrived(far_end)
    assert [(one.text, one.reply_to) for one in arrived] == [("yes", None), ("", None)]
    for said in (result, with_file):
        assert said.ok and "not as a reply" in said.message


@doors(TELEGRAM, DISCORD, WHATSAPP)
def test_of_a_split_reply_the_first_part_is_the_reply(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        front.send(text="word " * 2000, reply_to=door.reply[0], channel="main")
    replies = [one.reply_to for one in door.arrived(far_end)]
    assert replies[0] == door.reply[0] and set(replies[1:]) == {None}


def test_in_slack_every_part_of_a_reply_is_in_the_thread(tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        front.send(text="word " * 2000, reply_to=SLACK.reply[0], channel="main")
    assert {one.thread for one in SLACK.arrived(far_end)} == {SLACK.reply[0]}


@doors(WEBHOOK)
def test_a_webhook_refuses_a_reply(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="yes", reply_to="5000", channel="main")
    assert not result.ok and "cannot send a reply" in result.message and far_end.calls == []


# --- Captions ---------------------------------------------------------------------------------------------------------


@doors()
def test_a_caption_that_fits_goes_with_the_file(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file("a.png", png()), caption="All 42 passed.")
    (one,) = door.arrived(far_end)
    assert one.text == "All 42 passed." and one.file.data == png()
    agree(result, [one])


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_a_caption_fits_to_its_last_sign_and_beyond_it_follows_as_text(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        path = front.file("a.png", png())
        just = front.send(media_path=path, caption="x" * door.caption)
        over = front.send(media_path=path, caption="x" * (door.caption + 1))
    arrived = door.arrived(far_end)
    assert len(arrived[0].text) == door.caption and "follows" not in just.message
    assert arrived[1].file.data == png() and arrived[1].text == ""
    assert "".join(one.text for one in arrived[2:]) == "x" * (door.caption + 1)
    assert over.ok and "the caption follows as text" in over.message
    assert far_end.refused == []


@doors()
def test_caption_and_another_text_arrive_both(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file("a.png", png()), caption="the chart", text="and what it means")
    arrived = door.arrived(far_end)
    assert [one.text for one in arrived] == ["the chart", "and what it means"] and result.ok


# --- Stopping halfway -------------------------------------------------------------------------------------------------


@doors()
def test_a_text_that_is_refused_at_its_third_part_is_partly_there(door, tmp_path):
    """The account names the parts that are there and what the platform said; nothing is tried behind the refusal."""
    count = 12000 if door in (SIGNAL, SIGNAL_REST) else 600
    with door.open(tmp_path) as (front, far_end):
        far_end.script(door.call, None, None, door.no)
        result = front.send(text="\n".join(f"line {number} of the report" for number in range(count)))
        arrived = door.arrived(far_end)
        assert result.details["status"] == "partial" and not result.ok
        agree(result, arrived, result.details["parts"]["of"])
        assert len(arrived) == 2 and result.details["parts"]["of"] > 3 and len(far_end.calls) == 3
        assert "stopped at part 3" in result.message
        resumed = front.messenger.resume(result.outcome)
    whole = door.arrived(far_end)
    assert resumed.ok and list(resumed.ids) == [one.id for one in whole]
    assert [int(line.split()[1]) for one in whole for line in one.text.split("\n")] == list(range(count))


@doors()
def test_a_refused_text_is_failed_with_the_platforms_reason(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        far_end.script(door.call, door.no)
        result = front.send(text="x")
    assert result.details["status"] == "failed" and door.arrived(far_end) == [] and len(far_end.calls) == 1
    assert result.message.startswith("Failed to send to main")


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_the_platforms_own_wait_is_waited_for(door, tmp_path):
    """In its own field and unit, never less and hardly more; then the message is there once."""
    item, seconds = door.flood
    with door.open(tmp_path) as (front, far_end):
        far_end.script(door.call, item)
        result = front.send(text="x")
        slept = sum(front.clock.slept)
    assert result.ok and len(door.arrived(far_end)) == 1 and far_end.calls == [door.call] * 2
    assert seconds <= slept <= seconds * 1.1 + 0.2, front.clock.slept


@doors(TELEGRAM, DISCORD, SLACK)
def test_an_upload_that_is_too_early_waits_too(door, tmp_path):
    calls = {"telegram": "sendPhoto", "discord": "message", "slack": "files.completeUploadExternal"}
    with door.open(tmp_path) as (front, far_end):
        far_end.script(calls[door.platform], door.flood[0])
        result = front.send(media_path=front.file("a.png", png()), caption="c")
        slept = sum(front.clock.slept)
    assert result.ok and [one.file.data for one in door.arrived(far_end)] == [png()]
    assert door.flood[1] <= slept <= door.flood[1] * 1.1 + 1.5


@doors(TELEGRAM)
def test_a_wait_that_is_too_long_is_reported_and_not_waited_for(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        far_end.script("sendMessage", telegram.flooded(3600))
        result = front.send(text="x")
        assert sum(front.clock.slept) < 1
    assert result.details["error"]["class"] == "RateLimited" and "3600" in result.message


@doors()
def test_an_answer_that_never_came_is_unconfirmed_and_not_repeated(door, tmp_path):
    """But on Discord, which knows a repeat by its nonce, the message is asked for again, and there once."""
    with door.open(tmp_path) as (front, far_end):
        far_end.script(door.call, reset(), placed=True)
        result = front.send(text="x")
    (one,) = door.arrived(far_end)
    if door is DISCORD:
        assert result.ok and result.details["ids"] == [one.id] and len(far_end.calls) == 2
    else:
        assert result.details["status"] == "unconfirmed" and "may have arrived" in result.message
        assert len(far_end.calls) == 1


@doors()
def test_the_audit_log_tells_the_same_as_the_far_end(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        front.send(text="a secret plan")
        far_end.script(door.call, door.no)
        front.send(text="a secret plan")
        lines = front.audit
    ended = [line for line in lines if line["phase"] == "end"]
    assert [(line["status"], line["ids"]) for line in ended] == [
        ("delivered", [door.arrived(far_end)[0].id]),
        ("failed", []),
    ]
    assert len(lines) == 4 and "a secret plan" not in str(lines)
