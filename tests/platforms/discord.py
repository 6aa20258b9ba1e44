"""A strict model of Discord's HTTP API v10: messages of a bot, and webhooks (https://docs.discord.com/developers)."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.adapters.loopback import Item, Request, reply
from tests.platforms.far_end import FarEnd, File, Refusal, json_of, kind_of, pieces, schema_faults, strict_json

TOKEN = "FAKE.discord-bot.token_value"
HOOK_TOKEN = "FAKE-hook-token_of-discord"
TEXT, DM, THREAD, FORUM = 0, 1, 11, 15
VOICE = 8192


@dataclass
class Message:
    id: str
    channel: str
    content: str
    files: list[File] = field(default_factory=list)
    reply_to: str | None = None
    flags: int = 0
    pings: list[str] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)


@dataclass
class Channel:
    """``trouble``: (status, code, message) that every message meets. ``parent``: of a thread."""

    id: str
    type: int = TEXT
    parent: str | None = None
    messages: list[Message] = field(default_factory=list)
    existing: tuple[str, ...] = ()
    takes_voice: bool = True
    trouble: tuple[int, int, str] | None = None

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.messages]


class Discord(FarEnd):
    """One bot, one webhook, and everything that arrived. ``bucket``: so many requests in so many seconds a channel."""

    def __init__(self, file_limit: int = 10 * 1024 * 1024, bucket: tuple[int, float] | None = None) -> None:
        super().__init__()
        self.file_limit, self.bucket = file_limit, bucket
        self.channels = {
            one.id: one
            for one in (
                Channel("789", existing=("5000",)),
                Channel("1234567890123456789"),
                Channel("790", takes_voice=False),
                Channel("800", THREAD, parent="789", existing=("5001",)),
                Channel("801", THREAD, parent="789", trouble=(400, 50083, "Thread is archived")),
                Channel("802", trouble=(403, 50013, "Missing Permissions")),
                Channel("803", trouble=(403, 50001, "Missing Access")),
            )
        }
        self.users = {"42": True, "43": False}
        """User ids, and whether they take direct messages."""
        self.dms: dict[str, str] = {}
        self.hook = ("55", HOOK_TOKEN, "789")
        self.opened: list[str] = []
        self._nonces: dict[tuple[str, str], Message] = {}
        self._next = 9_000_000_000_000_000_001
        self._taken: list[float] = []

    def __getitem__(self, id: str) -> Channel:
        return self.channels[id]

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        # https://docs.discord.com/developers/reference#user-agent
        if not re.match(r"DiscordBot \(\S+, \S+\)", request.header("User-Agent") or ""):
            raise Refusal(reply(403, body="error code: 1010"), "no User-Agent as the docs require")
        path = request.path
        if found := re.fullmatch(r"/api(?:/v10)?/webhooks/(\d+)/([\w-]+)", path):
            return self._webhook(request, found[1], found[2])
        if not path.startswith("/api/v10/"):
            raise _no(404, 0, "404: Not Found")
        if request.header("Authorization") != f"Bot {TOKEN}":
            raise _no(401, 0, "401: Unauthorized")
        route = f"{request.method} {path.removeprefix('/api/v10')}"
        if route == "GET /users/@me":
            return "me", lambda: reply(json={"id": "1", "username": "bot", "bot": True})
        if route == "POST /users/@me/channels":
            return self._dm(request)
        if found := re.fullmatch(r"GET /users/(\d+)", route):
            if found[1] not in self.users:
                raise _no(404, 10013, "Unknown User")
            return "user", lambda: reply(json={"id": found[1], "username": "someone"})
        if found := re.fullmatch(r"GET /channels/(\d+)", route):
            channel = self._channel(found[1])
            return "channel", lambda: reply(json={"id": channel.id, "type": channel.type})
        if found := re.fullmatch(r"POST /channels/(\d+)/messages", route):
            channel = self._channel(found[1])
            self._trouble(channel)
            body, files = self._body(request, "MessageCreateRequest")
            message = self._message(channel, body, files, hook=False)
            return "message", lambda: self._place(channel, message)
        raise _no(404, 0, "404: Not Found")

    # --- Routes -----------------------------------------------------------------------------------------------------

    def _webhook(self, request: Request, id: str, token: str) -> tuple[str, Callable[[], Item]]:
        if request.header("Authorization"):
            raise _no(400, 0, "model: a credential where none belongs")
        if id != self.hook[0]:
            raise _no(404, 10015, "Unknown Webhook")
        if token != self.hook[1]:
            raise _no(401, 50027, "Invalid Webhook Token")
        if request.method == "GET":
            return "hook", lambda: reply(json={"id": id, "type": 1, "channel_id": self.hook[2], "token": token})
        query = parse_qs(urlsplit(request.target).query, keep_blank_values=True)
        for name, values in query.items():
            if name not in ("wait", "thread_id") or len(values) != 1:
                raise _no(400, 50035, f"model: the query {name}={values}")
        wait = query.get("wait", ["false"])[0]
        if wait not in ("true", "false"):
            raise _no(400, 50035, "model: wait is no truth value")
        channel = self._channel(self.hook[2])
        if "thread_id" in query:
            channel = self._channel(query["thread_id"][0])
            if channel.parent != self.hook[2]:
                raise _no(400, 10003, "Unknown Channel")
        self._trouble(channel)
        body, files = self._body(request, "IncomingWebhookRequestPartial")
        message = self._message(channel, body, files, hook=True)

        def place() -> Item:
            item = self._place(channel, message)
            return item if wait == "true" or b" 429 " in item.head else reply(204)

        return "webhook", place

    def _dm(self, request: Request) -> tuple[str, Callable[[], Item]]:
        body, _ = self._body(request, "CreatePrivateChannelRequest")
        user = body.get("recipient_id")
        if user not in self.users:
            raise _no(400, 50033, "Invalid Recipient(s)")

        def open_dm() -> Item:
            self.opened.append(user)
            if user not in self.dms:
                channel = Channel(self._snowflake(), DM)
                if not self.users[user]:
                    channel.trouble = (403, 50007, "Cannot send messages to this user")
                self.dms[user] = channel.id
                self.channels[channel.id] = channel
            return reply(json={"id": self.dms[user], "type": DM, "recipients": [{"id": user}]})

        return "dm", open_dm

    def _channel(self, id: str) -> Channel:
        if id not in self.channels:
            raise _no(404, 10003, "Unknown Channel")
        return self.channels[id]

    def _trouble(self, channel: Channel) -> None:
        if channel.trouble is not None:
            raise _no(*channel.trouble)

    # --- Reading ----------------------------------------------------------------------------------------------------

    def _body(self, request: Request, schema: str) -> tuple[dict[str, Any], list[File]]:
        files: list[File] = []
        try:
            if (request.header("Content-Type") or "").startswith("multipart/"):
                first, *rest = pieces(request)
                if first.name != "payload_json" or first.filename is not None or first.mime != "application/json":
                    raise ValueError("payload_json is not the first part")
                body = strict_json(first.data.decode())
                for place, piece in enumerate(rest):
                    if piece.name != f"files[{place}]" or not piece.filename or not piece.mime:
                        raise ValueError(f"{piece.name} is no file in its turn")
                    files.append(File(piece.filename, piece.mime, piece.data))
            else:
                body = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _no(400, 50109, f"The request body contains invalid JSON. (model: {error})") from None
        if faults := schema_faults("discord", schema, body):
            raise _form(faults)
        if any(len(file.data) > self.file_limit for file in files):
            raise _no(413, 40005, "Request entity too large")
        return body, files

    def _message(self, channel: Channel, body: dict[str, Any], files: list[File], hook: bool) -> Message:
        content, flags = body.get("content") or "", body.get("flags") or 0
        if len(content) > 2000:
            raise _form([("content", "Must be 2000 or fewer in length.")], "BASE_TYPE_MAX_LENGTH")
        if flags & ~(4 | 4096 | 32768 | (0 if hook else VOICE)):
            raise _form([("flags", "model: flags that are not to be set")])
        given = {one["id"]: one for one in body.get("attachments") or ()}
        if set(given) - {str(place) for place in range(len(files))}:
            raise _form([("attachments", "model: an id without its file")])
        if flags & VOICE:
            self._voice(channel, content, files, given)
        elif not content.strip() and not files:
            raise _no(400, 50006, "Cannot send an empty message")
        for place, file in enumerate(files):
            file.name = given.get(str(place), {}).get("filename") or file.name
        message = Message("", channel.id, content, files, flags=flags, pings=_pings(body, content), body=body)
        reference = body.get("message_reference")
        if reference is not None:
            there = reference["message_id"] in (*channel.existing, *(one.id for one in channel.messages))
            same = reference.get("channel_id") in (None, channel.id)
            if there and same:
                message.reply_to = reference["message_id"]
                if (body.get("allowed_mentions") or {"replied_user": True}).get("replied_user"):
                    message.pings.append("the author of the message replied to")
            elif reference.get("fail_if_not_exists") is not False or not same:
                raise _form([("message_reference", "Unknown message")], "REPLIES_UNKNOWN_MESSAGE")
        return message

    def _voice(self, channel: Channel, content: str, files: list[File], given: dict[str, Any]) -> None:
        if content:
            raise _no(400, 50159, "Voice messages do not support additional content.")
        if len(files) != 1 or not files[0].mime.startswith("audio/") or kind_of(files[0].data) != "opus":
            raise _no(400, 50160, "Voice messages must have a single audio attachment.")
        if not {"duration_secs", "waveform"} <= set(given.get("0", {})):
            raise _no(400, 50161, "Voice messages must have supporting metadata.")
        if not channel.takes_voice:
            raise _no(403, 50173, "You cannot send voice messages in this channel.")

    # --- Placing ----------------------------------------------------------------------------------------------------

    def _snowflake(self) -> str:
        self._next += 1
        return str(self._next)

    def _place(self, channel: Channel, message: Message) -> Item:
        nonce = message.body.get("nonce")
        if nonce is not None and message.body.get("enforce_nonce") is True:
            message = self._nonces.setdefault((channel.id, str(nonce)), message)
        headers: dict[str, str] = {}
        if self.bucket is not None and not message.id:
            limited, headers = self._budget(*self.bucket)
            if limited is not None:
                return limited
        if not message.id:
            message.id = self._snowflake()
            channel.messages.append(message)
        attachments = [
            {"id": str(place), "filename": one.name, "size": len(one.data), "url": "https://cdn.test/x?hm=FAKE"}
            for place, one in enumerate(message.files)
        ]
        body: dict[str, Any] = {
            "id": message.id,
            "channel_id": channel.id,
            "content": message.content,
            "attachments": attachments,
            "type": 19 if message.reply_to else 0,
            "flags": message.flags,
            "timestamp": "2026-11-30T00:00:00+00:00",
            "author": {"id": "1", "username": "bot"},
        }
        if nonce is not None:
            body["nonce"] = nonce
        if message.reply_to:
            body["message_reference"] = {"message_id": message.reply_to, "channel_id": channel.id}
        return reply(json=body, headers=headers)

    def _budget(self, count: int, per: float) -> tuple[Item | None, dict[str, str]]:
        now = time.monotonic()
        self._taken = [at for at in self._taken if at > now - per]
        wait = self._taken[0] + per - now if self._taken else per
        headers = {
            "X-RateLimit-Limit": str(count),
            "X-RateLimit-Remaining": str(max(count - len(self._taken) - 1, 0)),
            "X-RateLimit-Reset": f"{time.time() + wait:.3f}",
            "X-RateLimit-Reset-After": f"{wait:.3f}",
            "X-RateLimit-Bucket": "b1",
        }
        if len(self._taken) >= count:
            return limited(wait, headers), headers
        self._taken.append(now)
        return None, headers


def limited(seconds: float, headers: dict[str, str] | None = None, everywhere: bool = False) -> Item:
    """The answer to too many requests: whole seconds in the header, decimals in the body."""
    fields = {**(headers or {}), "Retry-After": str(int(seconds) + 1), "X-RateLimit-Scope": "user"}
    if everywhere:
        fields["X-RateLimit-Global"] = "true"
    body = {"message": "You are being rate limited.", "retry_after": round(seconds, 3), "global": everywhere}
    return reply(429, json=body, headers=fields)


def refusal(status: int, code: int, message: str) -> Item:
    return _no(status, code, message).item


def _no(status: int, code: int, message: str, errors: Any = None) -> Refusal:
    body = {"message": message, "code": code, **({"errors": errors} if errors else {})}
    return Refusal(reply(status, json=body), f"{status} {code} {message} {errors or ''}")


def _form(faults: list[tuple[str, str]], code: str = "MODEL") -> Refusal:
    errors: dict[str, Any] = {}
    for where, message in faults:
        at = errors
        for key in where.split(".") if where else ():
            at = at.setdefault(key, {})
        at.setdefault("_errors", []).append({"code": code, "message": message})
    return _no(400, 50035, "Invalid Form Body", errors)


def _pings(body: dict[str, Any], content: str) -> list[str]:
    """Who is notified by the text. Without the switch everybody named is."""
    allowed = body.get("allowed_mentions")
    found = re.findall(r"@everyone|@here|<@&\d+>|<@!?\d+>", content)
    if allowed is None:
        return found
    kinds = allowed.get("parse") or ()
    kind_of_mark = {"@e": "everyone", "@h": "everyone", "<@&": "roles"}
    return [mark for mark in found if (kind_of_mark.get(mark[:2]) or kind_of_mark.get(mark[:3]) or "users") in kinds]
