"""The gateway as a process: how it starts, how it ends, and what a killed one leaves behind."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest
from gateways import ENVIRONMENT, text_of
from gateways import Gateway as ReachedGateway
from websockets.exceptions import ConnectionClosed, InvalidStatus

from messaging_adapters.gateway import run
from messaging_core.config.settings import Gateway, Settings
from messaging_core.secrecy import Secrets


def test_where_others_can_reach_it_it_does_not_start_without_a_token():
    said = []
    assert run(Settings(gateway=Gateway("0.0.0.0")), Secrets(), say=said.append) == 2
    assert said == [
        "messaging: the gateway does not start: 0.0.0.0 can be reached from other machines: "
        "set 'gateway.token', or listen on 127.0.0.1"
    ]


def test_the_hosts_of_the_command_line_are_judged_alike():
    assert run(Settings(), Secrets(), host="192.168.1.5", say=lambda line: None) == 2


def test_a_port_that_is_taken_is_told():
    said = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(Settings(), Secrets(), port=port, say=said.append) == 1
    assert said == [f"messaging: the gateway cannot listen on 127.0.0.1, port {port}: Address already in use"]


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_what_is_no_port_is_told(port):
    said = []
    assert run(Settings(), Secrets(), port=port, say=said.append) == 2
    assert said == [f"messaging: the gateway does not start: {port} is no port; expected 0 (any that is free) to 65535"]


def test_what_is_no_origin_is_told_before_pages_are_kept_out_by_it():
    said = []
    assert run(Settings(), Secrets(), port=0, origins=("localhost:5173",), say=said.append) == 2
    assert "'localhost:5173' is no origin" in said[0]


def test_pages_of_the_origins_on_the_command_line_connect(tmp_path):
    origins = ("http://localhost:5173", "https://page.example")
    options = [word for origin in origins for word in ("--origin", origin)]
    (tmp_path / "gateway.yaml").write_text("channels: {}\n")
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "messaging_adapters.cli",
            "gateway",
            "--config",
            "gateway.yaml",
            "--port",
            "0",
            *options,
        ],
        cwd=tmp_path,
        env=ENVIRONMENT | {"XDG_STATE_HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as popen:
        try:
            gateway = ReachedGateway(int(popen.stderr.readline().split(",")[0].rpartition(":")[2]))
            for origin in origins:
                with gateway.client(origin=origin):
                    pass
            with pytest.raises(InvalidStatus):
                gateway.client(origin="http://localhost:5174").__enter__()
        finally:
            popen.terminate()


def test_without_the_extra_it_says_what_to_install():
    program = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "from messaging_adapters.gateway import run\n"
        "from messaging_core.config.settings import Settings\n"
        "from messaging_core.secrecy import Secrets\n"
        "sys.exit(run(Settings(), Secrets(), port=0))"
    )
    ended = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "messaging: the gateway needs aiohttp: pip install 'agent-messaging[gateway]'\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_when_asked(process, number):
    one = process("127.0.0.1", 0, "s3cret")
    gateway = one.ready()
    assert gateway.request("GET", "/health")[0] == 200
    one.signal(number)
    status, said = one.ended()
    assert status == 0
    assert said == f"messaging: gateway on http://127.0.0.1:{gateway.port}, with a token\n"


def test_at_the_end_nothing_that_was_accepted_is_lost(process, tmp_path):
    one = process("127.0.0.1", 0, "", 0.5, tmp_path / "sent")
    gateway = one.ready()
    with ExitStack() as stack:
        clients = [stack.enter_context(gateway.client(max_queue=1)) for _ in range(5)]
        gateway.until(lambda status: status["connections"]["total"] == 5)
        answers = []
        channel = threading.Thread(target=lambda: answers.append(gateway.send("ops", "for the channel")))
        channel.start()
        gateway.until(lambda status: status["queue"]["sending"] == 1)
        count = 0
        while gateway.status()["queue"]["frames"] == 0:  # what the kernel holds is not the gateway's to lose
            assert gateway.broadcast(f"{count} " + "x" * 100_000)[1]["clients"] == 5
            count += 1
        one.signal()
        for client in clients:
            got = []
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    got.append(text_of(client.recv(timeout=20)).split()[0])
            assert got == [str(number) for number in range(count)]
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1001, "the gateway is shutting down")
        channel.join(20)
    assert answers[0][0] == 200 and (tmp_path / "sent").read_text() == "for the channel"
    assert one.ended()[0] == 0


def test_while_it_ends_nothing_more_is_accepted(process):
    one = process("127.0.0.1", 0, "", 1.0)
    gateway = one.ready()
    with gateway.client(subprotocols=["messaging.send"]) as client:
        channel = threading.Thread(target=gateway.send, args=("ops",))
        channel.start()
        gateway.until(lambda status: status["queue"]["sending"] == 1)
        one.signal()
        time.sleep(0.3)
        client.send('{"content":"x","target":"*","id":"late"}')
        assert json.loads(client.recv(timeout=5))["code"] == "shutting_down"
        with pytest.raises(OSError):
            gateway.request("GET", "/health")
    channel.join(20)
    assert one.ended()[0] == 0


def test_a_request_that_never_comes_whole_does_not_hold_up_the_end(process):
    one = process("127.0.0.1", 0)
    gateway = one.ready()
    head = (
        b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with ExitStack() as stack:
        for half in (head, b"GET / HT", b""):
            stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port))).sendall(half)
        assert gateway.request("GET", "/health")[0] == 200
        one.signal()
        assert one.ended(10) == (0, one.lines[0])


@pytest.mark.slow
def test_a_client_that_takes_nothing_does_not_hold_up_the_end_for_ever(process):
    one = process("127.0.0.1", 0)
    gateway = one.ready()
    with gateway.client("/ws/stuck", max_queue=1):
        gateway.until(lambda status: status["connections"]["total"] == 1)
        for _ in range(30):
            gateway.broadcast("x" * 900_000)
        one.signal()
        assert one.ended(40)[0] == 0


CLIENT = """
import sys
from websockets.sync.client import connect
with connect(sys.argv[1]) as client:
    print(client.recv(), flush=True)
    for frame in client:
        pass
