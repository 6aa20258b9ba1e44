"""Signal: the requests to both programs, recipients in every spelling, and what each answer means for each recipient."""

import base64
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.channels._signal_rest import styled
from messaging_core.channels.channel import Configured
from messaging_core.channels.signal import CHANNEL, Settings, recipient, same
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
from messaging_core.flow import Done, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.split import render
from messaging_core.markup.tree import parse
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.wire.http import FileRef, HttpRequest, Spliced

from .replies import replies, send

SAID = replies("signal")
ME, BOB, USER = "+15550002222", "+15550003333", "0b4d8e0a-7c11-4f55-9c3c-1f0f4a3e2d11"
GROUP = "WldOaVoxeGFhVHB5YVhCaGJHbGtZWFJoTUhneU1EQT0="
RPC = Configured("sig", "signal", Settings("http://sig.test", ME))
REST = Configured("sig", "signal", Settings("http://sig.test", ME, "rest"))
IDS = Ids("1764500000000abcd1234", 1000.0)
JSON = ("Content-Type", "application/json")


def rendered(markdown: str) -> Rendered:
    return render(parse(markdown), CHANNEL.dialect)


TEXT = TextPart(rendered("due **Monday** 🎯 *soon*"))
PLAIN = TextPart(Rendered("a *b*", "a *b*"), markup=False)
FACTS = FileFacts("Größe; 1.png", "/srv/x", "Größe; 1.png", size=3)
MEDIA = MediaPart(FACTS, Kind.IMAGE, "image/png", rendered("**see**"))


def start(at, *parts, to=BOB, **more) -> Step:
    return CHANNEL.describe(at, Outgoing(recipient(to).unwrap(), parts or (PLAIN,), **more), IDS, {}).unwrap()


def body(step: Step) -> dict:
    raw = step.request.body
    if isinstance(raw, Spliced):
        raw = b"".join(piece if isinstance(piece, bytes) else b"AAAA" for piece in raw.pieces)
    return json.loads(raw)


def params(step: Step) -> dict:
    return body(step)["params"]


# --- JSON-RPC ---------------------------------------------------------------------------------------------------------


def test_a_text_whole_by_json_rpc():
    """The text as it is, and the styles as ranges in UTF-16 units."""
    step = start(RPC, TEXT)
    expected = (
        '{"jsonrpc":"2.0","id":"1764500000000abcd1234.1","method":"send","params":{"account":"+15550002222",'
        '"recipient":["+15550003333"],"message":"due Monday 🎯 soon","textStyle":["4:6:BOLD","14:4:ITALIC"]}}'
    )
    assert HttpRequest("POST", "http://sig.test/api/v1/rpc", (JSON,), expected.encode()) == step.request
    assert (Part(1, 1), Scope("sig", ME, BOB)) == (step.part, step.scope)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (BOB, {"recipient": [BOB]}),
        (USER, {"recipient": [USER]}),
        ("bob.01", {"username": ["bob.01"]}),
        (f"group:{GROUP}", {"groupId": [GROUP]}),
    ],
)
def test_each_sort_of_recipient_has_its_own_parameter(to, expected):
    assert params(start(RPC, PLAIN, to=to)) == {"account": ME, **expected, "message": "a *b*"}


def test_a_file_is_streamed_into_the_json_as_the_last_value():
    step = start(RPC, MEDIA)
    begin, reference, end = step.request.body.pieces
    assert begin.endswith(b'"attachments":["data:image/png;filename=Gr%C3%B6%C3%9Fe%3B%201.png;base64,')
    assert (reference, end) == (FileRef(FACTS, base64=True), b'"]}}')
    assert params(step)["message"] == "see"
    assert params(step)["textStyle"] == ["0:3:BOLD"]


