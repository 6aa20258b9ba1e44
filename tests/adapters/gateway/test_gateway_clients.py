"""The WebSocket side, by the ``websockets`` client: targets, acknowledgements, hostile frames, slow and dying clients."""

import json
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from gateways import text_of
from websockets.exceptions import ConnectionClosed, InvalidStatus

from messaging_adapters.gateway.hub import Limits
from messaging_core.gateway.access import token_as_subprotocol


def connected(gateway, count):
    assert gateway.until(lambda status: status["connections"]["total"] == count)["connections"]["total"] == count


def closed(client, seconds=10):
    """How the far end closed."""
    with pytest.raises(ConnectionClosed) as error:
        while True:
            client.recv(timeout=seconds)
    assert error.value.rcvd is not None, "no close frame came"
    return error.value.rcvd.code, error.value.rcvd.reason


# --- What a client gets and says --------------------------------------------------------------------------------------


def test_nothing_is_said_before_the_first_message(shared):
    with shared.client() as client, pytest.raises(TimeoutError):
        client.recv(timeout=0.3)


def test_a_client_sends_to_others_by_target_and_is_told_what_came_of_it(shared):
    with shared.client("/ws/ann") as ann, shared.client("/ws/bob") as bob:
        connected(shared, 2)
        ann.send('{"type":"text","content":"hi","target":"/ws/bob","id":"a-1"}')
        frame = json.loads(bob.recv())
        assert (frame["id"], frame["content"], frame["from"]) == ("a-1", "hi", "/ws/ann")
        receipt = {"type": "receipt", "id": "a-1", "status": "delivered", "clients": 1}
        assert json.loads(ann.recv()) == receipt | {"message": "Handed to 1 client at /ws/bob"}
        ann.send('{"content":"hi","target":"/ws/eve"}')
        assert json.loads(ann.recv())["status"] == "failed"


def test_nobody_gets_what_they_sent_themselves(shared):
    with shared.client() as one, shared.client() as other:
        connected(shared, 2)
        one.send('{"content":"to all","target":"*"}')
        assert json.loads(one.recv())["clients"] == 1
        assert text_of(other.recv()) == "to all"


def test_one_who_only_sends_counts_as_nobodys_reader(shared):
    with shared.client(subprotocols=["messaging.send"]) as sender:
        assert sender.subprotocol == "messaging.send"
        sender.send('{"content":"hi","target":"*"}')
        assert json.loads(sender.recv())["status"] == "failed"
        assert shared.broadcast()[0] == 404


def test_a_sender_does_not_take_a_name(shared):
    with shared.client("/ws/bob") as bob, shared.client("/ws/bob", subprotocols=["messaging.send"]):
        assert shared.send("/ws/bob")[0] == 200
        assert text_of(bob.recv()) == "hi"


def test_the_newest_client_holds_a_name_and_the_one_before_is_told(shared):
    with shared.client("/ws/page") as before:
        connected(shared, 1)
        with shared.client("/ws/page") as now:
            assert closed(before) == (4000, "another client connected under this name")
            assert shared.send("/ws/page")[1]["clients"] == 1
            assert text_of(now.recv()) == "hi"


def test_frames_come_in_the_order_in_which_they_were_sent(shared):
    with shared.client("/ws/bob") as bob:
        connected(shared, 1)
        for number in range(50):
            shared.send("/ws/bob", str(number))
        assert [text_of(bob.recv()) for _ in range(50)] == [str(number) for number in range(50)]


def test_a_frame_in_fragments_is_one(shared):
    with shared.client() as client:
        client.send(iter(['{"content":"x",', '"target":', '"/ws/nobody"}']))
        assert json.loads(client.recv())["status"] == "failed"


# --- Who may come in --------------------------------------------------------------------------------------------------


def test_the_token_comes_by_header_or_by_subprotocol(start):
    gateway = start(token="s3cret")
    for options in ({}, {"additional_headers": {"Authorization": "Bearer wrong"}}):
        with pytest.raises(InvalidStatus) as refused:
            gateway.client(**options).__enter__()
        assert refused.value.response.status_code == 401
    with gateway.client(additional_headers={"Authorization": "Bearer s3cret"}):
        pass
    with gateway.client(subprotocols=["messaging", token_as_subprotocol("s3cret")]) as client:
        assert client.subprotocol == "messaging"
    with pytest.raises(InvalidStatus) as refused:  # a token alone would have to be echoed
        gateway.client(subprotocols=[token_as_subprotocol("s3cret")]).__enter__()
    assert refused.value.response.status_code == 422


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:5173"])
def test_pages_of_others_do_not_connect(shared, origin):
    with pytest.raises(InvalidStatus) as refused:
        shared.client(origin=origin).__enter__()
    assert refused.value.response.status_code == 403


