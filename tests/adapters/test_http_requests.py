"""HTTP over real sockets: what leaves, what comes back, and what is said when nothing does."""

import contextlib
import gzip
import json
import logging
import os
import socket
import threading
import time
import traceback
from base64 import b64decode
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from returns.pipeline import is_successful
from returns.result import Success

from messaging_adapters.files import look
from messaging_adapters.http_requests import HttpEdge
from messaging_adapters.http_transport import PlainConnection, TlsConnection, Transport
from messaging_adapters.logs import keep_clean
from messaging_core.config.settings import Http
from messaging_core.errors import Invalid, MediaUnreadable, Unanswered, Unreachable
from messaging_core.flow import Done, Exchange, Scope
from messaging_core.secrecy import Secret, Secrets, joined
from messaging_core.wire.http import FileRef, FormPart, HttpReply, HttpRequest, Multipart, wait_of
from tests.adapters.loopback import Item, Loopback, Request, close, hang, huge, nowhere, raw, redirect, reply, reset

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
QUICK = Http(connect_timeout=0.3, read_timeout=0.3)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NETRC", "/nonexistent")


def edge(http: Http = QUICK, secrets: dict[str, str] | None = None, **options: Any) -> HttpEdge:
    return HttpEdge(http, Secrets(secrets or {}), **options)


def posted(url: Any, body: Any = b"x", **more: Any) -> Exchange:
    return Exchange(HttpRequest("POST", url, body=body, **more), lambda reply: Success(Done()), Scope("test"))


def failure(outcome: Any) -> Any:
    assert not is_successful(outcome), outcome
    return outcome.failure()


# --- What is shown ----------------------------------------------------------------------------------------------------


class Bug(Exception):
    """Ours, so that nobody takes it for the world's doing."""