def test_a_text_that_looks_like_the_place_of_the_file_is_not_taken_for_it():
    text = 'x;base64,"]}} ;base64,'
    caption = MediaPart(FACTS, Kind.IMAGE, "image/png", Rendered(text, text))
    assert params(start(RPC, caption))["message"] == text
    assert body(start(REST, caption))["message"] == text


def test_bytes_made_here_are_in_the_request():
    made = MediaPart(FileFacts("message.md", "", "message.md"), Kind.DOCUMENT, "text/markdown", data=b"# hi")
    assert params(start(RPC, made))["attachments"] == ["data:text/markdown;filename=message.md;base64,IyBoaQ=="]


# --- REST -------------------------------------------------------------------------------------------------------------


def test_a_text_whole_by_rest():
    """The styles as signs, and the mode named, since what holds without is a setting of the server."""
    expected = (
        '{"number":"+15550002222","recipients":["+15550003333"],"message":"due **Monday** 🎯 *soon*",'
        '"text_mode":"styled"}'
    )
    assert HttpRequest("POST", "http://sig.test/v2/send", (JSON,), expected.encode()) == start(REST, TEXT).request


def test_a_text_without_styles_is_shown_as_it_stands():
    assert body(start(REST, PLAIN)) == {"number": ME, "recipients": [BOB], "message": "a *b*", "text_mode": "normal"}


def test_a_group_is_spelled_in_base64_twice():
    (group,) = body(start(REST, PLAIN, to=f"group:{GROUP}"))["recipients"]
    assert base64.b64decode(group.removeprefix("group.")).decode() == GROUP


def test_a_file_by_rest_keeps_its_name_but_for_semicolons():
    step = start(REST, MEDIA)
    assert body(step)["base64_attachments"] == ["data:image/png;filename=Größe_ 1.png;base64,AAAA"]
    assert step.request.body.pieces[2] == b'"]}'


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**a** *b* ~~c~~ `d`", "**a** *b* ~c~ `d`"),
        ("***a*** and 2 * 3 ~ `", "***a*** and 2 \\* 3 \\~ \\`"),
        ("**🎯 x** y", "**🎯 x** y"),
        ("# Head\n\n- one\n- **two**", "**Head**\n• one\n• **two**"),
    ],
)
def test_styles_as_signs(markdown, expected):
    assert styled(rendered(markdown)) == expected


# --- Replies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "reply_to", "author"),
    [
        (BOB, "1712345678901", BOB),
        (BOB, f"1712345678901:{ME}", ME),
        (f"group:{GROUP}", f"1712345678901:{USER}", USER),
    ],
)
def test_a_reply_names_the_time_and_the_author(to, reply_to, author):
    quote = {"quoteTimestamp": 1712345678901, "quoteAuthor": author}
    assert quote.items() <= params(start(RPC, PLAIN, to=to, reply_to=reply_to)).items()
    quote = {"quote_timestamp": 1712345678901, "quote_author": author}
    assert quote.items() <= body(start(REST, PLAIN, to=to, reply_to=reply_to)).items()


def test_a_reply_belongs_to_the_first_part():
    seen, _ = send(start(RPC, PLAIN, PLAIN, reply_to="17"), [SAID["sent"], SAID["sent"]])
    assert ["quoteTimestamp" in params(one) for one in seen] == [True, False]


@pytest.mark.parametrize(
    ("to", "reply_to"),
    [(f"group:{GROUP}", "17"), (BOB, "x"), (BOB, "17:nobody"), (BOB, "0"), (BOB, "17:"), ("bob.01", "17")],
)
def test_a_reply_without_time_or_author_is_refused(to, reply_to):
    outgoing = Outgoing(recipient(to).unwrap(), (PLAIN,), reply_to)
    assert isinstance(CHANNEL.describe(RPC, outgoing, IDS, {}).failure(), InvalidArguments)


# --- What answers mean ------------------------------------------------------------------------------------------------


def outcome(at, case, to=BOB):
    return send(start(at, PLAIN, to=to), [SAID[case]])[1]


