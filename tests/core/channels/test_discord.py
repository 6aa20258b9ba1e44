"""Discord by a bot: channels, threads and DMs, files, voice messages, replies."""

import json
import pickle
from configparser import ConfigParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from returns.result import Success

from messaging_core.channels import CHANNELS
from messaging_core.channels._discord import AGENT
from messaging_core.channels.channel import Configured
from messaging_core.channels.discord import CHANNEL, FLAT, Settings, recipient, same
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Unavailable,
)
from messaging_core.flow import Done, Learned, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef, FormPart, HttpRequest, Multipart, to_json

from .replies import fields, replies, send

ROOT = Path(__file__).parents[3]
SAID = replies("discord")
SPEC = json.loads((ROOT / "tests/contract/specs/discord.json").read_text("utf-8"))
VERSION = ConfigParser()
VERSION.read_string((ROOT / "setup.cfg").read_text("utf-8"))

AT = Configured("dc", "discord", Settings(Secret("dc.bot_token"), channel_id="111"))
IDS = Ids("018f2k3j4h5g6")
TEXT = TextPart(Rendered("**Hi**", "Hi"))
VOICE = MediaPart(
    FileFacts("note.ogg", "/srv/note.ogg", "note.ogg", 5), Kind.AUDIO, "audio/ogg", voice=True, duration=2.5
)
PICTURE = MediaPart(FileFacts("a.png", "/srv/a.png", "a.png", 5), Kind.IMAGE, "image/png", caption=TEXT.text)
HEADERS = (("Authorization", ("Bot ", Secret("dc.bot_token"))), ("User-Agent", "DiscordBot (agent-messaging, 0.1.0)"))
API = "https://discord.com/api/v10"


def to(text: str) -> Recipient:
    return recipient(text).unwrap()


def start(*parts, chat="111", known=None, **more) -> Step:
    return CHANNEL.describe(AT, Outgoing(to(chat), parts, **more), IDS, known or {}).unwrap()


def body_of(step: Step) -> dict:
    found = fields(step.request)
    return found.get("payload_json", found)


# --- What is asked for ------------------------------------------------------------------------------------------------


def test_a_text_whole() -> None:
    """The token is named, never there; mentions are mute; the nonce makes a repeat the same message."""
    request = HttpRequest(
        "POST",
        f"{API}/channels/111/messages",
        (("Content-Type", "application/json"), *HEADERS),
        to_json(
            {
                "content": "**Hi**",
                "allowed_mentions": {"parse": []},
                "nonce": "018f2k3j4h5g6.1",
                "enforce_nonce": True,
            }
        ),
        repeatable=True,
    )
    step = start(TEXT)
    assert (request, Part(1, 1), Scope("dc", "dc.bot_token", "111")) == (step.request, step.part, step.scope)


def test_a_picture_whole() -> None:
    payload = {
        "content": "**Hi**",
        "allowed_mentions": {"parse": [], "replied_user": False},
        "nonce": "018f2k3j4h5g6.1",
        "enforce_nonce": True,
        "message_reference": {"message_id": "900", "fail_if_not_exists": False},
        "attachments": [{"id": "0", "filename": "a.png"}],
    }
    parts = (
        FormPart("payload_json", to_json(payload), content_type="application/json"),
        FormPart("files[0]", FileRef(PICTURE.facts), "a.png", "image/png"),
    )
    request = HttpRequest(
        "POST", f"{API}/channels/222/messages", HEADERS, Multipart(parts, IDS.boundary), repeatable=True
    )
    assert request == start(PICTURE, chat="111/222", reply_to="900").request


def test_a_voice_message_whole() -> None:
    payload = body_of(start(VOICE))
    assert payload == {
        "allowed_mentions": {"parse": []},
        "nonce": "018f2k3j4h5g6.1",
        "enforce_nonce": True,
        "flags": 8192,
        "attachments": [{"id": "0", "filename": "note.ogg", "duration_secs": 2.5, "waveform": FLAT}],
    }


