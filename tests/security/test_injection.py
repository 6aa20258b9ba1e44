"""What somebody else wrote stays what it is: it ends no line, opens no path, closes no string, steers no terminal.

Looked at are the bytes that left, not what a library says of them.
"""

import email
import email.policy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from messaging_adapters import cli
from messaging_adapters.messenger import Messenger
from messaging_core.channels import CHANNELS
from messaging_core.message import Conversation, Message
from tests.adapters.loopback import Loopback, Request, reply
from tests.faults.mail import MailFault, MailServer, settings_of
from tests.faults.matrix import UNHURRIED, good_replies, messenger_for, platforms

LINE_ENDS = ("\r\n", "\n", "\r", "\x00", "\x0b", "\x85", "\u2028", "%0d%0a", "\\r\\n")
EVIL = "X-Evil: 1"


def heads(request: Request) -> list[str]:
    """Every header line that a reader would find, of the request and of the parts of its form."""
    lines = re.split(r"\r\n|\n|\r", request.head.decode("latin-1"))
    if "multipart" in (request.header("Content-Type") or ""):
        for part in request.parts():
            lines += re.split(r"\r\n|\n|\r", part.head.decode("latin-1"))
    return lines


def sent_by(
    platform: str, message: Message, conversation: Conversation | None = None, **more: Any
) -> tuple[list[Request], Any]:
    good = good_replies(platform, Message(text="x"))[0]
    with (
        Loopback(default=good) as server,
        messenger_for(platform, server.url, UNHURRIED, max_attempts=1, **more) as messenger,
    ):
        outcome = messenger.send(message, conversation)
        return server.requests, outcome


# --- Line ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize("platform", [platform for platform in platforms() if CHANNELS[platform].capabilities.media])
def test_the_name_of_a_file_makes_no_header(platform: str, end: str, tmp_path: Path) -> None:
    if end == "\x00":
        return  # no file system has it in a name
    path = tmp_path / f'a"; x="{end}{EVIL}{end}{end}b.txt'
    path.write_bytes(b"content")
    requests, outcome = sent_by(platform, Message(media_path=str(path)), media_roots=[str(tmp_path)])
    if outcome.status.value == "refused":
        assert requests == []
    for request in requests:
        assert not any(line.lower().startswith("x-evil") for line in heads(request))
        assert request.head.count(b"\r\n\r\n") == 0
        for part in request.parts() if "multipart" in (request.header("Content-Type") or "") else ():
            assert len([line for line in part.header_lines if line.lower().startswith("content-disposition")]) == 1
            assert re.fullmatch(rb'[^\r\n]*; name="[^"\r\n]*"(; filename="[^"\r\n]*")?', part.head.split(b"\r\n")[0])


@pytest.mark.parametrize("platform", platforms())
@pytest.mark.parametrize("place", ["recipient", "reply_to", "thread", "conversation", "message_id"])
def test_no_id_makes_a_header_or_leaves_its_place(platform: str, place: str) -> None:
    """Each is refused, or is inside the body as it was, or percent-encoded in one segment of the path."""
    good = good_replies(platform, Message(text="x"))[0]
    somebody = SOMEBODY.get(platform, "42")
    with Loopback(default=good) as server, messenger_for(platform, server.url, UNHURRIED, max_attempts=1) as messenger:
        for end in LINE_ENDS:
            evil = f"42{end}{EVIL}{end}"
            message, conversation = {
                "recipient": (Message(text="x", recipient=evil), None),
                "reply_to": (Message(text="x", reply_to=evil), None),
                "thread": (Message(text="x"), Conversation(channel="c", recipient=somebody, thread=evil)),
                "conversation": (Message(text="x"), Conversation(channel="c", recipient=evil)),
                "message_id": (Message(text="x"), Conversation("c", somebody, message_id=evil, subject=evil)),
            }[place]
            outcome = messenger.send(message, conversation)
            assert outcome.status.value in ("refused", "delivered", "failed")
        for request in server.requests:
            assert not any(line.lower().startswith("x-evil") for line in heads(request))
            path = request.head.split(b"\r\n")[0].partition(b"?")[0]
            assert b"Evil" not in path, path