@pytest.mark.parametrize(
    ("at", "case"), [(RPC, "sent"), (RPC, "sent_to_self"), (REST, "rest_sent"), (REST, "rest_sent_list")]
)
def test_a_sent_message_has_its_timestamp_as_id(at, case):
    assert outcome(at, case) == Success(Done((Receipt(Part(1, 1), "1712345678901", BOB),)))


@pytest.mark.parametrize(("at", "case"), [(RPC, "sent_to_group"), (REST, "rest_sent_partly")])
def test_the_members_of_a_group_that_were_not_reached_are_told_one_by_one(at, case):
    done = outcome(at, case, f"group:{GROUP}").unwrap()
    assert done.delivered == (Receipt(Part(1, 1), "1712345678901", f"group:{GROUP}"),)
    assert [type(one.cause) for one in done.undelivered] == [InvalidRecipient, RateLimited if at is RPC else Denied]
    assert [one.recipient for one in done.undelivered] == ["+15550004444", USER]


@pytest.mark.parametrize(
    ("at", "case", "expected", "open_end"),
    [
        (RPC, "unregistered", InvalidRecipient, False),
        (RPC, "unregistered_inside", InvalidRecipient, False),
        (RPC, "not_registered", InvalidRecipient, False),
        (RPC, "group_not_found", InvalidRecipient, False),
        (RPC, "not_a_member", Denied, False),
        (RPC, "untrusted", Denied, False),
        (RPC, "no_account", Denied, False),
        (RPC, "unknown_account", Denied, False),
        (RPC, "rate_limited", RateLimited, False),
        (RPC, "network", Unavailable, True),
        (RPC, "network_inside", Unavailable, True),
        (RPC, "internal", Unavailable, True),
        (RPC, "bad_attachment", Invalid, False),
        (RPC, "unknown_method", Invalid, False),
        (RPC, "not_json", Invalid, False),
        (RPC, "wrong_type", Invalid, False),
        (RPC, "wrong_method", Invalid, False),
        (RPC, "misdirected", Invalid, False),
        (RPC, "something_new", Rejected, False),
        (RPC, "neither", Malformed, True),
        (RPC, "no_timestamp", Malformed, True),
        (RPC, "gateway_timeout", Unavailable, True),
        (REST, "rest_unregistered", InvalidRecipient, False),
        (REST, "rest_untrusted", Denied, False),
        (REST, "rest_network", Unavailable, True),
        (REST, "rest_strange", Rejected, False),
        (REST, "rest_too_many", Unavailable, True),
        (REST, "rest_not_found", Invalid, False),
        (REST, "rest_empty", Malformed, True),
        (REST, "rest_sent_partly", InvalidRecipient, False),
        (REST, "gateway_timeout", Unavailable, True),
    ],
)
def test_every_refusal_says_what_to_do_next(at, case, expected, open_end):
    """``open_end``: the message may be there all the same. A 429 of the REST interface has come after a delivery."""
    cause = outcome(at, case).failure().cause
    assert (type(cause), may_have_arrived(cause)) == (expected, open_end)
    assert "FAKE" not in str(cause)


def test_a_wait_is_in_seconds():
    assert outcome(RPC, "rate_limited").failure().cause.after == 3600.0


# --- Probes and rehearsals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "to", "case", "asked"),
    [
        (RPC, None, "accounts", "listAccounts"),
        (RPC, None, "unknown_method", "listAccounts"),
        (RPC, BOB, "users", "getUserStatus"),
        (RPC, "bob.01", "users", "getUserStatus"),
        (RPC, f"group:{GROUP}", "groups", "listGroups"),
        (RPC, USER, "accounts", "listAccounts"),
        (REST, None, "rest_groups", "/v1/groups/%2B15550002222"),
        (REST, BOB, "rest_found", "/v1/search/%2B15550002222?numbers=%2B15550003333"),
        (REST, f"group:{GROUP}", "rest_group", "/v1/groups/%2B15550002222/group."),
    ],
)
def test_a_probe_asks_whether_account_and_recipient_are_there(at, to, case, asked):
    seen, end = send(CHANNEL.probe(at, to and recipient(to).unwrap(), {}), [SAID[case]])
    request = seen[0].request
    assert asked in (request.url if request.method == "GET" else body(seen[0])["method"])
    assert (end, seen[0].part, request.repeatable) == (Success(Done()), None, True)