def test_the_variables_of_our_frames_show_no_secret_when_a_bug_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that report bugs show them."""

    def fail(*_: Any, **__: Any) -> None:
        raise Bug

    monkeypatch.setattr(Transport, "send", fail)
    request = HttpRequest(
        "POST",
        joined("http://127.0.0.1:1/bot", Secret("token"), "/send"),
        headers=(("Authorization", joined("Bearer ", Secret("token"))),),
        body=("auth=", Secret("token")),
    )
    with pytest.raises(Bug) as raised:
        edge(secrets={"token": TOKEN})(Exchange(request, lambda reply: Success(Done()), Scope("test")))
    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    ours = [frame for frame in told.stack if "messaging_" in frame.filename]
    assert ours and all(TOKEN not in str(frame.locals) for frame in ours)


# --- What leaves ------------------------------------------------------------------------------------------------------


def test_a_request_leaves_byte_for_byte_as_described() -> None:
    with Loopback() as server:
        headers = (("X-Z", "1"), ("content-type", "application/json"), ("X-a", "2"))
        edge()(posted(server.url + "/a/%2e%2e/./%7Eb%2F?q=%41&q#fragment", b'{"a":1}', headers=headers))
    head = server.requests[0].head.decode().split("\r\n")
    assert head[:2] == ["POST /a/%2e%2e/./%7Eb%2F?q=%41&q HTTP/1.1", f"Host: 127.0.0.1:{server.port}"]
    assert head[3:6] == ["X-Z: 1", "content-type: application/json", "X-a: 2"]
    assert (
        server.requests[0]
        .header(
            "User-Agent",
        )
        .startswith("agent-messaging/")
    )
    assert server.requests[0].body == b'{"a":1}'
    assert server.requests[0].header("Accept-Encoding") == "identity"


@pytest.mark.parametrize(
    ("date", "least", "most"), [("", 8.0, 10.0), ("Date: Wed, 21 Oct 2015 07:28:00 GMT", 20.0, 20.0)]
)
def test_a_date_to_wait_for_is_measured_by_the_server_s_clock_or_else_by_ours(
    date: str, least: float, most: float
) -> None:
    until = "Wed, 21 Oct 2015 07:28:20 GMT" if date else formatdate(time.time() + 10, usegmt=True)
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {until}\r\nContent-Length: 0\r\n" + (date + "\r\n" if date else "")
    with Loopback(raw(head.encode() + b"\r\n")) as server:
        answer = edge()(posted(server.url)).unwrap()
    waits = wait_of(answer)
    assert waits is not None and least <= waits <= most


def test_what_no_request_line_can_carry_is_encoded_and_nothing_else() -> None:
    with Loopback() as server:
        edge()(posted(server.url + "/ä b?c=\r\nX: 1"))
    assert server.requests[0].target == "/%C3%A4%20b?c=%0D%0AX:%201"


def test_a_channel_may_name_its_own_agent_and_secrets_are_put_in_at_the_last_moment() -> None:
    request = posted(
        "", headers=(("User-Agent", "DiscordBot (x, 1)"), ("Authorization", joined("Bot ", Secret("d.token"))))
    )
    with Loopback() as server:
        there = replace(
            request, request=replace(request.request, url=joined(server.url + "/bot", Secret("d.token"), "/x"))
        )
        edge(secrets={"d.token": TOKEN})(there)
    sent = server.requests[0]
    assert (sent.target, sent.header("User-Agent")) == (f"/bot{TOKEN}/x", "DiscordBot (x, 1)")
    assert sent.header("Authorization") == f"Bot {TOKEN}"


def test_an_empty_post_says_that_it_is_empty_and_a_get_says_nothing() -> None:
    with Loopback() as server:
        post = posted(server.url, b"")
        both = edge()
        both(post)
        both(replace(post, request=replace(post.request, method="GET")))
    assert [sent.header("Content-Length") for sent in server.requests] == ["0", None]


def test_values_of_a_repeated_header_are_kept_and_framing_is_ours() -> None:
    with Loopback() as server:
        edge()(
            posted(
                server.url,
                headers=(("X-A", "1"), ("x-a", "ü"), ("Content-Length", "7"), ("Transfer-Encoding", "chunked")),
            )
        )
    sent = server.requests[0]
    assert (sent.header("X-A"), sent.header("Content-Length"), sent.body) == ("1, ü", "1", b"x")


def test_a_header_that_would_begin_another_is_refused_and_not_quoted() -> None:
    with Loopback() as server:
        outcome = edge()(posted(server.url, headers=(("X-A", "secret\r\nX-B: 1"),)))
    assert isinstance(failure(outcome), Invalid)
    assert "secret" not in str(failure(outcome))
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http:///x", "http://host:99999/", "http://ho st/", "nonsense", "http://[::/"]
)
def test_what_is_no_http_url_is_an_error_value(url: str) -> None:
    assert isinstance(failure(edge()(posted(url))), Invalid)


def test_a_login_in_the_url_becomes_a_header() -> None:
    with Loopback() as server:
        edge()(posted(server.url.replace("//", "//us%20er:p%40ss@") + "/x"))
    sent = server.requests[0]
    assert sent.header("Authorization") == "Basic dXMgZXI6cEBzcw=="
    assert (sent.target, sent.header("Host")) == ("/x", f"127.0.0.1:{server.port}")


def test_one_short_request_is_one_packet() -> None:
    """Head and body in two writes cost a second system call, and over TLS a second record."""
    writes: list[bytes] = []
    with Loopback() as server:
        sender = edge()
        sender(posted(server.url))
        send = socket.socket.send

        def counted(self: Any, data: Any, *rest: Any) -> int:
            writes.append(bytes(data))
            return send(self, data, *rest)

        socket.socket.send = counted  # type: ignore[method-assign,assignment]
        try:
            sender(posted(server.url, b"hello"))
        finally:
            socket.socket.send = send  # type: ignore[method-assign]
    assert len(writes) == 1
    assert writes[0].endswith(b"\r\n\r\nhello")


# --- Connections ------------------------------------------------------------------------------------------------------


def test_a_thousand_sends_use_one_connection() -> None:
    with Loopback() as server:
        sender = edge()
        assert all(is_successful(sender(posted(server.url))) for _ in range(1000))
        assert server.connections == 1


def test_threads_share_the_pool_and_never_wait_for_each_other() -> None:
    with Loopback(respond=lambda request: reply(json={"you": request.body.decode()}).later(0.05)) as server:
        sender = edge(Http(), pool_size=4)
        got: list[tuple[str, str]] = []

        def one(name: str) -> None:
            for _ in range(3):
                got.append((name, json.loads(sender(posted(server.url, name.encode())).unwrap().body)["you"]))

        threads = [threading.Thread(target=one, args=(str(n),)) for n in range(12)]
        began = time.monotonic()
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len(got) == 36
    assert all(asked == answered for asked, answered in got)
    assert time.monotonic() - began < 1.0


def test_a_connection_that_the_server_closed_is_replaced_without_a_word() -> None:
    with Loopback() as server:
        sender = edge()
        for _ in range(3):
            assert is_successful(sender(posted(server.url)))
            server.drop()
        assert (len(server.requests), server.connections) == (3, 3)


def test_a_kept_connection_that_dies_with_the_request_on_it_is_not_tried_again() -> None:
    """The server read the request and closed: it may have acted on it."""
    with Loopback(reply(), close()) as server:
        sender = edge()
        sender(posted(server.url))
        assert failure(sender(posted(server.url))) == Unanswered("the connection was closed before an answer came")
        assert len(server.requests) == 2


@pytest.mark.parametrize("tls", [False, True])
def test_a_write_that_fails_at_once_on_a_kept_connection_is_made_on_another(
    tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reset came between the look at the connection and the write: nothing left, so nothing can be there twice."""
    for kind in (PlainConnection, TlsConnection):
        monkeypatch.setattr(kind, "is_connected", True)
    with Loopback(reply(body=b"ok").breaking_off(2), tls=tls) as server:
        sender = edge(replace(QUICK, ca_file=server.ca_file))
        assert is_successful(sender(posted(server.url, b"first")))
        time.sleep(0.15)
        assert is_successful(sender(posted(server.url, b"second")))
        assert [sent.body for sent in server.requests] == [b"first", b"second"]
        assert server.connections == 2


