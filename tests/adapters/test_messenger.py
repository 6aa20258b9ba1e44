"""From a tool call to bytes on a real socket, and from the reply to the sentence. The far end records what came."""

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from messaging_adapters.configuration import ConfigurationInvalid
from messaging_adapters.messenger import Messenger
from messaging_core.message import Conversation, Message
from messaging_core.outcome import Outcome, Status
from tests.adapters.loopback import Item, Loopback, hang, nowhere, redirect, reply

PATIENCE = {"connect_timeout": 1, "read_timeout": 0.3}


def messenger(channels: dict[str, Any], **more: Any) -> Messenger:
    return Messenger.from_config({"channels": channels, "http": PATIENCE, **more})


def call(to: Messenger, channel: str, content: str = "hi") -> Any:
    return to.call_tool("message", {"channel": channel, "content": content})


# --- Its own records ----------------------------------------------------------------------------------------------------

TELEGRAM = {"type": "telegram", "bot_token": "110201543:FAKE-token", "chat_id": "42", "rate_limit": "20/second"}


def test_its_own_records_are_not_sent_under_any_name(tmp_path: Path) -> None:
    state = tmp_path / "messaging"
    with Loopback(default=reply(json={"ok": True, "result": {"message_id": 1}})) as server:
        to = Messenger.from_config(
            {"channels": {"t": {**TELEGRAM, "api_base": server.url}}, "media_roots": [str(tmp_path)]},
            environ={"XDG_STATE_HOME": str(tmp_path)},
        )
        assert to.send("hi").ok
        for name in ("audit.jsonl", "pace.json"):
            (tmp_path / f"other-{name}").hardlink_to(state / name)
            for path in (state / name, tmp_path / f"other-{name}"):
                assert "own configuration or records" in to.send(Message(media_path=str(path))).message
        assert len(server.requests) == 1


def test_the_record_of_a_refusal_says_where_it_would_have_gone(tmp_path: Path) -> None:
    to = Messenger.from_config(
        {"channels": {"t": {**TELEGRAM, "api_base": nowhere()}}}, environ={"XDG_STATE_HOME": str(tmp_path)}
    )
    turn = Conversation(channel="t", recipient="7")
    outcomes = [to.send(Message(media_path="/etc/passwd")), to.send(Message(media_path="/etc/passwd"), turn)]
    lines = [json.loads(line) for line in (tmp_path / "messaging" / "audit.jsonl").read_text().splitlines()]
    assert [(line["status"], line["channel"], line["platform"], line["recipient"]) for line in lines] == [
        ("refused", "t", "telegram", "42"),
        ("refused", "t", "telegram", "7"),
    ]
    assert [outcome.channel for outcome in outcomes] == ["t", "t"]


# --- One deadline ------------------------------------------------------------------------------------------------------


def seconds_of(send: Callable[[], Outcome]) -> tuple[Outcome, float]:
    began = time.monotonic()
    return send(), time.monotonic() - began


PATIENT = {"connect_timeout": 20, "read_timeout": 20}


