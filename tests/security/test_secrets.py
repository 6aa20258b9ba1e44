"""Secrets are planted wherever the settings take one, and looked for in everything that comes out again.

The far end is malicious or careless: it echoes what it was told, as it came and in every form that a server, a proxy
or a library might give it. Looked for is any ten characters in a row of a value, so that a part of one is found too.
"""

import base64
import contextlib
import html
import io
import itertools
import json
import logging
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from messaging_adapters import cli
from messaging_adapters.configuration import ConfigurationInvalid
from messaging_adapters.messenger import Messenger
from messaging_core.display import planned_json, planned_text
from messaging_core.message import Conversation, Message
from messaging_core.secrecy import Secrets
from tests.adapters.loopback import Item, Loopback, Request, hang, reply, reset
from tests.faults.mail import MailFault, MailServer
from tests.faults.matrix import UNHURRIED

KEY = base64.b64encode(b"standard-webhooks-key-0123456").decode()
PLANTED = {
    "telegram": "111111:FAKE-tG-9f8e7d6c5b4a-Zz",
    "discord": "FAKE.dC-q1w2e3r4.t5y6_u7i8",
    "hook": "FAKEhook_a1B2c3D4e5F6g7H8",
    "slack": "xoxb-FAKE-sL-0a9s8d7f6g5h",
    "whatsapp": "EAAFAKEwA0p9o8i7u6y5t4r3",
    "matrix": "syt_FAKEmX_m1n2b3v4c5x6",
    "header": 'FAKE-hD"q\\x7&<z>/+=k9j8h7g6f5',
    "path": "FAKEpath-l1k2j3h4g5f6",
    "query": "FAKEquery-r5t4e3w2q1",
    "user": "FAKEuser-77aa88bb99",
    "pass": "FAKE@pass/55cc:66dd77",
    "signing": KEY,
    "mail": 'FAKE pa&ss wörd "z9y8x7w6',
    "gateway": "FAKEgate-g0a9t8e7w6a5y4",
    "proxy_pass": "FAKEproxy-p0r9o8x7y6",
}
"""Each its own, so that a find says where from."""

WINDOW = 10


def encoded(text: str) -> Iterator[str]:
    """A text, and the forms that it may have taken."""
    raw = text.encode()
    yield text
    yield from (quote(text, safe=""), quote(text), quote_plus(text), quote(text, safe="").lower())
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield json.dumps(text)[1:-1].replace("/", "\\/")
    yield html.escape(text)
    for value in (raw, b"Bearer " + raw, b"\0me\0" + raw, b"x:" + raw, raw + b":x"):
        yield base64.b64encode(value).decode()
        yield base64.urlsafe_b64encode(value).decode()
    yield repr(text)[1:-1]


LOGIN = base64.b64encode(f"{PLANTED['user']}:{PLANTED['pass']}".encode()).decode()
FORMS = {name: sorted({*encoded(value)}, key=len) for name, value in PLANTED.items()} | {"login": [LOGIN]}


def windows(text: str) -> set[str]:
    return {text[at : at + WINDOW] for at in range(len(text) - WINDOW + 1)}


NEEDLES = {window: name for name, value in (*PLANTED.items(), ("login", LOGIN)) for window in windows(value)} | {
    window: name
    for name, value in PLANTED.items()
    for shift in range(3)
    for window in windows(base64.b64encode(b"\0" * shift + value.encode()).decode()[4:-4])
}
ESCAPED = {form: name for name, forms in FORMS.items() for form in forms if len(form) >= WINDOW}


def found_in(text: str) -> list[str]:
    """Names of the planted values of which something stands in ``text``, and what."""
    windowed = {f"{NEEDLES[window]}: {window}" for window in windows(text) if window in NEEDLES}
    whole = {f"{name}: {form}" for form, name in ESCAPED.items() if form in text or form.lower() in text}
    return sorted(windowed | whole)


