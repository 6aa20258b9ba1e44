"""Files that may not be sent, secrets that may not be seen, and texts that have to arrive as they are."""

import json
import logging
import os

import pytest

from messaging_adapters.cli import main
from tests.adapters.loopback import Loopback, hang, nowhere, raw, reply, reset
from tests.material import png
from tests.platforms import telegram
from tests.platforms.doors import ALL, DISCORD, SLACK, TELEGRAM, WEBHOOK, WHATSAPP, doors
from tests.platforms.far_end import FarEnd, front

# --- Files ------------------------------------------------------------------------------------------------------------


@doors()
def test_an_empty_file_is_refused_before_anything_leaves(door, tmp_path):
    with door.open(tmp_path) as (front, far_end):
        result = front.send(media_path=front.file("empty.log", b""), caption="log attached")
    assert not result.ok and far_end.calls == [] and door.arrived(far_end) == []
    assert "empty.log" in result.message and "empty" in result.message.replace("empty.log", "")


@doors(TELEGRAM, SLACK)
def test_a_link_out_of_the_permitted_folder_is_no_way_out(door, tmp_path):
    """At the end of the path or in the middle of it; nothing of the file is seen anywhere."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("TOP-SIGN")
    out = tmp_path / "out"
    out.mkdir()
    (out / "link.txt").symlink_to("../secret/key.txt")
    (out / "sub").symlink_to("../secret")
    far_end = door.model()
    with front(far_end, lambda url: {**door.config(url), "media_roots": [str(out)]}, tmp_path) as opened:
        for path in (out / "link.txt", out / "sub" / "key.txt", out / ".." / "secret" / "key.txt"):
            for key in ("media_path", "voice_path"):
                result = opened.send(**{key: str(path)})
                assert result.details["status"] == "refused" and "TOP-SIGN" not in result.message
        seen = str(opened.audit)
    assert far_end.calls == [] and "TOP-SIGN" not in seen


def test_both_spellings_of_a_permitted_folder_are_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "real" / "a.txt").write_text("fine")
    far_end = TELEGRAM.model()
    roots = {"media_roots": [str(tmp_path / "alias")]}
    with front(far_end, lambda url: {**TELEGRAM.config(url), **roots}, tmp_path) as opened:
        for name in ("alias", "real"):
            assert opened.send(media_path=str(tmp_path / name / "a.txt")).ok
    assert [one.file.data for one in far_end[42].messages] == [b"fine"] * 2


def test_no_path_of_this_machine_is_in_any_request_or_result(tmp_path):
    for door in ALL[:5]:
        far_end = door.model()
        bodies = []

        class Watch(FarEnd):
            def __call__(self, request, far_end=far_end, bodies=bodies):
                bodies.append(request.raw)
                return far_end(request)

        with front(Watch(), door.config, tmp_path) as opened:
            good = opened.send(media_path=opened.file("a.png", png()), caption="c")
            gone = opened.send(media_path=str(tmp_path / "gone.png"))
        assert good.ok and not gone.ok and str(tmp_path) not in good.message
        assert all(str(tmp_path).encode() not in body for body in bodies)


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "unreadable"])
def test_what_is_no_plain_file_is_refused_clearly(kind, tmp_path):
    path = tmp_path / "thing"
    far_end = TELEGRAM.model()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = tmp_path.__class__("/dev/zero")
    elif kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        path.write_text("x")
        path.chmod(0)
    with TELEGRAM.open(tmp_path, far_end) as (opened, _):
        result = opened.send(media_path=str(path))
    assert result.details["status"] == "refused" and far_end.calls == []
    assert path.name in result.message


# --- Secrets ----------------------------------------------------------------------------------------------------------

ANSWERS = {
    "refused connection": None,
    "401": reply(401, json={"ok": False, "error_code": 401, "description": f"Unauthorized bot{telegram.TOKEN}"}),
    "404": reply(404, json={"ok": False, "error_code": 404, "description": "Not Found"}),
    "500": reply(500, body=f"<html>/bot{telegram.TOKEN}/sendMessage failed</html>"),
    "broken JSON": reply(body=f"{{bot{telegram.TOKEN}"),
    "reset": reset(),
    "no HTTP": raw(b"\x15\x03\x01\x00\x02\x02\x28"),
    "redirect": reply(302, headers={"Location": f"https://elsewhere.test/bot{telegram.TOKEN}/x"}),
    "no answer": hang(),
    "no TLS": reply(json={}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_token_is_in_nothing_that_anybody_sees(name, tmp_path, caplog, capfd):
    """Not in the result, its repr, the log at DEBUG, the audit, the output; nor in its encoded forms."""
    caplog.set_level(logging.DEBUG)
    item = ANSWERS[name]

    class Trouble(FarEnd):
        def __call__(self, request):
            assert telegram.TOKEN in request.target
            return item

    def config(url):
        url = url.replace("http:", "https:") if name == "no TLS" else url
        settings = TELEGRAM.config(url if item is not None else nowhere())
        return {**settings, "http": {"read_timeout": 0.3, "connect_timeout": 0.3}, "max_attempts": 2}

    with front(Trouble(), config, tmp_path) as opened:
        result = opened.send(text="x")
        assert not result.ok
        shown = [
            result.message,
            repr(result),
            json.dumps(result.details),
            str(opened.audit),
            repr(opened.messenger.settings),
        ]
    output = capfd.readouterr()
    seen = "\n".join([*shown, caplog.text, output.out, output.err])
    for needle in (telegram.TOKEN, telegram.TOKEN.replace(":", "%3A"), "FAKE-AbC_dEf", telegram.TOKEN.split(":")[1]):
        assert needle not in seen


def test_masks_do_not_touch_what_is_sent(tmp_path):
    """A text about credentials arrives as it is, and a header's value is the value."""
    text = "Set Authorization: Bearer abc.def.ghi and password=hunter2, key sk-demo-000, token: ***"
    far_end, heads = TELEGRAM.model(), []

    class Hook(FarEnd):
        def __call__(self, request):
            heads.append((request.header("X-Api-Key"), request.json()))
            return reply(json={})

    with front(
        Hook(),
        lambda url: {"channels": {"h": {"type": "webhook", "url": url, "headers": {"X-Api-Key": "FAKE-key-zz"}}}},
        tmp_path,
    ) as opened:
        assert opened.send(text=text).ok
        assert opened.send(text="FAKE-key-zz").ok
    assert heads == [("FAKE-key-zz", {"content": text}), ("FAKE-key-zz", {"content": "FAKE-key-zz"})]
    with TELEGRAM.open(tmp_path, far_end) as (opened, _):
        opened.send(text=text, recipient="43")
        opened.send(text=f"`{telegram.TOKEN}`", recipient="43")
    assert far_end[43].texts == [text.replace("***", "***"), telegram.TOKEN]


