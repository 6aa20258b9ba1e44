"""Slack: what is asked for, in which order, what each reply means, and that nothing but the API gets the token."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Configured
from messaging_core.channels.slack import CHANNEL, MOST_PAGES, Settings, recipient, same
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    InvalidRecipient,
    Malformed,
    RateLimited,
    Rejected,
    Unavailable,
    may_have_arrived,
)
from messaging_core.flow import Done, Learned, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, TextPart
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import FileRef, HttpRequest, on_wire

from .replies import fields, replies, send

SAID = replies("slack")
TOKEN = Secret("ops.bot_token")
AT = Configured("ops", "slack", Settings(TOKEN))
IDS = Ids("018f2k3j4h5g6", now=1000.0)
AUTH = ("Authorization", ("Bearer ", TOKEN))
JSON = ("Content-Type", "application/json; charset=utf-8")
API = "https://slack.com/api"

TEXT = TextPart(Rendered("*Hi* R&amp;D", "Hi R&D"))
FACTS = FileFacts("report.pdf", "/srv/report.pdf", "report é.pdf", size=1234)
MEDIA = MediaPart(FACTS, Kind.DOCUMENT, "application/pdf", caption=Rendered("_see_", "see"))
UPLOAD = [SAID["place_named"], SAID["stored"], SAID["shared"]]


def start(*parts, to="C000000001", known=None, at=AT, **more) -> Step:
    return CHANNEL.describe(at, Outgoing(recipient(to).unwrap(), parts, **more), IDS, known or {}).unwrap()


# --- What is asked for ------------------------------------------------------------------------------------------------


def test_a_text_whole() -> None:
    """The token is named and not there; bare names do not ring; links show as Slack shows them by default."""
    step = start(TEXT)
    body = b'{"channel":"C000000001","text":"*Hi* R&amp;D","mrkdwn":true,"parse":"none","link_names":false}'
    assert HttpRequest("POST", f"{API}/chat.postMessage", (JSON, AUTH), body) == step.request
    assert (Part(1, 1), Scope("ops", TOKEN.name, "C000000001", "chat.postMessage")) == (step.part, step.scope)


def test_a_text_that_is_to_be_shown_as_it_stands_is_escaped_and_without_markup() -> None:
    body = fields(start(TextPart(Rendered("a < b & *c* <!channel>", ""), markup=False)).request)
    assert (body["text"], body["mrkdwn"]) == ("a &lt; b &amp; *c* &lt;!channel&gt;", False)


def test_a_file_takes_three_steps_and_only_the_api_gets_the_token() -> None:
    exchanges, end = send(start(MEDIA), UPLOAD)
    form = b"filename=report+%C3%A9.pdf&length=1234"
    place = "https://files.slack.com/upload/v1/F6987D99EC"
    share = {
        "files": [{"id": "F6987D99EC", "title": "report é.pdf"}],
        "channel_id": "C000000001",
        "initial_comment": "_see_",
    }
    assert [
        HttpRequest(
            "POST",
            f"{API}/files.getUploadURLExternal",
            (("Content-Type", "application/x-www-form-urlencoded"), AUTH),
            form,
            repeatable=True,
        ),
        HttpRequest("POST", place, (("Content-Type", "application/octet-stream"),), FileRef(FACTS), repeatable=True),
        HttpRequest(
            "POST",
            f"{API}/files.completeUploadExternal",
            (JSON, AUTH),
            json.dumps(share, ensure_ascii=False, separators=(",", ":")).encode(),
        ),
    ] == [exchange.request for exchange in exchanges]
    assert [None, None, Part(1, 1)] == [exchange.part for exchange in exchanges]
    assert Success(Done((Receipt(Part(1, 1), "F6987D99EC", "C000000001"),))) == end


def test_bytes_made_here_go_with_their_own_length() -> None:
    part = MediaPart(FileFacts("message.md", "message.md", "message.md"), Kind.DOCUMENT, "text/markdown", data=b"# x")
    exchanges, _ = send(start(part), UPLOAD)
    assert exchanges[0].request.body == b"filename=message.md&length=3"
    assert exchanges[1].request.body == b"# x"


@pytest.mark.parametrize(
    ("to", "reply_to", "thread", "notes"),
    [
        ("C1", None, None, ()),
        ("C1", "1712345678.123456", "1712345678.123456", ()),
        ("C1/1.2", None, "1.2", ()),
        ("C1/1.2", "1.2", "1.2", ()),
        ("C1/1.2", "3.4", "1.2", ("in the thread, not under the message: Slack has no replies inside a thread",)),
    ],
)
def test_a_reply_is_in_the_thread_of_its_parent_and_a_thread_is_kept(to, reply_to, thread, notes) -> None:
    """Every part goes there, files too; the recipient's thread goes before a reply, and the result says so, once."""
    exchanges, end = send(start(MEDIA, TEXT, to=to, reply_to=reply_to), [*UPLOAD, SAID["posted"]])
    assert [thread, thread] == [fields(exchanges[at].request).get("thread_ts") for at in (2, 3)]
    assert [notes, ()] == [receipt.notes for receipt in end.unwrap().delivered]