def test_an_origin_of_its_own_does_not_cover_for_another(shared):
    with pytest.raises(InvalidStatus) as refused:
        shared.client(origin=shared.url, additional_headers={"Origin": "http://evil.example"}).__enter__()
    assert refused.value.response.status_code == 403


def test_a_listed_page_connects(start):
    gateway = start(origins=("http://localhost:5173",))
    with gateway.client(origin="http://localhost:5173"), gateway.client(origin=gateway.url):
        pass


def test_one_client_too_many_is_refused_before_the_upgrade(start):
    gateway = start(limits=Limits(clients=2))
    with gateway.client(), gateway.client():
        with pytest.raises(InvalidStatus) as refused:
            gateway.client().__enter__()
        assert refused.value.response.status_code == 503
    connected(gateway, 0)
    with gateway.client():
        pass


# --- Hostile frames ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("", "invalid_json"),
        ("nope", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ('{"content":"\\ud800","target":"*"}', "invalid_json"),
        ("[]", "invalid"),
        ("{}", "invalid"),
        ('{"type":"receipt","content":"x","target":"*"}', "invalid"),
        ('{"content":"x","target":"*","from":"/ws/boss"}', "invalid"),
        ('{"content":"x","target":"ops"}', "invalid"),
        ('{"type":"ack","id":5}', "invalid"),
    ],
)
def test_what_is_no_message_is_answered_and_the_connection_goes_on(shared, frame, code):
    with shared.client() as client:
        client.send(frame)
        answer = json.loads(client.recv())
        assert (answer["type"], answer["code"]) == ("error", code)
        client.send('{"content":"x","target":"/ws/nobody"}')
        assert json.loads(client.recv())["type"] == "receipt"


def test_a_binary_frame_ends_the_connection(shared):
    with shared.client() as client:
        client.send(b"\x00\x01")
        assert closed(client)[0] == 1003


def test_a_frame_over_the_limit_ends_the_connection(shared):
    with shared.client() as client:
        head, tail = '{"content":"', '","target":"/ws/nobody"}'
        client.send(head + "x" * (1_000_000 - len(head + tail)) + tail)
        assert json.loads(client.recv())["status"] == "failed"
        client.send("x" * 1_000_001)
        assert closed(client) == (1009, "a frame holds at most 1000000 bytes")


@pytest.mark.parametrize("frames", [["x" * 20_000_000], ["x" * 100_000] * 200], ids=["one", "fragments"])
def test_a_frame_far_over_the_limit_is_not_read_to_its_end(shared, frames):
    with shared.client() as client:
        with pytest.raises(ConnectionClosed) as error:
            client.send(iter(frames))
            client.recv(timeout=10)
        assert error.value.rcvd is None or error.value.rcvd.code == 1009
    connected(shared, 0)


def raw_socket(gateway, room=None):
    """A connection past its upgrade, to write bytes to; ``room``: bytes that it takes without being read."""
    raw = socket.socket()
    raw.settimeout(10)
    if room:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    raw.connect(("127.0.0.1", gateway.port))
    raw.sendall(
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    head = b""
    while b"\r\n\r\n" not in head:
        head += raw.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    return raw


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x81\x82\0\0\0\0\xc3\x28", 1007),  # not UTF-8
        (b"\x83\x80\0\0\0\0", 1002),  # an opcode that is not there
        (b"\xf1\x80\0\0\0\0", 1002),  # reserved bits
        (b"\x09\x80\0\0\0\0", 1002),  # a ping in fragments
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", None),  # a length past all limits
    ],
)
def test_broken_frames_end_the_connection_with_the_code_for_it(shared, frame, code):
    with raw_socket(shared) as raw:
        raw.sendall(frame)
        answer = raw.recv(1000)
        assert not answer or answer[0] == 0x88
        if code is not None and answer:
            assert struct.unpack("!H", answer[2:4])[0] == code
    assert shared.request("GET", "/health")[0] == 200


def test_noise_ends_no_more_than_its_own_connection(shared):
    import random

    dice = random.Random(7)
    with shared.client("/ws/bob") as bob:
        connected(shared, 1)
        for _ in range(40):
            with raw_socket(shared) as raw:
                raw.sendall(dice.randbytes(dice.randrange(1, 3000)))
        assert shared.send("/ws/bob")[0] == 200
        assert text_of(bob.recv()) == "hi"
    connected(shared, 0)


def test_a_bug_met_by_a_frame_ends_that_connection_and_says_so(start, monkeypatch):
    def broken(raw):
        raise RuntimeError("a bug, with a secret in it")

    gateway = start()
    monkeypatch.setattr("messaging_adapters.gateway.app.read_frame", broken)
    with gateway.client() as client, gateway.client() as other:
        client.send("{}")
        assert closed(client) == (1011, "the gateway failed; what was sent last may have arrived")
        connected(gateway, 1)
        gateway.broadcast("on")
        assert text_of(other.recv()) == "on"


# --- Slow and dying clients -------------------------------------------------------------------------------------------