@pytest.mark.parametrize(
    ("at", "to", "case", "expected"),
    [
        (RPC, None, "no_accounts", Denied),
        (RPC, BOB, "users_none", InvalidRecipient),
        (RPC, f"group:{GROUP}", "groups_left", InvalidRecipient),
        (REST, BOB, "rest_found_none", InvalidRecipient),
        (REST, f"group:{GROUP}", "rest_group_left", InvalidRecipient),
        (REST, f"group:{GROUP}", "rest_not_found", InvalidRecipient),
    ],
)
def test_a_probe_says_who_is_not_there(at, to, case, expected):
    _, end = send(CHANNEL.probe(at, to and recipient(to).unwrap(), {}), [SAID[case]])
    assert isinstance(end.failure().cause, expected)


@pytest.mark.parametrize("at", [RPC, REST])
@pytest.mark.parametrize("to", [BOB, USER, "bob.01", f"group:{GROUP}"])
def test_a_rehearsal_goes_through_every_request(at, to):
    def rehearsed(exchange):
        assert pickle.loads(pickle.dumps(exchange)) == exchange
        return Success(CHANNEL.rehearse(exchange.request))

    done = drive(rehearsed, start(at, TEXT, MEDIA, to=to)).unwrap()
    assert (len(done.delivered), done.undelivered) == (2, ())
    for asked in (None, recipient(to).unwrap()):
        assert drive(rehearsed, CHANNEL.probe(at, asked, {})) == Success(Done())


# --- Recipients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOB, Recipient(BOB, "number")),
        ("+1 (555) 000-3333", Recipient(BOB, "number")),
        (USER.upper(), Recipient(USER, "user")),
        ("bob.01", Recipient("bob.01", "username")),
        ("u:bob.01", Recipient("bob.01", "username")),
        (f"group:{GROUP}", Recipient(GROUP, "group", shown=f"group:{GROUP}")),
        (
            f"group.{base64.b64encode(GROUP.encode()).decode()}",
            Recipient(GROUP, "group", shown=f"group:{GROUP}"),
        ),
    ],
)
def test_recipients(text, expected):
    assert recipient(text) == Success(expected)


@pytest.mark.parametrize(
    "text",
    ["", "15550003333", "+0155", "+1555x", "bob", "bob.1", "group:", "group:***", "group.", "group.AAAA", "١٢٣", "+١٢٣"]
    + [f"{BOB},+15550004444", f"{BOB}\n", "group:é"],
)
def test_what_is_no_recipient_is_refused(text):
    assert isinstance(recipient(text).failure(), InvalidRecipient)


def test_spellings_of_one_recipient_are_equal_and_groups_are_what_they_are():
    assert same("+1 555 000 3333") == same(BOB)
    assert same(USER.upper()) == same(USER)
    assert same("u:Bob.01") == same("bob.01")
    assert same(f"group:{GROUP}") != same(f"group:{GROUP.lower()}")


# --- Ranges -----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["**a** ", "*é* ", "🎯", "~~x~~", "`c`", "\n\n", "plain ", "***z***", "**"]), max_size=12)
)
def test_every_range_lies_in_the_text(pieces):
    step = start(RPC, TextPart(rendered("".join(pieces) + " end")))
    units = len(params(step)["message"].encode("utf-16-le")) // 2
    for style in params(step).get("textStyle", ()):
        begin, length, _ = style.split(":")
        assert 0 <= int(begin) < int(begin) + int(length) <= units