@pytest.mark.parametrize(
    "far_end",
    [hang(), hang("nothing"), reply(json={"ok": True}).drip(every=0.2), reply().reading_slowly(0.1)],
    ids=["no answer", "nothing read", "a slow answer", "read slowly"],
)
def test_no_request_outlasts_the_time_of_the_whole_send(far_end: Item, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(b"\xff" * 20_000_000)
    channel = {"type": "telegram", "bot_token": "110201543:FAKE-token", "chat_id": "42"}
    with Loopback(far_end) as server:
        to = Messenger.from_config(
            {"channels": {"t": {**channel, "api_base": server.url}}, "http": PATIENT, "message_timeout_secs": 0.5}
        )
        outcome, took = seconds_of(lambda: to.send(Message(media_path=str(file))))
    assert (outcome.status, took < 1.5) == (Status.UNCONFIRMED, True), (outcome.message, took)


@contextlib.contextmanager
def slow_mail_server(seconds: float) -> Iterator[int]:
    """Its port. It says yes to everything, each time after so many seconds."""

    class Slow(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self.wfile.write(b"220 slow\r\n")
                for _ in self.rfile:
                    time.sleep(seconds)
                    self.wfile.write(b"250 yes\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Slow) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_no_mail_outlasts_the_time_of_the_whole_send() -> None:
    """Each step of the conversation is answered in time, and all of them together are not."""
    with slow_mail_server(0.2) as port:
        mail = {"type": "email", "smtp_host": "127.0.0.1", "smtp_port": port, "smtp_tls": False}
        mail |= {"from_address": "bot@example.org", "to": "ops@example.org"}
        to = Messenger.from_config({"channels": {"m": mail}, "http": PATIENT, "message_timeout_secs": 0.5})
        outcome, took = seconds_of(lambda: to.send("hi"))
    assert (outcome.status, took < 1.5) == (Status.FAILED, True), (outcome.message, took)


# --- The tool ``message``, to its ancestor's letter -------------------------------------------------------------------


def test_a_discord_webhook_gets_the_content_and_nothing_else() -> None:
    with Loopback(reply(204)) as server:
        result = call(
            messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}}), "d"
        )
        assert (result.ok, result.message) == (True, "Message sent to d")
        sent = server.requests[0]
        assert (sent.method, sent.target) == ("POST", "/api/webhooks/1/FAKE-token?wait=true")
        assert sent.header("Content-Type") == "application/json"
        assert sent.body == b'{"content":"hi"}'


def test_a_long_content_is_cut_for_discord_as_it_always_was_and_the_result_says_so() -> None:
    with Loopback() as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        result = call(to, "d", "a" * 2500)
        assert server.requests[0].json()["content"] == "a" * 1997 + "..."
        assert result.message == "Message sent to d (cut to 2000 of 2500 characters)"


def test_a_cut_does_not_tear_a_sign_apart() -> None:
    family = "👨‍👩‍👧‍👦"
    with Loopback() as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        call(to, "d", "a" * 1995 + family + "b" * 100)
        assert server.requests[0].json()["content"] == "a" * 1995 + "..."


def test_a_mention_mark_brings_the_switch_with_it() -> None:
    with Loopback() as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        call(to, "d", "@everyone hi")
        assert server.requests[0].json() == {"content": "@everyone hi", "allowed_mentions": {"parse": []}}


def test_a_matrix_room_gets_an_event_under_a_transaction_id_of_its_own() -> None:
    with Loopback(default=reply(json={"event_id": "$1"})) as server:
        settings = {
            "type": "matrix",
            "homeserver": server.url + "/",
            "access_token": "FAKE-token",
            "room_id": "!r:hs.test",
        }
        to = messenger({"m": settings})
        assert [call(to, "m").message for _ in range(2)] == ["Message sent to m"] * 2
        first, second = server.requests
        assert first.method == "PUT"
        assert first.target.startswith("/_matrix/client/v3/rooms/%21r%3Ahs.test/send/m.room.message/")
        assert first.header("Authorization") == "Bearer FAKE-token"
        assert first.body == b'{"msgtype":"m.text","body":"hi"}'
        assert first.target != second.target


def test_a_webhook_gets_its_template_filled_and_its_headers() -> None:
    settings: dict[str, Any] = {
        "type": "webhook",
        "method": "put",
        "headers": {"Content-Type": "application/json", "X-Api-Key": "FAKE-key"},
        "body_template": '{"text": "{{content}}"}',
    }
    with Loopback() as server:
        call(messenger({"w": settings | {"url": server.url + "/in?a=%2F"}}), "w", 'say "hi"\nline2\\ {{content}}')
        sent = server.requests[0]
        assert (sent.method, sent.target, sent.header("X-Api-Key")) == ("PUT", "/in?a=%2F", "FAKE-key")
        assert sent.json() == {"text": 'say "hi"\nline2\\ {{content}}'}