def test_a_slow_client_is_dropped_and_told_why_and_others_do_not_wait(start):
    gateway = start(limits=Limits(frames=20))
    with gateway.client("/ws/slow", max_queue=1) as slow, gateway.client("/ws/quick") as quick:
        connected(gateway, 2)
        began, count = time.monotonic(), 0
        while gateway.status()["counts"]["dropped"] == 0 and count < 200:
            gateway.broadcast("x" * 200_000)
            assert len(text_of(quick.recv())) == 200_000
            count += 1
        assert gateway.status()["counts"]["dropped"] == 1 and time.monotonic() - began < 20
        code, reason = closed(slow)
        assert code == 1008 and reason.startswith("too slow: ")
        assert gateway.status()["connections"]["by_path"] == {"/ws/quick": 1}
        assert gateway.status()["queue"]["bytes"] == 0


def test_a_client_that_reads_nothing_at_all_is_cut_off_and_holds_no_memory(start, monkeypatch):
    monkeypatch.setattr("messaging_adapters.gateway.app.GOODBYE", 0.3)
    gateway = start(limits=Limits(frames=20))
    with raw_socket(gateway, room=4096):
        connected(gateway, 1)
        held = open_files()
        for _ in range(200):
            if gateway.broadcast("x" * 200_000)[0] == 404:
                break
        status = gateway.until(lambda status: status["connections"]["total"] == 0)
        assert (status["connections"]["total"], status["counts"]["dropped"]) == (0, 1)
        assert status["queue"] == {"frames": 0, "bytes": 0, "sending": 0}
        assert open_files() == held - 1


def open_files():
    """How many files this process has open once those of passing requests are closed."""
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir("/proc/self/fd")))
        time.sleep(0.02)
    return min(counts)


def test_one_message_waits_for_many_but_is_held_once(start):
    gateway = start()
    with ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(raw_socket(gateway, room=4096))
        connected(gateway, 10)
        waiting = 0
        for _ in range(40):
            gateway.broadcast("x" * 100_000)
            status = gateway.status()
            waiting = max(waiting, status["queue"]["frames"])
            assert status["queue"]["bytes"] <= 41 * 101_000
        assert waiting > 40


def test_a_silent_client_is_asked_and_a_dead_one_is_gone(start, monkeypatch):
    monkeypatch.setattr("messaging_adapters.gateway.app.PING", 0.4)
    gateway = start()
    with gateway.client("/ws/alive") as alive, raw_socket(gateway):
        connected(gateway, 2)
        connected(gateway, 1)
        assert gateway.send("/ws/alive")[0] == 200
        assert text_of(alive.recv()) == "hi"


def test_a_client_that_vanishes_is_forgotten(shared):
    for _ in range(20):
        raw = raw_socket(shared)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
    connected(shared, 0)


# --- Many -------------------------------------------------------------------------------------------------------------


def drained(client, count):
    return [text_of(client.recv(timeout=30)) for _ in range(count)]


@pytest.mark.slow
def test_fifty_clients_get_a_hundred_broadcasts_each_in_order_without_loss(start):
    gateway = start()
    with ExitStack() as stack, ThreadPoolExecutor(50) as pool:
        clients = [stack.enter_context(gateway.client()) for _ in range(50)]
        connected(gateway, 50)
        reading = [pool.submit(drained, client, 100) for client in clients]
        for number in range(100):
            assert gateway.broadcast(str(number))[1]["clients"] == 50
        wanted = [str(number) for number in range(100)]
        assert all(future.result(60) == wanted for future in reading)
        status = gateway.status()
        assert status["counts"]["handed"] == 5000 and status["counts"]["dropped"] == 0
        assert status["queue"] == {"frames": 0, "bytes": 0, "sending": 0}


def test_ten_clients_get_twenty_broadcasts_sent_by_four_at_once(shared):
    with ExitStack() as stack, ThreadPoolExecutor(4) as pool:
        clients = [stack.enter_context(shared.client()) for _ in range(10)]
        connected(shared, 10)
        answers = list(pool.map(lambda number: shared.broadcast(str(number)), range(20)))
        assert all(status == 200 and outcome["clients"] == 10 for status, outcome in answers)
        orders = [drained(client, 20) for client in clients]
        assert sorted(orders[0], key=int) == [str(number) for number in range(20)]
        assert all(order == orders[0] for order in orders)


def test_clients_that_come_and_go_meanwhile_disturb_nobody(shared):
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            with shared.client("/ws/passing"):
                pass

    with shared.client("/ws/stays") as stays, ThreadPoolExecutor(3) as pool:
        passing = [pool.submit(come_and_go) for _ in range(3)]
        for number in range(50):
            assert shared.broadcast(str(number))[0] == 200
        stop.set()
        assert all(future.result(20) is None for future in passing)
        assert drained(stays, 50) == [str(number) for number in range(50)]