def test_a_body_template_keeps_its_shape_whatever_the_content(tmp_path):
    contents = [
        'say "hi"\nline2\ttab \\ end',
        "\u2028 \u0001 😀 </script>",
        'x", "admin": true, "y": "z',
        "{{content}}",
    ]
    bodies = []

    class Hook(FarEnd):
        def __call__(self, request):
            bodies.append(request.json())
            return reply(json={})

    settings = {
        "type": "webhook",
        "headers": {"Content-Type": "application/json"},
        "body_template": '{"text": "{{content}}", "n": 1}',
    }
    with front(Hook(), lambda url: {"channels": {"h": {**settings, "url": url}}}, tmp_path) as opened:
        for content in contents:
            assert opened.messenger.call_tool("message", {"channel": "h", "content": content}).ok
    assert bodies == [{"text": content, "n": 1} for content in contents]


# --- Nothing to say ---------------------------------------------------------------------------------------------------

BLANK = ["", "  \n\t ", "\u200b\u2060\ufeff", "\u2800", "\u3164", "&nbsp;", "<!-- only a comment -->"]


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
@pytest.mark.parametrize("text", BLANK)
def test_a_text_with_nothing_to_see_is_refused_as_empty(door, text, tmp_path):
    with door.open(tmp_path) as (opened, far_end):
        result = opened.send(text=text)
    if result.ok:
        assert text.startswith(("&", "<")) and door.arrived(far_end)[0].text.strip()
    else:
        assert result.details["status"] == "refused" and "empty" in result.message and far_end.calls == []
        assert far_end.refused == []


# --- The command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Run ``messaging`` with a configuration of one channel that leads to a model."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(door, *arguments):
        far_end = door.model()
        with Loopback(respond=far_end) as server:
            (tmp_path / "messaging.json.yaml").write_text(json.dumps(door.config(server.url)))
            name, *rest = arguments
            code = main([name, "--config", str(tmp_path / "messaging.json.yaml"), *rest])
        return code, capsys.readouterr(), far_end

    return run


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_the_command_sends_and_prints_what_is_there(door, command, tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    code, printed, far_end = command(door, "send", "hello **you**", "--json")
    (one,) = door.arrived(far_end)
    said = json.loads(printed.out)
    assert code == 0 and said["ids"] == [one.id] and said["status"] == "delivered" and "hello" in one.text
    call = json.dumps({"media_path": str(tmp_path / "a.png"), "caption": "c"})
    code, printed, far_end = command(door, "call", "message_send", call)
    (one,) = door.arrived(far_end)
    assert code == 0 and one.file.data == png() and one.id in printed.out and far_end.refused == []


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_a_dry_run_shows_every_request_and_reaches_nobody(door, command, tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    code, printed, far_end = command(door, "send", "word " * 2000, "--dry-run")
    assert code == 0 and far_end.calls == [] and far_end.refused == [] and "word" in printed.out
    assert not {"FAKE"} & set(printed.out.split()) and "FAKE" not in printed.out


@doors(TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP)
def test_the_doctor_finds_a_good_channel_good_and_writes_nothing(door, command):
    code, printed, far_end = command(door, "doctor")
    assert code == 0, printed
    assert far_end.calls and door.arrived(far_end) == [] and far_end.refused == []


def test_the_command_fails_with_the_platforms_reason(command):
    code, printed, far_end = command(DISCORD, "send", "x", "--recipient", "999")
    assert code != 0 and "Unknown Channel" in printed.out + printed.err and far_end.refused
    code, printed, _ = command(WHATSAPP, "send", "x", "--recipient", "+16505550099")
    assert code != 0 and "24 hours" in printed.out + printed.err
    code, printed, far_end = command(WEBHOOK, "send", "x", "--recipient", "790")
    assert code != 0 and far_end.calls == []