"""


def test_a_client_killed_with_9_is_gone_at_once_and_nobody_else_notices(shared):
    url = f"ws://127.0.0.1:{shared.port}/ws/victim"
    with shared.client("/ws/other") as other:
        victim = subprocess.Popen([sys.executable, "-c", CLIENT, url], stdout=subprocess.PIPE, text=True)
        with victim:
            shared.until(lambda status: status["connections"]["total"] == 2)
            assert shared.broadcast("one")[1]["clients"] == 2
            assert "one" in victim.stdout.readline()
            victim.kill()
        status = shared.until(lambda status: status["connections"]["total"] == 1, 5)
        assert status["connections"]["by_path"] == {"/ws/other": 1}
        assert shared.send("/ws/victim")[0] == 404
        assert shared.broadcast("two")[1]["clients"] == 1
        assert [text_of(other.recv()) for _ in range(2)] == ["one", "two"]


def test_a_gateway_killed_with_9_is_seen_by_its_clients_and_started_again_serves_them(process):
    first = process("127.0.0.1", 0)
    gateway = first.ready()
    with gateway.client() as client:
        first.popen.kill()
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(timeout=10)
        assert closed.value.rcvd is None
    first.popen.wait(10)
    again = process("127.0.0.1", gateway.port).ready()
    with again.client() as client:
        again.until(lambda status: status["connections"]["total"] == 1)
        assert again.send("/ws", "back")[0] == 200
        assert text_of(client.recv()) == "back"


def test_the_token_is_in_nothing_that_the_process_says(process):
    one = process("127.0.0.1", 0, "s3cret-t0ken")
    gateway = one.ready()
    gateway.request("GET", "/api/status", headers={"Authorization": "Bearer s3cret-t0ken"})
    gateway.request("GET", "/api/status?x=s3cret-t0ken", headers={"Authorization": "Bearer s3cret-t0ken\x01"})
    with pytest.raises(Exception, match="422"):
        gateway.client(subprotocols=["bearer.czNjcmV0LXQwa2Vu"]).__enter__()
    one.signal()
    status, said = one.ended()
    assert status == 0 and "s3cret" not in said and "czNjcmV0" not in said
