"""Our WebSocket client against a server of the ``websockets`` library, and against far ends that are no server at all."""

import base64
import contextlib
import hashlib
import http
import logging
import re
import socket
import threading
import time

import pytest
from returns.pipeline import is_successful
from websockets.sync.server import serve

from messaging_adapters.websocket import WebSocketEdge
from messaging_core.config.settings import Http
from messaging_core.errors import Invalid, Unanswered, Unreachable
from messaging_core.flow import Exchange, Scope
from messaging_core.gateway.protocol import AnswerTo
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import HttpReply
from messaging_core.wire.websocket import Close, WebSocketReply, WebSocketRequest

TOKEN = "s3cret-t0ken-of-the-tests"
SECRETS = Secrets({"gateway.token": TOKEN})
RECEIPT = '{"type":"receipt","id":"7","status":"delivered"}'
QUICK = Http(connect_timeout=1.0, read_timeout=0.5)


@contextlib.contextmanager
def serving(handler, **options):
    """A server of the websockets library; its address."""
    quiet = logging.Logger("server", logging.CRITICAL)
    with serve(handler, "127.0.0.1", 0, logger=quiet, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/ws"
        finally:
            server.shutdown()
            thread.join(10)


@contextlib.contextmanager
def far_end(run):
    """A far end that serves one connection as ``run(connection, stop)`` does; its address."""
    stop = threading.Event()

    def main():
        listener.settimeout(5)
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(5)
                run(connection, stop)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=main)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{listener.getsockname()[1]}/ws"
        finally:
            stop.set()
            thread.join(10)


def answering(*answers, then="close"):
    """A far end that reads a little and writes bytes, whatever it is asked."""

    def run(connection, stop):
        connection.recv(65536)
        for answer in answers:
            connection.sendall(answer)
        if then == "hang":
            stop.wait(10)

    return far_end(run)


def perform(url, frames=('{"id":"7"}',), until=AnswerTo("7"), edge=None, **options):
    request = WebSocketRequest(url, frames, until, **options)
    return (edge or WebSocketEdge(QUICK, SECRETS))(Exchange(request, len, Scope("gateway")))


# --- Answers ----------------------------------------------------------------------------------------------------------


def test_the_frames_go_out_in_order_and_the_answer_comes_back():
    got = []

    def handler(connection):
        got.extend([connection.recv(), connection.recv(), connection.request.headers, connection.subprotocol])
        connection.send('{"type":"text","id":"7"}')
        connection.send(b"\x00 binary")
        connection.send('{"type":"receipt","id":"8"}')
        connection.send(RECEIPT)

    with serving(handler, subprotocols=["messaging.send"]) as url:
        headers = (("Authorization", ("Bearer ", Secret("gateway.token"))),)
        reply = perform(url, ("one", "two"), headers=headers, subprotocols=("messaging.send",))
    assert reply.unwrap() == WebSocketReply(RECEIPT)
    assert got[:2] == ["one", "two"] and got[3] == "messaging.send"
    assert got[2]["Authorization"] == f"Bearer {TOKEN}" and "Sec-WebSocket-Extensions" not in got[2]


def test_the_connection_is_closed_properly():
    codes = []

    def handler(connection):
        connection.recv()
        connection.send(RECEIPT)
        connection.recv_events_thread.join(5)
        codes.append(connection.close_code)

    with serving(handler) as url:
        assert is_successful(perform(url))
    assert codes == [1000]


def test_where_nothing_is_waited_for_the_closing_handshake_is_the_answer():
    got = []
    with serving(lambda connection: got.extend(connection)) as url:
        assert perform(url, ("one",), None).unwrap() == WebSocketReply(close=Close(1000))
    assert got == ["one"]


@pytest.mark.parametrize("code", [1000, 1001, 1003, 1008, 1009, 1011, 1013, 3000, 4000])
def test_a_close_before_the_answer_is_a_reply_with_its_code(code):
    def handler(connection):
        connection.recv()
        connection.close(code, f"for {TOKEN}")

    with serving(handler) as url:
        assert perform(url).unwrap() == WebSocketReply(close=Close(code, "for ***"))


@pytest.mark.parametrize("status", [200, 302, 401, 403, 404, 500, 503])
def test_a_refused_upgrade_is_a_reply_and_nothing_was_sent(status):
    frames = []

    def refuse(connection, request):
        response = connection.respond(http.HTTPStatus(status), f"no: {TOKEN}")
        response.headers["Location"] = "ws://127.0.0.1:1/elsewhere"
        return response

    with serving(lambda connection: frames.extend(connection), process_request=refuse) as url:
        refused = perform(url).unwrap().refused
    assert isinstance(refused, HttpReply)
    assert (refused.status, refused.body, frames) == (status, b"no: ***", [])


def test_a_redirect_is_not_followed_even_on_the_same_host():
    paths = []

    def redirect(connection, request):
        paths.append(request.path)
        response = connection.respond(http.HTTPStatus.FOUND, "")
        response.headers["Location"] = "/elsewhere"
        return response

    with serving(lambda connection: None, process_request=redirect) as url:
        assert perform(url).unwrap().refused.status == 302
    assert paths == ["/ws"]


# --- No answer --------------------------------------------------------------------------------------------------------


def test_nobody_listening_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert perform(f"ws://127.0.0.1:{port}/ws").failure() == Unreachable("could not connect")


def test_a_name_that_is_not_there_is_unreachable():
    assert perform("ws://nowhere.invalid/ws").failure() == Unreachable("could not connect: name not found")


