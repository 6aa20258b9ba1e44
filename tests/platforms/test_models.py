"""The models themselves: what a platform refuses they refuse, with the platform's own words, or a green test means little."""

import http.client
import json
from urllib.parse import urlencode

import pytest

from tests.adapters.loopback import Loopback
from tests.material import MP3, ogg_opus, png
from tests.platforms.discord import HOOK_TOKEN, Discord
from tests.platforms.discord import TOKEN as DISCORD
from tests.platforms.far_end import HEIC
from tests.platforms.signal import ACCOUNT, Signal
from tests.platforms.slack import TOKEN as SLACK
from tests.platforms.slack import Slack
from tests.platforms.telegram import TOKEN as TELEGRAM
from tests.platforms.telegram import Telegram
from tests.platforms.whatsapp import PHONE, WhatsApp
from tests.platforms.whatsapp import TOKEN as WHATSAPP

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(model, path, body=None, headers=None, method="POST"):
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with Loopback(respond=model) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        connection.request(method, path, data, headers if headers is not None else JSON)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
    return found


def multipart(*parts):
    """``parts``: (head, data) as they stand."""
    body = b"".join(b"--B\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n" for head, data in parts) + b"--B--\r\n"
    return body, {"Content-Type": "multipart/form-data; boundary=B"}


def field(name, value):
    return f'Content-Disposition: form-data; name="{name}"', value.encode()


def file(name, data, filename="a", mime="image/png"):
    return f'Content-Disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: {mime}', data


GOOD = {"chat_id": 42, "text": "x"}
TELEGRAM_WRONG = [
    ("sendMessage", {"text": "x"}, "chat_id is required"),
    ("sendMessage", {**GOOD, "txt": "y"}, "no parameter txt"),
    ("sendMessage", {**GOOD, "text": "x" * 4097}, "message is too long"),
    ("sendMessage", {**GOOD, "text": " "}, "message text is empty"),
    ("sendMessage", {**GOOD, "text": "<br>", "parse_mode": "HTML"}, "can't parse entities"),
    ("sendMessage", {**GOOD, "text": "<b>x", "parse_mode": "HTML"}, "can't parse entities"),
    ("sendMessage", {**GOOD, "chat_id": 42.5}, "chat_id"),
    ("sendMessage", {**GOOD, "chat_id": "@alice"}, "chat not found"),
    ("sendMessage", {**GOOD, "message_thread_id": 1}, "message thread not found"),
    ("sendMessage", {**GOOD, "reply_parameters": {"message_id": 1}}, "message to be replied not found"),
    ("sendMessage", {**GOOD, "reply_parameters": {"message_id": 900, "x": 1}}, "no parameter x"),
    ("sendMessage", {**GOOD, "disable_notification": "yes"}, "disable_notification"),
    ("sendFax", GOOD, "Not Found"),
]


@pytest.mark.parametrize(("method", "body", "why"), TELEGRAM_WRONG)
def test_telegram_refuses(method, body, why):
    status, answer = ask(Telegram(), f"/bot{TELEGRAM}/{method}", body)
    assert status in (400, 404) and why in answer and json.loads(answer)["ok"] is False


@pytest.mark.parametrize(
    ("method", "parts", "why"),
    [
        ("sendPhoto", [field("chat_id", "42"), file("photo", HEIC)], "IMAGE_PROCESS_FAILED"),
        ("sendPhoto", [field("chat_id", "42"), file("photo", png(1, 30))], "PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", [field("chat_id", "42"), file("document", png())], "no parameter document"),
        ("sendPhoto", [field("chat_id", "42"), file("photo", b"")], "non-empty"),
        ("sendVoice", [field("chat_id", "42"), file("voice", png())], "shows no png"),
        ("sendAnimation", [field("chat_id", "42"), file("animation", png())], "shows no png"),
        (
            "sendPhoto",
            [field("chat_id", "42"), field("caption", "x" * 1025), file("photo", png())],
            "caption is too long",
        ),
        ("sendPhoto", [field("chat_id", "42"), ("X-Evil: 1\r\n" + file("photo", png())[0], png())], "does not belong"),
        ("sendPhoto", [field("chat_id", "42"), file("photo", png(), 'a"b')], "quoted"),
    ],
)
def test_telegram_refuses_files(method, parts, why):
    status, answer = ask(Telegram(), f"/bot{TELEGRAM}/{method}", *multipart(*parts))
    assert status == 400 and why in answer


def test_telegram_knows_its_token_and_a_good_message():
    assert ask(Telegram(), "/bot1:other/getMe", {})[0] == 401
    assert ask(Telegram(), "/botnonsense/getMe", {})[0] == 404
    status, answer = ask(Telegram(), f"/bot{TELEGRAM}/sendMessage", GOOD)
    assert status == 200 and json.loads(answer)["result"]["message_id"] == 101


