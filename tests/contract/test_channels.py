"""What every channel must keep to. A new channel gets all of this by its docs page and its registry entry, and so do the
channels that the docs show how to write.

The settings are those of the docs page's own example.
"""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Channel, Configured
from messaging_core.compose import compose
from messaging_core.display import request_json
from messaging_core.errors import MediaUnreadable, SendError, TooLarge, Unanswered, may_have_arrived
from messaging_core.flow import Done, Exchange, Step, advance, drive
from messaging_core.markup.split import split
from messaging_core.markup.tree import parse
from messaging_core.message import FileFacts, Message, Outgoing, Recipient
from messaging_core.routing import Route
from messaging_core.wire.http import HttpReply, HttpRequest
from tests.documented import REGISTRY
from tests.material import IDS, MP3, ROOT, SECRET, example, facts, ogg_opus, png

PLATFORMS = sorted(REGISTRY)
PNG, OGG = facts("chart.png", png()), facts("note.ogg", ogg_opus())


def configured(platform: str) -> tuple[Channel, Configured[Any]]:
    channels = example(platform).settings.channels
    return REGISTRY[platform], next(one for one in channels if one.platform == platform)


def recipient_of(channel: Channel, at: Configured[Any]) -> Recipient:
    if channel.fixed_recipient is not None:
        return channel.fixed_recipient
    default = channel.default_recipient(at.own)
    assert default is not None, "the docs example names no default recipient"
    return channel.recipient(default).unwrap()


def described(platform: str, message: Message, file: FileFacts | None = None) -> Step:
    channel, at = configured(platform)
    route = Route(channel, at, recipient_of(channel, at), default=True)
    parts = compose(route, message, file).unwrap()
    reply = message.reply_to
    return channel.describe(at, Outgoing(route.recipient, parts, reply_to=reply), IDS, {}).unwrap()


REPLIES_TO = {
    "signal": "1712345678901:+15550004444",
    "slack": "1712345678.123456",
    "email": "<parent@example.test>",
    "matrix": "$parent",
}


def sends(platform: str) -> list[tuple[str, Step]]:
    """One send for each thing that the channel can do."""
    can = REGISTRY[platform].capabilities
    found = [("text", described(platform, Message(text="Hello **you**, @everyone & <b>")))]
    if can.media:
        found.append(("media", described(platform, Message(media_path="chart.png", caption="June"), PNG)))
        found.append(("file", described(platform, Message(media_path="a.txt"), facts("a.txt", b"plain text"))))
    if can.voice:
        found.append(("voice", described(platform, Message(voice_path="note.ogg"), OGG)))
    if can.reply:
        reply = REPLIES_TO.get(platform, "900")
        found.append(("reply", described(platform, Message(text="yes", reply_to=reply))))
    return found


def cases() -> list[Any]:
    return [
        pytest.param(name, step, platform, id=f"{platform}-{name}")
        for platform in PLATFORMS
        for name, step in sends(platform)
    ]


def steps_of(platform: str, start: Step) -> tuple[list[Exchange], Done]:
    """Every exchange of the send, by what the platform would answer."""
    seen: list[Exchange] = []

    def rehearse(at: Exchange) -> Result[Any, SendError]:
        seen.append(at)
        assert len(seen) < 50
        return Success(REGISTRY[platform].rehearse(at.request))

    return seen, drive(rehearse, start).unwrap()


@pytest.mark.parametrize(("name", "start", "platform"), cases())
class TestEverySend:
    def test_it_is_rehearsed_to_its_end_with_a_receipt_for_the_part(
        self, name: str, start: Step, platform: str
    ) -> None:
        seen, done = steps_of(platform, start)
        assert {receipt.part for receipt in done.delivered} == {at.part for at in seen if at.part}
        assert seen[-1].part is not None, "the last request is the visible one"
        assert all(receipt.recipient for receipt in done.delivered)

    def test_no_secret_is_in_a_repr_a_pickle_or_what_is_shown(self, name: str, start: Step, platform: str) -> None:
        for at in steps_of(platform, start)[0]:
            for form in (repr(at), json.dumps(request_json(at.request)), pickle.dumps(at).decode("latin-1")):
                assert SECRET not in form

    def test_the_same_input_gives_the_same_requests(self, name: str, start: Step, platform: str) -> None:
        again = dict(sends(platform))[name]
        assert again == start
        assert steps_of(platform, again) == steps_of(platform, start)

    def test_each_step_survives_pickling(self, name: str, start: Step, platform: str) -> None:
        for at in steps_of(platform, start)[0]:
            assert pickle.loads(pickle.dumps(at)) == at

    def test_every_request_names_its_scope_and_leaves_by_a_known_edge(
        self, name: str, start: Step, platform: str
    ) -> None:
        for at in steps_of(platform, start)[0]:
            assert at.scope.channel == configured(platform)[1].name
            if isinstance(at.request, HttpRequest):
                assert at.request.method == at.request.method.upper()
                assert request_json(at.request)["url"]

    def test_an_unanswered_request_stops_the_send_where_it_was(self, name: str, start: Step, platform: str) -> None:
        assert isinstance(start, Exchange)
        stopped = advance(start, Failure(Unanswered("no answer after 1 s"))).failure()
        assert stopped.at == start