SOMEBODY = {
    "telegram": "-1001234567890",
    "slack": "C0123456789",
    "matrix": "!room:hs.test",
    "signal": "+15550003333",
    "whatsapp": "+16505551234",
}
NO_FAULT = MailFault("none", "", "", ())


def mail(message: Message, conversation: Conversation | None = None, **more: Any) -> tuple[MailServer, Any]:
    with MailServer(NO_FAULT) as server:
        settings = settings_of(server.port, to="you@mail.test") | more.pop("settings", {})
        with Messenger.from_config({"channels": {"c": settings}, "max_attempts": 1, **more}) as messenger:
            return server, messenger.send(message, conversation)


@pytest.mark.parametrize("end", LINE_ENDS)
@pytest.mark.parametrize(
    "evil",
    [
        "you@mail.test{}Bcc: spy@evil.test",
        "you@mail.test>{}RCPT TO:<spy@evil.test",
        '"a{}DATA"@mail.test',
        "you@mail.test{}DATA",
        "<you@mail.test>{}",
    ],
)
def test_an_address_makes_no_command(evil: str, end: str) -> None:
    if evil.startswith('"') and end in ("%0d%0a", "\\r\\n"):
        return  # inside quotation marks these are ordinary signs
    server, outcome = mail(Message(text="x", recipient=evil.format(end)))
    assert outcome.status.value == "refused"
    assert server.seen == []


@pytest.mark.parametrize(
    "evil", ["you@mail.test, spy@evil.test", "you@mail.test; spy@evil.test", "Spy <spy@evil.test>, you@mail.test"]
)
def test_an_address_is_one(evil: str) -> None:
    server, outcome = mail(Message(text="x", recipient=evil))
    assert (outcome.status.value, server.seen) == ("refused", [])


@pytest.mark.parametrize("end", LINE_ENDS)
def test_nothing_makes_a_header_of_a_mail_or_a_command(end: str, tmp_path: Path) -> None:
    evil = f"Hi{end}Bcc: spy@evil.test{end}{end}body{end}.{end}MAIL FROM:<x@evil.test>{end}"
    name = f"a{end}Bcc: spy@evil.test{end}".replace("\x00", "")
    (tmp_path / name).write_bytes(b"content")
    for message, conversation in (
        (Message(text=evil), None),
        (
            Message(text="x"),
            Conversation(channel="c", recipient="you@mail.test", subject=evil, message_id="<parent@mail.test>"),
        ),
        (
            Message(text="x"),
            Conversation(channel="c", recipient="you@mail.test", message_id=f"<a@b>{end}Bcc: spy@evil.test"),
        ),
        (Message(text="x", reply_to=f"<a@b>{end}Bcc: spy@evil.test"), None),
        (Message(media_path=str(tmp_path / name), caption=evil), None),
    ):
        server, outcome = mail(message, conversation, media_roots=[str(tmp_path)])
        commands = [line for line in server.seen if line[:4].upper() in (b"MAIL", b"RCPT", b"DATA", b"BCC:")]
        if outcome.status.value == "refused":
            assert server.mails == []
            continue
        assert outcome.ok, outcome.message
        (content,) = server.mails
        assert b"spy@evil.test" not in b"".join(commands[:3])
        assert [line[:10] for line in commands[:3]] == [b"MAIL FROM:", b"RCPT TO:<y", b"DATA\r\n"]
        parsed = email.message_from_bytes(content, policy=email.policy.default)
        assert parsed["Bcc"] is None and parsed.get_all("To") == ["you@mail.test"]
        for part in parsed.walk():
            assert part["Bcc"] is None
        assert b"\r\n.\r\n" not in content and not re.search(rb"(?<!\r)\n|\r(?!\n)", content)


def test_a_dot_at_the_beginning_of_a_line_stays_and_ends_nothing() -> None:
    server, outcome = mail(Message(text="first\n.\n..two\n.MAIL FROM:<x@evil.test>\nlast"))
    assert outcome.ok and len(server.mails) == 1
    assert b"\r\n..\r\n" in server.mails[0] or b"=2E" in server.mails[0] or b"base64" in server.mails[0]


