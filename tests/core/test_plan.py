"""All decisions of a send together, as one value: the same input, the same plan."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.pipeline import is_successful

from messaging_core.channels import CHANNELS
from messaging_core.config.schemas import from_mapping
from messaging_core.config.settings import Settings
from messaging_core.errors import (
    InvalidArguments,
    NoRecipient,
    PolicyDenied,
    RecipientBlocked,
    UnknownChannel,
    Unsupported,
)
from messaging_core.flow import Part, Receipt
from messaging_core.message import Conversation, Message
from messaging_core.plan import Asked, Given, Plan, plan, requests_of
from tests.material import IDS

TELEGRAM = {"type": "telegram", "bot_token": "1:FAKE-token", "chat_id": "-1001", "allowed_users": ["@alice", "42"]}
CONFIG: dict[str, Any] = {
    "channels": {
        "tg": TELEGRAM,
        "hook": {"type": "webhook", "url": "https://h.test/FAKE-hook"},
        "off": {"type": "webhook", "url": "https://h.test/FAKE-hook", "enabled": False},
        "mx": {"type": "matrix", "homeserver": "https://hs.test", "access_token": "FAKE-token"},
    }
}


def settings(**more: Any) -> Settings:
    return from_mapping(CONFIG | more, {}, CHANNELS).unwrap().settings


SETTINGS = settings()


def planned(
    message: Message, conversation: Conversation = Conversation(), tool: str = "message_send", **more: Any
) -> Any:
    return plan(Asked(tool, message, conversation), more.pop("by", SETTINGS), CHANNELS, Given(IDS), **more)


TURN = Conversation("tg", "42", thread=None, message_id="900", sender=("42", "alice"))
TOPIC = Conversation("tg", "-1001", thread="7", sender=("alice",))
ELSEWHERE = Conversation("tg", "77", sender=("mallory",))


@pytest.mark.parametrize(
    ("message", "conversation", "channel", "recipient"),
    [
        (Message(text="x"), Conversation(), "tg", "-1001"),
        (Message(text="x", channel="hook"), Conversation(), "hook", "the webhook"),
        (Message(text="x"), TURN, "tg", "42"),
        (Message(text="x", channel="hook"), TURN, "hook", "the webhook"),
        (Message(text="x"), Conversation("hook", "whoever"), "hook", "the webhook"),
        (Message(text="x", recipient="@alice"), TURN, "tg", "@alice"),
        (Message(text="x", channel="mx", recipient="!r:hs.test"), TURN, "mx", "!r:hs.test"),
    ],
)
def test_a_message_goes_where_it_says_else_where_the_conversation_is_else_to_the_first(
    message: Message, conversation: Conversation, channel: str, recipient: str
) -> None:
    found: Plan = planned(message, conversation).unwrap()
    assert (found.channel, found.recipient) == (channel, recipient)


@pytest.mark.parametrize(
    ("message", "conversation", "refusal"),
    [
        (
            Message(text="x", channel="telegram"),
            Conversation(),
            UnknownChannel("telegram", ("tg", "hook", "mx", "cli")),
        ),
        (Message(text="x", channel="off"), TURN, UnknownChannel("off", ("tg", "hook", "mx", "cli"), inactive=True)),
        (Message(text="x"), Conversation("nowhere"), UnknownChannel("nowhere", ("tg", "hook", "mx", "cli"))),
        (Message(text="x", channel="mx"), TURN, NoRecipient("mx", "room_id")),
        (Message(text="x", recipient="77"), TURN, RecipientBlocked("tg", "77", "allowed_users, allowed_recipients")),
        (Message(text="x"), ELSEWHERE, RecipientBlocked("tg", "77", "allowed_users, allowed_recipients")),
        (Message(media_path="a.png", channel="hook"), TURN, Unsupported("hook", "media", ("tg", "mx"))),
        (
            Message(text="x", reply_to="5"),
            Conversation(),
            InvalidArguments("message_send", ("reply_to: name the channel too, its ids mean nothing elsewhere",)),
        ),
    ],
)
def test_what_cannot_go_where_it_says_is_refused_and_never_goes_elsewhere(
    message: Message, conversation: Conversation, refusal: object
) -> None:
    assert planned(message, conversation).failure() == refusal


THREADED = {
    "telegram": ({"bot_token": "1:FAKE-token"}, "-1001", "/7", "/8"),
    "discord": ({"bot_token": "FAKE-token"}, "11", "/22", "/33"),
    "slack": ({"bot_token": "xoxb-FAKE"}, "C0AL2FAKE7J", "/1712345678.000100", "/1712345678.000200"),
    "matrix": ({"homeserver": "https://hs.test", "access_token": "FAKE-token"}, "!r:hs.test", "/$a", "/$b"),
}


@pytest.mark.parametrize("platform", THREADED)
@pytest.mark.parametrize("key", ["allowed_users", "allowed_recipients"])
def test_a_thread_on_an_allowlist_permits_itself_alone_and_a_chat_its_threads(platform: str, key: str) -> None:
    keys, chat, thread, other = THREADED[platform]

    def permitted(entry: str) -> list[str]:
        channel = {"type": platform, **keys, "allowed_users": []} | {key: [entry]}
        by = settings(channels={"c": channel})
        targets = (chat, chat + thread, chat + other)
        return [to for to in targets if is_successful(planned(Message(text="x", recipient=to), by=by))]

    assert permitted(chat + thread) == [chat + thread]
    assert permitted(chat) == [chat, chat + thread, chat + other]


def test_a_reply_needs_no_channel_where_only_one_takes_replies() -> None:
    channels = {name: CONFIG["channels"][name] for name in ("tg", "hook")}
    found: Plan = planned(Message(text="x", recipient="42", reply_to="900"), by=settings(channels=channels)).unwrap()
    assert (found.channel, found.recipient) == ("tg", "42")
    (request,) = requests_of(found)
    assert b'"message_id":900' in request.body


def test_an_answer_stays_in_its_thread_and_quotes_nothing_by_itself() -> None:
    (request,) = requests_of(planned(Message(text="x"), TOPIC).unwrap())
    assert b'"message_thread_id":7' in request.body and b"reply_parameters" not in request.body


def test_a_denied_tool_is_refused_by_its_rule() -> None:
    strict = settings(security={"tool_policy": {"tools": {"message_send": "deny"}}})
    denied = planned(Message(text="x"), by=strict).failure()
    assert denied == PolicyDenied("message_send", "security.tool_policy.tools.message_send")


def test_a_supervised_tool_carries_a_proposal_bound_to_the_text() -> None:
    careful = settings(security={"tool_policy": {"default": "supervised"}})
    one, same, other = (planned(Message(text=text), by=careful).unwrap().proposal for text in ("a", "a", "b"))
    assert one == same and one.digest != other.digest
    assert (one.tool, one.channel, one.recipient, one.kind, one.preview) == ("message_send", "tg", "-1001", "text", "a")


@given(st.integers(0, 4))
def test_what_arrived_before_is_not_described_again(count: int) -> None:
    """The durable form of an unfinished send: its message, its id, and the receipts so far."""
    message = Message(text="line of text\n" * 1200)
    whole = requests_of(planned(message).unwrap())
    receipts = tuple(Receipt(Part(index, 4), str(index), "-1001") for index in range(1, count + 1))
    assert requests_of(planned(message, delivered=receipts).unwrap()) == whole[count:]
    assert len(whole) == 4


@given(
    st.text(max_size=300),
    st.sampled_from(["tg", "hook", "mx", "cli", None]),
    st.sampled_from(["message", "message_send"]),
)
def test_the_same_input_gives_the_same_plan_and_names_no_secret(text: str, channel: str | None, tool: str) -> None:
    message = Message(text=text.encode("utf-8", "replace").decode() or "x", channel=channel)
    first, second = planned(message, tool=tool), planned(message, tool=tool)
    assert first == second
    assert "FAKE" not in repr(first)
    if is_successful(first):
        assert requests_of(first.unwrap()) == requests_of(second.unwrap())
