"""Matrix: the requests and their order, the form of events, the room of a person or an alias, and what each reply means."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Failure, Success

from messaging_core.channels.channel import Configured
from messaging_core.channels.matrix import CHANNEL, Settings, recipient, same
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
from messaging_core.flow import Done, Learned, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.split import split
from messaging_core.markup.tree import parse
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secret, Secrets, shown
from messaging_core.wire.http import FileRef, HttpRequest, on_wire

from .replies import replies, send

SAID = replies("matrix")
TOKEN = Secret("hs.access_token")
AT = Configured("hs", "matrix", Settings("https://hs.test", TOKEN))
IDS = Ids("1764500000000abcd1234", 1000.0)
AUTH = ("Authorization", ("Bearer ", TOKEN))
JSON = ("Content-Type", "application/json")
API = "https://hs.test/_matrix/client/v3"
ROOM = "!room:hs.test"

TEXT = TextPart(Rendered("two & lines", "two & lines", "<p><strong>two</strong> &amp; lines</p>"))
PLAIN = TextPart(Rendered("hi", "hi"), markup=False)
FACTS = FileFacts("chart.png", "/srv/chart.png", "chart é.png", size=1234)
IMAGE = MediaPart(FACTS, Kind.IMAGE, "image/png", width=20, height=10)


def start(*parts, to=ROOM, known=None, **more) -> Step:
    return CHANNEL.describe(AT, Outgoing(recipient(to).unwrap(), parts or (PLAIN,), **more), IDS, known or {}).unwrap()


def event(step: Step) -> dict:
    return json.loads(step.request.body)


def asked(exchanges) -> list[str]:
    return [
        f"{one.request.method} {shown(one.request.url).removeprefix('https://hs.test/_matrix/')}" for one in exchanges
    ]


# --- Texts ------------------------------------------------------------------------------------------------------------


def test_a_text_whole():
    """The token is named and not there; the transaction id is the message's; nobody is rung."""
    step = start(PLAIN)
    url = f"{API}/rooms/%21room%3Ahs.test/send/m.room.message/1764500000000abcd1234.1"
    body = b'{"msgtype":"m.text","body":"hi","m.mentions":{}}'
    assert HttpRequest("PUT", url, (JSON, AUTH), body, repeatable=True) == step.request
    assert (Part(1, 1), Scope("hs", TOKEN.name, ROOM)) == (step.part, step.scope)


def test_a_formatted_text_has_both_forms():
    assert event(start(TEXT)) == {
        "msgtype": "m.text",
        "body": "two & lines",
        "format": "org.matrix.custom.html",
        "formatted_body": "<p><strong>two</strong> &amp; lines</p>",
        "m.mentions": {},
    }


def test_without_the_switch_there_are_exactly_the_published_keys():
    assert event(start(PLAIN, mute=False)) == {"msgtype": "m.text", "body": "hi"}


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("ask @bob:hs.test, or @al.ice:hs.test:8448.", {"user_ids": ["@bob:hs.test", "@al.ice:hs.test:8448"]}),
        ("@room and @bob:hs.test @bob:hs.test", {"user_ids": ["@bob:hs.test"], "room": True}),
        ("mail bob@hs.test:25 and @rooms", None),
    ],
)
def test_names_ring_where_that_is_allowed(text, mentions):
    found = event(start(TextPart(Rendered(text, text)), mute=False))
    assert found.get("m.mentions") == mentions


def test_a_receipt_has_the_event_s_id():
    _, end = send(start(PLAIN), [SAID["sent"]])
    receipt = Receipt(Part(1, 1), "$Gxc90sC6uQkJkO8hg0UebyVs-pO3OfolXKVmloXmxSY", ROOM)
    assert end == Success(Done((receipt,)))


