"""Who may come in: host, page, token, type of the body."""

import base64
from dataclasses import replace

import pytest
from returns.pipeline import is_successful

from messaging_core.gateway.access import (
    Access,
    Caller,
    admit,
    admit_body,
    choose_subprotocol,
    is_origin,
    may_start,
    token_as_subprotocol,
)

OPEN = Access("127.0.0.1")
LOCKED = Access("127.0.0.1", "s3cret-t0ken")
PROGRAM = Caller(host="127.0.0.1:16830")


def code(access, caller, **options):
    admitted = admit(access, caller, **options)
    return "" if is_successful(admitted) else admitted.failure().code


def test_programs_of_this_machine_come_in_where_no_token_is_set():
    assert code(OPEN, PROGRAM) == ""


@pytest.mark.parametrize("host", ["localhost:16830", "127.0.0.1", "[::1]:16830", "localhost:9999"])
def test_loopback_is_known_by_all_its_names(host):
    assert code(OPEN, Caller(host=host)) == ""


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:16830", "localhost.evil.example", "localhost:x", "a b"]
)
def test_a_rebound_name_does_not_come_in(host):
    assert code(OPEN, Caller(host=host)) == "forbidden_host"


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "http://localhost:5173", "null", "", "file://", "http://localhost:16830.evil.example"],
)
def test_pages_of_others_do_not_come_in(origin):
    assert code(OPEN, Caller(host="localhost:16830", origin=origin)) == "forbidden_origin"


def test_the_gateways_own_page_and_listed_ones_come_in():
    assert code(OPEN, Caller(host="localhost:16830", origin="http://localhost:16830")) == ""
    listed = replace(OPEN, origins=("http://localhost:5173",))
    assert code(listed, Caller(host="localhost:16830", origin="http://localhost:5173")) == ""
    assert code(listed, Caller(host="localhost:16830", origin="http://localhost:5174")) == "forbidden_origin"


@pytest.mark.parametrize(
    "origin", ["http://localhost:5173", "https://page.example", "http://[::1]:8", "chrome-extension://abc"]
)
def test_an_origin_is_what_a_browser_writes(origin):
    assert is_origin(origin)


@pytest.mark.parametrize(
    "text",
    ["", "*", "null", "localhost:5173", "http://localhost:5173/", "http://LOCALHOST:1", "https://a:443", "http://a:80"],
)
def test_what_no_browser_writes_is_no_origin(text):
    assert not is_origin(text)


def test_the_token_comes_in_a_header_or_as_a_subprotocol():
    assert code(LOCKED, PROGRAM) == "unauthorized"
    assert code(LOCKED, replace(PROGRAM, authorization="Bearer s3cret-t0ken")) == ""
    assert code(LOCKED, replace(PROGRAM, authorization="bearer s3cret-t0ken")) == ""
    assert code(LOCKED, replace(PROGRAM, offered=("messaging", token_as_subprotocol("s3cret-t0ken")))) == ""


@pytest.mark.parametrize(
    "caller",
    [
        replace(PROGRAM, authorization="Bearer wrong"),
        replace(PROGRAM, authorization="Bearer"),
        replace(PROGRAM, authorization="Basic s3cret-t0ken"),
        replace(PROGRAM, authorization="s3cret-t0ken"),
        replace(PROGRAM, authorization="Bearer \udcff"),
        replace(PROGRAM, offered=("bearer.!!!", "bearer.", "bearer.\u00e4", token_as_subprotocol("wrong"))),
    ],
)
def test_anything_else_is_no_token(caller):
    assert code(LOCKED, caller) == "unauthorized"


def test_what_anybody_may_see_needs_no_token_but_a_known_host():
    assert code(LOCKED, PROGRAM, token_needed=False) == ""
    assert code(LOCKED, Caller(host="evil.example"), token_needed=False) == "forbidden_host"


def test_beyond_loopback_any_host_may_be_named_since_there_is_a_token():
    public = Access("0.0.0.0", "s3cret-t0ken")
    caller = Caller(host="box.example", origin="http://box.example", authorization="Bearer s3cret-t0ken")
    assert code(public, caller) == ""
    assert code(public, replace(caller, origin="http://evil.example")) == "forbidden_origin"


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.168.1.5", "box.example"])
def test_a_gateway_that_others_can_reach_does_not_start_without_a_token(host):
    assert not is_successful(may_start(host, ""))
    assert is_successful(may_start(host, "token"))


@pytest.mark.parametrize("token", ["two words", "t\u00f6ken", "line\n", "\0"])
def test_a_token_that_no_header_can_carry_is_refused_at_the_start(token):
    assert "gateway.token" in may_start("127.0.0.1", token).failure()


def test_on_loopback_it_starts_without():
    assert all(is_successful(may_start(host, "")) for host in ("127.0.0.1", "localhost", "::1"))


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=UTF-8", 'application/json; charset="utf-8"']
)
def test_json_is_read(kind):
    assert is_successful(admit_body(Caller(content_type=kind)))


@pytest.mark.parametrize(
    "caller",
    [
        Caller(),
        Caller(content_type="text/plain"),
        Caller(content_type="application/x-www-form-urlencoded"),
        Caller(content_type="application/json; charset=utf-16"),
        Caller(content_type="application/json", content_encoding="gzip"),
    ],
)
def test_what_a_page_can_send_unasked_and_what_may_swell_is_not(caller):
    assert admit_body(caller).failure().code == "unsupported_type"


def test_the_token_is_never_the_subprotocol_that_is_spoken():
    token = token_as_subprotocol("t")
    assert choose_subprotocol((token, "messaging")) == "messaging"
    assert choose_subprotocol(("messaging.send",)) == "messaging.send"
    assert choose_subprotocol((token, "chat")) is None
    assert base64.urlsafe_b64decode(token.removeprefix("bearer.") + "==") == b"t"


def test_neither_side_shows_a_token():
    caller = replace(PROGRAM, authorization="Bearer s3cret", offered=(token_as_subprotocol("s3cret"),))
    assert "s3cret" not in repr(LOCKED) + repr(caller) and "bearer." not in repr(caller)
