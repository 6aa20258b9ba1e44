"""Whom a message is for, and which addresses a call may name."""

import pytest
from returns.pipeline import is_successful

from messaging_core.gateway.targets import (
    Address,
    bracketed,
    is_loopback,
    permitted_by,
    read_address,
    read_target,
    same_host,
    to_connect,
)


@pytest.mark.parametrize(
    "text",
    ["", " ", "/", "/ws/", "/ws/a/b", "/ws/../x", "/ws/.a", "/ws/a b", "/WS", "/ws/" + "a" * 65, "**", "/api/send"]
    + ["/ws/ä", "/ws\n", "a b", "ops\n", "a" * 129, "http://x"],
)
def test_what_is_no_target_is_refused(text):
    assert not is_successful(read_target(text))


@pytest.mark.parametrize("text", ["/ws", "/ws/a", "/ws/" + "a" * 64, "*", "ops", "discord-general", "日報"])
def test_targets(text):
    assert is_successful(read_target(text))


def test_localhost_has_three_names():
    assert same_host("localhost", "127.0.0.1") and same_host("::1", "LOCALHOST") and same_host("[::1]", "127.0.0.1")
    assert not same_host("127.0.0.2", "127.0.0.1") and not same_host("localhost.evil.example", "localhost")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.example.com", "127.0.0.1.nip.io"]
)
def test_not_loopback(host):
    assert not is_loopback(host)


def test_a_listening_address_is_connected_to_as_this_machine():
    assert [to_connect(host) for host in ("0.0.0.0", "::", "", "10.0.0.5")] == [
        "127.0.0.1",
        "::1",
        "127.0.0.1",
        "10.0.0.5",
    ]
    assert bracketed("::1") == "[::1]"


def test_an_address_is_taken_apart():
    assert read_address("WS://LocalHost:16830/ws").unwrap() == Address("ws", "localhost", 16830, "/ws")
    assert read_address("https://x.example/").unwrap() == Address("https", "x.example", 443, "")
    assert read_address("ws://[::1]:1/ws").unwrap().socket == "ws://[::1]:1/ws"
    assert read_address("ws://[::1]:1/ws").unwrap().origin == "http://[::1]:1"


@pytest.mark.parametrize(
    "text",
    [
        "ws://localhost:16830@evil.example/ws",
        "ws://user:pass@localhost/ws",
        "ws://localhost:16830\\@evil.example/ws",
        "ws://localhost:16830/ws?target=evil",
        "ws://localhost:16830/ws#x",
        "ws://localhost:16830/%2e%2e/api",
        "ws://localhost:16830/ws/../api/send",
        "ws://localhost:16830//evil.example",
        "ws://local host/ws",
        "ws://localhost/\r\nX: y",
        "ws://löcalhost/ws",
        "ws:///ws",
        "ws://:16830/ws",
        "ws://localhost:99999/ws",
        "ws://localhost:0/ws",
        "ws://[::1/ws",
        "ftp://localhost/ws",
        "file:///etc/passwd",
        "ws:localhost",
        "",
    ],
)
def test_what_two_readers_may_read_differently_is_no_address(text):
    assert not is_successful(read_address(text))


@pytest.mark.parametrize(
    ("entry", "url", "permitted"),
    [
        ("ws://other:9000/ws", "ws://other:9000/ws", True),
        ("ws://other:9000/ws", "ws://OTHER:9000/ws", True),
        ("ws://other:9000/ws", "ws://other:9000/ws/bob", False),
        ("ws://other:9000/ws", "http://other:9000/ws", False),
        ("http://other:9000", "http://other:9000/api/send", True),
        ("http://other:9000/", "http://other:9000/api/send", True),
        ("other:9000", "ws://other:9000/ws", True),
        ("other:9000", "https://other:9000/ws", False),
        ("other:9000", "ws://another:9000/ws", False),
        ("other:9000", "ws://other:9001/ws", False),
        ("http://other", "http://other.evil.example/", False),
        ("http://127.0.0.1:9000", "http://localhost:9000/hook", True),
        ("*", "ws://other:9000/ws", False),
        ("not a url", "ws://other:9000/ws", False),
    ],
)
def test_what_allowed_targets_cover(entry, url, permitted):
    assert permitted_by(entry, read_address(url).unwrap()) is permitted
