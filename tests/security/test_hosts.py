"""Nothing that a model or a server says sends a byte to a host that the settings do not name.

A second server stands for that host: it must not even be connected to.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from messaging_adapters.messenger import Messenger
from messaging_core.message import Conversation, Message
from tests.adapters.loopback import Item, Loopback, redirect, reply
from tests.faults.matrix import UNHURRIED, good_replies, messenger_for, platforms
from tests.material import SECRET, png


@pytest.fixture
def evil() -> Iterator[Loopback]:
    """Somebody else's host. A test that ends with a connection to it has failed."""
    with Loopback() as server:
        yield server
        assert (server.connections, server.requests) == (0, [])


def named(server: Loopback) -> tuple[str, ...]:
    """The other host, in every way of writing one."""
    place = server.url.removeprefix("http://")
    return (
        server.url, f"//{place}/", place, f"http://x@{place}/", f"@{place}", f"1@{place}", f"//{place}/1", f"1/../..//{place}",
        f"\\\\{place}\\share", f"#a:{place}", f"@a:{place}", f"!a:{place}", f"user:1@{place}", f"42.{place}", f"http:{place}", f"HTTP://{place}",
    )  # fmt: skip


@pytest.mark.parametrize("platform", platforms())
def test_no_argument_names_a_host(platform: str, evil: Loopback) -> None:
    good = good_replies(platform, Message(text="x"))[0]
    with Loopback(default=good) as server, messenger_for(platform, server.url, UNHURRIED, max_attempts=1) as messenger:
        for text in named(evil):
            calls: list[tuple[dict[str, Any], Conversation | None]] = [
                ({"text": "x", "channel": "c", "recipient": text}, None),
                ({"text": "x", "channel": text}, None),
                ({"text": "x", "channel": "c", "reply_to": text}, None),
                ({"text": text, "channel": "c"}, None),
                ({"media_path": text, "channel": "c"}, None),
                ({"voice_path": text, "channel": "c"}, None),
                ({"text": "x"}, Conversation(channel="c", recipient=text)),
                ({"text": "x"}, Conversation(channel="c", recipient="42", thread=text, message_id=text, sender=text)),
            ]
            for arguments, conversation in calls:
                messenger.call_tool("message_send", arguments, conversation)
            messenger.call_tool("message", {"channel": text, "content": "x"})
            messenger.call_tool("message", {"channel": "c", "content": text})
        assert {request.header("Host") for request in server.requests} <= {server.url.removeprefix("http://")}


@pytest.mark.parametrize("argument", ["media_path", "voice_path"])
def test_a_file_is_a_path_and_no_url(argument: str, evil: Loopback, tmp_path: Path) -> None:
    with Loopback() as server, messenger_for("telegram", server.url, UNHURRIED, max_attempts=1) as messenger:
        urls = (
            f"{evil.url}/a.png",
            f"{evil.url}/a.ogg",
            "file:///etc/passwd",
            f"ftp://{evil.url[7:]}/a.png",
            "data:image/png;base64,AAAA",
            f"file://{evil.url[7:]}/x",
        )
        for url in urls:
            result = messenger.call_tool("message_send", {argument: url, "channel": "c"})
            assert result.outcome.status.value == "refused", url
        assert server.requests == []


def test_the_gateway_is_the_one_of_the_settings(evil: Loopback) -> None:
    place = evil.url.removeprefix("http://")
    with Loopback() as gateway:
        security = {"tool_policy": {"default": "allow", "tools": {"gateway": "allow"}}}
        config = {
            "gateway": {"host": "127.0.0.1", "port": gateway.port, "token": f"{SECRET}-gate"},
            "security": security,
        }
        with Messenger.from_config({**config, "http": {"read_timeout": 0.3}, "max_attempts": 1}) as messenger:
            for target in (f"ws://{place}/ws", f"http://{place}/api", f"ws://127.0.0.1:{gateway.port}@{place}/ws", f"//{place}/ws", place, f"ws://{place}", f"/ws/../..//{place}",
                           f"/ws@{place}", f"ws://127.0.0.1:{gateway.port}\\@{place}/", f"http://localhost:{evil.port}/ws"):  # fmt: skip
                for action in ("send", "broadcast", "status"):
                    result = messenger.call_tool(
                        "gateway", {"action": action, "payload": {"content": "x", "target": target}}
                    )
                    assert not result.ok, (target, action)


# --- Redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("platform", platforms())
def test_no_redirect_is_followed(platform: str, status: int, evil: Loopback) -> None:
    for to in (f"{evil.url}/x", f"//{evil.url[7:]}/x", f"{evil.url}/\r\nX: 1".replace("\r\n", "")):
        with (
            Loopback(default=redirect(to, status)) as server,
            messenger_for(platform, server.url, UNHURRIED, max_attempts=1) as messenger,
        ):
            outcome = messenger.send("hi")
            assert (outcome.status.value, len(server.requests)) == ("failed", 1)
            assert SECRET not in outcome.message
            for _, trouble in messenger.probe():
                assert trouble is not None
    with (
        Loopback(default=redirect("/elsewhere", status)) as server,
        messenger_for(platform, server.url, UNHURRIED, max_attempts=1) as messenger,
    ):
        messenger.send("hi")
        assert all(request.path != "/elsewhere" for request in server.requests)


