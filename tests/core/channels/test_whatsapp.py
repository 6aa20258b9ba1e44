"""WhatsApp: what is asked for, how a file is shown, and what each reply means."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Configured
from messaging_core.channels.whatsapp import CHANNEL, MB, Settings, check, recipient, same
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Rejected,
    Unavailable,
    may_have_arrived,
)
from messaging_core.flow import Done, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import FileRef, FormPart, HttpReply, HttpRequest, Multipart, on_wire

from .replies import fields, replies, send

SAID = replies("whatsapp")
TOKEN = Secret("wa.access_token")
AT = Configured("wa", "whatsapp", Settings(TOKEN, "106853218861309"))
IDS = Ids("018f2k3j4h5g6")
AUTH = ("Authorization", ("Bearer ", TOKEN))
API = "https://graph.facebook.com/v25.0/106853218861309"
WAMID = "wamid.HBgLMTY1MDU1NTEyMzQVAgARGBI5QTRCMEM4RjA2NzY4RTlBNAA="
GROUP = "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"

TEXT = TextPart(Rendered("*Hi*", "Hi"))
OPUS = b"OggS\0\2" + bytes(20) + b"\1\x13OpusHead\1\1"
VORBIS = b"OggS\0\2" + bytes(20) + b"\1\x1e\1vorbis"


def start(*parts, to="+1 (650) 555-1234", **more) -> Step:
    return CHANNEL.describe(AT, Outgoing(recipient(to).unwrap(), parts, **more), IDS, {}).unwrap()


def media(kind=Kind.IMAGE, mime="image/jpeg", name="a.jpg", size=5, head=b"", **more) -> MediaPart:
    return MediaPart(FileFacts(name, f"/srv/{name}", name, size=size, head=head), kind, mime, **more)


def shown(part: MediaPart) -> tuple[str, dict, tuple[str, ...]]:
    """The type of the message that shows the file, the object of that name, and the notes."""
    exchanges, end = send(start(part), [SAID["uploaded"], SAID["accepted"]])
    body = fields(exchanges[1].request)
    return body["type"], body[body["type"]], end.unwrap().delivered[0].notes


# --- What is asked for ------------------------------------------------------------------------------------------------


def test_a_text_whole() -> None:
    """Digits alone, no preview, and the reply in its context."""
    step = start(TEXT, reply_to="wamid.X")
    body = (
        b'{"messaging_product":"whatsapp","recipient_type":"individual","to":"16505551234",'
        b'"context":{"message_id":"wamid.X"},"type":"text","text":{"body":"*Hi*","preview_url":false}}'
    )
    headers = (("Content-Type", "application/json"), AUTH)
    assert HttpRequest("POST", f"{API}/messages", headers, body) == step.request
    assert (Part(1, 1), Scope("wa", TOKEN.name, "16505551234", "messages")) == (step.part, step.scope)


def test_a_file_is_uploaded_and_then_shown() -> None:
    picture = media(caption=Rendered("_c_", "c"))
    exchanges, end = send(start(picture), [SAID["uploaded"], SAID["accepted"]])
    form = Multipart(
        (
            FormPart("messaging_product", b"whatsapp"),
            FormPart("type", b"image/jpeg"),
            FormPart("file", FileRef(picture.facts), "a.jpg", "image/jpeg"),
        ),
        IDS.boundary,
    )
    body = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "16505551234",
        "type": "image",
        "image": {"id": "4490709327384033", "caption": "_c_"},
    }
    assert HttpRequest("POST", f"{API}/media", (AUTH,), form, repeatable=True) == exchanges[0].request
    assert body == fields(exchanges[1].request)
    assert [None, Part(1, 1)] == [exchange.part for exchange in exchanges]
    assert Success(Done((Receipt(Part(1, 1), WAMID, "16505551234"),))) == end


@pytest.mark.parametrize(
    ("to", "address"),
    [
        ("16505551234", {"recipient_type": "individual", "to": "16505551234"}),
        ("US.13491208655302741918", {"recipient_type": "individual", "recipient": "US.13491208655302741918"}),
        (GROUP, {"recipient_type": "group", "to": GROUP}),
        ("group:abc", {"recipient_type": "group", "to": "abc"}),
    ],
)
def test_each_form_of_recipient_has_its_field(to: str, address: dict) -> None:
    body = fields(start(TEXT, to=to).request)
    assert address == {name: body[name] for name in ("recipient_type", "to", "recipient") if name in body}


def test_the_reply_belongs_to_the_first_part_alone() -> None:
    answers = [SAID["uploaded"], SAID["accepted"], SAID["accepted"]]
    exchanges, _ = send(start(media(), TEXT, reply_to="wamid.X"), answers)
    assert ["context" in fields(exchange.request) for exchange in exchanges[1:]] == [True, False]
    assert "context" not in fields(start(TEXT, reply_to="wamid.X", numbered_from=2).request)


# --- How a file is shown ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "sort"),
    [
        (media(), "image"),
        (media(mime="image/png"), "image"),
        (media(size=5 * MB), "image"),
        (media(Kind.VIDEO, "video/mp4"), "video"),
        (media(Kind.VIDEO, "video/3gpp", size=16 * MB), "video"),
        (media(Kind.ANIMATION, "video/mp4"), "video"),
        (media(Kind.AUDIO, "audio/mpeg"), "audio"),
        (media(Kind.AUDIO, "audio/mp4", size=16 * MB), "audio"),
        (media(Kind.AUDIO, "audio/ogg", head=OPUS), "audio"),
    ],
)
def test_what_whatsapp_shows_is_shown(part: MediaPart, sort: str) -> None:
    assert (sort, {"id": "4490709327384033"}, ()) == shown(part)


@pytest.mark.parametrize(
    "part",
    [
        media(size=5 * MB + 1),
        media(mime="image/webp"),
        media(Kind.ANIMATION, "image/gif"),
        media(Kind.VIDEO, "video/x-matroska"),
        media(Kind.VIDEO, "video/mp4", size=16 * MB + 1),
        media(Kind.AUDIO, "audio/wav"),
        media(Kind.AUDIO, "audio/ogg", head=VORBIS),
        media(Kind.AUDIO, "audio/ogg", head=VORBIS, voice=True),
    ],
)
def test_all_else_goes_as_a_document_with_its_name_and_says_so(part: MediaPart) -> None:
    assert shown(part) == ("document", {"id": "4490709327384033", "filename": "a.jpg"}, ("as a file",))


def test_a_document_is_a_document_also_when_it_is_a_picture() -> None:
    part = media(Kind.DOCUMENT, caption=Rendered("c", "c"), notes=("told",))
    body = {"id": "4490709327384033", "caption": "c", "filename": "a.jpg"}
    assert ("document", body, ("told",)) == shown(part)


@pytest.mark.parametrize(
    ("mime", "head", "kind", "said"),
    [
        ("audio/ogg", OPUS, Kind.AUDIO, "audio/ogg; codecs=opus"),
        ("audio/opus", OPUS, Kind.AUDIO, "audio/ogg; codecs=opus"),
        ("audio/ogg", VORBIS, Kind.AUDIO, "audio/ogg"),
        ("text/markdown", b"", Kind.DOCUMENT, "text/plain"),
        ("application/pdf", b"", Kind.DOCUMENT, "application/pdf"),
    ],
)
def test_the_upload_names_the_type_as_whatsapp_lists_it(mime: str, head: bytes, kind: Kind, said: str) -> None:
    form = fields(start(media(kind, mime, head=head)).request)
    assert (said, said) == (form["type"], form["file"][2])


def test_bytes_made_here_go_as_they_are() -> None:
    part = MediaPart(FileFacts("message.md", "message.md", "message.md"), Kind.DOCUMENT, "text/markdown", data=b"# x")
    assert fields(start(part).request)["file"] == (b"# x", "message.md", "text/plain")


def test_opus_goes_as_a_voice_message_and_other_audio_says_that_it_does_not() -> None:
    assert shown(media(Kind.AUDIO, "audio/ogg", head=OPUS, voice=True)) == (
        "audio",
        {"id": "4490709327384033", "voice": True},
        (),
    )
    assert shown(media(Kind.AUDIO, "audio/mpeg", voice=True)) == ("audio", {"id": "4490709327384033"}, ("as audio",))


def test_audio_takes_no_caption() -> None:
    assert Kind.AUDIO in CHANNEL.limits.uncaptioned
    assert not CHANNEL.limits.voice_captioned


# --- Recipients and settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "id", "kind"),
    [
        ("16505551234", "16505551234", "phone"),
        ("+16505551234", "16505551234", "phone"),
        ("+49 (170) 555-0100", "491705550100", "phone"),
        ("DE.13491208655302741918", "DE.13491208655302741918", "user"),
        ("US.ENT.11815799212886844830", "US.ENT.11815799212886844830", "user"),
        (GROUP, GROUP, "group"),
        (f"group:{GROUP}", GROUP, "group"),
    ],
)
def test_a_recipient_is_a_number_a_user_id_or_a_group(text: str, id: str, kind: str) -> None:
    found = recipient(text).unwrap()
    assert (id, kind) == (found.id, found.kind)


@pytest.mark.parametrize(
    "text",
    ["", "alice", "0x1F", "12.5", " 42", "４２", "42\n", "123/../../guilds/1", "01705550100", "0049170555", "+",
     "12345",
     "+1650555123456789", "1650555 1234\r\n", "1650555a234", "16505551234@s.whatsapp.net", "de.123", "DE.", "DE.1/2",
     "1" * 30, "group:", "group:a b", "１６５０５５５１２３４", "+1--++6505551234"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    assert "a phone number with its country code" in str(recipient(text).failure())


def test_numbers_are_compared_by_their_digits_and_ids_letter_by_letter() -> None:
    assert same("+1 (650) 555-1234") == same("16505551234")
    assert same(f"group:{GROUP}") == same(GROUP)
    assert same(GROUP) != same(GROUP.lower())


@pytest.mark.parametrize("id", ["+1 650 555 1234", "16505551234x", "", "１２"])
def test_a_phone_number_where_its_id_belongs_is_found_when_loading(id: str) -> None:
    (fault,) = check({"phone_number_id": id, "access_token": "EAAFAKE"})
    assert fault.key == "phone_number_id"
    assert not list(check({"phone_number_id": "106853218861309"}))


# --- What replies mean ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "case", "notes"),
    [
        ("16505551234", "accepted", ()),
        ("16505551234", "held", ("not delivered yet: held for quality assessment",)),
        ("5215512345678", "other_number", ("WhatsApp knows the number as 525512345678",)),
        ("US.13491208655302741918", "accepted_by_user_id", ()),
        (GROUP, "accepted", ()),
    ],
)
def test_a_message_taken_over_but_for_a_condition_says_so(to: str, case: str, notes: tuple[str, ...]) -> None:
    receipt = send(start(TEXT, to=to), [SAID[case]])[1].unwrap().delivered[0]
    assert (to, notes) == (receipt.recipient, receipt.notes)


def test_a_reply_to_an_unknown_message_is_delivered_without_and_says_so() -> None:
    exchanges, end = send(start(TEXT, reply_to="wamid.X"), [SAID["parameter_value"], SAID["accepted"]])
    assert ["context" in fields(exchange.request) for exchange in exchanges] == [True, False]
    assert end.unwrap().delivered[0].notes == ("not as a reply: the message replied to is not there",)
    assert isinstance(send(start(TEXT), [SAID["parameter_value"]])[1].failure().cause, Invalid)


def test_a_picture_that_is_refused_goes_as_a_file_and_says_so_once() -> None:
    answers = [SAID["uploaded"], SAID["media_refused"], SAID["parameter_value"], SAID["accepted"]]
    exchanges, end = send(start(media(caption=Rendered("c", "c")), reply_to="wamid.X"), answers)
    bodies = [fields(exchange.request) for exchange in exchanges[1:]]
    assert [(b["type"], "context" in b) for b in bodies] == [("image", True), ("document", True), ("document", False)]
    assert bodies[2]["document"] == {"id": "4490709327384033", "caption": "c", "filename": "a.jpg"}
    assert end.unwrap().delivered[0].notes == ("as a file", "not as a reply: the message replied to is not there")
    _, end = send(start(media()), [SAID["uploaded"], SAID["media_refused"], SAID["media_refused"]])
    assert isinstance(end.failure().cause, Invalid)


@pytest.mark.parametrize(
    ("case", "error", "words"),
    [
        ("token_expired", Denied, "Session has expired"),
        ("no_permission", Denied, "does not have permission"),
        ("no_such_number_id", Denied, "phone_number_id is not there"),
        ("payment", Denied, "payment method"),
        ("invalid_parameter", Invalid, "at most 4096 characters"),
        ("parameter_value", Invalid, "Invalid message_id"),
        ("undeliverable", InvalidRecipient, "not on WhatsApp"),
        ("not_allow_listed", InvalidRecipient, "test number"),
        ("window_closed", Rejected, "more than 24 hours since the user last wrote: only an approved template"),
        ("pair_limit", RateLimited, "131056"),
        ("throughput", RateLimited, "130429"),
        ("business_limit", RateLimited, "80007"),
        ("unknown_trouble", Unavailable, "131000"),
        ("maintenance", Unavailable, "maintenance mode"),
        ("transient", Unavailable, "An unknown error occurred"),
        ("something_new", Invalid, "Something new"),
        ("html", Unavailable, "502 Bad Gateway"),
        ("no_id", Malformed, "the answer has no id"),
        ("empty", Malformed, "the answer is empty"),
    ],
)
def test_each_refusal_says_what_can_be_done(case: str, error: type, words: str) -> None:
    """By the code, and not by the HTTP status, which varies; for the upload as for the message."""
    for part, before in ((TEXT, []), (media(), []), (media(Kind.DOCUMENT), [SAID["uploaded"]])):
        cause = send(start(part), [*before, SAID[case]])[1].failure().cause
        assert error is type(cause)
        assert words in str(cause)


@pytest.mark.parametrize(("case", "after"), [("pair_limit", 6.0), ("throughput", None), ("business_limit", 300.0)])
def test_the_wait_comes_in_minutes_and_else_from_the_documented_rate(case: str, after: float | None) -> None:
    assert after == send(start(TEXT), [SAID[case]])[1].failure().cause.after


@pytest.mark.parametrize(
    "usage", ["", "soon", "[]", "[1]", "{}", '{"1": 5}', '{"1": [5, null]}',
              '{"1": [{"estimated_time_to_regain_access": 0}]}',
              '{"1": [{"estimated_time_to_regain_access": "5"}]}']
)  # fmt: skip
def test_a_wait_that_cannot_be_read_is_none(usage: str) -> None:
    headers = (("x-business-use-case-usage", usage),)
    limited = HttpReply(400, "Bad Request", headers, SAID["throughput"].body)
    assert None is send(start(TEXT), [limited])[1].failure().cause.after


@pytest.mark.parametrize(
    ("case", "maybe"),
    [("html", True), ("no_id", True), ("empty", True), ("unknown_trouble", False), ("window_closed", False)],
)
def test_what_may_have_arrived_all_the_same_is_told(case: str, maybe: bool) -> None:
    assert maybe is may_have_arrived(send(start(TEXT), [SAID[case]])[1].failure().cause)


# --- Probing and rehearsing -------------------------------------------------------------------------------------------


def test_a_probe_asks_whether_the_number_is_ours() -> None:
    step = CHANNEL.probe(AT, recipient("16505551234").unwrap(), {})
    query = (("fields", "id,display_phone_number,verified_name,quality_rating"),)
    assert HttpRequest("GET", API, (AUTH,), query=query, repeatable=True) == step.request
    assert Success(Done()) == send(step, [SAID["phone_number"]])[1]
    assert isinstance(send(step, [SAID["token_expired"]])[1].failure().cause, Denied)


@pytest.mark.parametrize("to", ["16505551234", "US.1349", GROUP])
def test_a_rehearsal_reaches_the_end_without_a_note(to: str) -> None:
    voice = media(Kind.AUDIO, "audio/ogg", head=OPUS, voice=True)
    step = start(media(), TEXT, voice, to=to, reply_to="wamid.X")
    done = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), step).unwrap()
    assert [(one.part.index, one.notes) for one in done.delivered] == [(1, ()), (2, ()), (3, ())]
    probed = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), CHANNEL.probe(AT, None, {}))
    assert Success(Done()) == probed
    assert CHANNEL is CHANNELS["whatsapp"]


# --- Laws -------------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
RENDERED = st.builds(Rendered, WORDS, WORDS)
KINDS = [(Kind.IMAGE, "image/png"), (Kind.VIDEO, "video/mp4"), (Kind.ANIMATION, "image/gif"), (Kind.DOCUMENT, "a/b")]
CONTENT = st.builds(TextPart, RENDERED, st.booleans()) | st.builds(
    lambda kind, name, size, caption: media(*kind, name=name, size=size, caption=caption),
    st.sampled_from(KINDS),
    WORDS,
    st.integers(1, 10**8),
    st.none() | RENDERED,
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(CONTENT, min_size=1, max_size=3),
    st.sampled_from(["16505551234", "US.1349", GROUP]),
    st.none() | st.just("wamid.X"),
)
def test_equal_input_gives_equal_requests_that_hold_no_secret(parts, to, reply_to) -> None:
    """Comparable, picklable, and with the token in its header alone once it is put in."""
    step = start(*parts, to=to, reply_to=reply_to)
    assert step == start(*parts, to=to, reply_to=reply_to) == pickle.loads(pickle.dumps(step))
    secrets, requests = Secrets({TOKEN.name: "EAAFAKE-token"}), []

    def rehearse(exchange):
        requests.append(exchange.request)
        return Success(CHANNEL.rehearse(exchange.request))

    drive(rehearse, step)
    for request in requests:
        wire = on_wire(request, secrets, 0.0)
        assert [name for name, value in wire.headers if "EAAFAKE-token" in value] == ["Authorization"]
        assert "EAAFAKE-token" not in wire.url + str(wire.body) + repr(wire) + repr(request)
        if isinstance(request.body, bytes):
            body = json.loads(request.body)
            assert {"messaging_product", "recipient_type", "type", body["type"]} <= set(body)
