"""Discord by a webhook: the URL is the credential, and the message says whether it is there."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.result import Success

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Configured
from messaging_core.channels.discord_webhook import CHANNEL, FIXED, Settings
from messaging_core.errors import Denied, Invalid, InvalidRecipient, Malformed, RateLimited, Unavailable
from messaging_core.flow import Done, Part, Receipt, Scope, Step, drive
from messaging_core.markup.dialect import Rendered
from messaging_core.message import FileFacts, Ids, Kind, MediaPart, Outgoing, Recipient, TextPart
from messaging_core.secrecy import Secret, Secrets
from messaging_core.wire.http import FileRef, FormPart, HttpReply, HttpRequest, Multipart, on_wire, to_json

from .replies import fields, replies, send
from .test_discord import closed

SAID = replies("discord-webhook")
SPEC = json.loads((Path(__file__).parents[2] / "contract/specs/discord.json").read_text("utf-8"))

URL = "https://discord.test/api/webhooks/1/FAKE-secret"
AT = Configured("hook", "discord-webhook", Settings(Secret("hook.url")))
IN_THREAD = Configured("hook", "discord-webhook", Settings(Secret("hook.url"), thread_id="555"))
IDS = Ids("018f2k3j4h5g6")
TEXT = TextPart(Rendered("**Hi**", "Hi"))
PICTURE = MediaPart(FileFacts("a.png", "/srv/a.png", "a.png", 5), Kind.IMAGE, "image/png", caption=TEXT.text)
AGENT = ("User-Agent", "DiscordBot (agent-messaging, 0.1.0)")


def start(*parts, at=AT, to=FIXED, **more) -> Step:
    return CHANNEL.describe(at, Outgoing(to, parts, **more), IDS, {}).unwrap()


def test_a_text_whole() -> None:
    """The URL is a name; ``wait`` makes the answer tell; nothing but the published keys is in the body."""
    request = HttpRequest(
        "POST",
        (Secret("hook.url"),),
        (("Content-Type", "application/json"), AGENT),
        b'{"content":"**Hi**","allowed_mentions":{"parse":[]}}',
        (("wait", "true"),),
    )
    step = start(TEXT)
    assert (request, Part(1, 1), Scope("hook", "hook.url")) == (step.request, step.part, step.scope)
    assert start(TEXT, mute=False).request.body == b'{"content":"**Hi**"}'


def test_a_picture_whole() -> None:
    payload = {
        "content": "**Hi**",
        "allowed_mentions": {"parse": []},
        "attachments": [{"id": "0", "filename": "a.png"}],
    }
    parts = (
        FormPart("payload_json", to_json(payload), content_type="application/json"),
        FormPart("files[0]", FileRef(PICTURE.facts), "a.png", "image/png"),
    )
    request = HttpRequest(
        "POST",
        (Secret("hook.url"),),
        (AGENT,),
        Multipart(parts, IDS.boundary),
        (("wait", "true"), ("thread_id", "555")),
    )
    assert request == start(PICTURE, at=IN_THREAD).request


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        (URL, URL + "?wait=true&thread_id=555"),
        (URL + "?wait=false", URL + "?wait=false&thread_id=555"),
        (URL + "?thread_id=9", URL + "?thread_id=9&wait=true"),
    ],
)
def test_the_url_is_used_as_written(written: str, sent: str) -> None:
    wire = on_wire(start(TEXT, at=IN_THREAD).request, Secrets({"hook.url": written}), 0.0)
    assert sent == wire.url


def test_the_conversations_thread_goes_before_that_of_the_settings() -> None:
    to = Recipient(FIXED.id, FIXED.kind, "777", FIXED.shown)
    assert ("thread_id", "777") in start(TEXT, at=IN_THREAD, to=to).request.query


def test_a_recipient_is_refused() -> None:
    assert isinstance(CHANNEL.recipient("111").failure(), InvalidRecipient)


def test_two_threads_in_the_settings_are_a_fault_since_one_would_silently_win() -> None:
    (fault,) = CHANNEL.check({"url": URL + "?wait=true&thread_id=9", "thread_id": "555"})
    assert (fault.key, "FAKE" in str(fault)) == ("thread_id", False)
    assert list(CHANNEL.check({"url": URL + "?thread_id=9"})) == []


def test_a_good_answer_without_a_body_is_a_yes_and_a_page_is_none() -> None:
    """As with 204: the status alone tells it, and stand-ins for Discord answer so."""
    assert send(start(TEXT), [HttpReply(200, "OK", (), b"")])[1] == send(start(TEXT), [SAID["no_content"]])[1]
    page = send(start(TEXT), [HttpReply(200, "OK", (), b"<html>Log in</html>")])[1]
    assert isinstance(page.failure().cause, Malformed)
    assert isinstance(send(start(TEXT), [HttpReply(500, "", (), b"")])[1].failure().cause, Unavailable)


@pytest.mark.parametrize(("case", "id"), [("sent", "1444600000000000001"), ("no_content", None)])
def test_a_message_is_there_with_or_without_an_id(case: str, id: str | None) -> None:
    done = send(start(TEXT), [SAID[case]])[1].unwrap()
    assert Done((Receipt(Part(1, 1), id, "the webhook's channel"),)) == done


@pytest.mark.parametrize(
    ("case", "error"),
    [("unknown_webhook", Denied), ("invalid_token", Denied), ("thread_needed", Invalid), ("too_many", RateLimited)],
)
def test_each_refusal_is_what_the_caller_can_do_next(case: str, error: type) -> None:
    assert error is type(send(start(TEXT), [SAID[case]])[1].failure().cause)


def test_the_probe_keeps_nothing_of_the_answer() -> None:
    probe = CHANNEL.probe(AT, None, {})
    assert HttpRequest("GET", (Secret("hook.url"),), (AGENT,), repeatable=True) == probe.request
    assert Success(Done()) == send(probe, [SAID["webhook"]])[1]
    assert isinstance(send(probe, [SAID["unknown_webhook"]])[1].failure().cause, Denied)


@pytest.mark.parametrize("suffix", ["/slack", "/github", "/slack?wait=true", "/github/"])
def test_a_url_for_other_senders_is_found_when_loading(suffix: str) -> None:
    (fault,) = CHANNEL.check({"url": URL + suffix})
    assert (fault.key, "FAKE-secret" in str(fault)) == ("url", False)


@pytest.mark.parametrize("suffix", ["", "?wait=true", "?thread_id=1"])
def test_a_url_as_the_platform_gives_it_has_no_fault(suffix: str) -> None:
    assert list(CHANNEL.check({"url": URL + suffix})) == []


def test_a_rehearsal_reaches_the_end() -> None:
    done = drive(lambda exchange: Success(CHANNEL.rehearse(exchange.request)), start(TEXT, PICTURE)).unwrap()
    assert len(done.delivered) == 2


MESSAGE = closed("IncomingWebhookRequestPartial")
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
RENDERED = st.builds(Rendered, WORDS, WORDS)
CONTENT = st.builds(TextPart, RENDERED, st.booleans()) | st.builds(
    lambda caption: MediaPart(PICTURE.facts, Kind.IMAGE, "image/png", caption=caption), st.none() | RENDERED
)


@settings(deadline=None, max_examples=100)
@given(parts=st.lists(CONTENT, min_size=1, max_size=3), mute=st.booleans())
def test_every_request_is_one_that_the_platform_describes(parts, mute) -> None:
    """Equal input gives equal requests, and a step survives its pickle."""
    step = start(*parts, mute=mute)
    assert step == start(*parts, mute=mute) == pickle.loads(pickle.dumps(step))
    described = SPEC["query"]["/webhooks/{webhook_id}/{webhook_token}"]
    for exchange in send(step, [SAID["sent"]] * len(parts))[0]:
        found = fields(exchange.request)
        MESSAGE.validate(found.get("payload_json", found))
        assert {name for name, _ in exchange.request.query} <= set(described)
        assert not exchange.request.repeatable


def test_the_registry_has_it() -> None:
    assert CHANNEL is CHANNELS["discord-webhook"]