def test_the_hunt_finds_what_it_hunts() -> None:
    for name, forms in FORMS.items():
        for form in forms:
            assert any(found.startswith(f"{name}:") for found in found_in(f"error: {form}!")), (name, form)
    assert found_in("Authorization: Basic " + base64.b64encode(b"bot:" + PLANTED["telegram"].encode()).decode())
    assert found_in("an ordinary sentence about a token that is wrong") == []


# --- The channels, with a secret in each place ------------------------------------------------------------------------


def channels(url: str, mail_port: int = 1) -> dict[str, dict[str, Any]]:
    host = url.partition("://")[2]
    login = f"{PLANTED['user']}:{quote(PLANTED['pass'], safe='')}"
    signed = {"type": "webhook", "url": f"http://{login}@{host}/in/{PLANTED['path']}?key={PLANTED['query']}"}
    return {
        "telegram": {"type": "telegram", "bot_token": PLANTED["telegram"], "chat_id": "42", "api_base": url},
        "discord": {"type": "discord", "bot_token": PLANTED["discord"], "channel_id": "77", "api_base": url},
        "hook": {"type": "discord-webhook", "url": f"{url}/api/webhooks/123/{PLANTED['hook']}"},
        "slack": {"type": "slack", "bot_token": PLANTED["slack"], "channel_id": "C1", "api_base": url},
        "whatsapp": {"type": "whatsapp", "access_token": PLANTED["whatsapp"], "phone_number_id": "1", "to": "+16505551234", "api_base": url},
        "matrix": {"type": "matrix", "homeserver": url, "access_token": PLANTED["matrix"], "room_id": "!r:hs.test"},
        "webhook": {"type": "webhook", "url": f"{url}/in", "headers": {"X-Key": PLANTED["header"]}},
        "signed": signed | {"signing_secret": "whsec_" + KEY},
        "template": {"type": "webhook", "url": f"{url}/in", "body_template": '{"key": "${WEB_KEY}", "text": "{{content}}"}'},
        "mail": {"type": "email", "smtp_host": "127.0.0.1", "smtp_port": mail_port, "smtp_tls": False, "from_address": "bot@mail.test",
                 "to": "you@mail.test", "username": "me@mail.test", "password": PLANTED["mail"]},
    }  # fmt: skip


NAMES = tuple(channels("http://127.0.0.1:1"))
ENVIRON = {"WEB_KEY": PLANTED["header"].replace('"', "").replace("\\", "")}


def config(url: str, mail_port: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "channels": channels(url, mail_port),
        "http": {"connect_timeout": 1, "read_timeout": 0.15},
        "gateway": {"host": "127.0.0.1", "port": int(url.rpartition(":")[2]), "token": PLANTED["gateway"]},
        "security": {"tool_policy": {"default": "allow"}},
        "max_attempts": 2,
        "max_wait": 0.05,
        **more,
    }


def messenger_of(settings: Mapping[str, Any], environ: Mapping[str, str]) -> Messenger:
    return Messenger.from_config(settings, environ={**os.environ, **environ}, registry=UNHURRIED)


# --- What comes out ---------------------------------------------------------------------------------------------------