def test_parts_follow_one_another_each_with_its_own_transaction():
    seen, end = send(start(PLAIN, TEXT), [SAID["sent"], SAID["sent"]])
    assert [shown(one.request.url)[-2:] for one in seen] == [".1", ".2"]
    assert [receipt.part for receipt in end.unwrap().delivered] == [Part(1, 2), Part(2, 2)]


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_uploaded_as_it_is_and_then_shown():
    seen, end = send(start(IMAGE), [SAID["uploaded"], SAID["sent"]])
    url = "https://hs.test/_matrix/media/v3/upload"
    headers, query = (("Content-Type", "image/png"), AUTH), (("filename", "chart é.png"),)
    assert HttpRequest("POST", url, headers, FileRef(FACTS), query, repeatable=True) == seen[0].request
    assert seen[0].part is None
    assert on_wire(seen[0].request, Secrets({TOKEN.name: "FAKE"}), 0.0).url == f"{url}?filename=chart%20%C3%A9.png"
    assert event(seen[1]) == {
        "msgtype": "m.image",
        "body": "chart é.png",
        "filename": "chart é.png",
        "url": "mxc://matrix.test/TzUlPBTcAwhixlLsIxKbqSab",
        "info": {"mimetype": "image/png", "size": 1234, "w": 20, "h": 10},
        "m.mentions": {},
    }
    assert len(end.unwrap().delivered) == 1


def shown_as(part: MediaPart, **more) -> dict:
    return event(send(start(part, **more), [SAID["uploaded"], SAID["sent"]])[0][1])


@pytest.mark.parametrize(
    ("kind", "mime", "expected", "info"),
    [
        (Kind.ANIMATION, "image/gif", "m.image", {}),
        (Kind.VIDEO, "video/mp4", "m.video", {"duration": 1500}),
        (Kind.AUDIO, "audio/ogg", "m.audio", {"duration": 1500}),
        (Kind.DOCUMENT, "application/pdf", "m.file", {}),
        (Kind.IMAGE, "application/octet-stream", "m.file", {}),
    ],
)
def test_each_kind_of_file_is_shown_as_what_it_is_and_all_its_numbers_are_whole(kind, mime, expected, info):
    found = shown_as(MediaPart(FACTS, kind, mime, duration=1.5))
    assert found["msgtype"] == expected
    assert found["info"] == {"mimetype": mime, "size": 1234, **info}
    assert not any(isinstance(value, float) for value in found["info"].values())


def test_a_caption_is_the_body_beside_the_file_s_name():
    caption = Rendered("see *this*", "see this", "<p>see <em>this</em></p>")
    found = shown_as(MediaPart(FACTS, Kind.DOCUMENT, "application/pdf", caption))
    assert (found["filename"], found["body"]) == ("chart é.png", "see *this*")
    assert (found["format"], found["formatted_body"]) == ("org.matrix.custom.html", "<p>see <em>this</em></p>")


def test_bytes_made_here_are_uploaded_with_their_own_size():
    seen, _ = send(
        start(MediaPart(FACTS, Kind.DOCUMENT, "text/markdown", data=b"# hi")), [SAID["uploaded"], SAID["sent"]]
    )
    assert seen[0].request.body == b"# hi"
    assert event(seen[1])["info"]["size"] == 4


# --- Replies and threads ----------------------------------------------------------------------------------------------


def test_a_reply_belongs_to_the_first_part():
    seen, _ = send(start(PLAIN, PLAIN, reply_to="$asked"), [SAID["sent"], SAID["sent"]])
    assert event(seen[0])["m.relates_to"] == {"m.in_reply_to": {"event_id": "$asked"}}
    assert "m.relates_to" not in event(seen[1])


def test_a_thread_holds_every_part_and_a_reply_in_it_is_a_real_one():
    seen, _ = send(start(PLAIN, PLAIN, to=f"{ROOM}/$root", reply_to="$asked"), [SAID["sent"], SAID["sent"]])
    thread = {"rel_type": "m.thread", "event_id": "$root"}
    answer = {"is_falling_back": False, "m.in_reply_to": {"event_id": "$asked"}}
    follow = {"is_falling_back": True, "m.in_reply_to": {"event_id": "$root"}}
    assert [event(one)["m.relates_to"] for one in seen] == [thread | answer, thread | follow]