BOT = {**JSON, "Authorization": f"Bot {DISCORD}", "User-Agent": "DiscordBot (https://x.test, 1)"}
DISCORD_WRONG = [
    ({"content": "x" * 2001}, 50035),
    ({"content": " "}, 50006),
    ({"content": "x", "contents": "y"}, 50035),
    ({"content": "x", "flags": 64}, 50035),
    ({"content": "x", "nonce": "n" * 26}, 50035),
    ({"content": "x", "message_reference": {"message_id": 5000}}, 50035),
    ({"content": "x", "message_reference": {"message_id": "4999"}}, 50035),
    ({"content": "x", "allowed_mentions": {"parse": ["all"]}}, 50035),
    ({"content": "x", "attachments": [{"id": "0"}]}, 50035),
    ({"content": "x", "flags": 8192}, 50159),
    ({"flags": 8192}, 50160),
]


@pytest.mark.parametrize(("body", "code"), DISCORD_WRONG)
def test_discord_refuses(body, code):
    status, answer = ask(Discord(), "/api/v10/channels/789/messages", body, BOT)
    assert status == 400 and json.loads(answer)["code"] == code


def test_discord_wants_its_headers_and_a_known_place():
    path, body = "/api/v10/channels/789/messages", {"content": "x"}
    assert ask(Discord(), path, body, {**BOT, "User-Agent": "python"})[0] == 403
    assert ask(Discord(), path, body, {**BOT, "Authorization": DISCORD})[0] == 401
    assert ask(Discord(), "/api/v10/channels/1/messages", body, BOT)[0] == 404
    hook = f"/api/webhooks/55/{HOOK_TOKEN}"
    agent = {**JSON, "User-Agent": BOT["User-Agent"]}
    assert ask(Discord(), hook, body, BOT)[0] == 400
    assert ask(Discord(), hook, {**body, "nonce": "1"}, agent)[0] == 400
    assert ask(Discord(), f"{hook}?wait=1", body, agent)[0] == 400
    assert ask(Discord(), hook + "x", body, agent)[0] == 401
    assert ask(Discord(), hook, body, agent) == (204, "")
    assert ask(Discord(), f"{hook}?wait=true", body, agent)[0] == 200


def test_discord_gives_a_repeat_of_a_nonce_its_first_message():
    discord, body = Discord(), {"content": "x", "nonce": "1", "enforce_nonce": True}
    first, second = (ask(discord, "/api/v10/channels/789/messages", body, BOT)[1] for _ in range(2))
    assert json.loads(first)["id"] == json.loads(second)["id"] and discord["789"].texts == ["x"]


def test_discord_rings_everybody_unless_told_not_to():
    discord = Discord()
    ask(discord, "/api/v10/channels/789/messages", {"content": "@everyone <@1> <@&2>"}, BOT)
    ask(
        discord,
        "/api/v10/channels/789/messages",
        {"content": "@here <@1>", "allowed_mentions": {"parse": ["users"]}},
        BOT,
    )
    assert [one.pings for one in discord["789"].messages] == [["@everyone", "<@1>", "<@&2>"], ["<@1>"]]


BEARER = {"Authorization": f"Bearer {SLACK}"}
SLACK_WRONG = [
    ("chat.postMessage", {"channel": "C0123456789", "text": ""}, "no_text"),
    ("chat.postMessage", {"channel": "C0123456789", "text": "x", "colour": "red"}, "invalid_arg_name"),
    ("chat.postMessage", {"channel": "C9999999999", "text": "x"}, "channel_not_found"),
    ("chat.postMessage", {"channel": "C0123456789", "text": "x", "thread_ts": "1"}, "invalid_thread_ts"),
    ("chat.postMessage", {"channel": "C0123456789", "text": "x", "thread_ts": "1712345678.000001"}, "thread_not_found"),
    ("chat.postMessage", {"channel": "C0123456789", "text": "a < b & c"}, "not escaped"),
    ("chat.postMessage", {"channel": "C0123456789", "text": "x", "token": SLACK}, "outside of its header"),
    ("files.getUploadURLExternal", {"filename": "a", "length": "0"}, "invalid_arguments"),
    ("files.completeUploadExternal", {"files": '[{"id": "F1"}]', "channel_id": "C0123456789"}, "file_not_found"),
    ("files.upload", {"content": "x"}, "unknown_method"),
    ("conversations.open", {"users": "U9"}, "user_not_found"),
]


@pytest.mark.parametrize(("method", "values", "why"), SLACK_WRONG)
def test_slack_refuses_with_two_hundred(method, values, why):
    status, answer = ask(Slack(), f"/api/{method}", urlencode(values).encode(), {**FORM, **BEARER})
    assert status == 200 and json.loads(answer)["ok"] is False and why in answer


def test_slack_rings_and_tells_a_leak():
    slack = Slack()
    ask(slack, "/api/chat.postMessage", {"channel": "#ops", "text": "<!channel> <@U1>"}, {**JSON, **BEARER})
    assert slack["C0123456789"].messages[0].pings == ["<!channel>", "<@U1>"] and slack.warn == ["missing_charset"]
    ask(slack, "/upload/v1/none", b"x", BEARER)
    assert slack.leaks


