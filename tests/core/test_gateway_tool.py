"""The tool: from a model's arguments to one exchange, and from the answer to the truth."""

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from returns.pipeline import is_successful
from returns.result import Failure, Success

from messaging_core.config.settings import Gateway
from messaging_core.errors import (
    Denied,
    Invalid,
    InvalidArguments,
    Malformed,
    RecipientBlocked,
    Rejected,
    TooLarge,
    Unanswered,
    Unavailable,
)
from messaging_core.flow import Done, Exchange, Part, Receipt, Scope, advance, drive
from messaging_core.gateway.answers import Answered, AnsweredByFrame, Taken, Told, rehearse, status_document
from messaging_core.gateway.protocol import AnswerTo, Fault, Post, error_frame, handed, receipt_frame
from messaging_core.gateway.tool import GATEWAY, GatewayCall, describe, parse, report
from messaging_core.message import Ids
from messaging_core.secrecy import Secret
from messaging_core.wire.http import HttpReply, HttpRequest, to_json
from messaging_core.wire.websocket import Close, WebSocketReply, WebSocketRequest

IDS = Ids("1700000000000abcdefgh")
ID = "1700000000000abcdefgh.1"
OWN = Gateway()
LOCKED = Gateway(token=Secret("gateway.token"))
BEARER = ("Authorization", ("Bearer ", Secret("gateway.token")))
JSON_TYPE = ("Content-Type", "application/json")


def send(target, content="hi", **members):
    return {"action": "send", "payload": {"type": "text", "content": content, "target": target} | members}


def described(arguments, gateway=OWN):
    return parse(arguments).alt(lambda error: error).bind(lambda call: describe(call, gateway, IDS))


def request_of(arguments, gateway=OWN):
    return described(arguments, gateway).unwrap().request


# --- Arguments --------------------------------------------------------------------------------------------------------


def test_the_call_of_the_documentation():
    payload = {"type": "text", "content": "Raw gateway message", "target": "ws://localhost:16830/ws"}
    call = GatewayCall("send", Post("text", "Raw gateway message", "*"), "ws://localhost:16830/ws")
    assert parse({"action": "send", "payload": payload}) == Success(call)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (None, "expected an object"),
        ("send", "expected an object"),
        ({}, "action: missing; expected one of send, broadcast, status"),
        ({"action": "delete"}, "action: unknown; expected one of send, broadcast, status"),
        ({"action": ["send"]}, "action: unknown; expected one of send, broadcast, status"),
        ({"action": "send"}, "payload: missing; send needs type, content and target"),
        ({"action": "broadcast"}, "payload: missing; broadcast needs type, content"),
        ({"action": "send", "payload": "hi"}, "payload: expected an object"),
        ({"action": "status", "text": "x"}, "'text': unknown"),
        ({"action": "send", "payload": {"content": "x"}}, "payload.target: missing; where is it to go?"),
        ({"action": "send", "payload": {"target": "/ws"}}, "payload.content: missing"),
        (send("/ws", ""), "payload.content: is empty"),
        (send("*"), "payload.target: for everyone there is the action broadcast"),
        (send("/elsewhere"), "payload.target: expected /ws, /ws/<name>, * or the name of a channel, or a URL"),
        (send("ops", type="event"), "payload.type: a channel takes text"),
        (send("/ws", time="now"), "payload.time: is given by the gateway"),
        (send("/ws", "\ud800"), "payload.content: what the payload holds cannot be written as JSON in UTF-8"),
        (send("/ws", data=float("nan")), "payload.content: what the payload holds cannot be written as JSON in UTF-8"),
        (send("/ws", data=object()), "payload.content: what the payload holds cannot be written as JSON in UTF-8"),
        (
            {"action": "broadcast", "payload": {"content": "x", "target": "/ws"}},
            "broadcast takes the URL of a gateway, or none",
        ),
        ({"action": "status", "payload": {"target": "/ws"}}, "status takes the URL of a gateway, or none"),
        ({"action": "status", "payload": {"target": 5}}, "payload.target: expected a text"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments, problem):
    refusal = parse(arguments).failure()
    assert isinstance(refusal, InvalidArguments) and refusal.tool == "gateway"
    assert problem in str(refusal)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.sampled_from(["send", "broadcast", "status", "/ws"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["action", "payload", "type", "content", "target", "id"]) | st.text(), inner, max_size=5
            )
        ),
        max_leaves=10,
    )
)
@settings(deadline=None, max_examples=300)
def test_whatever_a_model_hands_over_is_a_call_or_a_refusal(arguments):
    described(arguments).map(lambda exchange: pickle.loads(pickle.dumps(exchange))).alt(str)


