"""Telegram: what is asked for, what each reply means, and the other way that a refusal leaves."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Configured
from messaging_core.channels.telegram import CHANNEL, Settings, default_recipient, moved_key, recipient, same
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Rejected,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Learned, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef, FormPart, HttpRequest, Multipart

from .replies import fields, replies, send

SAID = replies("telegram")
SPEC = json.loads((Path(__file__).parents[2] / "contract/specs/telegram.json").read_text("utf-8"))

AT = Configured("tg", "telegram", Settings(Secret("tg.bot_token"), chat_id="42"))
IDS = Ids("018f2k3j4h5g6")
TEXT = TextPart(Rendered("<b>Hi</b> &amp; bye", "Hi & bye"))
PLAIN = TextPart(Rendered("a < b", "a < b"), markup=False)
GROUP = "-1001234567890"


def to(text: str) -> Recipient:
    return recipient(text).unwrap()


def outgoing(*parts, chat="42", **more) -> Outgoing:
    return Outgoing(to(chat), parts, **more)


def start(*parts, chat="42", known=None, **more) -> Step:
    return CHANNEL.describe(AT, outgoing(*parts, chat=chat, **more), IDS, known or {}).unwrap()


def media(kind=Kind.IMAGE, mime="image/png", name="a.png", size=5, **more) -> MediaPart:
    return MediaPart(FileFacts(name, f"/srv/{name}", name, size=size), kind, mime, **more)


def asked(step: Step) -> tuple[str, dict]:
    """The method and the fields of a described request."""
    return step.request.url[-1].removeprefix("/"), fields(step.request)


# --- What is asked for ------------------------------------------------------------------------------------------------


def test_a_text_whole() -> None:
    """The token is named, never there; the chat is a number; the markup is HTML."""
    request = HttpRequest(
        "POST",
        ("https://api.telegram.org/bot", Secret("tg.bot_token"), "/sendMessage"),
        (("Content-Type", "application/json"),),
        b'{"chat_id":42,"text":"<b>Hi</b> &amp; bye","parse_mode":"HTML"}',
    )
    step = start(TEXT)
    assert (request, Part(1, 1), Scope("tg", "tg.bot_token", "42")) == (step.request, step.part, step.scope)


def test_a_picture_whole() -> None:
    """One form: numbers and objects as JSON, then the file by reference."""
    picture = media(caption=Rendered("<i>c</i>", "c"), width=800, height=600)
    parts = (
        FormPart("chat_id", b"-1001234567890"),
        FormPart("message_thread_id", b"7"),
        FormPart("caption", b"<i>c</i>"),
        FormPart("parse_mode", b"HTML"),
        FormPart("reply_parameters", b'{"message_id":901,"allow_sending_without_reply":true}'),
        FormPart("photo", FileRef(picture.facts), "a.png", "image/png"),
    )
    request = HttpRequest(
        "POST",
        ("https://api.telegram.org/bot", Secret("tg.bot_token"), "/sendPhoto"),
        (),
        Multipart(parts, IDS.boundary),
    )
    assert request == start(picture, chat=f"{GROUP}/7", reply_to="901").request


@pytest.mark.parametrize(
    ("part", "method", "field"),
    [
        (media(), "sendPhoto", "photo"),
        (media(mime="image/jpeg", name="a.jpg"), "sendPhoto", "photo"),
        (media(mime="image/webp", name="a.webp"), "sendPhoto", "photo"),
        (media(Kind.ANIMATION, "image/gif", "a.gif"), "sendAnimation", "animation"),
        (media(Kind.VIDEO, "video/mp4", "a.mp4"), "sendVideo", "video"),
        (media(Kind.AUDIO, "audio/mpeg", "a.mp3"), "sendAudio", "audio"),
        (media(Kind.AUDIO, "audio/mp4", "a.m4a"), "sendAudio", "audio"),
        (media(Kind.AUDIO, "audio/ogg", "a.ogg", voice=True), "sendVoice", "voice"),
        (media(Kind.AUDIO, "audio/mpeg", "a.mp3", voice=True), "sendVoice", "voice"),
        (media(Kind.DOCUMENT, "application/pdf", "a.pdf"), "sendDocument", "document"),
    ],
)
def test_each_kind_has_its_method(part: MediaPart, method: str, field: str) -> None:
    name, body = asked(start(part))
    assert (method, True) == (name, field in body)
    assert send(start(part), [SAID["sent"]])[1].unwrap().delivered[0].notes == ()


@pytest.mark.parametrize(
    "part",
    [
        media(mime="image/svg+xml", name="d.svg"),
        media(mime="image/heic", name="p.heic"),
        media(size=10 * 1024 * 1024 + 1),
        media(width=5001, height=5000),
        media(width=2, height=41),
        media(Kind.VIDEO, "video/x-matroska", "a.mkv"),
        media(Kind.AUDIO, "audio/ogg", "a.ogg"),
        media(Kind.AUDIO, "audio/wav", "a.wav", notes=("as audio",)),
    ],
)
def test_what_its_method_would_refuse_goes_as_a_file_and_says_so(part: MediaPart) -> None:
    method, body = asked(start(part))
    assert (method, body["disable_content_type_detection"]) == ("sendDocument", True)
    assert send(start(part), [SAID["sent_document"]])[1].unwrap().delivered[0].notes == ("as a file",)


@pytest.mark.parametrize("sides", [(5000, 5000), (2, 40), (None, None), (0, 10)])
def test_a_picture_at_its_limits_or_of_unknown_size_is_a_picture(sides: tuple[int | None, int | None]) -> None:
    assert asked(start(media(size=10 * 1024 * 1024, width=sides[0], height=sides[1])))[0] == "sendPhoto"


def test_sizes_and_lengths_help_the_client() -> None:
    video = asked(start(media(Kind.VIDEO, "video/mp4", "a.mp4", width=640, height=360, duration=2.6)))[1]
    assert tuple(video[name] for name in ("width", "height", "duration", "supports_streaming")) == (640, 360, 3, True)
    voice = asked(start(media(Kind.AUDIO, "audio/ogg", "a.ogg", voice=True, duration=2.4)))[1]
    assert (voice["duration"], "width" in voice) == (2, False)


def test_bytes_made_here_go_as_they_are() -> None:
    part = media(Kind.DOCUMENT, "text/markdown", "message.md", data=b"# long")
    assert asked(start(part))[1]["document"] == (b"# long", "message.md", "text/markdown")


def test_without_markup_there_is_no_parse_mode() -> None:
    assert asked(start(PLAIN))[1] == {"chat_id": 42, "text": "a < b"}


@pytest.mark.parametrize(
    ("chat", "thread"),
    [("42", None), (GROUP, None), (f"{GROUP}/7", 7), (f"{GROUP}/1", None), ("@ops", None), ("@ops/7", 7)],
)
def test_topics_are_kept_but_for_the_general_one(chat: str, thread: int | None) -> None:
    assert thread == asked(start(TEXT, chat=chat))[1].get("message_thread_id")


def test_a_private_chat_has_no_topic() -> None:
    """A conversation's thread comes along with a recipient that was named without one."""
    out = Outgoing(replace(to("42"), thread="7"), (TEXT,), reply_to="900")
    body = asked(CHANNEL.describe(AT, out, IDS, {}).unwrap())[1]
    assert (body.get("message_thread_id"), body["reply_parameters"]["message_id"]) == (None, 900)


