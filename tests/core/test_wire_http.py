"""Requests as they leave: secrets in place, queries added without touching what is there, signatures by the published vector."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.errors import Malformed
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import (
    FormPart,
    HttpReply,
    HttpRequest,
    Multipart,
    StandardWebhooks,
    at,
    json_request,
    on_wire,
    read_json,
    segment,
    text_at,
    wait_of,
)
from messaging_core.wire.template import Place, place_of, read_template

URL = Secret("w.url")


def wire_url(url: str, *query: tuple[str, str]) -> str:
    return on_wire(HttpRequest("POST", (URL,), query=query), Secrets({"w.url": url}), 0.0).url


@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        ("https://d.test/1/FAKE", "https://d.test/1/FAKE?wait=true&thread_id=9"),
        ("https://d.test/1/FAKE?thread_id=7", "https://d.test/1/FAKE?thread_id=7&wait=true"),
        ("https://d.test/1/FAKE?wait=false&a=%2F", "https://d.test/1/FAKE?wait=false&a=%2F&thread_id=9"),
        ("https://d.test/1/FAKE?", "https://d.test/1/FAKE?wait=true&thread_id=9"),
    ],
)
def test_a_configured_url_is_used_as_written_and_only_lacking_names_are_added(configured: str, expected: str) -> None:
    assert wire_url(configured, ("wait", "true"), ("thread_id", "9")) == expected


def test_the_signature_is_that_of_the_published_vector() -> None:
    """Standard Webhooks 1.0.0: the vector that its libraries test themselves with."""
    request = HttpRequest(
        "POST",
        "https://h.test/",
        body=b'{"test": 2432232314}',
        seal=StandardWebhooks(Secret("w.signing_secret"), "msg_p5jXN8AQM9LWM0D4loKWxJek"),
    )
    secrets = Secrets({"w.signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
    assert on_wire(request, secrets, 1614265330.7).headers == (
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
    )


def test_a_repeat_is_sealed_anew_but_keeps_its_id() -> None:
    secret = Secrets({"w.signing_secret": base64.b64encode(b"k" * 32).decode()})
    request = HttpRequest(
        "POST", "https://h.test/", body=b"x", seal=StandardWebhooks(Secret("w.signing_secret"), "m.1")
    )
    first, later = (dict(on_wire(request, secret, now).headers) for now in (1000.0, 8200.0))
    assert first["webhook-id"] == later["webhook-id"]
    assert first["webhook-signature"] != later["webhook-signature"]


def test_a_wire_request_shows_nothing() -> None:
    wire = on_wire(HttpRequest("POST", (URL,), (("X-Key", (URL,)),)), Secrets({"w.url": "https://h/FAKE-secret"}), 0.0)
    assert "FAKE" not in repr(wire)


def test_secrets_in_a_body_are_put_in_as_utf8() -> None:
    request = HttpRequest("POST", "https://h/", body=('{"k":"', Secret("w.k"), '"}'))
    assert on_wire(request, Secrets({"w.k": "schlüssel"}), 0.0).body == '{"k":"schlüssel"}'.encode()


def test_a_multipart_body_names_its_boundary() -> None:
    wire = on_wire(HttpRequest("POST", "https://h/", body=Multipart((FormPart("a", b"1"),), "BBB")), Secrets(), 0.0)
    assert wire.headers == (("Content-Type", "multipart/form-data; boundary=BBB"),)


@given(st.text())
def test_json_bodies_read_back_as_what_was_described(text: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    body = json_request("POST", "https://h/", {"content": clean}).body
    assert isinstance(body, bytes) and json.loads(body) == {"content": clean}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("!a:b", "%21a%3Ab"), ("../x", "..%2Fx"), ("..", "%2E%2E"), (".", "%2E"), ("a?b#c", "a%3Fb%23c")],
)
def test_a_path_segment_cannot_leave_its_place(text: str, expected: str) -> None:
    assert segment(text) == expected


@pytest.mark.parametrize(
    ("value", "date", "expected"),
    [
        ("3", None, 3.0),
        ("0.65", None, 0.65),
        ("0", None, 1.0),
        ("-4", None, 1.0),
        ("soon", None, 1.0),
        ("nan", None, 1.0),
        ("inf", None, 1.0),
        ("Wed, 21 Oct 2026 07:28:03 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 3.0),
        ("Wed, 21 Oct 2026 06:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 1.0),
        ("Wed, 21 Oct 2026 07:28:03 GMT", None, 1.0),
    ],
)
def test_waits_are_read_in_their_own_unit_and_never_zero_or_past(value: str, date: str | None, expected: float) -> None:
    headers = (("retry-after", value), *((("Date", date),) if date else ()))
    assert wait_of(HttpReply(429, headers=headers)) == expected


def test_a_page_instead_of_json_is_told_by_kind_and_not_quoted() -> None:
    reply = HttpReply(200, "OK", body=b"<html>FAKE-secret</html>")
    assert read_json(reply).failure() == Malformed(200, "OK", detail="the answer is an HTML page, not JSON")
    assert read_json(HttpReply(200, "OK")).failure().detail == "the answer is empty, not JSON"
    assert read_json(HttpReply(200, body=b"[" * 100_000)).failure().status == 200
    assert read_json(HttpReply(200, body=b"{}")) == Success({})


def test_foreign_json_is_never_indexed_blindly() -> None:
    assert at({"a": [{"b": 1}]}, "a", 0, "b") == 1
    assert at({"a": [{"b": 1}]}, "a", 5, "b") is None
    assert at([], "a") is None
    assert text_at({"id": 7}, "id") == "7"
    assert text_at({"id": True}, "id") == ""
    assert text_at({"id": {}}, "id") == ""


@given(st.text())
def test_any_content_stays_content_in_a_json_template(text: str) -> None:
    """It reads back whole, adds no key, and a {{content}} in it is not filled again."""
    clean = text.encode("utf-8", "replace").decode()
    for template, key in (
        ('{"text": "a {{content}} b", "n": 1}', "a " + clean + " b"),
        ('{"text": {{content}}, "n": 1}', clean),
    ):
        filled = read_template(template).fill(clean, Place.JSON)
        assert json.loads(str(filled)) == {"text": key, "n": 1}


def test_the_content_is_put_in_by_one_pass() -> None:
    template = read_template('{"a": "{{content}}", "b": "{{content}}"}')
    assert json.loads(str(template.fill("{{content}}", Place.JSON))) == {"a": "{{content}}", "b": "{{content}}"}


@pytest.mark.parametrize(
    ("content_type", "place"),
    [
        ("application/json", Place.JSON),
        ("application/vnd.api+json;charset=utf-8", Place.JSON),
        ("application/x-www-form-urlencoded", Place.FORM),
        ("text/plain", Place.TEXT),
    ],
)
def test_the_place_follows_the_content_type(content_type: str, place: Place) -> None:
    assert place_of(content_type) is place


def test_forms_and_urls_are_escaped_for_their_place() -> None:
    assert read_template("text={{content}}").fill("a&b=c d", Place.FORM) == "text=a%26b%3Dc+d"
    assert read_template("m={{content}}").fill("a/b c", Place.URL) == "m=a%2Fb%20c"


@pytest.mark.parametrize(
    "template", ['{"text": "a {{content}}"}', '[1, {"text": "a {{content}}"}]', '{"text": {{content}}}']
)
@pytest.mark.parametrize("depth", [1, 2])
@given(content=st.text(max_size=40))
def test_content_in_a_string_that_holds_json_adds_nothing_to_that_either(
    template: str, depth: int, content: str
) -> None:
    content = content.encode("utf-8", "replace").decode()
    told = f"a {content}" if '"a ' in template else content
    for _ in range(depth):
        template = json.dumps({"kind": "text", "content": template})
    filled = str(read_template(template).fill(content, Place.JSON))
    for _ in range(depth):
        filled = json.loads(filled)["content"]
    found = json.loads(filled)
    assert found in ({"text": told}, [1, {"text": told}])


@pytest.mark.parametrize("around", ['he said "#"', "[#]", "{#}", '"#"', "{#", '["#"]'])
def test_signs_of_json_in_a_text_are_no_json(around: str) -> None:
    template = json.dumps({"text": around.replace("#", "{{content}}")})
    filled = str(read_template(template).fill('a "b"', Place.JSON))
    assert json.loads(filled) == {"text": around.replace("#", 'a "b"')}