@pytest.mark.parametrize("sign", ["\r\n", "\n", "\r", "\x00"])
def test_a_header_of_the_settings_that_is_more_than_one_is_refused_when_loading(sign: str) -> None:
    from messaging_adapters.configuration import ConfigurationInvalid

    for headers in ({"X-A": f"1{sign}{EVIL}"}, {f"X-A: 1{sign}X-Evil": "1"}):
        with pytest.raises(ConfigurationInvalid):
            Messenger.from_config(
                {"channels": {"w": {"type": "webhook", "url": "http://127.0.0.1:1", "headers": headers}}}
            )


# --- Paths ------------------------------------------------------------------------------------------------------------

PATHS = {
    "!a?access_token=x#y:hs.test": b"%21a%3Faccess_token%3Dx%23y%3Ahs.test",
    "!%2e%2e%2fadmin:hs.test": b"%21%252e%252e%252fadmin%3Ahs.test",
    "!..": b"%21..",
    "!.%2f..": b"%21.%252f..",
    "!a;b=c&d\\e:hs.test": b"%21a%3Bb%3Dc%26d%5Ce%3Ahs.test",
}


@pytest.mark.parametrize("room", PATHS)
def test_a_room_id_is_one_segment_of_the_path(room: str) -> None:
    requests, _ = sent_by("matrix", Message(text="x", recipient=room))
    assert len(requests) == 1
    for request in requests:
        line = request.head.split(b"\r\n")[0]
        assert line.startswith(b"PUT /_matrix/client/v3/rooms/" + PATHS[room] + b"/send/m.room.message/"), line
        assert line.count(b"/") == 9 and b"?" not in line and b"#" not in line


FORGED = (
    "../../users/@me",
    "%2e%2e/x",
    "1?x=1",
    "1#x",
    "1/../2",
    "..",
    ".",
    "1;2",
    "1\\2",
    "１２",
    "1/2/3",
    "//evil.test/1",
    "42 HTTP/1.1",
)


@pytest.mark.parametrize(
    "platform", [platform for platform in platforms() if CHANNELS[platform].fixed_recipient is None]
)
@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_recipient_reaches_no_other_path(platform: str, forged: str) -> None:
    plain, _ = sent_by(platform, Message(text="x"))
    requests, outcome = sent_by(platform, Message(text="x", recipient=forged))
    for request in requests:
        assert request.target.count("/") == plain[0].target.count("/"), request.target
        assert ".." not in request.target and "?" not in request.target and " " not in request.target
    assert requests or outcome.status.value == "refused"


# --- Templates and JSON -----------------------------------------------------------------------------------------------

CONTENTS = (
    'say "hi"\n{{content}} \\ {"a": 1}',
    '", "admin": true, "x": "',
    "\u2028\u2029 </script> \x00\x1b\x07 \\u0000 \ud83d\ude00 é",
    "a&b=c%26;d+e {{ content }} {{{content}}}",
    "{{content}}",
)


@pytest.mark.parametrize("content", CONTENTS)
def test_content_stays_content_in_json_form_and_url(content: str) -> None:
    clean = content.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"body_template": '{"a": {"text": "<{{content}}>"}, "b": {{content}}}'}, lambda r: (r.json()["a"]["text"][1:-1], r.json()["b"])),
        ({"body_template": "u=me&text={{content}}&v=1", "headers": {"Content-Type": "application/x-www-form-urlencoded"}}, lambda r: (r.form()["text"], list(r.form()))),
        ({}, lambda r: (r.json()["content"], list(r.json()))),
    ]  # fmt: skip
    expected: list[Any] = [(clean, clean), (clean, ["u", "text", "v"]), (clean, ["content"])]
    for (settings, read), wanted in zip(cases, expected, strict=True):
        with Loopback() as server:
            config = {"channels": {"w": {"type": "webhook", "url": server.url + "/in", **settings}}}
            with Messenger.from_config(config) as messenger:
                assert messenger.call_tool("message", {"channel": "w", "content": content}).ok
            assert read(server.requests[0]) == wanted
    with Loopback() as server:
        config = {
            "channels": {
                "w": {"type": "webhook", "url": server.url + "/in/{{content}}?q={{content}}&z=1", "method": "GET"}
            }
        }
        with Messenger.from_config(config) as messenger:
            assert messenger.call_tool("message", {"channel": "w", "content": content}).ok
        (request,) = server.requests
        assert request.query == {"q": clean, "z": "1"} and request.target.split("?")[0].count("/") == 2