def test_a_webhook_without_a_template_gets_the_content_as_json() -> None:
    with Loopback() as server:
        call(messenger({"w": {"type": "webhook", "url": server.url + "/in"}}), "w")
        sent = server.requests[0]
        assert (sent.body, sent.header("Content-Type")) == (b'{"content":"hi"}', "application/json")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            reply(404, json={"message": "Unknown Webhook", "code": 10015}),
            "Failed to send to d: 404 Not Found: 10015 Unknown Webhook",
        ),
        (reply(500, body="<html>oops</html>"), "Failed to send to d: 500 Internal Server Error"),
        (reply(401, body=""), "Failed to send to d: 401 Unauthorized"),
        (
            redirect("http://127.0.0.1:9/"),
            "Failed to send to d: 307 Temporary Redirect: the server redirects; a send does not follow",
        ),
    ],
)
def test_a_refusal_is_told_with_status_and_detail(answer: Any, sentence: str) -> None:
    with Loopback(default=answer) as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        result = call(to, "d")
        assert (result.ok, result.message, result.outcome.status) == (False, sentence, Status.FAILED)
        assert len(server.requests) == 1


def test_a_channel_that_is_not_there_is_named_with_those_that_are_in_file_order() -> None:
    to = messenger({"zeta": {"type": "cli"}, "alpha": {"type": "cli"}})
    assert call(to, "c").message == "Unknown channel: c. Available channels: zeta, alpha"


def test_without_channels_the_sentence_says_what_to_add() -> None:
    assert (
        call(Messenger.from_config({}), "c").message
        == "No channels configured. Add a 'channels' section to your config."
    )


def test_no_connection_and_no_answer_are_told_apart() -> None:
    url = nowhere() + "/api/webhooks/1/FAKE-token"
    to = messenger({"d": {"type": "discord-webhook", "url": url}}, max_attempts=1)
    assert call(to, "d").message == "Failed to send to d: could not connect"
    with Loopback(hang()) as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        result = call(to, "d")
        assert result.message == "Delivery to d is unconfirmed: no answer after 0.3 s; it may have arrived"
        assert (result.outcome.status, len(server.requests)) == (Status.UNCONFIRMED, 1)


# --- Going on ---------------------------------------------------------------------------------------------------------


