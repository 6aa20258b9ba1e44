"""The HTTP side of the gateway, by the standard library's client."""

import gzip
import json
import socket
import threading
import time

import pytest
from gateways import text_of
from jsonschema import Draft202012Validator

from messaging_adapters.gateway.hub import Limits

JSON_TYPE = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def told(shared):
    """Whether an answer is as the gateway's own OpenAPI document tells."""
    document = shared.request("GET", "/openapi.json")[2]

    def check(path, method, status, body):
        schema = document["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
        Draft202012Validator({**document, **schema}).validate(body)

    return check


# --- Messages ---------------------------------------------------------------------------------------------------------


def test_nobody_there_is_failed_and_not_found(shared, told):
    status, outcome = shared.send("/ws/nobody")
    assert (status, outcome["status"], outcome["clients"]) == (404, "failed", 0)
    assert outcome["message"] == "Nobody is connected at /ws/nobody"
    told("/api/send", "post", status, outcome)


def test_a_message_reaches_its_target_and_nobody_else(shared, told):
    with shared.client() as plain, shared.client("/ws/bob") as bob, shared.client("/ws/eve") as eve:
        shared.until(lambda status: status["connections"]["total"] == 3)
        for target, count in (("/ws", 1), ("/ws/bob", 1), ("*", 3)):
            status, outcome = shared.send(target, f"to {target}")
            assert (status, outcome["status"], outcome["clients"]) == (200, "delivered", count)
            told("/api/send", "post", status, outcome)
        assert [text_of(plain.recv()) for _ in range(2)] == ["to /ws", "to *"]
        assert [text_of(bob.recv()) for _ in range(2)] == ["to /ws/bob", "to *"]
        assert text_of(eve.recv()) == "to *"


def test_a_broadcast_reaches_everyone(shared, told):
    with shared.client() as plain, shared.client("/ws/bob") as bob:
        shared.until(lambda status: status["connections"]["total"] == 2)
        status, outcome = shared.broadcast("all")
        assert (status, outcome["clients"], outcome["message"]) == (200, 2, "Handed to 2 clients")
        assert text_of(plain.recv()) == text_of(bob.recv()) == "all"
        told("/api/broadcast", "post", status, outcome)


def test_a_frame_holds_the_message_its_id_its_time_and_further_members(shared):
    with shared.client("/ws/bob") as bob:
        shared.until(lambda status: status["connections"]["total"] == 1)
        _, outcome = shared.send("/ws/bob", "hi \u202e<b>\0", type="note", data={"n": 1.5})
        frame = json.loads(bob.recv())
        assert frame.pop("time").endswith("Z")
        assert frame == {
            "id": outcome["id"],
            "type": "note",
            "content": "hi \u202e<b>\0",
            "target": "/ws/bob",
            "from": "api",
            "data": {"n": 1.5},
        }


def test_the_same_id_is_delivered_once_and_answered_alike(shared):
    with shared.client("/ws/once") as client:
        shared.until(lambda status: status["connections"]["total"] == 1)
        first, again = shared.send("/ws/once", id="once-1"), shared.send("/ws/once", id="once-1")
        assert first == again and first[0] == 200
        assert shared.send("/ws/once", "other", id="once-1")[1]["code"] == "id_reused"
        shared.send("/ws/once", "last")
        assert [text_of(client.recv()) for _ in range(2)] == ["hi", "last"]


def test_what_found_nobody_may_be_tried_again_under_its_id(shared):
    assert shared.send("/ws/late", id="late-1")[0] == 404
    with shared.client("/ws/late") as client:
        shared.until(lambda status: status["connections"]["total"] == 1)
        assert shared.send("/ws/late", id="late-1")[0] == 200
        assert text_of(client.recv()) == "hi"


# --- Channels ---------------------------------------------------------------------------------------------------------


def test_a_channels_name_goes_out_through_that_channel(shared, told):
    status, outcome = shared.send("ops", "deploy done", recipient="@alice", id="c-1")
    assert (status, outcome["status"], outcome["id"]) == (200, "delivered", "c-1")
    assert outcome["as"] == {"text": "deploy done", "channel": "ops", "recipient": "@alice"}
    told("/api/send", "post", status, outcome)


@pytest.mark.parametrize(
    ("word", "http"), [("partial", 200), ("refused", 403), ("failed", 502), ("unconfirmed", 504), ("sent!", 504)]
)
def test_a_channels_outcome_has_its_http_status(start, told, word, http):
    gateway = start(deliver=lambda arguments: {"status": word, "message": "so it was"})
    status, outcome = gateway.send("ops")
    assert (status, outcome["message"]) == (http, "so it was")
    told("/api/send", "post", status, outcome)


def test_a_channel_that_breaks_leaves_the_message_unconfirmed(start):
    def deliver(arguments):
        raise RuntimeError("a bug, with a secret in it")

    status, outcome = start(deliver=deliver).send("ops")
    assert (status, outcome["status"]) == (504, "unconfirmed") and "secret" not in str(outcome)


def test_without_channels_a_channel_is_refused(start):
    assert start().send("ops") == (403, {"status": "refused", "message": "This gateway has no channels"} | {"id": ANY})


def test_a_channel_takes_text_only(shared):
    assert shared.send("ops", type="event")[1]["message"] == "type: a channel takes text"


def test_a_repeat_while_a_channel_has_the_message_in_hand_waits_for_the_same_outcome(start):
    go, calls = threading.Event(), []

    def deliver(arguments):
        calls.append(arguments)
        go.wait(10)
        return {"status": "delivered", "message": "sent"}

    gateway, answers = start(deliver=deliver), []
    threads = [threading.Thread(target=lambda: answers.append(gateway.send("ops", id="x"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    gateway.until(lambda status: status["queue"]["sending"] == 1)
    time.sleep(0.2)
    go.set()
    for thread in threads:
        thread.join(20)
    assert len(calls) == 1 and len(answers) == 3 and answers[0][0] == 200 and answers[0] == answers[1] == answers[2]


def test_a_slow_channel_keeps_nobody_else_waiting_and_too_many_are_refused(start):
    go = threading.Event()

    def deliver(arguments):
        go.wait(20)
        return {"status": "delivered", "message": "sent"}

    gateway = start(deliver=deliver, limits=Limits(sending=2, threads=2))
    threads = [threading.Thread(target=gateway.send, args=("ops",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    gateway.until(lambda status: status["queue"]["sending"] == 2)
    began = time.monotonic()
    assert gateway.request("GET", "/health")[0] == 200
    status, headers, fault = gateway.request("POST", "/api/send", {"content": "x", "target": "ops"})
    assert (status, headers["Retry-After"], fault["code"]) == (503, "1", "overloaded")
    assert time.monotonic() - began < 5
    go.set()
    for thread in threads:
        thread.join(20)


def test_one_who_goes_away_does_not_stop_a_channel(start):
    done = threading.Event()

    def deliver(arguments):
        time.sleep(0.3)
        done.set()
        return {"status": "delivered", "message": "sent"}

    gateway = start(deliver=deliver)
    body = json.dumps({"content": "x", "target": "ops", "id": "gone"}).encode()
    with socket.create_connection(("127.0.0.1", gateway.port)) as raw:
        head = f"POST /api/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        raw.sendall(head.encode() + body)
        gateway.until(lambda status: status["queue"]["sending"] == 1)
    assert done.wait(10)
    assert gateway.until(lambda status: status["counts"]["delivered"] == 1)["counts"]["delivered"] == 1
    assert gateway.send("ops", "x", id="gone")[0] == 200


# --- Who may come in --------------------------------------------------------------------------------------------------

TOKEN = "t0ken-for-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_with_a_token_only_the_page_its_health_and_its_description_are_open(start):
    gateway = start(token=TOKEN)
    assert [gateway.request("GET", path)[0] for path in ("/", "/health", "/openapi.json")] == [200, 200, 200]
    for method, path in (("GET", "/api/status"), ("POST", "/api/send"), ("GET", "/ws"), ("GET", "/nowhere")):
        status, headers, fault = gateway.request(method, path, {} if method == "POST" else None)
        assert (status, headers["WWW-Authenticate"], fault["code"]) == (401, "Bearer", "unauthorized")
    assert gateway.request("GET", "/api/status", headers=BEARER)[0] == 200
    assert gateway.request("GET", "/api/status", headers={"Authorization": "Bearer wrong"})[0] == 401
    assert gateway.request("GET", f"/api/status?token={TOKEN}")[0] == 401


@pytest.mark.parametrize("path", ["/", "/health", "/openapi.json", "/api/status", "/api/send", "/ws"])
@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Host": "evil.example:16830"}, {"Origin": "http://evil.example"}, {"Origin": "null"}],
)
def test_pages_of_others_reach_nothing(shared, path, headers):
    method = "POST" if path == "/api/send" else "GET"
    status, answered, fault = shared.request(
        method, path, {"content": "x", "target": "/ws"} if method == "POST" else None, headers
    )
    assert status == 403 and fault["code"] in ("forbidden_host", "forbidden_origin")
    assert not [name for name in answered if name.lower().startswith("access-control")]


def test_a_preflight_is_not_granted(shared):
    headers = {"Origin": shared.url, "Access-Control-Request-Method": "POST"}
    status, answered, _ = shared.request("OPTIONS", "/api/send", headers=headers)
    assert status == 405 and not [name for name in answered if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_a_body_of_a_type_that_pages_can_send_is_not_read(shared, told, kind):
    status, _, fault = shared.request(
        "POST", "/api/send", headers={"Content-Type": kind}, raw=b'{"content":"x","target":"/ws"}'
    )
    assert (status, fault["code"]) == (415, "unsupported_type")
    told("/api/send", "post", status, fault)


# --- What is not taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"nope", 400, "invalid_json"),
        (b"\xff\xfe{", 400, "invalid_json"),
        (b'{"content":"\\ud800","target":"/ws"}', 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 422, "invalid"),
        (b"{}", 422, "invalid"),
        (b'{"content":"x","target":"/elsewhere"}', 422, "invalid"),
        (b'{"content":"x","target":"/ws","from":"/ws/boss"}', 422, "invalid"),
    ],
)
def test_a_body_that_is_no_message(shared, told, raw, status, code):
    answered, _, fault = shared.request("POST", "/api/send", raw=raw)
    assert (answered, fault["code"], fault["status"]) == (status, code, "refused")
    told("/api/send", "post", status, fault)


def test_a_body_may_have_a_million_bytes_and_not_one_more(shared):
    room = 1_000_000 - len(json.dumps({"content": "", "target": "/ws/nobody"}))
    assert shared.send("/ws/nobody", "x" * room)[0] == 404
    assert shared.send("/ws/nobody", "x" * (room + 1))[1]["code"] == "too_large"


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(shared):
    def chunks():
        for _ in range(200):
            yield b"x" * 10_000

    connection = shared.request
    status, _, fault = connection(
        "POST", "/api/send", headers={**JSON_TYPE, "Transfer-Encoding": "chunked"}, raw=_chunked(chunks())
    )
    assert (status, fault["code"]) == (413, "too_large")


def _chunked(chunks):
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def test_a_body_that_swells_is_not_unpacked(shared):
    packed = gzip.compress(b" " * 50_000_000)
    status, _, fault = shared.request(
        "POST", "/api/send", headers={**JSON_TYPE, "Content-Encoding": "gzip"}, raw=packed
    )
    assert (status, fault["code"]) == (415, "unsupported_type")


def test_what_would_grow_past_the_frame_limit_is_refused(shared):
    data = [1e15] * 200_000
    raw = b'{"content":"x","target":"*","data":[' + b",".join([b"1e15"] * len(data)) + b"]}"
    with shared.client():
        assert shared.request("POST", "/api/send", raw=raw)[2]["code"] == "too_large"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/ws/a/b", 404, "not_found"),
        ("GET", "/ws/.a", 404, "not_found"),
        ("GET", "/api/send", 405, "method_not_allowed"),
        ("DELETE", "/api/status", 405, "method_not_allowed"),
        ("GET", "/ws", 426, "upgrade_required"),
    ],
)
def test_what_is_not_there(shared, method, path, status, code):
    answered, headers, fault = shared.request(method, path)
    assert (answered, fault["code"]) == (status, code)
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    assert status != 405 or headers["Allow"]


def test_half_a_head_costs_nobody_anything(shared):
    with socket.create_connection(("127.0.0.1", shared.port)) as raw:
        raw.sendall(b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert shared.request("GET", "/health")[0] == 200


def test_a_head_that_never_ends_is_not_waited_for(start, monkeypatch):
    monkeypatch.setattr("messaging_adapters.gateway.server.IDLE", 0.3)
    gateway = start()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as raw:
        raw.sendall(b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        time.sleep(0.1)
        raw.sendall(b"a")
        assert raw.recv(1000) == b""


def test_a_body_that_never_comes_is_not_waited_for(start, told, monkeypatch):
    monkeypatch.setattr("messaging_adapters.gateway.app.BODY_SECONDS", 0.3)
    gateway = start()
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as raw:
        head = b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        raw.sendall(head)
        answer = raw.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408 ")
    told("/api/send", "post", 408, json.loads(answer.partition(b"\r\n\r\n")[2]))


def test_too_many_connections_are_told_so(start, monkeypatch):
    monkeypatch.setattr("messaging_adapters.gateway.server.OTHERS", 2)
    gateway = start(limits=Limits(clients=1))
    held = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(3)]
    try:
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", gateway.port)) as raw:
            assert raw.recv(1000).startswith(b"HTTP/1.1 503 ")
    finally:
        for one in held:
            one.close()


# --- Documents --------------------------------------------------------------------------------------------------------


def test_status_and_health_are_as_told(shared, told):
    for path in ("/api/status", "/health"):
        status, _, document = shared.request("GET", path)
        assert status == 200
        told(path, "get", status, document)


def test_status_counts(start):
    gateway = start(channels=("ops", "tg"), version="1.2.3")
    with gateway.client("/ws/bob") as bob:
        gateway.until(lambda status: status["connections"]["total"] == 1)
        gateway.send("/ws/bob", id="1")
        gateway.send("/ws/eve")
        gateway.post("/api/send", {})
        bob.send('{"type":"ack","id":"1"}')
        bob.send('{"type":"ack","id":"1"}')
        bob.send('{"type":"ack","id":"never"}')
        status = gateway.until(lambda status: status["counts"]["acknowledged"])
        assert status.pop("uptime") > 0
        assert status == {
            "status": "ok",
            "version": "1.2.3",
            "channels": ["ops", "tg"],
            "connections": {"total": 1, "limit": 1000, "by_path": {"/ws/bob": 1}},
            "counts": {
                "accepted": 2,
                "delivered": 1,
                "failed": 1,
                "handed": 1,
                "acknowledged": 1,
                "refused": 1,
                "connected": 1,
                "dropped": 0,
            },
            "queue": {"frames": 0, "bytes": 0, "sending": 0},
        }


def test_the_page_runs_nothing_but_its_own_script(shared):
    status, headers, page = shared.request("GET", "/")
    policy = headers["Content-Security-Policy"]
    assert status == 200 and b"innerHTML" not in page
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    assert headers["X-Frame-Options"] == "DENY"


class _Any:
    def __eq__(self, other):
        return True


ANY = _Any()