def test_what_is_left_of_a_message_stays_in_its_thread() -> None:
    step = start(TEXT, reply_to="1.2", numbered_from=2)
    assert ("1.2", Part(2, 2)) == (fields(step.request)["thread_ts"], step.part)


@pytest.mark.parametrize("wrong", ["", "12345", "1.2.3", "1,2", "١.٢", "1.2\n", "C1/1.2", "p1712345678123456"])
def test_a_reply_to_what_is_no_timestamp_is_refused(wrong: str) -> None:
    outgoing = Outgoing(recipient("C1").unwrap(), (TEXT,), reply_to=wrong)
    assert isinstance(CHANNEL.describe(AT, outgoing, IDS, {}).failure(), InvalidArguments)


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "id", "kind", "thread"),
    [
        ("C000000001", "C000000001", "channel", None),
        ("G1", "G1", "channel", None),
        ("D024BE91L", "D024BE91L", "channel", None),
        ("U012AB3CD", "U012AB3CD", "user", None),
        ("W1", "W1", "user", None),
        ("#general", "#general", "name", None),
        ("#Ops-1_é", "#ops-1_é", "name", None),
        ("C1/1712345678.123456", "C1", "channel", "1712345678.123456"),
    ],
)
def test_a_recipient_is_an_id_or_a_name_with_a_mark(text: str, id: str, kind: str, thread: str | None) -> None:
    found = recipient(text).unwrap()
    assert (id, kind, thread) == (found.id, found.kind, found.thread)
    assert str(found) == (text if thread else id)


