"""Which channel and whom a message reaches, with several channels and conversations side by side."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from messaging_core.message import Conversation
from tests.adapters.loopback import Item
from tests.material import png
from tests.platforms.discord import Discord
from tests.platforms.doors import DISCORD, SLACK, TELEGRAM, WEBHOOK, WHATSAPP
from tests.platforms.far_end import FarEnd, front

TOGETHER = (TELEGRAM, DISCORD, SLACK, WHATSAPP)


class Town(FarEnd):
    """Several platforms behind one address: each has its own paths."""

    def __init__(self) -> None:
        super().__init__()
        self.of = {door.platform: door.model() for door in TOGETHER}

    def __call__(self, request) -> Item:
        path = request.path
        if path.startswith("/bot"):
            name = "telegram"
        elif path.startswith(("/api/v10", "/api/webhooks")):
            name = "discord"
        elif path.startswith("/v25.0"):
            name = "whatsapp"
        else:
            name = "slack"
        return self.of[name](request)

    @property
    def everything(self):
        return {
            door.platform: [(one.to, one.text) for one in door.arrived(self.of[door.platform])] for door in TOGETHER
        }


@contextmanager
def town(folder, **more):
    """Channels tg, dc, sl, wa in this order, one of each. ``more``: more settings, by channel's name."""
    names = dict(zip(("tg", "dc", "sl", "wa"), TOGETHER, strict=True))
    far_end = Town()

    def config(url):
        return {
            "channels": {
                name: {"type": door.platform, **door.settings(url), **more.get(name, {})}
                for name, door in names.items()
            }
        }

    with front(far_end, config, folder) as door:
        yield door, far_end


def test_without_a_channel_it_is_the_first_and_the_result_names_it(tmp_path):
    with town(tmp_path) as (front, far_end):
        result = front.send(text="x")
    assert far_end.everything == {"telegram": [("42", "x")], "discord": [], "slack": [], "whatsapp": []}
    assert result.details["channel"] == "tg" and "tg (42)" in result.message


def test_the_conversation_goes_before_the_first_channel_and_a_named_one_before_both(tmp_path):
    here = Conversation(channel="sl", recipient="C0000000002")
    with town(tmp_path) as (front, far_end):
        front.send(here, text="answer")
        front.send(here, text="elsewhere", channel="dc")
        front.send(here, text="to another", recipient="C0000000003")
    assert far_end.everything == {
        "telegram": [],
        "discord": [("789", "elsewhere")],
        "slack": [("C0000000002", "answer"), ("C0000000003", "to another")],
        "whatsapp": [],
    }


@pytest.mark.parametrize("channel", ["nosuch", "telegram", "TG", "tg2", "t", "slack"])
def test_a_name_that_is_no_channel_lists_those_there_are(channel, tmp_path):
    """Nor is a platform's name one."""
    with town(tmp_path) as (front, far_end):
        for tool, arguments in (("message_send", {"text": "x"}), ("message", {"content": "x"})):
            result = front.messenger.call_tool(tool, {**arguments, "channel": channel})
            assert result.message.startswith(f"Unknown channel: {channel}. Available channels: tg, dc, sl, wa")
    assert all(not arrived for arrived in far_end.everything.values())


def test_a_switched_off_channel_is_refused_and_passed_over(tmp_path):
    with town(tmp_path, tg={"enabled": False}) as (front, far_end):
        refused, first = front.send(text="x", channel="tg"), front.send(text="y")
    assert not refused.ok and "dc, sl, wa" in refused.message and first.details["channel"] == "dc"
    assert far_end.everything["telegram"] == []


@pytest.mark.parametrize("recipient", ["#nosuch", "User Name", "", " "])
def test_a_recipient_that_leads_nowhere_is_never_replaced_by_the_default(recipient, tmp_path):
    with town(tmp_path) as (front, far_end):
        result = front.send(text="private", channel="sl", recipient=recipient)
        absent = front.send(text="public", channel="sl", recipient=None)
    assert not result.ok and absent.ok and far_end.everything["slack"] == [("C0123456789", "public")]
    assert (recipient.strip() or "recipient") in result.message