def test_the_reply_is_the_first_part_only() -> None:
    exchanges, _ = send(start(TEXT, PLAIN, reply_to="7"), [SAID["sent_as_reply"], SAID["sent"]])
    assert ["reply_parameters" in asked(one)[1] for one in exchanges] == [True, False]
    assert "reply_parameters" not in asked(start(PLAIN, reply_to="7", numbered_from=2))[1]


@pytest.mark.parametrize("reply_to", ["0x1F", "12.5", "٤٢", "abc", "-1", " 7", "7\n"])
def test_what_is_no_message_id_is_refused(reply_to: str) -> None:
    refusal = CHANNEL.describe(AT, outgoing(TEXT, reply_to=reply_to), IDS, {}).failure()
    assert isinstance(refusal, InvalidArguments)


def test_another_server() -> None:
    at = Configured("tg", "telegram", Settings(Secret("tg.bot_token"), api_base="http://127.0.0.1:8081"))
    step = CHANNEL.describe(at, outgoing(TEXT), IDS, {}).unwrap()
    assert step.request.url[0] == "http://127.0.0.1:8081/bot"


def test_nothing_left_is_done() -> None:
    assert Done() == start()


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["42", "-5", GROUP, "@ops", "@OpsLead", "@ops_1/7", f"{GROUP}/7"])
def test_a_recipient_is_shown_as_it_was_written(text: str) -> None:
    assert text == str(to(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-0",
        "042",
        "0x1F",
        "12.5",
        " 42",
        "42\n",
        "٤٢",
        "４２",
        "123/../../guilds/1",
        "@",
        "@1abc",
        "ops",
        "@a b",
    ]
    + ["42/7", f"{GROUP}/", f"{GROUP}/0", f"{GROUP}/7/8", "1e3", "+42", "@опс", "@" + "a" * 33, "9" * 20],
)
def test_nothing_else_is_one(text: str) -> None:
    refusal = recipient(text).failure()
    assert isinstance(refusal, InvalidRecipient) and text == refusal.recipient


