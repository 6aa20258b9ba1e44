"""Every spelling of a recipient that the docs name, and where it leads; what is none, and what the platform refuses."""

import pytest

from messaging_core.message import Conversation
from tests.adapters.loopback import reply
from tests.material import png
from tests.platforms import slack, telegram
from tests.platforms.doors import DISCORD, SIGNAL, SIGNAL_REST, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, doors
from tests.platforms.signal import GROUP, UUID

FORMS = [
    (TELEGRAM, "42", "42", None),
    (TELEGRAM, "-1001234567890", "-1001234567890", None),
    (TELEGRAM, "-1001234567890/7", "-1001234567890", "7"),
    (TELEGRAM, "-1001234567890/1", "-1001234567890", None),
    (TELEGRAM, "@OpsLead", "-1009876543210", None),
    (TELEGRAM, "@opslead", "-1009876543210", None),
    (DISCORD, "789", "789", None),
    (DISCORD, "channel:1234567890123456789", "1234567890123456789", None),
    (DISCORD, "<#790>", "790", None),
    (DISCORD, "789/800", "789", "800"),
    (DISCORD, "800", "789", "800"),
    (SLACK, "C0000000002", "C0000000002", None),
    (SLACK, "G0000000006", "G0000000006", None),
    (SLACK, "#random", "C0000000002", None),
    (SLACK, "C0123456789/1712345678.123456", "C0123456789", "1712345678.123456"),
    (WHATSAPP, "+16505551234", "16505551234", None),
    (WHATSAPP, "+1 (650) 555-1234", "16505551234", None),
    (WHATSAPP, "16505551234", "16505551234", None),
    (WHATSAPP, "US.13491208655302741918", "US.13491208655302741918", None),
    (WHATSAPP, "group:Y2FwaV9ncm91cDox", "Y2FwaV9ncm91cDox", None),
    (
        WHATSAPP,
        "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD",
        "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD",
        None,
    ),
]


@pytest.mark.parametrize(("door", "written", "to", "thread"), FORMS, ids=[f"{d}-{w}" for d, w, _, _ in FORMS])
def test_each_form_of_a_recipient_leads_there(door, written, to, thread, tmp_path):
    """For a text and for a file."""
    with door.open(tmp_path) as (front, far_end):
        text = front.send(text="x", recipient=written)
        media = front.send(media_path=front.file("a.png", png()), recipient=written, caption="y")
    arrived = door.arrived(far_end)
    assert [(one.to, one.thread, one.text) for one in arrived] == [(to, thread, "x"), (to, thread, "y")], text.message
    assert text.ok and media.ok and far_end.refused == []
    assert media.details["ids"] == [arrived[1].id]


@doors(SIGNAL)
@pytest.mark.parametrize("written", ["+15550003333", UUID, "alice.01", f"group:{GROUP}"])
def test_each_form_of_a_signal_recipient_leads_there(door, written, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient=written)
    (one,) = door.arrived(far_end)
    assert one.to == written.removeprefix("group:") and result.ok and far_end.refused == []


PERSONS = [(DISCORD, "user:42"), (DISCORD, "<@42>"), (SLACK, "U0000000001"), (SLACK, "W0000000002")]


@pytest.mark.parametrize(("door", "person"), PERSONS)
def test_a_persons_dm_is_opened_once_and_remembered(door, person, tmp_path):
    key = {"<@42>": "42", "user:42": "42"}.get(person, person)
    with door.open(tmp_path) as (front, far_end):
        for caption in ("one", "two"):
            result = front.send(media_path=front.file("a.png", png()), caption=caption, recipient=person)
            assert result.ok, result.message
        front.send(text="three", recipient=person)
    assert [(one.to, one.text) for one in door.arrived(far_end)] == [
        (far_end.dms[key], t) for t in ("one", "two", "three")
    ]
    assert far_end.opened == [key] and far_end.refused == []


def test_a_person_who_takes_no_messages_is_told_as_such(tmp_path):
    with DISCORD.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient="user:43")
    assert (
        result.details["error"]["class"] == "InvalidRecipient" and "Cannot send messages to this user" in result.message
    )
    with TELEGRAM.open(tmp_path) as (front, far_end):
        blocked, unknown = front.send(text="x", recipient="66"), front.send(text="x", recipient="67")
    assert "bot was blocked by the user" in blocked.message and "can't initiate conversation" in unknown.message
    assert not blocked.ok and not unknown.ok and far_end[66].messages == []