@pytest.mark.parametrize("recipient", [["42", "43"], 42, {"id": "42"}, "42, 43"])
def test_a_list_of_recipients_is_refused_before_anything_leaves(recipient, tmp_path):
    with town(tmp_path) as (front, far_end):
        result = front.send(text="x", channel="tg", recipient=recipient)
    assert result.details["status"] == "refused" and "recipient" in result.message.lower()
    assert far_end.everything["telegram"] == []


def test_an_answer_stays_in_its_thread_or_topic(tmp_path):
    with town(tmp_path) as (front, far_end):
        front.send(Conversation(channel="tg", recipient="-1001234567890", thread="7"), text="topic")
        front.send(Conversation(channel="dc", recipient="789", thread="800"), text="thread")
        front.send(Conversation(channel="sl", recipient="C0123456789", thread="1712345678.123456"), text="thread")
        front.send(Conversation(channel="tg", recipient="42", thread="7"), text="private")
    tg, dc, sl = (door.arrived(far_end.of[door.platform]) for door in (TELEGRAM, DISCORD, SLACK))
    assert {(one.to, one.thread, one.text) for one in tg} == {("-1001234567890", "7", "topic"), ("42", None, "private")}
    assert [(one.thread, one.text) for one in dc] == [("800", "thread")]
    assert [(one.thread, one.text) for one in sl] == [("1712345678.123456", "thread")]
    assert all(not model.refused for model in far_end.of.values())


def test_a_thread_does_not_follow_to_another_chat(tmp_path):
    here = Conversation(channel="tg", recipient="-1001234567890", thread="7", message_id="901")
    with town(tmp_path) as (front, far_end):
        front.send(here, text="x", recipient="42")
        front.send(here, text="y", recipient="@OpsLead")
        front.send(here, text="z", channel="dc")
    everything = [one for door in TOGETHER for one in door.arrived(far_end.of[door.platform])]
    assert [(one.to, one.thread, one.reply_to) for one in everything] == [
        ("42", None, None),
        ("-1009876543210", None, None),
        ("789", None, None),
    ]


def test_reply_and_topic_are_two_things(tmp_path):
    """A reply in a private chat carries no topic; in a forum it carries both."""
    with town(tmp_path) as (front, far_end):
        front.send(Conversation(channel="tg", recipient="42", thread="900"), text="a", reply_to="900")
        front.send(text="b", channel="tg", recipient="-1001234567890/7", reply_to="901")
        front.send(text="word " * 1500, channel="tg", recipient="-1001234567890/7", reply_to="901")
    arrived = TELEGRAM.arrived(far_end.of["telegram"])
    assert [(one.to, one.thread, one.reply_to) for one in arrived] == [
        ("42", None, "900"),
        ("-1001234567890", "7", "901"),
        ("-1001234567890", "7", "901"),
        ("-1001234567890", "7", None),
    ]
    assert far_end.of["telegram"].refused == []


def test_the_message_being_answered_is_not_quoted_by_itself(tmp_path):
    with town(tmp_path) as (front, far_end):
        front.send(Conversation(channel="tg", recipient="42", message_id="900"), text="x")
        front.send(Conversation(channel="wa", recipient="16505551234", message_id="wamid.EXISTING=="), text="x")
    assert [one.reply_to for door in (TELEGRAM, WHATSAPP) for one in door.arrived(far_end.of[door.platform])] == [
        None
    ] * 2


def test_a_reply_without_its_channel_is_refused_where_ids_are_per_chat(tmp_path):
    with town(tmp_path) as (front, far_end):
        result = front.send(text="x", reply_to="900")
        inside = front.send(Conversation(channel="tg", recipient="42"), text="y", reply_to="900")
    assert not result.ok and "reply_to" in result.message and inside.ok
    assert far_end.everything["telegram"] == [("42", "y")]


