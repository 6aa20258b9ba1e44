"""The tool, from a model's arguments by real edges to a running gateway, and to the clients behind it."""

import json

import pytest
from gateways import text_of
from returns.result import Failure

from messaging_adapters.http_requests import HttpEdge
from messaging_adapters.websocket import WebSocketEdge
from messaging_core.config.settings import Gateway, Http
from messaging_core.errors import Denied, Rejected, Unanswered, Unreachable
from messaging_core.flow import drive
from messaging_core.gateway.answers import status_document
from messaging_core.gateway.tool import describe, parse, report
from messaging_core.message import Ids
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import HttpRequest

TOKEN = "s3cret-t0ken"


@pytest.fixture(params=["", TOKEN], ids=["open", "token"])
def line(request, start):
    """A gateway, and a function that makes a tool call to it."""
    gateway = start(
        token=request.param,
        deliver=lambda arguments: {"status": "delivered", "message": f"sent to {arguments['channel']}"},
    )
    gateway.headers = {"Authorization": f"Bearer {request.param}"} if request.param else {}
    gateway.status = lambda **headers: gateway.request("GET", "/api/status", headers=gateway.headers)[2]
    return gateway, caller(gateway.port, request.param)


def caller(port, token="", http=None):
    own = Gateway("127.0.0.1", port, Secret("gateway.token") if token else None)
    secrets = Secrets({"gateway.token": token})
    http = http or Http(5.0, 5.0)
    edges = {True: HttpEdge(http, secrets), False: WebSocketEdge(http, secrets)}

    def call(action, numbered=[0], **payload):
        numbered[0] += 1
        parsed = parse({"action": action, "payload": payload} if payload else {"action": action}).unwrap()
        exchange = describe(parsed, own, Ids(f"m{numbered[0]}")).unwrap()
        done = drive(lambda exchange: edges[isinstance(exchange.request, HttpRequest)](exchange), exchange)
        return done.map(lambda done: (report(parsed, done), done)).alt(lambda stopped: stopped.cause)

    return call


@pytest.mark.parametrize("target", ["ws://localhost:{port}/ws", "http://localhost:{port}/ws", "/ws"])
def test_a_message_goes_to_the_clients_by_any_way(line, target):
    gateway, call = line
    target = target.format(port=gateway.port)
    with gateway.client(additional_headers=gateway.headers) as client:
        gateway.until(lambda status: status["connections"]["total"] == 1)
        said, done = call("send", type="text", content="hi", target=target, data={"n": 1}).unwrap()
        assert said == "Handed to 1 client at /ws"
        frame = json.loads(client.recv())
        assert (frame["content"], frame["data"], frame["id"]) == ("hi", {"n": 1}, done.delivered[0].id)
    nobody = call("send", type="text", content="hi", target=target).failure()
    assert isinstance(nobody, Rejected) and nobody.detail == "Nobody is connected at /ws"


@pytest.mark.parametrize("target", ["ws://localhost:{port}/ws/bob", "/ws/bob"])
def test_a_message_goes_to_one_client_by_name(line, target):
    gateway, call = line
    with gateway.client("/ws/bob", additional_headers=gateway.headers) as bob:
        gateway.until(lambda status: status["connections"]["total"] == 1)
        said, _ = call("send", content="hi", target=target.format(port=gateway.port)).unwrap()
        assert said == "Handed to 1 client at /ws/bob"
        assert text_of(bob.recv()) == "hi"


@pytest.mark.parametrize("payload", [{}, {"target": "ws://127.0.0.1:{port}/ws"}, {"target": "http://127.0.0.1:{port}"}])
def test_a_broadcast_goes_to_all(line, payload):
    gateway, call = line
    payload = {name: value.format(port=gateway.port) for name, value in payload.items()}
    with (
        gateway.client(additional_headers=gateway.headers) as one,
        gateway.client("/ws/x", additional_headers=gateway.headers) as two,
    ):
        gateway.until(lambda status: status["connections"]["total"] == 2)
        assert call("broadcast", content="all", **payload).unwrap()[0] == "Handed to 2 clients"
        assert text_of(one.recv()) == text_of(two.recv()) == "all"


def test_a_channel_is_reached_through_the_gateway(line):
    assert line[1]("send", content="hi", target="ops").unwrap()[0] == "sent to ops"


def test_the_status_is_told(line):
    gateway, call = line
    said, done = call("status").unwrap()
    assert said.startswith(f"Gateway http://127.0.0.1:{gateway.port}: ok, version 0, up ")
    assert status_document(done)["connections"]["total"] == 0


@pytest.mark.parametrize("target", ["ws://localhost:{port}/ws", "/ws"])
def test_a_wrong_token_is_denied(start, target):
    gateway = start(token=TOKEN)
    call = caller(gateway.port, "wrong-token")
    for cause in (
        call("send", content="hi", target=target.format(port=gateway.port)).failure(),
        call("status").failure(),
    ):
        assert isinstance(cause, Denied) and cause.status == 401 and "token is missing or wrong" in str(cause)


def test_a_gateway_that_does_not_run_is_unreachable():
    call = caller(1)
    assert isinstance(call("status").failure(), Unreachable)
    assert isinstance(call("send", content="hi", target="ws://localhost:1/ws").failure(), Unreachable)


@pytest.mark.parametrize("target", ["ws://localhost:{port}/ws", "ops"])
def test_a_gateway_killed_with_9_meanwhile_leaves_it_unconfirmed(process, target):
    import threading
    import time

    one = process("127.0.0.1", 0, "", 5)
    gateway = one.ready()
    call = caller(gateway.port, http=Http(5.0, 10.0))
    if target == "ops":
        killer = threading.Thread(target=lambda: (time.sleep(0.5), one.popen.kill()))
        killer.start()
        assert isinstance(call("send", content="hi", target=target).failure(), Unanswered)
        killer.join()
    else:
        one.popen.kill()
        one.popen.wait(10)
        cause = call("send", content="hi", target=target.format(port=gateway.port))
        assert cause == Failure(Unreachable("could not connect"))