UNKNOWN = [
    (TELEGRAM, "4242", "chat not found"),
    (TELEGRAM, "@alice", "chat not found"),
    (TELEGRAM, "-1001234567890/9", "message thread not found"),
    (DISCORD, "999", "Unknown Channel"),
    (DISCORD, "803", "Missing Access"),
    (DISCORD, "801", "Thread is archived"),
    (DISCORD, "user:999", "Invalid Recipient(s)"),
    (SLACK, "C0999999999", "channel_not_found"),
    (SLACK, "C0000000004", "not_in_channel"),
    (SLACK, "C0000000005", "is_archived"),
    (SLACK, "#nosuch", "channel_not_found"),
    (WHATSAPP, "+16505550099", "24 hours"),
    (WHATSAPP, "+16505550098", "Undeliverable"),
]


@pytest.mark.parametrize(("door", "written", "reason"), UNKNOWN, ids=[f"{d}-{w}" for d, w, _ in UNKNOWN])
def test_what_the_platform_does_not_know_or_reach_is_never_a_bare_400(door, written, reason, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient=written)
    assert result.details["status"] == "failed" and reason in result.message
    assert door.arrived(far_end) == []


NONE = ["123/../../guilds/1", "0x1F", "12.5", "４２", "4 2", "-", "@", "#", "user:", "42,43", "42;43", "*", "<@&1>"]