def test_a_server_that_answers_before_it_is_asked_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in distress says 503 to every connection and resets it: the write fails, but the answer is there."""
    connect = PlainConnection.connect

    def slowly(self: PlainConnection) -> None:
        connect(self)
        time.sleep(0.1)

    monkeypatch.setattr(PlainConnection, "connect", slowly)
    with Loopback(replace(reply(503), read="nothing", then="reset")) as server:
        assert edge()(posted(server.url, b"x" * 1_000_000)).unwrap().status == 503


def test_redirects_are_answers() -> None:
    with Loopback() as other, Loopback(redirect(other.url)) as server:
        answer = edge()(posted(server.url, headers=(("X-Secret", "1"),))).unwrap()
    assert (answer.status, answer.header("location"), other.requests) == (307, other.url, [])


def test_cookies_are_not_kept() -> None:
    with Loopback(reply(headers={"Set-Cookie": "a=b"})) as server:
        sender = edge()
        sender(posted(server.url))
        sender(posted(server.url))
    assert server.requests[1].header("Cookie") is None


def test_a_forked_process_makes_its_own_connections() -> None:
    with Loopback() as server:
        sender = edge()
        sender(posted(server.url))
        child = os.fork()
        if child == 0:
            os._exit(0 if is_successful(sender(posted(server.url, b"child"))) else 1)
        assert os.waitpid(child, 0)[1] == 0
        sender(posted(server.url, b"parent"))
        assert server.connections == 2
        assert sorted(sent.body for sent in server.requests) == [b"child", b"parent", b"x"]


# --- Answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_comes_back_whole() -> None:
    with Loopback(reply(418, json={"a": 1}, headers={"X-B": "1", "x-b": "2"}, reason="I'm a teapot")) as server:
        answer = edge()(posted(server.url)).unwrap()
    assert (answer.status, answer.reason, answer.body) == (418, "I'm a teapot", b'{"a": 1}')
    assert [value for name, value in answer.headers if name.lower() == "x-b"] == ["1", "2"]
    assert (answer.header("content-type"), answer.header("content-length")) == ("application/json", "8")


@pytest.mark.parametrize(
    ("item", "body"),
    [
        (reply(204), b""),
        (reply(body=b""), b""),
        (raw(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"), b"until the end"),
        (raw(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"ok"),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"), b"ok"),
        (raw(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"ok"),
        (raw(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), b"ok"),
        (reply(body=b"short").claiming(50), b"short"),
        (reply(body=b"longer than that").claiming(6), b"longer"),
        (reply(body=b"broken off").breaking_off(6), b"broken"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nand hangs", then="hang"), b"and hangs"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nand hangs", then="hang"), b"and hangs"),
        (reply(body=gzip.compress(b"packed"), headers={"Content-Encoding": "gzip"}), b"packed"),
        (reply(body=b"not packed", headers={"Content-Encoding": "gzip"}), b"not packed"),
    ],
)
def test_a_status_that_was_said_is_a_reply_whatever_becomes_of_the_body(item: Item, body: bytes) -> None:
    with Loopback(item) as server:
        answer = edge()(posted(server.url)).unwrap()
    assert (answer.status in (200, 204), answer.body) == (True, body)


def test_a_body_without_end_is_cut_and_its_connection_dropped() -> None:
    with Loopback(huge(10**9)) as server:
        sender = edge(replace(QUICK, read_timeout=5), reply_cap=100_000)
        assert sender(posted(server.url)).unwrap() == HttpReply(
            200, "OK", (("Content-Length", "1000000000"),), b"x" * 100_000
        )
        assert is_successful(sender(posted(server.url)))
        assert server.connections == 2


def test_what_unpacks_to_a_gigabyte_is_cut() -> None:
    with Loopback(reply(body=gzip.compress(b"\0" * 50_000_000), headers={"Content-Encoding": "gzip"})) as server:
        assert len(edge(reply_cap=100_000)(posted(server.url)).unwrap().body) == 100_000


def test_an_answer_that_drips_ends_with_the_time_for_an_answer() -> None:
    """The status and the headers come a byte at a time, each well within the time-out of a single read."""
    with Loopback(reply(body=b"x" * 100).drip(0.05)) as server:
        began = time.monotonic()
        outcome = edge()(posted(server.url))
        assert time.monotonic() - began < 0.6
    assert failure(outcome) == Unanswered("no answer after 0.3 s")


def test_a_body_that_drips_is_what_came_of_it_in_time() -> None:
    with Loopback(Item(reply().head.replace(b": 0", b": 99"), b"x" * 99, every=0.12, size=39)) as server:
        answer = edge()(posted(server.url)).unwrap()
    assert answer.status == 200
    assert 0 < len(answer.body) < 99


def test_an_answer_before_the_body_was_read_is_the_answer() -> None:
    with Loopback(reply(413, body=b"too much").unread("head")) as server:
        answer = edge()(posted(server.url, b"x" * 50_000_000))
    assert answer.unwrap().status == 413


# --- No answer --------------------------------------------------------------------------------------------------------


def test_nobody_there() -> None:
    assert failure(edge()(posted(nowhere()))) == Unreachable("could not connect")


def test_no_such_name() -> None:
    assert failure(edge()(posted("http://no-such-host.invalid/x"))) == Unreachable("could not connect: name not found")


def test_no_connection_in_time() -> None:
    """A listener whose queue is full lets no one in."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        outcome = edge()(posted(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
        for one in waiting:
            one.close()
    assert failure(outcome) == Unreachable("could not connect: no connection after 0.3 s")


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (hang(), "no answer after 0.3 s"),
        (hang("nothing"), "no answer after 0.3 s"),
        (reply().later(1), "no answer after 0.3 s"),
        (close(), "the connection was closed before an answer came"),
        (reset(), "the connection was closed before an answer came"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Le", then="hang"), "no answer after 0.3 s"),
        (raw(b"HTTP/1.1 2"), "the answer is not HTTP"),
        (raw(b"220 mail.example ESMTP\r\n"), "the answer is not HTTP"),
        (raw(b"\0" * 100_000), "the answer is not HTTP"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200), "the answer is not HTTP"),
    ],
)
def test_no_answer_after_the_request_left_may_have_arrived(item: Item, why: str) -> None:
    with Loopback(item) as server:
        assert failure(edge()(posted(server.url))) == Unanswered(why)