@pytest.mark.parametrize("kind", ["application/xml", "text/xml; charset=utf-8", "application/soap+xml", "text/html"])
def test_content_stays_content_in_xml_and_html(kind: str) -> None:
    import xml.etree.ElementTree as Tree

    content = '</text><admin a="1">&amp; \'"]]>'
    with Loopback() as server:
        body = '<m title="{{content}}"><text>{{content}}</text></m>'
        settings = {"type": "webhook", "url": server.url, "headers": {"Content-Type": kind}, "body_template": body}
        with Messenger.from_config({"channels": {"w": settings}}) as messenger:
            assert messenger.call_tool("message", {"channel": "w", "content": content}).ok
        root = Tree.fromstring(server.requests[0].body)
    assert [one.tag for one in root.iter()] == ["m", "text"]
    assert (root[0].text, root.get("title")) == (content, content)


# --- Terminals --------------------------------------------------------------------------------------------------------

STEERING = (
    "\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1b]8;;http://evil.test\x1b\\click\x1b]8;;\x1b\\", "\x9b31m",
    "\x1bP1$q\x1b\\", "\x08\x08\x08", "\r", "\x7f", "\x1b", "\u202egnp.exe", "\u2066x\u2069", "\u009d0;t\u009c",
)  # fmt: skip
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("steering", STEERING)
def test_what_the_terminal_channel_writes_steers_nothing(
    steering: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for format in ("markdown", "plain"):
        with Messenger.from_config(
            {"channels": {"t": {"type": "cli", "format": format}}}, environ={**os.environ, "NO_COLOR": "1"}
        ) as messenger:
            assert messenger.send(f"before {steering}\n\n**after**").ok
            assert messenger.call_tool("message", {"channel": "t", "content": f"before {steering}\n\nafter"}).ok
    out = capfd.readouterr().out
    assert "before" in out and "after" in out
    assert not FORBIDDEN.search(out), ascii(out)


@pytest.mark.parametrize("steering", STEERING)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_a_server_says_steers_no_terminal(
    steering: str,
    more: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for answer in (
        reply(400, json={"message": f"no {steering} way"}),
        reply(400, body=f"no {steering} way"),
        reply(200, json={"id": f"1{steering}"}),
    ):
        with Loopback(default=answer) as server:
            (tmp_path / "messaging.yaml").write_text(
                json.dumps(
                    {"channels": {"w": {"type": "discord-webhook", "url": server.url + "/api/webhooks/1/FAKE-tok"}}}
                )
            )
            cli.main(["send", "hi", "--channel", "w", *more])
            cli.main(["send", f"hi {steering}", "--channel", "w", "--dry-run", *more])
            cli.main(["send", "hi", "--channel", f"w{steering}", *more])
            cli.main(["send", "hi", "--channel", "w", "--recipient", f"x{steering}", *more])
            cli.main(["call", f"tool{steering}", "{}", *more])
            cli.main(["doctor"])
            cli.main(["audit", *more])
    captured = capsys.readouterr()
    assert captured.out and not FORBIDDEN.search(captured.out), ascii(captured.out)
    assert not FORBIDDEN.search(captured.err), ascii(captured.err)


@pytest.mark.parametrize("steering", (*STEERING, "\n", '"}\n{"event":"forged","phase":"end"'))
def test_an_audit_line_is_one_line_of_ascii(steering: str, own_folders: Path) -> None:
    channels = {"t": {"type": "telegram", "bot_token": "111111:FAKE-token-x", "api_base": "http://127.0.0.1:1"}}
    with Messenger.from_config({"channels": channels, "max_attempts": 1}) as messenger:
        messenger.send(Message(text="x", channel="t", recipient=f"4{steering}"))
        messenger.send(Message(text="x", channel=f"t{steering}"))
        messenger.send(Message(media_path=f"/nowhere/{steering}"))
        messenger.call_tool(f"tool{steering}", {})
    raw = (own_folders / "state" / "messaging" / "audit.jsonl").read_bytes()
    assert re.fullmatch(rb"(?:[\x20-\x7e]+\n)+", raw)
    lines = [json.loads(line) for line in raw.splitlines()]
    assert len(lines) >= 3 and all(line["status"] == "refused" and line["event"] != "forged" for line in lines)