def test_without_its_length_or_with_a_text_a_voice_message_is_ordinary_audio() -> None:
    for part in (
        MediaPart(VOICE.facts, Kind.AUDIO, "audio/ogg", voice=True),
        MediaPart(VOICE.facts, Kind.AUDIO, "audio/ogg", voice=True, duration=2.5, caption=TEXT.text),
    ):
        step = start(part)
        assert "flags" not in body_of(step)
        assert send(step, [SAID["sent"]])[1].unwrap().delivered[0].notes == ("as audio",)


def test_mentions_ring_only_where_they_may() -> None:
    assert body_of(start(PICTURE))["allowed_mentions"] == {"parse": []}
    assert "allowed_mentions" not in body_of(start(TEXT, mute=False))


def test_a_reply_does_not_ping_its_author() -> None:
    assert body_of(start(TEXT, reply_to="900"))["allowed_mentions"] == {"parse": [], "replied_user": False}


def test_the_reply_is_the_first_part_only_and_nonces_differ() -> None:
    exchanges, _ = send(start(TEXT, TEXT, reply_to="900"), [SAID["sent_as_reply"], SAID["sent"]])
    bodies = [body_of(one) for one in exchanges]
    assert ["message_reference" in body for body in bodies] == [True, False]
    assert [body["nonce"] for body in bodies] == ["018f2k3j4h5g6.1", "018f2k3j4h5g6.2"]
    resumed = body_of(start(TEXT, reply_to="900", numbered_from=2))
    assert (resumed["nonce"], "message_reference" in resumed) == ("018f2k3j4h5g6.2", False)


@pytest.mark.parametrize("reply_to", ["0x1F", "12.5", "٤٢", "abc", "-1", " 7", "7\n", "042"])
def test_what_is_no_message_id_is_refused(reply_to: str) -> None:
    refusal = CHANNEL.describe(AT, Outgoing(to("1"), (TEXT,), reply_to=reply_to), IDS, {}).failure()
    assert isinstance(refusal, InvalidArguments)


def test_another_api() -> None:
    at = Configured("dc", "discord", Settings(Secret("dc.bot_token"), api_base="http://127.0.0.1:8080/api/v10"))
    step = CHANNEL.describe(at, Outgoing(to("5"), (TEXT,)), IDS, {}).unwrap()
    assert step.request.url == "http://127.0.0.1:8080/api/v10/channels/5/messages"


def test_the_user_agent_has_the_version_of_the_distribution() -> None:
    assert ("User-Agent", f"DiscordBot ({VERSION['metadata']['name']}, {VERSION['metadata']['version']})") == AGENT


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("111", Recipient("111", "channel", None, "111")),
        ("channel:111", Recipient("111", "channel", None, "111")),
        ("<#111>", Recipient("111", "channel", None, "111")),
        ("111/222", Recipient("111", "channel", "222", "111/222")),
        ("<#111>/222", Recipient("111", "channel", "222", "111/222")),
        ("user:333", Recipient("333", "user", None, "user:333")),
        ("<@333>", Recipient("333", "user", None, "user:333")),
        ("<@!333>", Recipient("333", "user", None, "user:333")),
    ],
)
def test_the_writing_says_whose_id_it_is(text: str, expected: Recipient) -> None:
    assert expected == to(text)


@pytest.mark.parametrize(
    "text",
    ["", "0", "042", "0x1F", "12.5", " 42", "42\n", "٤٢", "４２", "123/../../guilds/1", "user:", "user:1/2", "@ann"]
    + ["<@&5>", "#general", "<#5", "1/2/3", "1/", "user:ann", "9" * 21, "-5"],
)
def test_nothing_else_is_one(text: str) -> None:
    refusal = recipient(text).failure()
    assert isinstance(refusal, InvalidRecipient) and text == refusal.recipient


def test_one_recipient_however_it_is_written() -> None:
    assert {"333"} == {same(text) for text in ("333", "user:333", "<@333>", "<@!333>", "channel:333")}
    assert same("@Ann") == "ann" and same("333") != same("3333")


# --- Direct messages --------------------------------------------------------------------------------------------------