def test_one_recipient_however_it_is_written() -> None:
    assert same("@OpsLead") == same("opslead") != same("@opslead2")


@pytest.mark.parametrize(
    ("chat", "topic", "default"),
    [
        (None, "7", None),
        ("42", None, "42"),
        ("42", "7", "42"),
        (GROUP, "7", f"{GROUP}/7"),
        ("@ops", "7", "@ops/7"),
        (f"{GROUP}/3", "7", f"{GROUP}/3"),
    ],
)
def test_the_topic_of_the_settings_belongs_to_their_chat(
    chat: str | None, topic: str | None, default: str | None
) -> None:
    assert default == default_recipient(Settings(Secret("t"), chat, topic))


# --- What replies mean ------------------------------------------------------------------------------------------------


def test_a_message_is_there() -> None:
    assert Done((Receipt(Part(1, 1), "1", "42"),)) == send(start(TEXT), [SAID["sent"]])[1].unwrap()


def test_parts_come_in_order_and_a_stop_holds_what_is_there() -> None:
    exchanges, end = send(start(TEXT, PLAIN, TEXT), [SAID["sent"], SAID["sent_photo"], SAID["kicked"]])
    stopped = end.failure()
    assert [Part(1, 3), Part(2, 3), Part(3, 3)] == [one.part for one in exchanges]
    assert [(one.id, one.part.index) for one in stopped.at.delivered] == [("1", 1), ("4", 2)]
    assert exchanges[2] == stopped.at and isinstance(stopped.cause, InvalidRecipient)


@pytest.mark.parametrize(
    ("case", "notes"),
    [
        ("sent_as_reply", ()),
        ("sent_as_reply_elsewhere", ()),
        ("sent_without_reply", ("not as a reply: the message replied to is gone",)),
    ],
)
def test_a_reply_to_a_message_that_is_gone_is_delivered_and_told(case: str, notes: tuple[str, ...]) -> None:
    assert notes == send(start(TEXT, reply_to="7"), [SAID[case]])[1].unwrap().delivered[0].notes


def test_what_is_no_reply_says_nothing_of_one() -> None:
    assert send(start(TEXT), [SAID["sent_without_reply"]])[1].unwrap().delivered[0].notes == ()


def test_refused_markup_goes_once_as_plain_text() -> None:
    exchanges, end = send(start(TEXT), [SAID["cannot_parse"], SAID["sent"]])
    assert asked(exchanges[1])[1] == {"chat_id": 42, "text": "Hi & bye"}
    assert end.unwrap().delivered[0].notes == ("as plain text",)


def test_refused_markup_of_a_caption_keeps_the_file() -> None:
    exchanges, end = send(start(media(caption=TEXT.text)), [SAID["cannot_parse"], SAID["sent_photo"]])
    method, body = asked(exchanges[1])
    assert (method, body["caption"], "parse_mode" in body) == ("sendPhoto", "Hi & bye", False)
    assert end.unwrap().delivered[0].notes == ("as plain text",)


def test_plain_text_is_not_tried_twice() -> None:
    exchanges, end = send(start(TEXT), [SAID["cannot_parse"], SAID["cannot_parse"]])
    assert (2, Invalid) == (len(exchanges), type(end.failure().cause))


@pytest.mark.parametrize("case", ["photo_dimensions", "image_process_failed", "photo_too_big"])
def test_a_refused_picture_goes_once_as_a_file(case: str) -> None:
    exchanges, end = send(start(media(caption=TEXT.text)), [SAID[case], SAID["sent_document"]])
    assert [asked(one)[0] for one in exchanges] == ["sendPhoto", "sendDocument"]
    assert TEXT.text.text == asked(exchanges[1])[1]["caption"]
    assert (Receipt(Part(1, 1), "10", "42", ("as a file",)),) == end.unwrap().delivered