class Everything:
    """All that a program, a log reader or a model gets to see."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.log = io.StringIO()

    def add(self, *values: Any) -> None:
        for value in values:
            self.texts += [str(value), repr(value)]
            with contextlib.suppress(AttributeError, TypeError, pickle.PicklingError):
                self.texts += [pickle.dumps(value).decode("latin-1"), pickle.dumps(value, 0).decode("latin-1")]

    def leaks(self) -> list[str]:
        return found_in("\n".join((*self.texts, self.log.getvalue())))


@pytest.fixture
def everything(own_folders: Path) -> Iterator[Everything]:
    """Collects, with every logger at DEBUG; the audit lines are read at the end of a test by ``audit_of``."""
    seen = Everything()
    handler = logging.StreamHandler(seen.log)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield seen
    root.removeHandler(handler)
    root.setLevel(level)


def audit_of(home: Path) -> str:
    """The lines, and whatever else was kept in the folder."""
    files = list((home / "state" / "messaging").iterdir())
    assert any(file.name == "audit.jsonl" for file in files)
    return "".join(file.read_text() for file in files)


def drive(messenger: Messenger, seen: Everything, home: Path) -> None:
    """Every channel by every door, and all that is said of it."""
    for name in NAMES:
        message = Message(text="Hello **you**", channel=name)
        planned = messenger.plan("message_send", message).unwrap()
        seen.add(planned, planned_text(planned), json.dumps(planned_json(planned)))
        for result in (
            messenger.call_tool("message_send", {"text": "hi", "channel": name}),
            messenger.call_tool("message", {"channel": name, "content": "hi"}),
        ):
            seen.add(result, result.message, json.dumps(result.details), result.outcome.error, result.outcome.stopped)
            if result.outcome.stopped is not None:
                seen.add(messenger.resume(result.outcome, repeat_unconfirmed=True))
    seen.add(*messenger.probe(), messenger, messenger.settings, messenger.ports, messenger.tool_definitions())
    for payload in ({"content": "hi", "target": "/ws"}, {"content": "hi", "target": "telegram"}):
        seen.add(messenger.call_tool("gateway", {"action": "send", "payload": payload}))
    seen.add(messenger.call_tool("gateway", {"action": "status"}))
    seen.add(audit_of(home))


# --- Replies that give it back ----------------------------------------------------------------------------------------

ALL_FORMS = [form for name, forms in FORMS.items() if name != "proxy_pass" for form in forms]
ONE_LINE = " ".join(ALL_FORMS).encode("ascii", "backslashreplace").decode()


def told(request: Request) -> str:
    """What the client itself said, as it came."""
    return request.raw.decode("latin-1")


def as_json(status: int, words: Callable[[Request], str]) -> Callable[[Request], Item]:
    def respond(request: Request) -> Item:
        said = words(request)
        return reply(status, json={
            "ok": False, "error": said, "description": said, "message": said, "errcode": said, "detail": said, "code": said,
            "needed": said, "response_metadata": {"messages": [said], "warnings": [said]}, "errors": {said: {"_errors": [{"message": said}]}},
        })  # fmt: skip

    return respond


def in_error_object(status: int, words: Callable[[Request], str]) -> Callable[[Request], Item]:
    return lambda request: reply(
        status, json={"error": {"message": words(request), "code": 131030, "error_data": {"details": words(request)}}}
    )


def in_success(request: Request) -> Item:
    said = " ".join(ALL_FORMS)
    return reply(200, json={
        "ok": True, "result": {"message_id": said}, "id": said, "ts": said, "channel": said, "event_id": said, "room_id": said, "user_id": said,
        "messages": [{"id": said, "message_status": "paused"}], "contacts": [{"wa_id": said}], "warning": said,
    })  # fmt: skip


ECHOES: dict[str, Callable[[Request], Item]] = {
    **{f"{status} JSON, as told": as_json(status, told) for status in (200, 400, 401, 403, 404, 500)},
    **{f"{status} JSON, each form": as_json(status, lambda _: form_of()) for status in (200, 400, 404, 503)},
    "error object": in_error_object(400, told),
    "error object, each form": in_error_object(200, lambda _: form_of()),
    "success": in_success,
    "header": lambda request: reply(400, headers={"X-Echo": ONE_LINE, "Retry-After": ONE_LINE, "Location": ONE_LINE}),
    "reason": lambda request: reply(400, reason=ONE_LINE[:2000]),
    "redirect": lambda request: reply(302, headers={"Location": f"http://127.0.0.1:1{request.target}"}, body=told(request)),
    "HTML": lambda request: reply(400, body=f"<html>{html.escape(told(request))}</html>"),
    "text": lambda request: reply(400, body=form_of()),
    "text, as told": lambda request: reply(403, body=told(request)),
    "not HTTP": lambda request: Item(ONE_LINE.encode(), then="close"),
    "limit": lambda request: reply(429, json={"retry_after": 0.01, "message": ONE_LINE, "error": ONE_LINE}, headers={"Retry-After": "0.01"}),
    "reset": lambda request: reset(),
}  # fmt: skip

TURN = itertools.cycle(ALL_FORMS)


def form_of() -> str:
    """The forms in turn, a few at a time: what is said at length is cut."""
    return " | ".join(itertools.islice(TURN, 3))


QUICK = ("400 JSON, as told", "400 JSON, each form", "success", "text, as told", "HTML", "header")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in ECHOES]
)
def test_what_a_server_echoes_comes_out_nowhere(name: str, everything: Everything, own_folders: Path) -> None:
    with Loopback(respond=ECHOES[name]) as server, messenger_of(config(server.url), environ=ENVIRON) as messenger:
        drive(messenger, everything, own_folders)
        assert len(server.requests) > len(NAMES)
    assert everything.leaks() == []


@pytest.mark.parametrize("start", [0, pytest.param(9, marks=pytest.mark.slow)])
def test_what_is_cut_off_is_not_shown_in_half(start: int, everything: Everything) -> None:
    """Long words of a server are cut; wherever the cut falls, no beginning of a value stands before it."""
    echoes = iter(range(150 + start, 420, 18))
    size = 0

    def respond(request: Request) -> Item:
        said = (
            "y" * size
            + told(request).partition("Authorization: ")[2].partition("\r")[0]
            + request.target
            + told(request)
        )
        return reply(400, json={"error": said, "message": said, "description": said, "detail": said})

    with Loopback(respond=respond) as server, messenger_of(config(server.url), environ=ENVIRON) as messenger:
        for size in echoes:
            for name in NAMES:
                everything.add(messenger.send(Message(text="hi", channel=name)))
            text = "y" * size + PLANTED["header"]
            server._respond = lambda request, text=text: reply(400, body=text)  # type: ignore[misc]
            everything.add(messenger.send(Message(text="hi", channel="webhook")))
            server._respond = respond
    assert everything.leaks() == []


def test_what_was_said_of_parts_that_arrived_comes_out_nowhere_when_a_later_one_fails(
    everything: Everything, own_folders: Path
) -> None:
    answers = iter([in_success, as_json(400, told)] * 20)
    text = "word " * 3000
    with (
        Loopback(respond=lambda request: next(answers)(request)) as server,
        messenger_of(config(server.url), ENVIRON) as messenger,
    ):
        for name in NAMES:
            if name not in ("mail", "webhook", "signed", "template"):
                everything.add(messenger.send(Message(text=text, channel=name)))
        everything.add(audit_of(own_folders))
    assert everything.leaks() == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", [hang(), reset(read="nothing"), reply(200, body="<html>")])
def test_no_error_of_the_network_names_one(answer: Item, everything: Everything, own_folders: Path) -> None:
    with Loopback(default=answer) as server:  # noqa: SIM117
        with messenger_of(config(server.url, max_attempts=1), environ=ENVIRON) as messenger:
            drive(messenger, everything, own_folders)
    with messenger_of(config(server.url, max_attempts=1), environ=ENVIRON) as messenger:
        drive(messenger, everything, own_folders)  # nobody listens any more
    assert everything.leaks() == []


@pytest.mark.parametrize("stage", ["EHLO", "AUTH", "MAIL", "RCPT", "dot"])
def test_what_a_mail_server_echoes_comes_out_nowhere(stage: str, everything: Everything, own_folders: Path) -> None:
    for said in FORMS["mail"]:
        fault = MailFault("echo", stage, f"550 5.1.1 {said}\r\n".encode(), (), lasting=True)
        with MailServer(fault, auth=True) as server:  # noqa: SIM117
            with messenger_of(config("http://127.0.0.1:1", server.port), environ=ENVIRON) as messenger:
                outcome = messenger.send(Message(text="hi", channel="mail"))
                assert not outcome.ok
                everything.add(outcome, *messenger.probe("mail"), audit_of(own_folders))
    assert everything.leaks() == []


@pytest.mark.slow
def test_a_proxy_and_its_login_come_out_nowhere(everything: Everything, own_folders: Path) -> None:
    for answer in (reply(407, body=ONE_LINE), reset(), hang()):
        with Loopback(default=answer) as proxy:
            address = proxy.url.replace("http://", f"http://{PLANTED['user']}:{PLANTED['proxy_pass']}@")
            for scheme in ("http", "https"):
                http = {"connect_timeout": 0.3, "read_timeout": 0.1, "proxy": address}
                settings = config(f"{scheme}://far-end.test:8443", max_attempts=1, http=http)
                settings["channels"].pop("mail")
                with messenger_of(settings, environ=ENVIRON) as messenger:
                    for name in settings["channels"]:
                        everything.add(messenger.send(Message(text="hi", channel=name)))
                    everything.add(messenger.settings, messenger.ports)
            assert proxy.requests
    everything.add(audit_of(own_folders))
    assert everything.leaks() == []


# --- Configuration errors ---------------------------------------------------------------------------------------------

SECRET = PLANTED["telegram"]
WRONG = {
    "blank in a token": {"channels": {"a": {"type": "telegram", "bot_token": SECRET[:9] + " " + SECRET[9:]}}},
    "token that is a list": {"channels": {"a": {"type": "telegram", "bot_token": [SECRET]}}},
    "token that is a map": {"channels": {"a": {"type": "telegram", "bot_token": {SECRET: 1}}}},
    "control in a token": {"channels": {"a": {"type": "slack", "bot_token": SECRET + "\x00"}}},
    "hook without a scheme": {"channels": {"a": {"type": "discord-webhook", "url": f"hooks.test/{SECRET}"}}},
    "hook of another scheme": {"channels": {"a": {"type": "webhook", "url": f"ftp://hooks.test/{SECRET}"}}},
    "hook with a bad port": {"channels": {"a": {"type": "webhook", "url": f"https://u:{SECRET}@h.test:99999/x"}}},
    "base with a login": {"channels": {"a": {"type": "matrix", "homeserver": f"https://me:{SECRET}@h.test", "access_token": SECRET, "rom_id": 1}}},
    "header with a line end": {"channels": {"a": {"type": "webhook", "url": "https://h.test", "headers": {"X": f"{SECRET}\r\nY: 1"}}}},
    "header that is a list": {"channels": {"a": {"type": "webhook", "url": "https://h.test", "headers": [SECRET]}}},
    "header name": {"channels": {"a": {"type": "webhook", "url": "https://h.test", "headers": {"X Y": SECRET}}}},
    "template that is no JSON": {"channels": {"a": {"type": "webhook", "url": "https://h.test", "body_template": f'{{"k": "{SECRET}", {{{{content}}}}'}}},
    "signing secret": {"channels": {"a": {"type": "webhook", "url": "https://h.test", "signing_secret": f"whsec_{SECRET}"}}},
    "password beside a wrong key": {"channels": {"a": {"type": "email", "smtp_host": "h", "from_address": "x", "password": SECRET, "passwort": SECRET}}},
    "gateway token": {"gateway": {"token": f"{SECRET} {SECRET}"}},
    "gateway token that is a number list": {"gateway": {"token": [1, SECRET]}},
    "proxy": {"http": {"proxy": f"prox://{SECRET}"}},
    "proxy that is a list": {"http": {"proxy": [f"http://u:{SECRET}@p.test"]}},
    "unknown key": {"channels": {"a": {"type": "telegram", "bot_tokn": SECRET}}},
    "platform": {"channels": {"a": {"type": "telegramm", "bot_token": SECRET}}},
    "channel that is a text": {"channels": {"a": SECRET}},
    "variable inside": {"channels": {"a": {"type": "telegram", "bot_token": f"{SECRET}${{NOT_SET}}"}}},
    "variable's default": {"channels": {"a": {"type": "telegram", "bot_token": "${NOT_SET:-" + SECRET + " x}"}}},
    "variable not closed": {"channels": {"a": {"type": "telegram", "bot_token": "${NOT_SET" + SECRET}}},
}  # fmt: skip

TEXTS = {
    "torn.yaml": f'channels:\n  a:\n    type: telegram\n    bot_token: "{SECRET}\n    chat_id: [1\n',
    "tab.yaml": f"channels:\n  a:\n\ttype: telegram\n\tbot_token: {SECRET}\n",
    "twice.yaml": f"channels:\n  a:\n    bot_token: {SECRET}\n    bot_token: {SECRET}\n",
    "alias.yaml": f"channels:\n  a: *{SECRET.replace(':', '')}\n",
    "tag.yaml": f"channels:\n  a: !!python/object {SECRET}\n",
    "bytes.yaml": f"channels: \x07 {SECRET}\n",
    "torn.toml": f'[channels.a]\ntype = "telegram"\nbot_token = "{SECRET}\n',
    "bare.toml": f"[channels.a]\nbot_token = {SECRET}\n",
    "twice.toml": f'[channels.a]\nbot_token = "{SECRET}"\nbot_token = "{SECRET}"\n',
}


def tell(error: BaseException, seen: Everything) -> None:
    """The whole traceback, with all that it came from, and the error by itself."""
    seen.add("".join(traceback.format_exception(error)))
    one: BaseException | None = error
    while one is not None:
        seen.add(str(one), repr(one), one.args)
        one = one.__cause__ or one.__context__


@pytest.mark.parametrize("name", WRONG)
def test_a_fault_of_the_configuration_does_not_quote_one(name: str, everything: Everything) -> None:
    try:
        with messenger_of(WRONG[name], environ={}) as messenger:
            everything.add(messenger.settings, messenger.warnings)
    except ConfigurationInvalid as error:
        tell(error, everything)
    assert everything.leaks() == []


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_cannot_be_read_is_not_quoted(name: str, tmp_path: Path, everything: Everything) -> None:
    (tmp_path / name).write_text(TEXTS[name])
    with pytest.raises(ConfigurationInvalid) as caught:
        Messenger.from_file(tmp_path / name, environ={})
    tell(caught.value, everything)
    assert everything.leaks() == []


# --- The command ------------------------------------------------------------------------------------------------------

WORDS = (
    *(("send", "hi", "--channel", name, *more) for name in NAMES for more in ((), ("--json",), ("--dry-run",), ("--dry-run", "--json"))),
    *(("call", "message", json.dumps({"channel": name, "content": "hi"}), "--json") for name in NAMES),
    ("doctor",), ("check",), ("channels",), ("tools",), ("preview", "FILE"), ("audit",), ("audit", "--json"),
)  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    ["400 JSON, as told", *(pytest.param(one, marks=pytest.mark.slow) for one in ("success", "text, as told"))],
)
def test_the_command_prints_none(
    answer: str,
    tmp_path: Path,
    everything: Everything,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "note.md").write_text("Hello **you**")
    with Loopback(respond=ECHOES[answer]) as server:
        settings = config(server.url, max_attempts=1)
        (tmp_path / "messaging.yaml").write_text(json.dumps(settings))
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("WEB_KEY", ENVIRON["WEB_KEY"])
        for words in WORDS:
            cli.main([str(tmp_path / "note.md") if word == "FILE" else word for word in words])
        out, err = capsys.readouterr()
        assert len(out) > 2000
        everything.texts += [out, err]
    assert everything.leaks() == []


def test_values_that_are_unpickled_or_copied_are_still_hidden() -> None:
    secrets = Secrets(PLANTED)
    assert found_in(repr(secrets) + str(secrets) + f"{secrets}" + pickle.dumps(secrets).decode("latin-1")) == []
    assert found_in(repr(Conversation(channel="telegram"))) == []