def test_the_schema_is_json_schema_and_takes_the_call_of_the_documentation():
    schema = json.loads(GATEWAY.schema)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(send("ws://localhost:16830/ws"))
    assert not Draft202012Validator(schema).is_valid({"action": "delete"})


# --- Where it goes ----------------------------------------------------------------------------------------------------


def test_over_websocket_one_frame_is_sent_and_its_receipt_waited_for():
    frame = f'{{"id":"{ID}","type":"text","content":"hi","target":"/ws"}}'
    request = WebSocketRequest(
        "ws://127.0.0.1:16830/ws", (frame,), AnswerTo(ID), (BEARER,), ("messaging.send",), repeatable=True
    )
    target = "ws://localhost:16830/ws"
    scope = Scope("gateway", "gateway.token", target, "send")
    assert described(send(target), LOCKED) == Success(Exchange(request, AnsweredByFrame(target, ID), scope, Part(1, 1)))


def test_over_http_one_post_is_made():
    body = f'{{"id":"{ID}","type":"text","content":"hi","target":"/ws/bob","data":[1]}}'.encode()
    request = HttpRequest("POST", "http://127.0.0.1:16830/api/send", (JSON_TYPE, BEARER), body, repeatable=True)
    scope = Scope("gateway", "gateway.token", "/ws/bob", "send")
    exchange = Exchange(request, Answered("/ws/bob", ID), scope, Part(1, 1))
    assert described(send("/ws/bob", data=[1]), LOCKED) == Success(exchange)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
@pytest.mark.parametrize("configured", ["localhost", "127.0.0.1", "::1"])
def test_loopback_names_are_one_host_and_the_configured_spelling_is_used(host, configured):
    request = request_of(send(f"ws://{host}:16830/ws"), Gateway(host=configured))
    assert request.url == f"ws://{'[::1]' if configured == '::1' else configured}:16830/ws"


@pytest.mark.parametrize(
    ("target", "path", "inner"),
    [
        ("http://localhost:16830/ws", "/api/send", "/ws"),
        ("http://localhost:16830/ws/bob", "/api/send", "/ws/bob"),
        ("http://localhost:16830/api/send", "/api/send", "/ws"),
        ("http://localhost:16830", "/api/send", "/ws"),
        ("http://localhost:16830/api/broadcast", "/api/broadcast", "*"),
        ("/ws", "/api/send", "/ws"),
        ("ops", "/api/send", "ops"),
    ],
)
def test_any_path_of_the_api_that_takes_messages_may_be_named(target, path, inner):
    request = request_of(send(target))
    assert request.url == f"http://127.0.0.1:16830{path}"
    assert json.loads(request.body)["target"] == inner


@pytest.mark.parametrize(
    "target",
    [
        "http://localhost:16830/health",
        "http://localhost:16830/api/status",
        "ws://localhost:16830/",
        "ws://localhost:16830/api/send",
    ],
)
def test_paths_that_take_none_are_refused(target):
    assert isinstance(described(send(target)).failure(), InvalidArguments)


@pytest.mark.parametrize(
    "target",
    [
        "ws://evil.example:16830/ws",
        "ws://localhost:16831/ws",
        "wss://localhost:16830/ws",
        "http://169.254.169.254/latest",
        "ws://127.0.0.2:16830/ws",
        "http://localhost.evil.example:16830/api/send",
    ],
)
@pytest.mark.parametrize("action", ["send", "broadcast", "status"])
def test_no_other_place_is_reached_by_any_action(target, action):
    arguments = {"action": action, "payload": {"content": "hi", "target": target}}
    assert described(arguments, LOCKED) == Failure(RecipientBlocked("gateway", target, "gateway.allowed_targets"))


def test_a_listed_place_is_reached_without_the_token_and_repeats_are_not_trusted_there():
    gateway = Gateway(token=Secret("gateway.token"), allowed_targets=("other.example:9000", "https://hooks.example/in"))
    socket = request_of(send("ws://other.example:9000/ws/bob"), gateway)
    assert (socket.url, socket.headers, socket.repeatable) == ("ws://other.example:9000/ws/bob", (), False)
    post = request_of(send("http://other.example:9000/ws/bob"), gateway)
    assert (post.url, post.headers, post.repeatable) == ("http://other.example:9000/api/send", (JSON_TYPE,), False)
    hook = described(send("https://hooks.example/in"), gateway).unwrap()
    assert (hook.request.url, hook.then) == ("https://hooks.example/in", Taken("https://hooks.example/in"))