def test_a_server_that_takes_nothing_more() -> None:
    with Loopback(hang("head")) as server:
        outcome = edge()(posted(server.url, b"x" * 50_000_000))
    assert failure(outcome) == Unanswered("the server took nothing more for 0.3 s while the request was sent")


@pytest.mark.slow
def test_a_slow_line_is_not_taken_for_a_dead_one() -> None:
    """The time-out for sending is for each block that is taken, not for the whole."""
    with Loopback(reply().reading_slowly(0.02)) as server:
        assert is_successful(edge(replace(QUICK, read_timeout=1.5))(posted(server.url, b"x" * 40_000_000)))


# --- TLS --------------------------------------------------------------------------------------------------------------


def test_tls_with_the_file_of_the_settings_and_one_connection() -> None:
    with Loopback(tls=True) as server:
        sender = edge(replace(QUICK, ca_file=server.ca_file))
        assert all(is_successful(sender(posted(server.url))) for _ in range(20))
        assert server.connections == 1


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_tls_with_the_file_of_the_environment(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(tls=True) as server:
        monkeypatch.setenv(variable, server.ca_file or "")
        assert is_successful(edge()(posted(server.url)))


def test_certificates_are_read_once_for_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    read: list[Any] = []
    real = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext,
        "load_verify_locations",
        lambda self, *a, **k: read.append(1) or real(self, *a, **k),  # type: ignore[func-returns-value]
    )
    with Loopback(tls=True) as server:
        sender = edge(replace(QUICK, ca_file=server.ca_file))
        for host in ("localhost", "127.0.0.1", "localhost"):
            assert is_successful(sender(posted(server.url.replace("127.0.0.1", host))))
            server.drop()
        assert (server.connections, len(read)) == (3, 1)