def test_a_picture_refused_as_a_file_too_has_failed() -> None:
    _, end = send(start(media()), [SAID["photo_dimensions"], SAID["file_too_big"]])
    assert Invalid(400, "Bad Request", "", "file is too big") == end.failure().cause


def test_pictures_that_are_not_permitted_are_not_smuggled_in_as_files() -> None:
    _, end = send(start(media()), [SAID["photos_not_permitted"]])
    assert isinstance(end.failure().cause, Denied)


@pytest.mark.parametrize(
    ("mime", "method", "note"),
    [
        ("audio/mpeg", "sendAudio", "as audio"),
        ("audio/mp4", "sendAudio", "as audio"),
        ("audio/ogg", "sendDocument", "as a file"),
    ],
)
def test_who_takes_no_voice_messages_gets_audio(mime: str, method: str, note: str) -> None:
    exchanges, end = send(
        start(media(Kind.AUDIO, mime, "v", voice=True)), [SAID["voice_forbidden"], SAID["sent_audio"]]
    )
    assert (method, (note,)) == (asked(exchanges[1])[0], end.unwrap().delivered[0].notes)


def test_a_group_that_moved_is_followed_once_and_remembered() -> None:
    """The parts that are left go to the new id too, and later sends begin there."""
    answers = [SAID["migrated"], SAID["sent_to_supergroup"], SAID["sent_to_supergroup"]]
    exchanges, end = send(start(TEXT, PLAIN, chat="-77"), answers)
    done, note = end.unwrap(), f"the group -77 is now {GROUP}"
    assert [-77, int(GROUP), int(GROUP)] == [asked(one)[1]["chat_id"] for one in exchanges]
    assert [(GROUP, (note,)), (GROUP, (note,))] == [(one.recipient, one.notes) for one in done.delivered]
    assert (Learned("telegram.chat.-77", GROUP),) == done.learned
    known = {lesson.key: lesson.value for lesson in done.learned}
    assert int(GROUP) == asked(start(TEXT, chat="-77", known=known))[1]["chat_id"]


def test_a_group_that_moves_twice_is_not_run_after() -> None:
    _, end = send(start(TEXT, chat="-77"), [SAID["migrated"], SAID["migrated_again"]])
    assert isinstance(end.failure().cause, InvalidRecipient)
    assert (Learned(moved_key("-77"), GROUP),) == end.failure().learned


ERRORS = {
    "unauthorized": Denied,
    "not_found": Denied,
    "misdirected": Denied,
    "no_rights": Denied,
    "topic_closed": Denied,
    "chat_not_found": InvalidRecipient,
    "blocked": InvalidRecipient,
    "deactivated": InvalidRecipient,
    "kicked": InvalidRecipient,
    "not_a_member": InvalidRecipient,
    "cannot_initiate": InvalidRecipient,
    "no_such_topic": InvalidRecipient,
    "too_long": Invalid,
    "empty": Invalid,
    "too_large": Invalid,
    "too_many": RateLimited,
    "internal": Unavailable,
    "bad_gateway": Unavailable,
    "no_json": Malformed,
    "neither": Malformed,
    "refused_inside_200": Rejected,
}


@pytest.mark.parametrize(("case", "error"), ERRORS.items())
def test_each_refusal_is_what_the_caller_can_do_next(case: str, error: type) -> None:
    cause = send(start(TEXT), [SAID[case]])[1].failure().cause
    assert error is type(cause)


def test_a_refused_recipient_is_named_with_the_platforms_words() -> None:
    cause = send(start(TEXT), [SAID["blocked"]])[1].failure().cause
    assert InvalidRecipient("42", "", "bot was blocked by the user", 403, "Forbidden") == cause


@pytest.mark.parametrize("headers", [SAID["too_many"].headers, ()])
def test_the_wait_is_the_platforms_in_seconds(headers: tuple[tuple[str, str], ...]) -> None:
    cause = send(start(TEXT), [replace(SAID["too_many"], headers=headers)])[1].failure().cause
    assert cause.after == 35.0


def test_a_gateways_silence_leaves_the_matter_open() -> None:
    assert send(start(TEXT), [SAID["bad_gateway"]])[1].failure().cause.may_have_arrived
    assert not start(TEXT).request.repeatable


# --- Asking beforehand, and rehearsing --------------------------------------------------------------------------------