def test_a_file_too_can_be_a_reply():
    assert shown_as(IMAGE, reply_to="$asked")["m.relates_to"] == {"m.in_reply_to": {"event_id": "$asked"}}


@pytest.mark.parametrize("reply_to", ["17", "$", "$a b", "!room:hs.test"])
def test_what_is_no_event_id_is_refused(reply_to):
    found = CHANNEL.describe(AT, Outgoing(recipient(ROOM).unwrap(), (PLAIN,), reply_to), IDS, {})
    assert isinstance(found.failure(), InvalidArguments)


# --- Rooms of aliases and people --------------------------------------------------------------------------------------


def test_an_alias_is_resolved_once_and_known_for_an_hour():
    seen, end = send(start(to="#ops:hs.test"), [SAID["resolved"], SAID["sent"]])
    room = "!G5Y4YymUHtBO9aYvL9NNpHOWBHro7MjgI9CAjlmBDIU"
    assert asked(seen) == [
        "GET client/v3/directory/room/%23ops%3Ahs.test",
        "PUT client/v3/rooms/%21G5Y4YymUHtBO9aYvL9NNpHOWBHro7MjgI9CAjlmBDIU/send/m.room.message/1764500000000abcd1234.1",
    ]
    assert end.unwrap().learned == (Learned("hs.alias.#ops:hs.test", room, 4600.0),)
    assert end.unwrap().delivered[0].recipient == "#ops:hs.test"
    known = start(to="#ops:hs.test", known={"hs.alias.#ops:hs.test": room})
    assert known.request == seen[1].request


def test_an_unknown_alias_is_the_recipient_s_fault():
    _, end = send(start(to="#nope:matrix.test"), [SAID["unknown_alias"]])
    cause = InvalidRecipient("#nope:matrix.test", "", "Room alias #nope:matrix.test not found", 404, "Not Found")
    assert end.failure().cause == cause


CAROL = "@carol:matrix.test"
WHO = "GET client/v3/account/whoami"
PROFILE = "GET client/v3/profile/%40carol%3Amatrix.test"
DIRECT = "client/v3/user/%40alice%3Amatrix.test/account_data/m.direct"


def test_a_person_is_written_to_in_the_latest_room_that_they_are_in():
    answers = [SAID["whoami"], SAID["direct"], SAID["member_joined"], SAID["sent"]]
    seen, end = send(start(to=CAROL), answers)
    assert asked(seen)[:3] == [
        WHO,
        f"GET {DIRECT}",
        "GET client/v3/rooms/%21both%3Amatrix.test/state/m.room.member/%40carol%3Amatrix.test",
    ]
    assert "/rooms/%21both%3Amatrix.test/send/" in seen[3].request.url
    assert end.unwrap().learned == (Learned(f"hs.user.{CAROL}", "!both:matrix.test", 87_400.0),)
    assert end.unwrap().delivered[0].recipient == CAROL
    assert [one.part for one in seen] == [None, None, None, Part(1, 1)]


def test_where_no_room_is_shared_any_more_one_is_made_and_noted_beside_the_others():
    gone = [SAID["member_left"], SAID["not_in_room"]]
    answers = [SAID["whoami"], SAID["direct"], *gone, SAID["profile"], SAID["made"], SAID["noted"], SAID["sent"]]
    seen, end = send(start(to=CAROL), answers)
    assert asked(seen)[4:7] == [PROFILE, "POST client/v3/createRoom", f"PUT {DIRECT}"]
    assert event(seen[5]) == {"is_direct": True, "invite": [CAROL], "preset": "trusted_private_chat"}
    assert (seen[5].request.repeatable, seen[6].request.repeatable) == (False, True)
    assert event(seen[6]) == {
        CAROL: ["!left:matrix.test", "!both:matrix.test", "!sefiuhWgwghwWgh:example.com"],
        "@bob:matrix.test": ["!other:matrix.test"],
    }
    assert Learned(f"hs.user.{CAROL}", "!sefiuhWgwghwWgh:example.com", 87_400.0) in end.unwrap().learned