def test_an_unknown_certificate_is_not_accepted_and_the_host_not_told() -> None:
    with Loopback(tls=True) as server:
        why = failure(edge()(posted(server.url)))
        assert why == Unreachable(
            "could not connect: TLS certificate not accepted: unable to get local issuer certificate"
        )
        assert server.requests == []


def test_a_certificate_of_another_host_is_not_accepted() -> None:
    with Loopback(tls=True, names=("other.example",)) as server:
        sender = edge(replace(QUICK, ca_file=server.ca_file))
        by_address, by_name = (
            failure(sender(posted(server.url))),
            failure(sender(posted(server.url.replace("127.0.0.1", "localhost")))),
        )
    assert by_address == Unreachable("could not connect: TLS certificate not accepted: it is for another IP address")
    assert by_name == Unreachable("could not connect: TLS certificate not accepted: it is for another host name")


def test_a_server_without_tls() -> None:
    with Loopback() as server:
        why = failure(edge()(posted(server.url.replace("http:", "https:"))))
    assert isinstance(why, Unreachable)


def test_a_file_of_certificates_that_is_none(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.pem", tmp_path):
        why = failure(edge(replace(QUICK, ca_file=str(file)))(posted("https://127.0.0.1:1/")))
        assert isinstance(why, Unreachable)


# --- Proxies, netrc ---------------------------------------------------------------------------------------------------


def test_the_environments_proxy_is_used_with_the_exact_target(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:pw@"))
        edge()(posted("http://us:er@far.example:81/a/%2e%2e/b?c#d", headers=(("X-A", "1"),)))
    sent = proxy.requests[0]
    assert (sent.target, sent.header("Host")) == ("http://far.example:81/a/%2e%2e/b?c", "far.example:81")
    assert (sent.header("Proxy-Authorization"), sent.header("X-A")) == ("Basic bWU6cHc=", "1")


def test_hosts_that_need_no_proxy_are_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy, Loopback() as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.0/8,localhost")
        edge()(posted(server.url))
    assert (len(proxy.requests), len(server.requests)) == (0, 1)


def test_the_proxy_of_the_settings_goes_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy, Loopback() as other:
        monkeypatch.setenv("http_proxy", other.url)
        edge(replace(QUICK, proxy=Secret("http.proxy")), {"http.proxy": proxy.url})(posted("http://far.example/"))
    assert (len(proxy.requests), len(other.requests)) == (1, 0)


def test_a_proxy_that_lets_nothing_through_is_told_from_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback(reply(407)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        why = failure(edge()(posted("https://far.example/secret")))
    assert why == Unreachable("could not connect: the proxy did not let the connection through")
    assert proxy.requests[0].target == "far.example:443"


@pytest.mark.parametrize("proxy", ["gopher://127.0.0.1:1", "http://", "http://[::", "socks5://127.0.0.1:1"])
def test_a_proxy_that_is_none(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    assert isinstance(failure(edge()(posted("http://far.example/"))), Unreachable)


def test_a_proxy_may_be_written_without_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as proxy:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        assert is_successful(edge()(posted("http://far.example/a")))
    assert proxy.requests[0].target == "http://far.example/a"


class SocksProxy:
    """RFC 1928, as far as one connection without a login needs it: everything goes to ``port``."""

    def __init__(self, port: int) -> None:
        self.asked: list[bytes] = []
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            client.recv(100)
            client.sendall(b"\5\0")
            self.asked.append(client.recv(100))
            client.sendall(b"\5\0\0\1\0\0\0\0\0\0")
            pumps = [threading.Thread(target=self._pump, args=pair) for pair in ((client, server), (server, client))]
            [pump.start() for pump in pumps]
            [pump.join() for pump in pumps]
        self._listener.close()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("tls", [False, True])
def test_a_socks_proxy_carries_the_exact_target(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("socks")
    with Loopback(tls=tls) as server:
        proxy = SocksProxy(server.port)
        monkeypatch.setenv("all_proxy", f"socks5h://127.0.0.1:{proxy.port}")
        sender = edge(replace(QUICK, ca_file=server.ca_file))
        assert is_successful(sender(posted(f"http{'s' * tls}://localhost:{server.port}/bot{TOKEN}/%2e?a")))
        sender.close()
    assert server.requests[0].target == f"/bot{TOKEN}/%2e?a"
    assert b"localhost" in proxy.asked[0]


def test_netrc_gives_the_login_of_a_named_host_and_of_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine localhost login me password pw\ndefault login any password any\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Loopback() as server:
        sender = edge()
        sender(posted(server.url.replace("127.0.0.1", "localhost")))
        sender(posted(server.url.replace("127.0.0.1", "localhost"), headers=(("authorization", "Bearer x"),)))
        sender(posted(server.url))
    logins = [[value for name, value in sent.headers if name.lower() == "authorization"] for sent in server.requests]
    assert logins == [["Basic bWU6cHc="], ["Bearer x"], []]


def quoting(request: Request) -> Item:
    """Answers with every header that came, in a body that is not quite text, and in a header."""
    said = "; ".join(f"{name}: {value}" for name, value in request.headers)
    return reply(400, body=said.encode() + b"\xff", headers={"X-You-Said": said})


def test_logins_of_the_environment_are_kept_out_of_a_reply_that_quotes_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine far.example login me password FAKE-netrc\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Loopback(respond=quoting) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//me:FAKE%2Fproxy@"))
        answer = edge()(posted("http://far.example/")).unwrap()
    sent = dict(proxy.requests[0].headers)
    logins = [sent[name].removeprefix("Basic ") for name in ("Authorization", "Proxy-Authorization")]
    assert [b64decode(login) for login in logins] == [b"me:FAKE-netrc", b"me:FAKE/proxy"]
    assert not any(login in repr(answer) for login in logins)
    assert b"Basic ***" in answer.body
    assert answer.body.endswith(b"\xff")


# --- Secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        reply(),
        reset(),
        hang(),
        raw(b"garbage"),
        raw(f"HTTP/1.1 200 OK\r\n{TOKEN}\r\nX: {TOKEN}\r\nContent-Length: 0\r\n\r\n".encode()),
        raw(f"HTTP/1.1 200 OK\r\n{TOKEN} : {TOKEN}\r\n{TOKEN}\r\n\r\n".encode()),
    ],
)
def test_no_log_record_of_any_library_and_no_error_holds_a_secret(item: Item, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = joined("", Secret("t.base"), "/bot", Secret("t.token"), "/sendMessage")
    with Loopback(item) as server:
        secrets = Secrets({"t.token": TOKEN, "t.base": server.url})
        keep_clean(secrets)
        outcome = HttpEdge(QUICK, secrets)(
            posted(url, headers=(("X-Key", Secret("t.token") and joined("", Secret("t.token"))),))
        )
    for record in caplog.records:
        assert TOKEN not in record.getMessage() + repr(record.args) + str(record.exc_text) + repr(record.exc_info)
        assert "sendMessage" not in record.getMessage()
    if not is_successful(outcome):
        assert TOKEN not in repr(outcome.failure())


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_form_with_a_file_is_streamed_with_its_length_known(tmp_path: Path) -> None:
    file = tmp_path / "bild ü.bin"
    file.write_bytes(os.urandom(300_001))
    facts = look(str(file), (str(tmp_path),))
    form = Multipart(
        (FormPart("chat_id", b"-100"), FormPart("photo", FileRef(facts), 'ü"\r\nX\\: 1.bin', "application/x")), "=_b1"
    )
    with Loopback() as server:
        assert is_successful(edge()(posted(server.url, form)))
    sent = server.requests[0]
    assert sent.header("Content-Length") == str(len(sent.body))
    assert sent.part("chat_id").content == b"-100"
    assert sent.part("photo").content == file.read_bytes()
    assert sent.part("photo").header_lines == [
        'Content-Disposition: form-data; name="photo"; filename="ü%22%0D%0AX%5C: 1.bin"',
        "Content-Type: application/x",
    ]


def test_a_file_alone_is_the_body(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 50_000)
    with Loopback() as server:
        edge()(posted(server.url, FileRef(look(str(tmp_path / "a"), (str(tmp_path),)))))
    assert server.requests[0].body == b"abc" * 50_000


def _rewrite(file: Path) -> None:
    file.write_bytes(b"other")


def _same_size_and_time(file: Path) -> None:
    before = file.stat()
    file.write_bytes(b"SECRE")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap_for_link(file: Path) -> None:
    (file.parent / "secret").write_bytes(b"12345")
    file.unlink()
    file.symlink_to(file.parent / "secret")


def _swap_folder(file: Path) -> None:
    other = file.parent.parent / "other"
    other.mkdir()
    (other / file.name).write_bytes(b"12345")
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(other)


def _swap_for_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "change", [Path.unlink, _rewrite, _same_size_and_time, _swap_for_link, _swap_folder, _swap_for_pipe]
)
def test_a_file_that_changed_after_the_look_is_not_sent(change: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"12345")
    facts = look(str(folder / "a.txt"), (str(tmp_path),))
    time.sleep(0.02)
    change(folder / "a.txt")
    with Loopback() as server:
        why = failure(edge()(posted(server.url, Multipart((FormPart("f", FileRef(facts), "a.txt"),), "b"))))
    assert isinstance(why, MediaUnreadable)
    assert str(tmp_path) not in str(why)
    assert server.connections == 0


@pytest.mark.parametrize("fact", ["device", "inode", "size", "mtime_ns", "ctime_ns"])
def test_every_fact_counts(fact: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    facts = look(str(tmp_path / "a"), (str(tmp_path),))
    other = replace(facts, **{fact: getattr(facts, fact) + 1})  # type: ignore[arg-type]
    assert isinstance(failure(edge()(posted(nowhere(), FileRef(other)))), MediaUnreadable)
    assert isinstance(failure(edge()(posted(nowhere(), FileRef(facts)))), Unreachable)


@pytest.mark.parametrize("grow", [True, False])
def test_a_file_that_changes_while_it_is_sent_never_arrives_whole(grow: bool, tmp_path: Path) -> None:
    file = tmp_path / "log.bin"
    file.write_bytes(b"x" * 30_000_000)
    facts = look(str(file), (str(tmp_path),))
    before_body = threading.Event()

    def change() -> None:
        before_body.wait(5)
        with file.open("r+b") as opened:
            opened.truncate(40_000_000 if grow else 10_000_000)

    class Slow(HttpEdge):
        def _perform(self, *args: Any) -> Any:
            before_body.set()
            changer.join()
            return super()._perform(*args)

    changer = threading.Thread(target=change)
    changer.start()
    with Loopback() as server:
        why = failure(Slow(QUICK, Secrets())(posted(server.url, FileRef(facts))))
        time.sleep(0.05)
    assert isinstance(why, MediaUnreadable)
    assert "while it was being sent" in str(why)
    assert not any(sent.complete for sent in server.requests)


def test_an_approved_file_is_compared_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    facts = look(str(tmp_path / "a"), (str(tmp_path),), digest=True)
    with Loopback() as server:
        assert is_successful(edge()(posted(server.url, FileRef(facts))))
        why = failure(edge()(posted(server.url, FileRef(replace(facts, sha256="0" * 64)))))
    assert isinstance(why, MediaUnreadable)


@pytest.mark.slow
def test_a_file_of_200_megabytes_takes_no_memory() -> None:
    import subprocess
    import sys

    script = Path(__file__).parents[2] / "benchmarks" / "big_file.py"
    found = json.loads(
        subprocess.run([sys.executable, str(script), "--json"], capture_output=True, check=True, text=True).stdout
    )
    assert found["peak_mb_over_idle"] < 20
