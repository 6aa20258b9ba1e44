"""What travels between the gateway and those who use it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.pipeline import is_successful
from returns.result import Failure, Success

from messaging_core.gateway.protocol import (
    OUTCOMES,
    Ack,
    AnswerTo,
    CloseCode,
    Fault,
    Post,
    error_frame,
    handed,
    http_status,
    message_frame,
    read_frame,
    read_object,
    read_post,
    receipt_frame,
    target_of,
    through_channel,
)
from messaging_core.gateway.targets import Clients, Everyone, Through

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


def test_a_message_is_read_with_its_further_members():
    value = {"type": "text", "content": "hi", "target": "/ws/bob", "id": "7", "data": {"a": [1]}}
    post = Post("text", "hi", "/ws/bob", "7", '{"data":{"a":[1]}}')
    assert read_post(value) == Success(post)
    assert post.document() == {"id": "7", "type": "text", "content": "hi", "target": "/ws/bob", "data": {"a": [1]}}
    assert hash(post)


def test_type_is_text_unless_named():
    assert read_post({"content": "hi", "target": "/ws"}) == Success(Post("text", "hi", "/ws"))


def test_a_broadcast_goes_to_everyone_and_names_nobody():
    assert read_post({"content": "hi"}, broadcast=True) == Success(Post("text", "hi", "*"))
    assert read_post({"content": "hi", "target": "*"}, broadcast=True) == Success(Post("text", "hi", "*"))
    assert not is_successful(read_post({"content": "hi", "target": "/ws"}, broadcast=True))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"target": "/ws"}, "content: missing"),
        ({"content": "", "target": "/ws"}, "content: is empty"),
        ({"content": 5, "target": "/ws"}, "content: expected a text"),
        ({"content": "x"}, "target: missing"),
        ({"content": "x", "target": 5}, "target: expected a text"),
        ({"content": "x", "target": "/elsewhere"}, "target: expected /ws, /ws/<name>, * or the name of a channel"),
        ({"content": "x", "target": "/ws", "type": 5}, "type: expected a letter"),
        ({"content": "x", "target": "/ws", "type": "receipt"}, "type: 'receipt' is the protocol's own"),
        ({"content": "x", "target": "/ws", "id": "a b"}, "id: expected 1 to 128 printable"),
        ({"content": "x", "target": "/ws", "from": "/ws/boss"}, "from: is given by the gateway"),
    ],
)
def test_every_problem_names_its_member(value, problem):
    assert problem in read_post(value).failure().message


def test_all_problems_are_told_at_once():
    message = read_post({"type": "", "content": "", "target": ""}).failure().message
    assert [part.partition(":")[0] for part in message.split("; ")] == ["type", "content", "target"]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "nope",
        b"\xff\xfe",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"a":' + "[" * 100 + "]" * 100 + "}",
        '{"content": "hi"}'.encode("utf-16"),
        '{"a": ' + "9" * 5_000 + "}",
    ],
)
def test_what_is_not_json_or_could_not_be_written_again_is_no_exception(raw):
    assert read_object(raw).failure().code == "invalid_json"


@pytest.mark.parametrize("depth", [1, 98, 99])
def test_what_is_read_can_be_written_again_however_deep_the_stack_is_there(depth):
    raw = '{"content":"hi","target":"/ws","a":' + "[" * depth + "]" * depth + "}"
    post = read_object(raw).bind(read_post).unwrap()
    assert _far_down(700, lambda: json.loads(message_frame(post, "1", "api", 0.0)))["content"] == "hi"


def _far_down(levels, act):
    return act() if not levels else _far_down(levels - 1, act)


def test_what_a_channel_gets_from_the_message_itself_cannot_be_given_beside_it():
    both = {"content": "hi", "target": "ops", "text": "another", "channel": "alerts"}
    assert read_post(both).failure().message == "text: is given by the content; channel: is given by the target"
    assert is_successful(read_post({**both, "target": "/ws"}))


@pytest.mark.parametrize("raw", ["[]", "null", "7", '"text"'])
def test_json_that_is_no_object_is_told_apart(raw):
    assert read_object(raw).failure().code == "invalid"


@given(st.text() | st.binary() | JSON.map(json.dumps))
@settings(deadline=None, max_examples=200)
def test_a_hostile_frame_is_a_value_whatever_it_is(raw):
    read = read_object(raw).bind(read_post)
    assert is_successful(read) or isinstance(read.failure(), Fault)
    assert read_frame(raw if isinstance(raw, str) else raw.decode("utf-8", "replace")) is not None


@given(CONTENT, st.dictionaries(st.text(), JSON, max_size=3))
@settings(deadline=None, max_examples=100)
def test_what_a_client_receives_holds_the_message_unchanged_on_one_line(content, extra):
    extra = {
        name: value for name, value in extra.items() if name not in ("id", "type", "content", "target", "from", "time")
    }
    raw = json.dumps({"content": content, "target": "/ws", **extra})
    read = read_object(raw).bind(read_post)
    if not is_successful(read):  # a lone surrogate somewhere in the further members
        return
    frame = message_frame(read.unwrap(), "7", "api", 0.0)
    own = {"id": "7", "type": "text", "target": "/ws", "from": "api", "time": "1970-01-01T00:00:00.000Z"}
    assert json.loads(frame) == own | {"content": content} | json.loads(json.dumps(extra))
    assert "\n" not in frame and frame.encode()


def test_a_target_says_whom_a_message_is_for():
    assert [target_of(Post("text", "x", target)) for target in ("/ws", "/ws/a-b.c_1", "*", "ops")] == [
        Clients("/ws"),
        Clients("/ws/a-b.c_1"),
        Everyone(),
        Through("ops"),
    ]


def test_a_client_acknowledges_and_sends_but_reaches_no_channel():
    assert read_frame('{"type":"ack","id":"7"}') == Success(Ack("7"))
    assert read_frame('{"content":"x","target":"/ws/bob"}') == Success(Post("text", "x", "/ws/bob"))
    assert read_frame('{"type":"ack"}').failure().code == "invalid"
    assert "POST /api/send" in read_frame('{"content":"x","target":"ops"}').failure().message


def test_the_digest_is_of_what_is_said_to_whom_not_of_the_id():
    one, same, other = Post("text", "x", "/ws", "1"), Post("text", "x", "/ws", "2"), Post("text", "x", "/ws/bob", "1")
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize(
    ("target", "clients", "status", "http", "message"),
    [
        ("/ws", 1, "delivered", 200, "Handed to 1 client at /ws"),
        ("*", 3, "delivered", 200, "Handed to 3 clients"),
        ("/ws/bob", 0, "failed", 404, "Nobody is connected at /ws/bob"),
        ("*", 0, "failed", 404, "Nobody is connected"),
    ],
)
def test_delivered_is_said_only_of_what_a_client_was_handed(target, clients, status, http, message):
    outcome = handed(Post("text", "x", target), "7", clients)
    assert (outcome["status"], outcome["clients"], outcome["message"]) == (status, clients, message)
    assert http_status(outcome) == http


@pytest.mark.parametrize("status", OUTCOMES)
def test_a_channels_outcome_is_passed_on(status):
    outcome = through_channel("7", {"status": status, "message": "so it was", "parts": 2})
    assert outcome == {"id": "7", "status": status, "message": "so it was", "parts": 2}
    assert http_status(outcome) == OUTCOMES[status]


@pytest.mark.parametrize("told", [{}, {"status": "sent"}, {"status": None, "message": ""}])
def test_what_is_no_outcome_is_unconfirmed_never_delivered(told):
    assert through_channel("7", told)["status"] == "unconfirmed"


def test_a_sender_knows_its_answer_among_other_frames():
    answers = AnswerTo("7")
    assert answers(receipt_frame({"id": "7", "status": "delivered"}))
    assert answers(error_frame(Fault("invalid", "no", "7")))
    assert answers(error_frame(Fault("invalid_json", "no")))
    assert not answers(receipt_frame({"id": "8", "status": "delivered"}))
    assert not answers(message_frame(Post("text", "x", "/ws"), "7", "api", 0.0))
    assert not answers("nonsense")


def test_close_codes_are_those_of_rfc_6455_and_iana_or_for_private_use():
    registered = {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 3000, 3003, 3008}
    assert {code for code in CloseCode if code < 4000} <= registered
    assert all(code <= 4999 for code in CloseCode)


def test_a_fault_is_told_with_the_id_of_the_message():
    assert read_post({"id": "7"}) == Failure(Fault("invalid", "content: missing; target: missing", "7"))