HTTP = [
    platform
    for platform in PLATFORMS
    if isinstance(getattr(described(platform, Message(text="x")), "request", None), HttpRequest)
]

STRANGE = [
    HttpReply(status, "Reason", (("Content-Type", kind),), body)
    for status in (
        200,
        201,
        204,
        301,
        307,
        400,
        401,
        403,
        404,
        408,
        409,
        413,
        415,
        421,
        422,
        429,
        500,
        502,
        503,
        504,
        520,
        599,
    )
    for kind, body in (
        ("text/html", b"<html><body>gateway</body></html>"),
        ("application/json", b""),
        ("application/json", b"{"),
        ("application/json", b"null"),
        ("application/json", b"[" * 5000),
        (
            "application/json",
            b'{"error": {"code": {}, "message": []}, "errors": [1], "ok": "yes", "retry_after": "soon", "id": {}}',
        ),
    )
]


def handed_to_each_step(platform: str, reply: HttpReply) -> None:
    for _, start in sends(platform):
        for at in steps_of(platform, start)[0]:
            result = advance(at, Success(reply))
            if not is_successful(result):
                assert str(result.failure().cause)
                assert len(str(result.failure().cause)) < 1000


@pytest.mark.parametrize("platform", HTTP)
def test_no_reply_however_strange_raises_in_any_step(platform: str) -> None:
    for reply in STRANGE:
        handed_to_each_step(platform, reply)


@pytest.mark.parametrize("platform", HTTP)
def test_a_refusal_by_status_alone_is_a_failure_of_the_right_kind(platform: str) -> None:
    start = described(platform, Message(text="x"))
    for status, kinds in {
        429: {"RateLimited"},
        503: {"Unavailable"},
        500: {"Unavailable"},
        401: {"Denied", "Invalid"},
        307: {"Rejected"},
    }.items():
        result = advance(start, Success(HttpReply(status, "Reason", (), b"")))  # type: ignore[arg-type]
        assert type(result.failure().cause).__name__ in kinds, (status, result)