@pytest.mark.parametrize("platform", platforms())
def test_no_header_of_a_reply_leads_elsewhere_or_is_sent_back(platform: str, evil: Loopback) -> None:
    good = good_replies(platform, Message(text="x"))[0]
    assert isinstance(good.body, bytes)
    headers = {
        "Refresh": f"0; url={evil.url}/", "Alt-Svc": f'h2="{evil.url[7:]}"; ma=1', "Link": f"<{evil.url}>; rel=next", "Content-Location": evil.url,
        "Set-Cookie": "sid=FAKEcookie; Path=/", "Location": evil.url, "WWW-Authenticate": "Basic", "Proxy": evil.url,
    }  # fmt: skip
    with (
        Loopback(default=reply(200, body=good.body, headers=headers)) as server,
        messenger_for(platform, server.url, UNHURRIED) as messenger,
    ):
        assert messenger.send("one").ok and messenger.send("two").ok
        assert all(request.header("Cookie") is None for request in server.requests)


# --- Places to upload to ----------------------------------------------------------------------------------------------


def places(base: Loopback, evil: Loopback) -> tuple[str, ...]:
    other, own = evil.url.removeprefix("http://"), base.url.removeprefix("http://")
    return (
        f"http://{other}/up", f"https://{other}/up", f"http://{own}@{other}/up", f"http://files.slack.com@{other}/up", f"http://{other}#@{own}/up",
        f"http://{other}\\@{own}/up", f"http://localhost:{evil.port}/up", f"http://127.1:{evil.port}/up", f"http://2130706433:{evil.port}/up",
        f"http://[::ffff:127.0.0.1]:{evil.port}/up", f"//{other}/up", f" http://{other}/up", f"http://{other}/up\r\nHost: files.slack.com", f"\thttp://{other}",
        f"HTTP://{other}/up", "file:///etc/passwd", f"http://0:{evil.port}/up", f"http://files.slack.com.{other}/up", f"http://{other}/files.slack.com", "", "up",
        f"http://127.0.0.1:{evil.port}%2F@{own}/", "http://169.254.169.254/latest", "https://slack.com.evil.invalid/up", "https://evilslack.com/up", "https://slack.com:22/up",
        f"ftp://{own}/up", f"gopher://{own}/up",
    )  # fmt: skip


def test_bytes_go_to_no_place_that_a_server_names_elsewhere(evil: Loopback, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    named_place = ""

    def respond(request: Any) -> Item:
        if request.path.endswith("files.getUploadURLExternal"):
            return reply(json={"ok": True, "upload_url": named_place, "file_id": "F1"})
        return reply(json={"ok": True})

    with Loopback(respond=respond) as server:  # noqa: SIM117
        with messenger_for("slack", server.url, UNHURRIED, media_roots=[str(tmp_path)], max_attempts=1) as messenger:
            for named_place in places(server, evil):
                server.requests.clear()
                outcome = messenger.send(Message(media_path=str(tmp_path / "a.png")))
                assert (outcome.status.value, len(server.requests)) == ("failed", 1), named_place
            server.requests.clear()
            named_place = f"{server.url}/upload/v1/abc?sig=1"
            assert messenger.send(Message(media_path=str(tmp_path / "a.png"))).ok
            _, stored, _ = server.requests
            assert stored.target == "/upload/v1/abc?sig=1"
            assert stored.header("Authorization") is None and SECRET.encode() not in stored.raw


def test_a_place_that_redirects_gets_the_bytes_and_nobody_else(evil: Loopback, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())

    def respond(request: Any) -> Item:
        if request.path.endswith("files.getUploadURLExternal"):
            return reply(json={"ok": True, "upload_url": f"{server.url}/up", "file_id": "F1"})
        return redirect(f"{evil.url}/up", 307)

    with Loopback(respond=respond) as server:  # noqa: SIM117
        with messenger_for("slack", server.url, UNHURRIED, media_roots=[str(tmp_path)], max_attempts=1) as messenger:
            outcome = messenger.send(Message(media_path=str(tmp_path / "a.png")))
            assert (outcome.status.value, len(server.requests)) == ("failed", 2)


def test_ids_that_a_server_names_stay_in_their_segment(evil: Loopback) -> None:
    """A DM channel, a room behind an alias, a migrated chat: what was learned is foreign text too."""
    other = evil.url.removeprefix("http://")
    for id in (
        f"../../..//{other}",
        f"@{other}/",
        "1/../../users/@me",
        "1?x=1",
        "1#",
        "1\r\nX-Evil: 1",
        f"//{other}",
        "%2e%2e",
    ):
        answers: dict[str, tuple[str, Any]] = {
            "discord": ("user:42", {"id": id}),
            "matrix": ("#a:hs.test", {"room_id": id, "event_id": "$1"}),
            "telegram": (
                "-100123",
                {"ok": False, "error_code": 400, "description": "moved", "parameters": {"migrate_to_chat_id": id}},
            ),
            "slack": ("U42", {"ok": True, "channel": {"id": id}, "ts": "1.2"}),
        }
        for platform, (recipient, body) in answers.items():
            with Loopback(default=reply(400 if platform == "telegram" else 200, body=json.dumps(body))) as server:
                with messenger_for(platform, server.url, UNHURRIED, max_attempts=1) as messenger:
                    messenger.send(Message(text="x", recipient=recipient))
                for request in server.requests:
                    path = request.target.partition("?")[0]
                    assert "x" not in request.query, (platform, request.target)
                    assert "/../" not in path and "//" not in path and not path.endswith("/.."), (
                        platform,
                        request.target,
                    )
                    assert "X-Evil" not in [name for name, _ in request.headers]