@pytest.mark.parametrize(("channel", "bad"), [("tg", "abc"), ("dc", "5000/../1"), ("sl", "12"), ("wa", "")])
def test_a_reply_to_what_is_no_message_is_refused(channel, bad, tmp_path):
    with town(tmp_path) as (front, far_end):
        result = front.send(text="x", channel=channel, reply_to=bad)
    assert result.details["status"] == "refused" and "reply_to" in result.message
    assert all(not arrived for arrived in far_end.everything.values())


# --- Allowlists -------------------------------------------------------------------------------------------------------

ALLOWED = [
    ("@opslead", True),
    ("@OPSLEAD", True),
    ("43", True),
    ("@opslead2", False),
    ("@opsle", False),
    ("430", False),
    ("4", False),
    ("-43", False),
    ("OPSLEAD", False),
]


@pytest.mark.parametrize(("recipient", "permitted"), ALLOWED)
def test_an_allowlist_compares_whole_names_as_the_platform_does(recipient, permitted, tmp_path):
    with town(tmp_path, tg={"allowed_users": ["@OpsLead", "43"]}) as (front, far_end):
        result = front.send(text="x", channel="tg", recipient=recipient)
    assert result.ok == permitted and bool(far_end.everything["telegram"]) == permitted
    if not permitted:
        assert far_end.of["telegram"].refused == []


def test_an_allowlist_of_names_does_not_permit_the_ids_behind_them(tmp_path):
    with town(tmp_path, sl={"allowed_users": ["#random"]}) as (front, far_end):
        by_id = front.send(text="x", channel="sl", recipient="C0000000002")
        by_name = front.send(text="y", channel="sl", recipient="#random")
        bare = front.send(text="z", channel="sl", recipient="random")
    assert "allowlist" in by_id.message and by_name.ok and not bare.ok
    assert far_end.everything["slack"] == [("C0000000002", "y")]


def test_phone_punctuation_and_dm_spellings_are_one_recipient(tmp_path):
    settings = {"wa": {"allowed_numbers": ["+1 (650) 555-7777"]}, "dc": {"allowed_users": ["user:42"]}}
    with town(tmp_path, **settings) as (front, far_end):
        results = [
            front.send(text="a", channel="wa", recipient="16505557777"),
            front.send(text="b", channel="dc", recipient="<@42>"),
        ]
        other = front.send(text="c", channel="wa", recipient="+16505557778")
        channel = front.send(text="d", channel="dc", recipient="790")
    assert all(one.ok for one in results) and not other.ok and not channel.ok


def test_who_wrote_may_be_answered_and_nobody_else_through_them(tmp_path):
    """The conversation's own recipient, where one of the sender's names is listed."""
    alice = Conversation(channel="tg", recipient="-1001234567890", sender=("43", "alice"))
    mallory = Conversation(channel="tg", recipient="-1001234567890", sender=("66", "mallory"))
    with town(tmp_path, tg={"allowed_users": ["alice"], "allowed_recipients": ["@OpsLead"]}) as (front, far_end):
        assert front.send(alice, text="to the group").ok
        assert not front.send(alice, text="x", recipient="43").ok
        assert not front.send(mallory, text="x").ok
        assert front.send(mallory, text="to the room", recipient="@OpsLead").ok
        assert front.send(text="to the default").ok
    assert [text for _, text in far_end.everything["telegram"]] == ["to the default", "to the group", "to the room"]


def test_an_empty_allowlist_permits_the_default_alone(tmp_path):
    with town(tmp_path, dc={"allowed_users": []}) as (front, far_end):
        assert front.send(text="x", channel="dc").ok
        assert not front.send(text="y", channel="dc", recipient="790").ok
    assert far_end.everything["discord"] == [("789", "x")]


# --- Side by side -----------------------------------------------------------------------------------------------------