@pytest.mark.parametrize("platform", HTTP)
@pytest.mark.parametrize("status", [200, 201, 202, 204])
@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"<html>accepted</html>"])
def test_a_success_that_says_neither_yes_nor_no_is_never_a_certain_failure(
    platform: str, status: int, body: bytes
) -> None:
    start = described(platform, Message(text="x"))
    result = advance(start, Success(HttpReply(status, "Reason", (), body)))  # type: ignore[arg-type]
    assert is_successful(result) or may_have_arrived(result.failure().cause), result


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["ok", "error", "errors", "id", "result", "code", "messages", "event_id", "ts", "errcode", "parameters"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@pytest.mark.parametrize("platform", HTTP)
@given(value=json_values, status=st.sampled_from([200, 201, 400, 429, 500]))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_no_json_whatever_its_shape_raises_in_any_step(platform: str, value: Any, status: int) -> None:
    handed_to_each_step(platform, HttpReply(status, "Reason", (), json.dumps(value).encode()))


def kept_replies() -> list[Any]:
    return [
        pytest.param(platform, path, id=f"{platform}-{path.stem}")
        for platform in HTTP
        for path in sorted((ROOT / "tests" / "replies" / platform).glob("*.json"))
    ]


@pytest.mark.parametrize(("platform", "path"), kept_replies())
def test_every_kept_reply_is_understood_by_the_first_step(platform: str, path: Path) -> None:
    """Either the send goes on, or it stops with a sentence that holds no secret."""
    kept = json.loads(path.read_text())
    body = kept["body"] if isinstance(kept.get("body"), str) else json.dumps(kept.get("body"))
    headers = tuple((name, value) for name, value in (kept.get("headers") or ()))
    handed_to_each_step(platform, HttpReply(kept["status"], kept.get("reason", ""), headers, body.encode()))


@pytest.mark.parametrize("platform", PLATFORMS)
def test_probing_is_rehearsed_to_its_end_and_shows_nothing(platform: str) -> None:
    channel, at = configured(platform)
    if channel.probe is None:
        return
    recipient = None if channel.fixed_recipient else recipient_of(channel, at)
    for asked in {None, recipient}:
        seen, done = steps_of(platform, channel.probe(at, asked, {}))
        assert all(step.part is None for step in seen)
        assert done.delivered == ()


@pytest.mark.parametrize("platform", [p for p in PLATFORMS if REGISTRY[p].limits.text])
def test_every_part_is_within_every_limit_and_nothing_is_lost(platform: str) -> None:
    channel, at = configured(platform)
    text = "\n\n".join(f"Paragraph {number} with **bold words** and `code`. " + "word " * 80 for number in range(250))
    parts = split(parse(text), channel.dialect, channel.limits.text)
    assert len(parts) > 1
    assert all(limit.holds(part) for part in parts for limit in channel.limits.text)
    shown = "".join("".join(part.visible.split()) for part in parts)
    for number in range(250):
        assert f"Paragraph{number}with" in shown


@pytest.mark.parametrize(
    "platform", [p for p in PLATFORMS if REGISTRY[p].capabilities.media and REGISTRY[p].limits.any_file]
)
def test_a_file_over_the_limit_is_refused_with_the_limit(platform: str) -> None:
    channel, at = configured(platform)
    route = Route(channel, at, recipient_of(channel, at))
    limit = channel.limits.any_file
    assert limit is not None
    big = FileFacts("a.bin", "/srv/out/a.bin", "a.bin", size=limit + 1, head=b"\0\1\2")
    assert compose(route, Message(media_path="a.bin"), big) == Failure(TooLarge("The file 'a.bin'", limit + 1, limit))


FORGED = [
    "",
    " ",
    "123/../../guilds/1",
    "0x1F",
    "12.5",
    "４２",
    "42\n",
    "a\r\nBcc: x@y.test",
    "x" * 5000,
    "../..",
    "?x=1",
    "#\n",
    "%2e%2e/%2e%2e",
    "\x00",
    "@",
    "+",
    "a b",
]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("text", FORGED)
def test_a_forged_recipient_is_refused_or_stays_inside_its_place(platform: str, text: str) -> None:
    channel, at = configured(platform)
    result = channel.recipient(text)
    if not is_successful(result):
        assert result.failure().recipient == text
        return
    step = channel.describe(
        at,
        Outgoing(result.unwrap(), compose(Route(channel, at, result.unwrap()), Message(text="x"), None).unwrap()),
        IDS,
        {},
    )
    for seen in steps_of(platform, step.unwrap())[0] if is_successful(step) else ():
        if isinstance(seen.request, HttpRequest):
            url = request_json(seen.request)["url"]
            assert ".." not in url and "guilds" not in url and "\n" not in url and " " not in url


@pytest.mark.parametrize("platform", PLATFORMS)
@given(text=st.text(max_size=60))
@settings(deadline=None, max_examples=60)
def test_any_text_is_a_recipient_or_is_refused(platform: str, text: str) -> None:
    result = REGISTRY[platform].recipient(text)
    if is_successful(result):
        assert result.unwrap().id
    else:
        assert result.failure().expected


@pytest.mark.parametrize("platform", [p for p in PLATFORMS if REGISTRY[p].capabilities.media])
def test_what_is_no_sound_is_no_voice_message_whatever_its_name(platform: str) -> None:
    channel, at = configured(platform)
    route = Route(channel, at, recipient_of(channel, at))

    def spoken(data: bytes) -> Any:
        return compose(route, Message(voice_path="a.mp3"), facts("a.mp3", data))

    for data, mime in ((png(), "image/png"), (b"%PDF-1.4\n", "application/pdf"), (b"GIF89a\1\0\1\0", "image/gif")):
        said = f"a voice message has to be sound, and it is {mime}"
        assert spoken(data) == Failure(MediaUnreadable("a.mp3", said))
    assert spoken(b"\x80\0 what nobody knows").unwrap()[0].notes == ("as a file",)


def test_voice_that_is_not_taken_as_voice_goes_as_audio_and_says_so() -> None:
    for platform in PLATFORMS:
        channel, at = configured(platform)
        if channel.capabilities.voice and "audio/mpeg" not in channel.limits.voice:
            parts = compose(
                Route(channel, at, recipient_of(channel, at)), Message(voice_path="s.mp3"), facts("s.mp3", MP3)
            ).unwrap()
            assert parts[0].notes == ("as audio",)