def test_a_message_for_a_channel_is_not_repeated_blindly():
    assert not request_of(send("ops")).repeatable
    assert request_of(send("/ws")).repeatable


def test_a_broadcast_is_for_everyone_by_http_or_websocket():
    post = request_of({"action": "broadcast", "payload": {"content": "hi"}})
    assert (post.url, json.loads(post.body)["target"]) == ("http://127.0.0.1:16830/api/broadcast", "*")
    socket = request_of({"action": "broadcast", "payload": {"content": "hi", "target": "ws://localhost:16830/ws"}})
    assert json.loads(socket.frames[0])["target"] == "*"


def test_a_socket_for_a_named_client_does_not_take_its_name():
    request = request_of(send("ws://localhost:16830/ws/bob"))
    assert request.url == "ws://127.0.0.1:16830/ws"
    assert json.loads(request.frames[0])["target"] == "/ws/bob"


def test_the_callers_own_id_is_kept():
    assert json.loads(request_of(send("/ws", id="mine")).body)["id"] == "mine"


def test_what_is_over_the_gateways_limit_is_refused_before_sending():
    assert isinstance(described(send("/ws", "x" * 1_000_000)).failure(), TooLarge)
    assert is_successful(described(send("/ws", "x" * 990_000)))


def test_a_gateway_that_listens_everywhere_is_reached_on_this_machine():
    everywhere = Gateway(host="0.0.0.0", token=Secret("gateway.token"))
    assert request_of(send("ws://localhost:16830/ws"), everywhere).url == "ws://127.0.0.1:16830/ws"


def test_no_description_holds_a_token():
    exchange = described(send("/ws"), LOCKED).unwrap()
    assert "{gateway.token}" in str(Secret("gateway.token")) and "Secret(name='gateway.token')" in repr(exchange)


def test_the_channel_of_a_call_is_known_to_those_who_permit_it():
    assert parse(send("ops")).unwrap().channel == "ops"
    assert [parse(send(target)).unwrap().channel for target in ("/ws", "ws://localhost/ws")] == [None, None]


# --- What the answers mean --------------------------------------------------------------------------------------------


def after_http(status, body, reason=""):
    exchange = described(send("/ws")).unwrap()
    reply = HttpReply(status, reason, (("Retry-After", "7"),), to_json(body))
    return advance(exchange, Success(reply))


def after_socket(reply):
    return advance(described(send("ws://localhost:16830/ws")).unwrap(), Success(reply))


def test_delivered_names_how_many_clients_were_handed_it():
    outcome = handed(Post("text", "hi", "/ws"), ID, 3)
    receipt = Receipt(Part(1, 1), ID, "/ws", ("Handed to 3 clients at /ws",))
    assert after_http(200, outcome) == Success(Done((receipt,)))
    reply = WebSocketReply(receipt_frame(outcome))
    assert after_socket(reply).unwrap().delivered[0].notes == ("Handed to 3 clients at /ws",)


def test_nobody_there_is_failed_over_http_and_over_websocket():
    outcome = handed(Post("text", "hi", "/ws"), ID, 0)
    assert after_http(404, outcome, "Not Found").failure().cause == Rejected(
        404, "Not Found", "", "Nobody is connected at /ws"
    )
    assert after_socket(WebSocketReply(receipt_frame(outcome))).failure().cause == Rejected(
        None, "", "", "Nobody is connected at /ws"
    )


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (401, Fault("unauthorized", "no").document(), Denied(401, "", "", "no")),
        (403, Fault("forbidden_host", "no").document(), Denied(403, "", "", "no")),
        (403, {"status": "refused", "message": "Tool is denied"}, Rejected(403, "", "", "Tool is denied")),
        (409, Fault("id_reused", "no").document(), Invalid(409, "", "", "no")),
        (413, Fault("too_large", "no").document(), Invalid(413, "", "", "no")),
        (422, Fault("invalid", "no").document(), Invalid(422, "", "", "no")),
        (500, Fault("internal", "broke").document(), Unanswered("broke")),
        (502, {"status": "failed", "message": "the channel failed"}, Rejected(502, "", "", "the channel failed")),
        (503, Fault("overloaded", "no").document(), Unavailable(503, "", "", "no", after=7.0)),
        (504, {"status": "unconfirmed", "message": "no answer"}, Unanswered("no answer")),
        (504, {"status": "unconfirmed", "message": "no answer; it may have arrived"}, Unanswered("no answer")),
        (200, {"hello": "world"}, Malformed(200, "", detail="the answer is none of a gateway's")),
        (500, {"hello": "world"}, Unavailable(500, "", after=7.0)),
        (404, {"hello": "world"}, Invalid(404, "")),
    ],
)
def test_what_an_http_answer_means(status, body, cause):
    assert after_http(status, body).failure().cause == cause