@pytest.mark.parametrize(
    "text",
    ["", "general", "*", "@alice", "c1", "C1 ", " C1", "C1\n", "X123", "C12/../x", "C1/", "C1/x", "#", "#a b", "#a/b",
     "C１", "<!channel>", "#" + "x" * 81, "U1,U2", "C1?x=1", "#a#b"],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    assert "an id of a channel" in str(recipient(text).failure())


def test_a_star_is_no_default_recipient() -> None:
    assert [CHANNEL.default_recipient(Settings(TOKEN, given)) for given in (None, "*", "C1")] == [None, None, "C1"]


def test_spellings_of_one_recipient_are_the_same() -> None:
    assert same("#Ops") == same("#ops")
    assert same("@Ann") == same("ann")


def test_no_name_is_an_id_and_a_persons_is_no_channels() -> None:
    """Anybody may call a channel or themselves so."""
    assert same("#c0al2fake7j") != same("C0AL2FAKE7J")
    assert same("u0al2fake7j") != same("U0AL2FAKE7J")
    assert same("ops") != same("#ops")
    assert same("C1") != same("C2")


# --- Names and users --------------------------------------------------------------------------------------------------


def test_a_text_to_a_user_or_name_needs_no_look_up_and_teaches_the_id() -> None:
    exchanges, end = send(start(TEXT, to="U1"), [SAID["posted_to_user"]])
    assert fields(exchanges[0].request)["channel"] == "U1"
    assert (Learned("ops.dm.U1", "D024BE91L"),) == end.unwrap().learned
    _, end = send(start(TEXT, to="#general"), [SAID["posted"]])
    assert (Learned("ops.channel.#general", "C000000001", 4600.0),) == end.unwrap().learned


def test_what_is_known_is_not_learned_again_and_saves_the_look_up() -> None:
    _, end = send(start(TEXT, to="U1", known={"ops.dm.U1": "D9"}), [SAID["posted"]])
    assert end.unwrap().learned == ()
    exchanges, _ = send(start(MEDIA, to="U1", known={"ops.dm.U1": "D9"}), UPLOAD)
    assert fields(exchanges[2].request)["channel_id"] == "D9"


def test_a_file_to_a_user_goes_into_their_dm_which_is_opened_first() -> None:
    exchanges, end = send(start(MEDIA, TEXT, to="U1"), [SAID["dm_opened"], *UPLOAD, SAID["posted"]])
    assert (
        HttpRequest("POST", f"{API}/conversations.open", (JSON, AUTH), b'{"users":"U1"}', repeatable=True)
        == exchanges[0].request
    )
    assert None is exchanges[0].part
    assert "D069C7QFK" == fields(exchanges[3].request)["channel_id"] == fields(exchanges[4].request)["channel"]
    assert (Learned("ops.dm.U1", "D069C7QFK"),) == end.unwrap().learned
    assert [receipt.recipient for receipt in end.unwrap().delivered] == ["U1", "U1"]


def test_a_file_to_a_name_is_looked_for_page_by_page() -> None:
    answers = [SAID["listed_more_follow"], SAID["listed"], *UPLOAD]
    exchanges, end = send(start(MEDIA, to="#general"), answers)
    query = (("types", "public_channel"), ("exclude_archived", "true"), ("limit", "999"))
    url = f"{API}/conversations.list#general"
    assert [
        HttpRequest("GET", url, (AUTH,), query=query, repeatable=True),
        HttpRequest("GET", url, (AUTH,), query=(*query, ("cursor", "dGVhbTpDMDYxRkE1UEI=")), repeatable=True),
    ] == [exchange.request for exchange in exchanges[:2]]
    assert fields(exchanges[4].request)["channel_id"] == "C012AB3CD"
    assert (Learned("ops.channel.#general", "C012AB3CD", 4600.0),) == end.unwrap().learned


@pytest.mark.parametrize("pages", [1, MOST_PAGES])
def test_a_name_that_is_nowhere_ends_the_search(pages: int) -> None:
    last = SAID["listed_more_follow"] if pages == MOST_PAGES else SAID["listed"]
    answers = [SAID["listed_more_follow"]] * (pages - 1) + [last]
    cause = send(start(MEDIA, to="#nowhere"), answers)[1].failure().cause
    assert isinstance(cause, InvalidRecipient)
    assert cause.recipient == "#nowhere"


# --- What replies mean ------------------------------------------------------------------------------------------------


def test_the_id_of_a_message_is_its_timestamp_as_text() -> None:
    end = send(start(TEXT), [SAID["posted"]])[1]
    assert Success(Done((Receipt(Part(1, 1), "1796029965.000001", "C000000001"),))) == end


def test_a_text_that_slack_cut_says_so() -> None:
    assert send(start(TEXT), [SAID["truncated"]])[1].unwrap().delivered[0].notes == ("cut by Slack",)


def test_a_reply_to_what_cannot_be_replied_to_is_delivered_without_and_says_so() -> None:
    exchanges, end = send(start(TEXT, reply_to="1.2"), [SAID["cannot_reply"], SAID["posted"]])
    assert [fields(exchange.request).get("thread_ts") for exchange in exchanges] == ["1.2", None]
    assert end.unwrap().delivered[0].notes == ("not as a reply: the message replied to cannot be replied to",)
    exchanges, end = send(start(MEDIA, reply_to="1.2"), [*UPLOAD[:2], SAID["cannot_reply"], SAID["shared"]])
    assert "thread_ts" not in fields(exchanges[3].request)
    assert len(end.unwrap().delivered[0].notes) == 1


def test_a_thread_of_the_conversation_is_never_left() -> None:
    assert isinstance(send(start(TEXT, to="C1/1.2"), [SAID["cannot_reply"]])[1].failure().cause, Invalid)


@pytest.mark.parametrize(
    ("case", "error", "words"),
    [
        ("channel_not_found", InvalidRecipient, "channel_not_found"),
        ("is_archived", InvalidRecipient, "the channel is archived"),
        ("user_not_found", InvalidRecipient, "user_not_found"),
        ("not_in_channel", Denied, "not_in_channel (invite the bot to the channel)"),
        ("missing_scope", Denied, "missing_scope (the token lacks the scope files:write)"),
        ("invalid_auth", Denied, "invalid_auth"),
        ("not_authed", Denied, "not_authed"),
        ("no_text", Invalid, "no_text"),
        ("msg_too_long", Invalid, "msg_too_long"),
        ("invalid_arguments", Invalid, "missing required field: channel"),
        ("message_limit_exceeded", Rejected, "takes no more messages"),
        ("something_new", Rejected, "something_new"),
        ("too_many", RateLimited, "ratelimited"),
        ("service_unavailable", Unavailable, "service_unavailable"),
        ("fatal_error", Unavailable, "fatal_error"),
        ("html", Unavailable, "503 Service Unavailable"),
        ("gateway_timeout", Unavailable, "504 Gateway Timeout"),
        ("unknown_method", Invalid, "404 Not Found"),
        ("neither", Malformed, "the answer has no 'ok'"),
        ("empty", Malformed, "the answer is empty"),
    ],
)
def test_each_refusal_says_what_can_be_done(case: str, error: type, words: str) -> None:
    """Mostly inside an HTTP 200. The same table holds for every method."""
    for part, before in ((TEXT, []), (MEDIA, []), (MEDIA, UPLOAD[:2])):
        cause = send(start(part), [*before, SAID[case]])[1].failure().cause
        assert error is type(cause)
        assert words in str(cause)


def test_the_wait_is_the_headers_in_seconds() -> None:
    assert send(start(TEXT), [SAID["too_many"]])[1].failure().cause.after == 30.0


@pytest.mark.parametrize(
    ("case", "maybe"),
    [("fatal_error", True), ("gateway_timeout", True), ("neither", True), ("empty", True), ("html", False),
     ("service_unavailable", False), ("too_many", False), ("channel_not_found", False)],
)  # fmt: skip
def test_what_may_have_arrived_all_the_same_is_told(case: str, maybe: bool) -> None:
    assert maybe is may_have_arrived(send(start(TEXT), [SAID[case]])[1].failure().cause)


def test_a_place_that_is_not_slacks_gets_nothing() -> None:
    exchanges, end = send(start(MEDIA), [SAID["place_elsewhere"]])
    assert len(exchanges) == 1
    assert isinstance(end.failure().cause, Rejected)
    assert "files.slack.com.evil.test" in str(end.failure().cause)


def test_bytes_that_are_not_taken_end_the_send_with_nothing_visible() -> None:
    exchanges, end = send(start(MEDIA), [SAID["place_named"], SAID["store_refused"]])
    assert (end.failure().at.part, end.failure().cause.status) == (None, 400)
    assert send(end.failure().at, UPLOAD[1:])[1].unwrap().delivered[0].id == "F6987D99EC"


def test_a_later_part_that_is_refused_leaves_the_earlier_receipts() -> None:
    stopped = send(start(TEXT, TEXT, TEXT), [SAID["posted"], SAID["html"]])[1].failure()
    assert (Part(2, 3), 1) == (stopped.at.part, len(stopped.at.delivered))
    assert len(send(stopped.at, [SAID["posted"]] * 2)[1].unwrap().delivered) == 3


# --- Probing and rehearsing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "case", "method"),
    [
        (None, "auth_test", "auth.test"),
        ("C1", "channel", "conversations.info"),
        ("U1", "dm_opened", "conversations.open"),
        ("#general", "listed", "conversations.list"),
    ],
)
def test_a_probe_asks_for_us_or_for_the_recipient(to: str | None, case: str, method: str) -> None:
    step = CHANNEL.probe(AT, to and recipient(to).unwrap(), {})
    assert method in step.request.url
    assert (step.part, step.request.repeatable) == (None, True)
    assert send(step, [SAID[case]])[1].unwrap().delivered == ()