def test_an_account_that_never_noted_a_room_gets_its_first():
    answers = [SAID["whoami"], SAID["no_direct"], SAID["profile"], SAID["made"], SAID["noted"], SAID["sent"]]
    seen, _ = send(start(to=CAROL), answers)
    assert event(seen[4]) == {CAROL: ["!sefiuhWgwghwWgh:example.com"]}


def test_a_room_that_was_made_is_learned_also_where_it_cannot_be_noted():
    answers = [SAID["whoami"], SAID["no_direct"], SAID["profile"], SAID["made"], SAID["unavailable"]]
    _, end = send(start(to=CAROL), answers)
    assert end.failure().learned == (Learned(f"hs.user.{CAROL}", "!sefiuhWgwghwWgh:example.com", 87_400.0),)


def test_a_room_that_is_known_is_used_at_once():
    step = start(to=CAROL, known={f"hs.user.{CAROL}": "!dm:hs.test"})
    assert "/rooms/%21dm%3Ahs.test/send/" in step.request.url


def test_strange_account_data_is_replaced_and_not_stumbled_over():
    for strange in ([], {CAROL: "!a:b"}, {CAROL: [1, None]}, 7):
        said = type(SAID["direct"])(200, "", (), json.dumps(strange).encode())
        answers = [SAID["whoami"], said, SAID["profile"], SAID["made"], SAID["noted"], SAID["sent"]]
        assert len(send(start(to=CAROL), answers)[1].unwrap().delivered) == 1


def test_a_person_that_there_is_not_gets_no_room():
    """A homeserver would make one, and take messages for nobody."""
    _, end = send(start(to=CAROL), [SAID["whoami"], SAID["no_direct"], SAID["no_profile"]])
    assert end.failure().cause == InvalidRecipient(CAROL, "", "No row found (profiles)", 404, "Not Found")


@pytest.mark.parametrize("said", ["not_in_room", "unavailable"])
def test_where_it_is_not_told_whether_there_is_such_a_person_a_room_is_made(said):
    answers = [SAID["whoami"], SAID["no_direct"], SAID[said], SAID["made"], SAID["noted"], SAID["sent"]]
    assert len(send(start(to=CAROL), answers)[1].unwrap().delivered) == 1


# --- Replies of the server --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("unknown_token", Denied),
        ("missing_token", Denied),
        ("not_in_room", Denied),
        ("event_too_large", Invalid),
        ("float_in_event", Invalid),
        ("no_body", Invalid),
        ("unknown_endpoint", Invalid),
        ("too_many", RateLimited),
        ("unavailable", Unavailable),
        ("something_else", Malformed),
        ("no_event_id", Malformed),
    ],
)
def test_every_refusal_says_what_to_do_next(case, expected):
    _, end = send(start(PLAIN), [SAID[case]])
    cause = end.failure().cause
    assert type(cause) is expected
    assert cause.status == SAID[case].status


def test_an_upload_that_is_too_large_is_told_in_the_server_s_words():
    _, end = send(start(IMAGE), [SAID["upload_too_large"]])
    said = Invalid(413, "Request Entity Too Large", "M_TOO_LARGE", "Upload request body is too large")
    assert end.failure().cause == said


def test_the_longer_wait_of_header_and_body_counts_each_in_its_unit():
    assert send(start(PLAIN), [SAID["too_many"]])[1].failure().cause.after == 5.0
    assert send(start(PLAIN), [SAID["wait_in_body_alone"]])[1].failure().cause.after == 1.5


# --- Probes and rehearsals --------------------------------------------------------------------------------------------


def probed(to: str | None, *answers):
    return send(CHANNEL.probe(AT, None if to is None else recipient(to).unwrap(), {}), [SAID[one] for one in answers])


def test_a_probe_asks_who_we_are():
    seen, end = probed(None, "whoami")
    assert (asked(seen), end) == ([WHO], Success(Done()))