def test_a_person_is_written_to_in_a_dm_that_is_opened_first_and_then_known() -> None:
    exchanges, end = send(start(TEXT, TEXT, chat="user:333"), [SAID["dm"], SAID["sent"], SAID["sent"]])
    opening, first, second = exchanges
    request = HttpRequest(
        "POST",
        f"{API}/users/@me/channels",
        (("Content-Type", "application/json"), *HEADERS),
        b'{"recipient_id":"333"}',
        repeatable=True,
    )
    assert (request, None) == (opening.request, opening.part)
    assert [f"{API}/channels/777/messages"] * 2 == [first.request.url, second.request.url]
    id = "1444600000000000001"
    receipts = (Receipt(Part(1, 2), id, "user:333"), Receipt(Part(2, 2), id, "user:333"))
    assert Done(receipts, (), (Learned("discord.dm.dc.333", "777"),)) == end.unwrap()
    assert first.request == start(TEXT, TEXT, chat="user:333", known={"discord.dm.dc.333": "777"}).request


def test_what_was_learned_stays_when_the_message_is_refused() -> None:
    stopped = send(start(TEXT, chat="user:333"), [SAID["dm"], SAID["no_dm"]])[1].failure()
    assert (Learned("discord.dm.dc.333", "777"),) == stopped.learned
    assert InvalidRecipient("user:333", "", "Cannot send messages to this user", 403, "Forbidden") == stopped.cause


def test_an_answer_without_a_dm_channel_is_no_place_to_write_to() -> None:
    stopped = send(start(TEXT, chat="user:333"), [SAID["dm_without_id"]])[1].failure()
    assert isinstance(stopped.cause, Malformed)


# --- What replies mean ------------------------------------------------------------------------------------------------


def test_a_message_is_there() -> None:
    assert Done((Receipt(Part(1, 1), "1444600000000000001", "111"),)) == send(start(TEXT), [SAID["sent"]])[1].unwrap()


@pytest.mark.parametrize(
    ("case", "notes"),
    [
        ("sent_as_reply", ()),
        ("sent_as_reply_to_gone", ("not as a reply: the message replied to is gone",)),
        ("sent_without_reply", ("not as a reply: the message replied to is gone",)),
    ],
)
def test_a_reply_to_a_message_that_is_gone_is_delivered_and_told(case: str, notes: tuple[str, ...]) -> None:
    assert notes == send(start(TEXT, reply_to="900"), [SAID[case]])[1].unwrap().delivered[0].notes


@pytest.mark.parametrize("case", ["no_voice_here", "voice_metadata", "missing_permissions"])
def test_a_refused_voice_message_goes_once_as_ordinary_audio(case: str) -> None:
    """With the nonce of the voice message, of which nothing was made."""
    exchanges, end = send(start(VOICE), [SAID[case], SAID["sent"]])
    first, second = (body_of(one) for one in exchanges)
    assert second["attachments"] == [{"id": "0", "filename": "note.ogg"}] and "flags" not in second
    assert first["nonce"] == second["nonce"]
    assert end.unwrap().delivered[0].notes == ("as audio",)


def test_a_voice_message_that_is_taken_says_nothing() -> None:
    assert send(start(VOICE), [SAID["sent_voice"]])[1].unwrap().delivered[0].notes == ()


def test_other_refusals_of_a_voice_message_stand() -> None:
    exchanges, end = send(start(VOICE), [SAID["too_large"]])
    assert (1, Invalid) == (len(exchanges), type(end.failure().cause))


ERRORS = {
    "unauthorized": Denied,
    "missing_access": Denied,
    "missing_permissions": Denied,
    "dms_too_fast": Denied,
    "locked": Denied,
    "unknown_channel": InvalidRecipient,
    "unknown_user": InvalidRecipient,
    "no_dm": InvalidRecipient,
    "no_mutual_server": InvalidRecipient,
    "not_a_text_channel": InvalidRecipient,
    "empty": Invalid,
    "too_long": Invalid,
    "bad_attachment": Invalid,
    "too_large": Invalid,
    "archived": Invalid,
    "automod": Invalid,
    "slow_mode": RateLimited,
    "too_many": RateLimited,
    "blocked_at_the_edge": RateLimited,
    "overloaded": Unavailable,
    "bad_gateway": Unavailable,
}