def test_a_limit_is_waited_for_in_the_platforms_own_unit() -> None:
    limited = reply(429, json={"message": "limited", "retry_after": 0.65, "global": False})
    with Loopback(limited, reply(200, json={"id": "9"})) as server:
        to = messenger({"d": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-token"}})
        assert call(to, "d").ok
        first, second = server.requests
        assert 0.65 <= second.at - first.at < 3


def test_a_repeat_of_an_unanswered_event_is_the_same_event() -> None:
    with Loopback(hang(), reply(502, body="<html>"), reply(json={"event_id": "$1"})) as server:
        settings = {"type": "matrix", "homeserver": server.url, "access_token": "FAKE-token", "room_id": "!r:hs.test"}
        assert call(messenger({"m": settings}), "m").ok
        assert len({request.target for request in server.requests}) == 1
        assert len(server.requests) == 3


def stopped_in_the_middle(server: Loopback) -> tuple[Messenger, Any]:
    to = messenger(
        {"t": {"type": "telegram", "bot_token": "111111:FAKE-token", "chat_id": "42", "api_base": server.url}}
    )
    return to, to.send(Message(text="line of text\n" * 1200))


def ok(number: int) -> Any:
    return reply(json={"ok": True, "result": {"message_id": number}})


def test_a_send_that_stopped_is_gone_on_with_from_where_it_stopped() -> None:
    kicked = reply(403, json={"ok": False, "error_code": 403, "description": "Forbidden: bot was kicked"})
    with Loopback(ok(1), ok(2), kicked, ok(3), ok(4)) as server:
        to, outcome = stopped_in_the_middle(server)
        assert (outcome.status, outcome.ids, outcome.parts) == (Status.PARTIAL, ("1", "2"), 4)
        assert "2 of 4 parts" in outcome.message and "bot was kicked" in outcome.message
        whole = to.resume(outcome)
        assert (whole.status, whole.ids) == (Status.DELIVERED, ("1", "2", "3", "4"))
        texts = [request.json()["text"] for request in server.requests]
        assert texts[2] == texts[3] and len(texts) == 5


def test_a_part_that_may_have_arrived_is_taken_again_only_if_one_says_so() -> None:
    with Loopback(ok(1), hang(), ok(2), ok(3), ok(4)) as server:
        to, outcome = stopped_in_the_middle(server)
        assert (outcome.status, outcome.ids) == (Status.PARTIAL, ("1",))
        assert to.resume(outcome) == outcome
        assert len(server.requests) == 2
        assert to.resume(outcome, repeat_unconfirmed=True).ok


# --- Conversations and threads ----------------------------------------------------------------------------------------


def test_turns_at_the_same_time_do_not_cross() -> None:
    with Loopback(respond=lambda request: ok(1)) as server:
        to = messenger({"t": {"type": "telegram", "bot_token": "111111:FAKE-token", "api_base": server.url}})

        def turn(chat: str) -> None:
            for _ in range(5):
                conversation = Conversation(channel="t", recipient=chat)
                assert to.call_tool("message_send", {"text": f"for {chat}"}, conversation).ok

        threads = [threading.Thread(target=turn, args=(str(1000 + chat),)) for chat in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        sent = [request.json() for request in server.requests]
        assert len(sent) == 30
        assert all(one["text"] == f"for {one['chat_id']}" for one in sent)


# --- What may be called, and what is offered --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "offered"),
    [
        ({}, ["message_send", "gateway"]),
        ({"channels": {"a": {"type": "cli"}}}, ["message", "message_send", "gateway"]),
        ({"channels_config": {"cli": False}}, ["gateway"]),
        ({"channels_config": {"cli": True}}, ["message_send", "gateway"]),
    ],
)
def test_a_tool_is_offered_where_it_can_be_used(config: dict[str, Any], offered: list[str]) -> None:
    definitions = Messenger.from_config(config).tool_definitions("mcp")
    assert [definition["name"] for definition in definitions] == offered


def test_a_tool_that_is_not_offered_is_refused_with_the_reason() -> None:
    result = Messenger.from_config({"channels_config": {"cli": False}}).call_tool("message_send", {"text": "x"})
    assert result.unknown
    assert result.message == "Unknown tool: message_send (no channel is active). Available tools: gateway"


def test_a_wrong_configuration_is_told_whole() -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        Messenger.from_config({"channels": {"a": {"type": "matrx"}, "b": {"type": "webhook"}}})
    assert "matrix" in str(caught.value) and "channels.b.url" in str(caught.value)


def test_an_approved_proposal_is_sent_once_and_nothing_else_is() -> None:
    policy = {"tool_policy": {"tools": {"message_send": "supervised"}}}
    with Loopback() as server:
        to = messenger({"w": {"type": "webhook", "url": server.url}}, security=policy)
        result = to.send("deploy?")
        assert result.status is Status.REFUSED and server.requests == []
        proposal = getattr(result.error, "proposal")
        assert to.approve(proposal).ok
        assert not to.approve(proposal).ok
        assert [request.json() for request in server.requests] == [{"content": "deploy?"}]


def test_one_connection_serves_many_messages() -> None:
    with Loopback() as server:
        to = messenger({"w": {"type": "webhook", "url": server.url}})
        for _ in range(50):
            assert call(to, "w").ok
        assert server.connections == 1


def test_a_broadcast_reaches_all_and_each_outcome_is_its_own() -> None:
    with Loopback(respond=lambda request: reply(500 if request.path == "/2" else 200)) as server:
        to = messenger({f"w{n}": {"type": "webhook", "url": f"{server.url}/{n}"} for n in range(4)})
        outcomes = to.broadcast("hi", [f"w{n}" for n in range(4)])
        assert [outcome.ok for outcome in outcomes] == [True, True, False, True]
        assert [outcome.channel for outcome in outcomes] == ["w0", "w1", "w2", "w3"]


def test_the_log_of_records_holds_the_send_and_never_its_content(own_folders: Any) -> None:
    with Loopback() as server:
        call(messenger({"w": {"type": "webhook", "url": server.url + "/FAKE-secret-path"}}), "w", "very private")
    lines = (own_folders / "state" / "messaging" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["phase"] for line in lines] == ["begin", "end"]
    assert not any("private" in line or "FAKE" in line for line in lines)