def test_silence_is_unanswered_after_the_read_timeout():
    with serving(lambda connection: [*connection]) as url:
        began = time.monotonic()
        assert perform(url).failure() == Unanswered("no answer after 0.5 s")
        assert 0.4 < time.monotonic() - began < 3


def test_frames_of_others_do_not_prolong_the_wait():
    def handler(connection):
        with contextlib.suppress(Exception):
            while True:
                connection.send('{"type":"text"}')
                time.sleep(0.05)

    with serving(handler) as url:
        began = time.monotonic()
        assert perform(url).failure() == Unanswered("no answer after 0.5 s")
        assert time.monotonic() - began < 4


def test_an_upgrade_that_is_never_answered_is_unreachable_since_no_frame_left():
    with answering(then="hang") as url:
        assert perform(url).failure() == Unreachable("could not connect: no WebSocket after 1 s")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n",
        b"\0" * 99,
    ],
)
def test_what_is_no_websocket_server_is_unreachable(answer):
    with answering(answer) as url:
        assert perform(url).failure() == Unreachable("could not connect: the far end does not speak WebSocket")


def test_a_connection_cut_after_the_frame_left_is_unanswered():
    def handler(connection):
        connection.recv()
        connection.socket.shutdown(socket.SHUT_RDWR)

    with serving(handler) as url:
        assert perform(url).failure() == Unanswered("the connection was lost before an answer came")


def test_a_far_end_that_takes_nothing_is_given_up():
    with granting(reads=False) as url:
        began = time.monotonic()
        assert perform(url, ("x" * 60_000_000,)).failure() == Unanswered("no answer after 0.5 s")
        assert time.monotonic() - began < 5


def test_an_oversized_frame_is_not_taken_into_memory():
    def handler(connection):
        connection.recv()
        with contextlib.suppress(Exception):
            connection.send("x" * 5_000_000)

    with serving(handler) as url:
        error = perform(url).failure()
    assert error == Unanswered("a frame of more than 4194304 bytes came instead of an answer")


def test_broken_frames_are_unanswered():
    with granting(b"\xf1\x00") as url:
        assert perform(url).failure() == Unanswered("the answer breaks the WebSocket protocol")


def granting(sent=b"", reads=True):
    """A far end that grants the upgrade, sends bytes, and then reads on or does not."""

    def run(connection, stop):
        asked = connection.recv(65536).decode()
        key = re.search(r"Sec-WebSocket-Key: (\S+)", asked)[1] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        head = f"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        connection.sendall(head.encode() + sent)
        while reads and connection.recv(65536):
            pass
        stop.wait(10)

    return far_end(run)


# --- Proxies, TLS, secrets --------------------------------------------------------------------------------------------


def test_loopback_is_never_reached_by_a_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "socks_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(lambda connection: connection.send(RECEIPT)) as url:
        edge = WebSocketEdge(Http(2.0, 2.0, proxy=Secret("http.proxy")), Secrets({"http.proxy": "http://127.0.0.1:1"}))
        assert is_successful(perform(url, edge=edge))
        assert is_successful(perform(url.replace("127.0.0.1", "localhost"), edge=edge))


def test_other_hosts_are_reached_by_the_configured_proxy():
    with answering(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n") as url:
        proxy = url.replace("ws://", "http://").removesuffix("/ws")
        edge = WebSocketEdge(Http(2.0, 2.0, proxy=Secret("http.proxy")), Secrets({"http.proxy": proxy}))
        error = perform("ws://gateway.example/ws", edge=edge).failure()
    assert error == Unreachable("could not connect: the proxy did not let the connection through")


def test_tls_is_verified(tmp_path):
    trustme = pytest.importorskip("trustme")
    import ssl

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with serving(lambda connection: connection.send(RECEIPT), ssl=context) as url:
        secure = url.replace("ws://127.0.0.1", "wss://localhost")
        trusting = WebSocketEdge(Http(2.0, 2.0, ca_file=str(tmp_path / "ca.pem")), SECRETS)
        assert is_successful(perform(secure, edge=trusting))
        assert perform(secure).failure() == Unreachable("could not connect: TLS certificate not accepted")
        lost = WebSocketEdge(Http(2.0, 2.0, ca_file=str(tmp_path / "none.pem")), SECRETS)
        assert "ca_file" in str(perform(secure, edge=lost).failure())


@pytest.mark.parametrize("token", ["two\r\nlines: x", "\udcff", "\0", "töken"])
def test_a_secret_that_no_header_can_hold_is_invalid_and_not_shown(token):
    edge = WebSocketEdge(QUICK, Secrets({"gateway.token": token}))
    with serving(lambda connection: connection.send(RECEIPT)) as url:
        reply = perform(url, edge=edge, headers=(("Authorization", (Secret("gateway.token"),)),))
    assert isinstance(reply.failure(), Invalid) and "lines" not in str(reply)


def test_no_log_record_holds_the_token(caplog):
    caplog.set_level(logging.DEBUG)
    with serving(lambda connection: connection.send(RECEIPT)) as url:
        perform(url, headers=(("Authorization", ("Bearer ", Secret("gateway.token"))),))
    perform("ws://127.0.0.1:1/ws", headers=(("Authorization", ("Bearer ", Secret("gateway.token"))),))
    assert TOKEN not in caplog.text and TOKEN not in str([record.__dict__ for record in caplog.records])


def test_many_threads_may_share_one_edge():
    edge = WebSocketEdge(Http(5.0, 5.0), SECRETS)
    replies = []
    with serving(lambda connection: connection.send(RECEIPT)) as url:
        threads = [threading.Thread(target=lambda: replies.append(perform(url, edge=edge))) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert len(replies) == 10 and all(map(is_successful, replies))