@pytest.mark.parametrize(("case", "error"), ERRORS.items())
def test_each_refusal_is_what_the_caller_can_do_next(case: str, error: type) -> None:
    assert error is type(send(start(TEXT), [SAID[case]])[1].failure().cause)


@pytest.mark.parametrize(("case", "seconds"), [("too_many", 1.0), ("slow_mode", 12.5), ("blocked_at_the_edge", None)])
def test_of_the_waits_in_header_and_body_the_longer(case: str, seconds: float | None) -> None:
    assert seconds == send(start(TEXT), [SAID[case]])[1].failure().cause.after


def test_the_detail_names_the_field_at_any_depth() -> None:
    causes = [send(start(TEXT), [SAID[case]])[1].failure().cause for case in ("too_long", "bad_attachment")]
    assert [cause.detail for cause in causes] == [
        "Invalid Form Body; content: Must be 2000 or fewer in length.",
        "Invalid Form Body; attachments: This field is required",
    ]


# --- Asking beforehand, and rehearsing --------------------------------------------------------------------------------


def test_the_probe_asks_for_what_is_written_to() -> None:
    probes = [CHANNEL.probe(AT, to(text) if text else None, {}) for text in (None, "111", "111/222", "<@333>")]
    assert [f"{API}/users/@me", f"{API}/channels/111", f"{API}/channels/222", f"{API}/users/333"] == [
        probe.request.url for probe in probes
    ]
    assert {None} == {probe.part for probe in probes}
    assert Success(Done()) == send(probes[1], [SAID["dm"]])[1]
    assert InvalidRecipient("user:333", "", "Unknown User", 404, "Not Found") == (
        send(probes[3], [SAID["unknown_user"]])[1].failure().cause
    )


@pytest.mark.parametrize("chat", ["111", "user:333"])
def test_a_rehearsal_reaches_the_end_without_a_note(chat: str) -> None:
    step = start(TEXT, PICTURE, VOICE, chat=chat, reply_to="900")
    done = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), step).unwrap()
    assert [(one.part.index, one.notes) for one in done.delivered] == [(1, ()), (2, ()), (3, ())]


# --- Laws -------------------------------------------------------------------------------------------------------------


def closed(name: str) -> Draft202012Validator:
    """The schema of the API's document, with nothing in a request that it does not know."""
    schemas = {key: {**value, "additionalProperties": False} for key, value in SPEC["components"]["schemas"].items()}
    for plain in ("SnowflakeType", "AllowedMentionTypes", "MessageReferenceType"):
        schemas[plain].pop("additionalProperties")
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}})


MESSAGE, DM = closed("MessageCreateRequest"), closed("CreatePrivateChannelRequest")

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
RENDERED = st.builds(Rendered, WORDS, WORDS)
CONTENT = st.builds(TextPart, RENDERED, st.booleans()) | st.builds(
    lambda caption, voice, duration: MediaPart(
        VOICE.facts, Kind.AUDIO, "audio/ogg", caption=caption, voice=voice, duration=duration
    ),
    st.none() | RENDERED,
    st.booleans(),
    st.none() | st.floats(0, 9999),
)


@settings(deadline=None, max_examples=150)
@given(
    parts=st.lists(CONTENT, min_size=1, max_size=3),
    chat=st.sampled_from(["111", "111/222", "user:333"]),
    reply_to=st.none() | st.just("900"),
    mute=st.booleans(),
    id=st.text("0123456789abcdef", min_size=1, max_size=21),
)
def test_every_request_is_one_that_the_platform_describes(parts, chat, reply_to, mute, id) -> None:
    """Equal input gives equal requests, and a step survives its pickle."""
    outgoing = Outgoing(to(chat), tuple(parts), reply_to, mute)
    step, again = (CHANNEL.describe(AT, outgoing, Ids(id), {}).unwrap() for _ in range(2))
    assert step == again == pickle.loads(pickle.dumps(step))
    exchanges, _ = send(step, [SAID["dm"]] * (len(parts) + (chat == "user:333")))
    for exchange in exchanges:
        (DM if exchange.part is None else MESSAGE).validate(body_of(exchange))
        assert exchange.request.repeatable


def test_the_registry_has_it() -> None:
    assert CHANNEL is CHANNELS["discord"]