def test_the_probe_asks_who_we_are_and_for_the_chat() -> None:
    me, chat = CHANNEL.probe(AT, None, {}), CHANNEL.probe(AT, to(f"{GROUP}/7"), {})
    assert (asked(me), asked(chat)) == (("getMe", {}), ("getChat", {"chat_id": int(GROUP)}))
    assert (chat.part, chat.request.repeatable) == (None, True)
    assert Success(Done()) == send(me, [SAID["me"]])[1]
    assert isinstance(send(chat, [SAID["chat_not_found"]])[1].failure().cause, InvalidRecipient)


def test_the_probe_asks_for_a_moved_group_by_its_new_id() -> None:
    probe = CHANNEL.probe(AT, to("-77"), {moved_key("-77"): GROUP})
    assert asked(probe)[1] == {"chat_id": int(GROUP)}


@pytest.mark.parametrize("reply_to", [None, "7"])
def test_a_rehearsal_reaches_the_end_without_a_note(reply_to: str | None) -> None:
    step = start(TEXT, media(), media(Kind.AUDIO, "audio/ogg", "a.ogg", voice=True), reply_to=reply_to)
    done = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), step).unwrap()
    assert [(one.part.index, one.notes) for one in done.delivered] == [(1, ()), (2, ()), (3, ())]
    probed = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), CHANNEL.probe(AT, to("42"), {}))
    assert Success(Done()) == probed


# --- Laws -------------------------------------------------------------------------------------------------------------

KINDS = st.sampled_from(
    [
        (Kind.IMAGE, "image/png"),
        (Kind.IMAGE, "image/heic"),
        (Kind.ANIMATION, "image/gif"),
        (Kind.VIDEO, "video/mp4"),
        (Kind.AUDIO, "audio/mpeg"),
        (Kind.DOCUMENT, "application/pdf"),
    ]
)
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
RENDERED = st.builds(Rendered, WORDS, WORDS)
SIDES = st.none() | st.integers(1, 20_000)
CONTENT = st.builds(TextPart, RENDERED, st.booleans()) | st.builds(
    lambda kind, caption, voice, width, height, duration: media(
        *kind, name='é "x".bin', caption=caption, voice=voice, width=width, height=height, duration=duration
    ),
    KINDS,
    st.none() | RENDERED,
    st.booleans(),
    SIDES,
    SIDES,
    st.none() | st.floats(0, 9999),
)
CHATS = st.sampled_from(["42", GROUP, f"{GROUP}/7", "@ops", "-77"])


def every_exchange(step: Step) -> list[Exchange]:
    return send(step, [SAID["sent"]] * step.part.of)[0]


@settings(deadline=None, max_examples=150)
@given(parts=st.lists(CONTENT, min_size=1, max_size=3), chat=CHATS, reply_to=st.none() | st.just("900"))
def test_every_request_is_one_that_the_platform_describes(parts, chat, reply_to) -> None:
    """Only known parameters, all that are required, of the types described; equal input gives equal requests."""
    step = start(*parts, chat=chat, reply_to=reply_to)
    assert step == start(*parts, chat=chat, reply_to=reply_to) == pickle.loads(pickle.dumps(step))
    for exchange in every_exchange(step):
        method, body = asked(exchange)
        described = SPEC["methods"][method]
        assert set(body) <= set(described)
        assert {name for name, field in described.items() if field["required"]} <= set(body)
        for name, value in body.items():
            assert any(fits(value, kind) for kind in described[name]["types"]), (name, value)


def fits(value: object, kind: str) -> bool:
    match kind:
        case "Integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "String":
            return isinstance(value, str | int)
        case "Boolean":
            return isinstance(value, bool)
        case "InputFile":
            return isinstance(value, tuple)
        case "ReplyParameters":
            return set(value) <= set(SPEC["types"]["ReplyParameters"]) and isinstance(value["message_id"], int)
    return False


def test_no_way_leads_round_in_a_circle() -> None:
    """Whatever is refused again and again, a part is asked for a few times at most."""
    part = media(Kind.AUDIO, "audio/mpeg", "v", voice=True, caption=TEXT.text)
    answers = [SAID["migrated"], SAID["voice_forbidden"], SAID["cannot_parse"], SAID["voice_forbidden"]]
    exchanges, end = send(start(part, chat="-77"), answers)
    assert (4, Denied) == (len(exchanges), type(end.failure().cause))


def test_the_registry_has_it() -> None:
    assert CHANNEL is CHANNELS["telegram"]