def test_a_probe_of_a_room_asks_whether_it_is_encrypted_which_only_members_are_told():
    seen, end = probed(ROOM, "not_encrypted")
    assert asked(seen) == ["GET client/v3/rooms/%21room%3Ahs.test/state/m.room.encryption"]
    assert end == Success(Done())
    assert isinstance(probed(ROOM, "not_in_room")[1].failure().cause, Denied)
    assert isinstance(probed(ROOM, "encrypted")[1].failure().cause, Rejected)


def test_a_probe_of_an_alias_looks_at_its_room_and_learns_nothing():
    seen, end = probed("#ops:hs.test", "resolved", "not_encrypted")
    assert (len(seen), end) == (2, Success(Done()))
    assert isinstance(probed(CAROL, "no_profile")[1].failure().cause, InvalidRecipient)
    assert isinstance(probed("#nope:hs.test", "unknown_alias")[1].failure().cause, InvalidRecipient)


def test_a_probe_of_a_person_makes_no_room():
    seen, _ = probed(CAROL, "profile")
    assert asked(seen) == [PROFILE]


@pytest.mark.parametrize("to", [ROOM, f"{ROOM}/$root", "#ops:hs.test", CAROL])
def test_a_rehearsal_goes_through_every_request(to):
    def rehearsed(exchange):
        assert "FAKE" not in repr(exchange)
        assert pickle.loads(pickle.dumps(exchange)) == exchange
        return Success(CHANNEL.rehearse(exchange.request))

    done = drive(rehearsed, start(IMAGE, TEXT, to=to)).unwrap()
    assert [receipt.id for receipt in done.delivered] == ["$rehearsed", "$rehearsed"]
    assert drive(rehearsed, CHANNEL.probe(AT, recipient(to).unwrap(), {})) == Success(Done())


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "id", "kind", "thread"),
    [
        ("!abc:hs.test", "!abc:hs.test", "room", None),
        ("!G5Y4YymUHtBO9aYvL9NNpHOWBHro7MjgI9CAjlmBDIU", "!G5Y4YymUHtBO9aYvL9NNpHOWBHro7MjgI9CAjlmBDIU", "room", None),
        ("!abc:hs.test/$root", "!abc:hs.test", "room", "$root"),
        ("#ops:hs.test", "#ops:hs.test", "alias", None),
        ("#ops/1:hs.test:8448/$root", "#ops/1:hs.test:8448", "alias", "$root"),
        ("@bob:hs.test", "@bob:hs.test", "user", None),
    ],
)
def test_recipients(text, id, kind, thread):
    found = recipient(text).unwrap()
    assert (found.id, found.kind, found.thread, str(found)) == (id, kind, thread, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "bob",
        "@bob",
        "#ops",
        "!a b",
        "!a:b\n",
        "!a:b/$",
        "!a:b/c",
        "@a:b/c d",
        "@" + "x" * 255 + ":b",
        "$event",
    ],
)
def test_what_is_no_recipient_is_refused(text):
    assert isinstance(recipient(text), Failure)


def test_people_are_equal_whatever_their_case_rooms_are_not():
    assert same("@Bob:hs.test") == same("bob:HS.test")
    assert same("!Abc:hs.test") != same("!abc:hs.test")


# --- Size -------------------------------------------------------------------------------------------------------------

HARD = st.sampled_from(["**b** ", '"\\"', "é", "🎯", "\n\n- x", "| a | b |\n|-|-|\n| 1 | 2 |\n\n", "`c` ", "\t"])


@settings(deadline=None, max_examples=10)
@given(st.lists(HARD, min_size=1, max_size=6), st.integers(1_000, 8_000))
def test_every_event_is_well_under_the_limit_of_64_kib(pieces, times):
    for part in split(parse("".join(pieces) * times), CHANNEL.dialect, CHANNEL.limits.text):
        step = start(TextPart(part), to=f"!{'r' * 250}/${'e' * 250}", reply_to=f"${'e' * 250}")
        assert len(step.request.body) < 62_000