def test_a_probe_finds_an_archived_channel() -> None:
    step = CHANNEL.probe(AT, recipient("C012AB3CD").unwrap(), {})
    assert step.request.query == (("channel", "C012AB3CD"),)
    assert isinstance(send(step, [SAID["channel_archived"]])[1].failure().cause, InvalidRecipient)


@pytest.mark.parametrize("to", ["C1", "C1/1.2", "U1", "#general", "#ops-é"])
@pytest.mark.parametrize("base", [API, "http://127.0.0.1:8080/api", "https://slack-gov.com/api"])
def test_a_rehearsal_reaches_the_end_without_a_note(to: str, base: str) -> None:
    at = Configured("ops", "slack", Settings(TOKEN, api_base=base))
    seen = []

    def rehearse(exchange):
        seen.append(exchange.request.url)
        return Success(CHANNEL.rehearse(exchange.request))

    done = drive(rehearse, start(MEDIA, TEXT, to=to, at=at, reply_to="1.2" if to == "C1" else None)).unwrap()
    assert [(one.part.index, one.notes) for one in done.delivered] == [(1, ()), (2, ())]
    assert all(url.startswith(base.removesuffix("api")) for url in seen)
    assert CHANNEL is CHANNELS["slack"]


# --- Laws -------------------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
RENDERED = st.builds(Rendered, WORDS, WORDS)
CONTENT = st.builds(TextPart, RENDERED, st.booleans()) | st.builds(
    lambda name, size, caption: MediaPart(
        FileFacts(name, f"/srv/{name}", name, size=size), Kind.DOCUMENT, "application/pdf", caption=caption
    ),
    WORDS,
    st.integers(1, 10**9),
    st.none() | RENDERED,
)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(CONTENT, min_size=1, max_size=3),
    st.sampled_from(["C1", "C1/1.2", "U1", "#general"]),
    st.none() | st.just("3.4"),
)
def test_equal_input_gives_equal_requests_that_hold_no_secret(parts, to, reply_to) -> None:
    """Comparable, picklable, and with the token in its header alone once it is put in."""
    step = start(*parts, to=to, reply_to=reply_to)
    assert step == start(*parts, to=to, reply_to=reply_to) == pickle.loads(pickle.dumps(step))
    secrets, requests = Secrets({TOKEN.name: "xoxb-FAKE-token"}), []

    def rehearse(exchange):
        requests.append(exchange.request)
        return Success(CHANNEL.rehearse(exchange.request))

    drive(rehearse, step)
    for request in requests:
        wire = on_wire(request, secrets, 0.0)
        sent = [value for name, value in wire.headers if "xoxb-FAKE-token" in value]
        assert sent == (
            ["Bearer xoxb-FAKE-token"] if request.url.startswith(API + "/") and AUTH in request.headers else []
        )
        assert ("rehearsed-upload" in request.url) == (not sent)
        assert "xoxb-FAKE-token" not in wire.url + repr(wire) + repr(request)