def test_partly_sent_through_a_channel_is_partial():
    done = after_http(200, {"id": ID, "status": "partial", "message": "2 of 3 parts"}).unwrap()
    assert len(done.delivered) == len(done.undelivered) == 1


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (WebSocketReply(error_frame(Fault("invalid", "target: no", ID))), Invalid(None, "", "", "target: no")),
        (WebSocketReply(error_frame(Fault("shutting_down", "bye"))), Unavailable(None, "", "", "bye")),
        (
            WebSocketReply(close=Close(1009, "big")),
            Invalid(None, "", "1009", "closed before the receipt came (1009 big)"),
        ),
        (WebSocketReply(close=Close(1008)), Rejected(None, "", "1008", "closed before the receipt came (1008)")),
        (WebSocketReply(close=Close(3000)), Denied(None, "", "3000", "closed before the receipt came (3000)")),
        (WebSocketReply(close=Close(1013)), Unavailable(None, "", "1013", "closed before the receipt came (1013)")),
        (WebSocketReply(close=Close(1001)), Unanswered("closed before the receipt came (1001)")),
        (WebSocketReply(close=Close(1011)), Unanswered("closed before the receipt came (1011)")),
        (WebSocketReply(), Unanswered("closed before the receipt came (1005)")),
        (WebSocketReply(refused=HttpReply(401, "Unauthorized")), Denied(401, "Unauthorized")),
        (WebSocketReply(refused=HttpReply(503, "Busy")), Unavailable(503, "Busy")),
        (WebSocketReply(refused=HttpReply(504, "Late")), Unavailable(504, "Late", may_have_arrived=False)),
        (
            WebSocketReply(refused=HttpReply(200, "OK")),
            Rejected(200, "OK", "", "there is no WebSocket at that address"),
        ),
        (
            WebSocketReply(refused=HttpReply(302, "Found")),
            Rejected(302, "Found", "", "the server redirects; a send does not follow"),
        ),
        (WebSocketReply("nonsense"), Malformed(detail="the answer is no JSON object")),
    ],
)
def test_what_a_websocket_answer_means(reply, cause):
    assert after_socket(reply).failure().cause == cause


def test_a_listed_endpoint_of_somebody_else_delivers_with_any_2xx():
    gateway = Gateway(allowed_targets=("https://hooks.example/in",))
    exchange = described(send("https://hooks.example/in"), gateway).unwrap()
    assert advance(exchange, Success(HttpReply(204))).unwrap().delivered[0].notes == ("taken with 204",)
    assert advance(exchange, Success(HttpReply(404, "Not Found"))).failure().cause == Invalid(404, "Not Found")


STATUS = {"status": "ok", "version": "1.2", "uptime": 61.4, "connections": {"total": 2}, "channels": ["ops", "tg"]}


def test_status_is_a_sentence_and_the_document():
    call = parse({"action": "status"}).unwrap()
    exchange = describe(call, LOCKED, IDS).unwrap()
    url = "http://127.0.0.1:16830"
    assert exchange == Exchange(
        HttpRequest("GET", f"{url}/api/status", (BEARER,), repeatable=True),
        Told(url),
        Scope("gateway", method="status"),
    )
    done = advance(exchange, Success(HttpReply(200, "OK", (), to_json(STATUS)))).unwrap()
    assert status_document(done) == STATUS
    assert report(call, done) == f"Gateway {url}: ok, version 1.2, up 61 s, 2 clients connected, channels: ops, tg"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"status":"ok"}'])
def test_an_answer_that_is_no_status_is_malformed(body):
    exchange = describe(parse({"action": "status"}).unwrap(), OWN, IDS).unwrap()
    assert isinstance(advance(exchange, Success(HttpReply(200, "OK", (), body))).failure().cause, Malformed)


@pytest.mark.parametrize(
    "arguments",
    [send("ws://localhost:16830/ws"), send("/ws/bob"), send("ops"), {"action": "status"}]
    + [{"action": "broadcast", "payload": {"content": "hi"}}],
)
def test_a_call_can_be_rehearsed_without_a_network(arguments):
    call = parse(arguments).unwrap()
    done = drive(lambda exchange: Success(rehearse(exchange.request)), describe(call, OWN, IDS).unwrap()).unwrap()
    assert report(call, done)