@doors(TELEGRAM, DISCORD, WHATSAPP, SLACK)
@pytest.mark.parametrize("written", NONE)
def test_what_is_no_recipient_leaves_nothing(door, written, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(text="x", recipient=written)
    assert result.details["status"] == "refused" and far_end.calls == [] and far_end.refused == []
    assert result.details["error"]["class"] == "InvalidRecipient" and "expected" in result.message


@doors(TELEGRAM, DISCORD)
@pytest.mark.parametrize("written", [" 43", "43\n", "43 "])
def test_blank_ends_of_a_recipient_are_taken_off_before_it_is_judged(door, written, tmp_path):
    with door.open(tmp_path, allowed_users=["44"]) as (front, far_end):
        result = front.send(text="x", recipient=written)
    assert result.details["error"]["class"] == "RecipientBlocked" and "'43'" in result.message and far_end.calls == []


@doors(WEBHOOK)
def test_a_webhook_takes_no_recipient_but_a_thread_of_its_own(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        refused = front.send(text="x", recipient="790")
        asked = Conversation(channel="main", thread="800")
        inside = front.send(asked, text="here")
        file = front.send(asked, media_path=front.file("a.png", png()))
    assert not refused.ok and inside.ok and file.ok
    assert [(one.thread, one.text) for one in door.arrived(far_end)] == [("800", "here"), ("800", "")]
    with door.open(tmp_path, thread_id="800") as (front, far_end):
        front.send(text="x")
    assert [one.thread for one in door.arrived(far_end)] == ["800"]


def test_a_topic_of_the_settings_belongs_to_the_default_chat_alone(tmp_path):
    with TELEGRAM.open(tmp_path, chat_id=-1001234567890, message_thread_id=7) as (front, far_end):
        front.send(text="a")
        front.send(text="b", recipient="42")
        front.send(text="c", recipient="-1001234567890/8")
    assert [(one.to, one.thread, one.text) for one in TELEGRAM.arrived(far_end)] == [
        ("42", None, "b"),
        ("-1001234567890", "7", "a"),
        ("-1001234567890", "8", "c"),
    ]
    assert far_end.refused == []


# --- Groups that moved, names that are looked up ----------------------------------------------------------------------


def test_a_group_that_became_a_supergroup_is_followed_noted_and_remembered(tmp_path):
    with TELEGRAM.open(tmp_path) as (front, far_end):
        first = front.send(media_path=front.file("a.png", png()), caption="one", recipient="-55")
        second = front.send(text="two", recipient="-55")
    assert far_end[-1005555555555].texts == ["one", "two"] and far_end[-55].messages == []
    assert first.ok and "-1005555555555" in first.message and second.ok
    assert len(far_end.refused) == 1 and "upgraded" in far_end.refused[0]


def test_a_group_that_moves_in_the_middle_of_a_text_is_followed_from_there(tmp_path):
    moved = reply(
        400,
        json={
            "ok": False,
            "error_code": 400,
            "description": "Bad Request: group chat was upgraded to a supergroup chat",
            "parameters": {"migrate_to_chat_id": -1005555555555},
        },
    )
    with TELEGRAM.open(tmp_path) as (front, far_end):
        far_end.script("sendMessage", None, moved)
        result = front.send(text="word " * 2000, recipient="-1001234567890")
    parts = far_end[-1001234567890].texts + far_end[-1005555555555].texts
    assert result.ok and " ".join(parts).split() == ["word"] * 2000 and len(far_end[-1001234567890].texts) == 1


def test_two_chats_that_point_at_each_other_end(tmp_path):
    """A server that sends a chat round in circles is followed once."""
    chats = (telegram.Chat(-1, "group", migrated_to=-2), telegram.Chat(-2, "group", migrated_to=-1))
    with TELEGRAM.open(tmp_path, telegram.Telegram(*chats), chat_id=-1) as (front, far_end):
        result = front.send(text="x")
    assert not result.ok and len(far_end.refused) == 2


def test_a_name_in_slack_is_found_on_a_later_page_and_remembered(tmp_path):
    with SLACK.open(tmp_path) as (front, far_end):
        path = front.file("a.png", png())
        first = front.send(media_path=path, recipient="#alerts")
        looked = far_end.calls.count("conversations.list")
        front.send(media_path=path, recipient="#alerts")
        front.send(text="to a place that a text has taught", recipient="#random")
        front.send(media_path=path, recipient="#random")
    assert first.ok and looked == 2 and far_end.calls.count("conversations.list") == looked
    assert [one.file is not None for one in far_end["C0000000003"].messages] == [True, True]
    assert [one.file is not None for one in far_end["C0000000002"].messages] == [False, True]
    assert far_end.refused == []


def test_a_name_whose_channel_is_gone_is_not_remembered_for_ever(tmp_path):
    """The channel behind a name is another one now: the next file finds it."""
    with SLACK.open(tmp_path) as (front, far_end):
        path = front.file("a.png", png())
        front.send(media_path=path, recipient="#alerts")
        del far_end.channels["C0000000003"]
        far_end.channels["C0000000013"] = slack.Channel("C0000000013", "alerts")
        results = [front.send(media_path=path, recipient="#alerts") for _ in range(2)]
    assert results[-1].ok, results[-1].message
    assert far_end["C0000000013"].messages


def test_a_missing_scope_is_named(tmp_path):
    with SLACK.open(tmp_path, slack.Slack(scopes=())) as (front, far_end):
        for recipient, scope in (("U0000000001", "im:write"), ("#ops", "channels:read")):
            result = front.send(media_path=front.file("a.png", png()), recipient=recipient)
            assert not result.ok and scope in result.message
    assert far_end.uploads == {} or all(not one.messages for one in far_end.channels.values())


# --- Verified before sending ------------------------------------------------------------------------------------------


@doors(TELEGRAM, DISCORD, SLACK)
def test_with_verify_recipient_the_platform_is_asked_first(door, tmp_path):
    bad = {"telegram": "4242", "discord": "999", "slack": "C0999999999"}[door.platform]
    with door.open(tmp_path, verify_recipient=True) as (front, far_end):
        good, unknown = front.send(text="x"), front.send(text="x", recipient=bad)
    assert good.ok and unknown.details["error"]["class"] == "InvalidRecipient"
    assert [one.text for one in door.arrived(far_end)] == ["x"] and far_end.calls.count(door.call) == 1


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP, SIGNAL, SIGNAL_REST)
def test_the_probe_finds_nothing_wrong_and_writes_nothing(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        found = dict(front.messenger.probe("main"))
    assert found == {"main": None} and door.arrived(far_end) == [] and far_end.refused == [] and far_end.calls