GRAPH = {**JSON, "Authorization": f"Bearer {WHATSAPP}"}
TO = {"messaging_product": "whatsapp", "recipient_type": "individual", "to": "16505551234"}
WHATSAPP_WRONG = [
    ({**TO, "type": "text", "text": {"body": ""}}, 100),
    ({**TO, "type": "text", "text": {"body": "x" * 4097}}, 100),
    ({**TO, "type": "text", "text": {"body": "x", "format": 1}}, 100),
    ({**TO, "type": "text", "text": {"body": "x"}, "thread": "1"}, 100),
    ({**TO, "to": 16505551234, "type": "text", "text": {"body": "x"}}, 100),
    ({**TO, "to": "0123", "type": "text", "text": {"body": "x"}}, 131009),
    ({**TO, "type": "voice", "voice": {"id": "1"}}, 131051),
    ({**TO, "type": "image", "image": {"id": "1"}}, 131009),
    ({**TO, "type": "text", "text": {"body": "x"}, "context": {"message_id": "wamid.NO"}}, 131009),
    ({**TO, "to": "16505550099", "type": "text", "text": {"body": "x"}}, 131047),
]


@pytest.mark.parametrize(("body", "code"), WHATSAPP_WRONG)
def test_whatsapp_refuses(body, code):
    status, answer = ask(WhatsApp(), f"/v25.0/{PHONE}/messages", body, GRAPH)
    assert status == 400 and json.loads(answer)["error"]["code"] == code


def test_whatsapp_looks_into_files():
    whatsapp = WhatsApp()

    def upload(data, mime):
        parts = [field("messaging_product", "whatsapp"), field("type", mime), file("file", data, mime=mime)]
        body, headers = multipart(*parts)
        return ask(whatsapp, f"/v25.0/{PHONE}/media", body, {**headers, "Authorization": GRAPH["Authorization"]})

    assert upload(png(), "image/jpeg")[0] == upload(b"OggS\0vorbis", "audio/ogg")[0] == 400
    song, picture = (json.loads(upload(*one)[1])["id"] for one in ((MP3, "audio/mpeg"), (png(), "image/png")))
    for kind, value in (
        ("audio", {"id": song, "caption": "x"}),
        ("audio", {"id": song, "voice": True}),
        ("audio", {"id": picture}),
        ("image", {"id": picture, "filename": "x"}),
        ("image", {"id": picture, "caption": "x" * 1025}),
    ):
        assert ask(whatsapp, f"/v25.0/{PHONE}/messages", {**TO, "type": kind, kind: value}, GRAPH)[0] == 400
    opus = json.loads(upload(ogg_opus(), "audio/ogg; codecs=opus")[1])["id"]
    good = {**TO, "type": "audio", "audio": {"id": opus, "voice": True}}
    assert ask(whatsapp, f"/v25.0/{PHONE}/messages", good, GRAPH)[0] == 200 and whatsapp.messages[0].voice


def call(**params):
    return {"jsonrpc": "2.0", "id": "1", "method": "send", "params": params}


SIGNAL_WRONG = [
    (call(recipient=["+15550003333"]), -1),
    (call(message="x"), -1),
    (call(recipient=["5550003333"], message="x"), -1),
    (call(recipient=["+15550003333"], message="x", text="y"), -32602),
    (call(recipient=["+15550003333"], message="x", textStyle=["0:2:BOLD"]), -1),
    (call(recipient=["+15550003333"], message="x", quoteTimestamp=1), -1),
    (call(recipient=["+15550003333"], message="x", attachments=["/etc/passwd"]), -1),
    (call(account="+1999", recipient=["+15550003333"], message="x"), -32602),
    ({**call(), "method": "post"}, -32601),
    ({**call(), "id": None}, -32600),
]


@pytest.mark.parametrize(("body", "code"), SIGNAL_WRONG)
def test_signals_daemon_refuses_with_two_hundred(body, code):
    status, answer = ask(Signal(), "/api/v1/rpc", body)
    assert status == 200 and json.loads(answer)["error"]["code"] == code


REST = {"number": ACCOUNT, "recipients": ["+15550003333"], "message": "x", "text_mode": "normal"}
REST_WRONG = [
    {**REST, "number": "+1999999"},
    {**REST, "recipients": ["+15550003333", "alice.01"]},
    {**REST, "recipients": "+15550003333"},
    {**REST, "text_mode": "markdown"},
    {**REST, "quote_timestamp": 1},
    {**REST, "quote_timestamp": "1", "quote_author": ACCOUNT},
    {**REST, "base64_attachments": ["aGk="]},
    {**REST, "voice_note": True},
    {key: value for key, value in REST.items() if key != "text_mode"},
]


@pytest.mark.parametrize("body", REST_WRONG)
def test_signals_rest_service_refuses(body):
    signal = Signal(rest=True)
    assert ask(signal, "/v2/send", body)[0] == 400 and signal.messages == []
    assert ask(signal, "/v2/send", REST)[0] == 201