def test_conversations_that_run_at_the_same_time_never_mix(tmp_path):
    """Sixty turns of twelve conversations in twelve threads: each answer is where its question was."""
    chats = {
        "tg": ("42", "43", "-1001234567890", "@OpsLead"),
        "dc": ("789", "790", "800", "user:42"),
        "sl": ("C0000000002", "C0000000003", "C0123456789", "U0000000001"),
    }
    turns = [
        (name, to, f"{name} {to.lstrip('@')} {turn}") for turn in range(5) for name, tos in chats.items() for to in tos
    ]
    with town(tmp_path) as (front, far_end), ThreadPoolExecutor(12) as threads:
        path = front.file("a.png", png())

        def answer(turn):
            name, to, text = turn
            media = {"media_path": path, "caption": text} if text.endswith(("1", "3")) else {"text": text}
            return front.send(Conversation(channel=name, recipient=to, sender=(to,)), **media)

        results = list(threads.map(answer, turns))
    assert all(result.ok for result in results), [one.message for one in results if not one.ok]
    behind = {
        "OpsLead": "-1009876543210",
        "800": "789",
        "user:42": far_end.of["discord"].dms["42"],
        "U0000000001": far_end.of["slack"].dms["U0000000001"],
    }
    platforms = {"telegram": "tg", "discord": "dc", "slack": "sl"}
    seen = []
    for platform, arrived in far_end.everything.items():
        for to, text in arrived:
            name, asked, _ = text.split(" ")
            assert name == platforms[platform] and behind.get(asked, asked) == to
            seen.append(text)
    assert sorted(seen) == sorted(text for _, _, text in turns)
    for (name, to, _), result in zip(turns, results, strict=True):
        assert (result.details["channel"], result.details["recipient"]) == (name, to)
    assert far_end.of["discord"].opened == ["42"] and len(far_end.of["slack"].opened) <= 1
    assert all(not model.refused for model in far_end.of.values())


@pytest.mark.parametrize(("channel", "person"), [("dc", "user:42"), ("sl", "U0000000001")])
def test_messages_at_the_same_time_open_a_persons_dm_once(channel, person, tmp_path):
    with town(tmp_path) as (front, far_end), ThreadPoolExecutor(8) as threads:
        path = front.file("a.png", png())
        results = list(threads.map(lambda _: front.send(media_path=path, channel=channel, recipient=person), range(8)))
    assert all(result.ok for result in results)
    assert [len(model.opened) for model in (far_end.of["discord"], far_end.of["slack"])] in ([1, 0], [0, 1])


def test_two_long_texts_to_one_chat_stand_one_after_the_other(tmp_path):
    with town(tmp_path) as (front, far_end), ThreadPoolExecutor(2) as threads:
        texts = [(f"{sign * 4} {sign.lower() * 4}\n" * 900).strip() for sign in "AB"]
        results = list(threads.map(lambda text: front.send(text=text, channel="tg", recipient="43"), texts))
    arrived = [text for _, text in far_end.everything["telegram"]]
    firsts = "".join(text[0] for text in arrived)
    assert all(result.ok for result in results)
    assert firsts in ("AAABBB", "BBBAAA")
    assert {"\n".join(text for text in arrived if text[0] == sign) for sign in "AB"} == set(texts)


@pytest.mark.slow
def test_thirty_calls_at_once_share_what_they_learn_of_a_narrow_bucket(tmp_path):
    """Five in two seconds: each arrives once, and hardly any is refused on the way."""
    far_end = Discord(bucket=(5, 2.0))
    with (
        front(far_end, WEBHOOK.config, tmp_path, hurry=False) as door,
        ThreadPoolExecutor(30) as threads,
    ):
        results = list(threads.map(lambda n: door.send(text=f"n={n}"), range(30)))
    texts = far_end["789"].texts
    assert sorted(texts) == sorted(f"n={n}" for n in range(30)) and all(one.ok for one in results)
    assert len(far_end.calls) - 30 < 10
