"""A strict model of Slack's Web API (https://docs.slack.dev/reference/methods), with the three steps of a file."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.adapters.loopback import Item, Request, reply
from tests.platforms.far_end import FarEnd, File, Refusal, json_of, pieces, spec, strict_json

TOKEN = "xoxb-FAKE-slack-token"


@dataclass
class Message:
    ts: str
    text: str
    thread: str | None = None
    file: File | None = None
    file_id: str = ""
    pings: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Channel:
    id: str
    name: str = ""
    member: bool = True
    archived: bool = False
    private: bool = False
    messages: list[Message] = field(default_factory=list)
    existing: tuple[str, ...] = ()
    """Timestamps of earlier messages that begin threads."""

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]


@dataclass
class _Upload:
    id: str
    name: str
    length: int
    file: File | None = None


class Slack(FarEnd):
    """One workspace with one bot. ``scopes`` that it lacks are refused with ``missing_scope``."""

    def __init__(self, scopes: tuple[str, ...] = ("im:write", "channels:read"), page: int = 2) -> None:
        super().__init__()
        self.scopes, self.page = scopes, page
        self.channels = {
            one.id: one
            for one in (
                Channel("C0123456789", "ops", existing=("1712345678.123456",)),
                Channel("C0000000002", "random"),
                Channel("C0000000003", "alerts"),
                Channel("C0000000004", "strange", member=False),
                Channel("C0000000005", "old", archived=True),
                Channel("G0000000006", "secret", private=True),
                Channel("C0HOME00000", "home"),
            )
        }
        self.users = ("U0000000001", "W0000000002")
        self.dms: dict[str, str] = {}
        self.opened: list[str] = []
        self.leaks: list[str] = []
        self.uploads: dict[str, _Upload] = {}
        self.warn: list[str] = []
        self._count = 0

    def __getitem__(self, id: str) -> Channel:
        return self.channels[id]

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        if request.path.startswith("/upload/v1/"):
            return self._upload(request)
        method = request.path.removeprefix("/api/")
        if TOKEN in request.target or TOKEN.encode() in request.body:
            raise _no("model: the token outside of its header")
        if request.header("Authorization") != f"Bearer {TOKEN}":
            raise _no("invalid_auth" if request.header("Authorization") else "not_authed")
        described = {
            **spec("slack")["methods"].get(method, {}).get("parameters", {}),
            **spec("slack")["newer"].get(method, {}),
        }
        if method not in spec("slack")["methods"] and method not in spec("slack")["newer"]:
            raise _no("unknown_method")
        values = self._values(request)
        for name, value in values.items():
            if name not in described:
                raise _no("invalid_arg_name", f"{method} has no {name}")
            if not _is(described[name][0], value):
                raise _no("invalid_arguments", f"{method}: {name} is {value!r}, expected {described[name]}")
        for name, kinds in described.items():
            if "required" in kinds and name not in values:
                raise _no("invalid_arguments", f"{method}: {name} is missing")
        action = getattr(self, "_" + re.sub(r"[.A-Z]", lambda m: "_" + m[0].strip(".").lower(), method))
        return method, action(values, request)

    def _values(self, request: Request) -> dict[str, Any]:
        if request.method == "GET":
            return dict(request.query)
        kind = request.header("Content-Type") or ""
        try:
            if kind.split(";")[0] == "application/x-www-form-urlencoded":
                found = parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=bool(request.body))
                if len(dict(found)) != len(found):
                    raise ValueError("a field stands twice")
                return dict(found)
            if not request.body:
                return {}
            if "charset" not in kind.lower():
                self.warn.append("missing_charset")
            values = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _no("invalid_json", str(error)) from None
        if not isinstance(values, dict):
            raise _no("json_not_object")
        return values

    # --- Messages ---------------------------------------------------------------------------------------------------

    def _chat_post_message(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        channel = self._resolved(values["channel"])
        text = values.get("text") or ""
        if not text.strip() and "blocks" not in values:
            raise _no("no_text")
        if len(text.encode()) > 4000:
            raise _no("msg_too_long", "over what is safe (model)")
        thread = self._thread(channel, values.get("thread_ts"))
        _read(text)
        message = Message("", text, thread, pings=_pings(text, values), values=values)

        def place() -> Item:
            self._place(channel, message)
            shown = {"type": "message", "text": text, "ts": message.ts, "bot_id": "B1"}
            if thread:
                shown["thread_ts"] = thread
            return reply(json={"ok": True, "channel": channel.id, "ts": message.ts, "message": shown})

        return place

    def _place(self, channel: Channel, message: Message) -> None:
        self._count += 1
        message.ts = f"17645000{self._count:02d}.{self._count:06d}"
        channel.messages.append(message)

    def _resolved(self, name: Any) -> Channel:
        """As chat.postMessage finds it: an id, a user (their DM), or a name with or without #."""
        found = self.channels.get(name)
        if found is None and name in self.users:
            found = self._dm(name)
        if found is None:
            found = next((one for one in self.channels.values() if one.name and one.name == name.lstrip("#")), None)
        return self._open(found)

    def _open(self, channel: Channel | None) -> Channel:
        if channel is None:
            raise _no("channel_not_found")
        if channel.archived:
            raise _no("is_archived")
        if not channel.member:
            raise _no("not_in_channel")
        return channel

    def _thread(self, channel: Channel, ts: Any) -> str | None:
        if ts is None:
            return None
        if not re.fullmatch(spec("slack")["ids"]["ts"], ts):
            raise _no("invalid_thread_ts")
        if ts not in (*channel.existing, *(one.ts for one in channel.messages if one.thread is None)):
            raise _no("thread_not_found")
        return str(ts)

    def _dm(self, user: str) -> Channel:
        if user not in self.dms:
            self.dms[user] = f"D{len(self.dms):010d}"
            self.channels[self.dms[user]] = Channel(self.dms[user])
        return self.channels[self.dms[user]]

    # --- Conversations ----------------------------------------------------------------------------------------------

    def _conversations_open(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        self._needs("im:write")
        user = values.get("users")
        if user not in self.users:
            raise _no("user_not_found")

        def place() -> Item:
            self.opened.append(user)
            return reply(json={"ok": True, "channel": {"id": self._dm(user).id}})

        return place

    def _conversations_list(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        self._needs("channels:read")
        public = [one for one in self.channels.values() if one.name and not one.private]
        if values.get("exclude_archived") in (True, "true"):
            public = [one for one in public if not one.archived]
        start = int((values.get("cursor") or "page-0").removeprefix("page-"))
        shown = public[start : start + self.page]
        cursor = f"page-{start + self.page}" if start + self.page < len(public) else ""
        listed = [{"id": one.id, "name": one.name, "is_member": one.member} for one in shown]
        return lambda: reply(json={"ok": True, "channels": listed, "response_metadata": {"next_cursor": cursor}})

    def _conversations_info(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        self._needs("channels:read")
        channel = self.channels.get(values.get("channel", ""))
        if channel is None:
            raise _no("channel_not_found")
        shown = {"id": channel.id, "is_member": channel.member, "is_archived": channel.archived}
        return lambda: reply(json={"ok": True, "channel": shown})

    def _auth_test(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        return lambda: reply(json={"ok": True, "user_id": "U9", "team": "T", "bot_id": "B1"})

    def _users_info(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        if values.get("user") not in self.users:
            raise _no("user_not_found")
        return lambda: reply(json={"ok": True, "user": {"id": values["user"], "deleted": False}})

    def _needs(self, scope: str) -> None:
        if scope not in self.scopes:
            raise Refusal(
                reply(json={"ok": False, "error": "missing_scope", "needed": scope, "provided": "chat:write"}), scope
            )

    # --- Files ------------------------------------------------------------------------------------------------------

    def _files_get_upload_u_r_l_external(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        if int(values["length"]) < 1 or not values["filename"]:
            raise _no("invalid_arguments", "an empty file")

        def place() -> Item:
            key = f"FAKE-upload-{len(self.uploads)}"
            upload = _Upload(f"F{len(self.uploads):010d}", values["filename"], int(values["length"]))
            self.uploads[key] = upload
            url = f"http://{request.header('Host')}/upload/v1/{key}"
            return reply(json={"ok": True, "upload_url": url, "file_id": upload.id})

        return place

    def _upload(self, request: Request) -> tuple[str, Callable[[], Item]]:
        if request.header("Authorization") or TOKEN.encode() in request.head:
            self.leaks.append("the token went to the place of the upload")
        upload = self.uploads.get(request.path.removeprefix("/upload/v1/"))
        if upload is None or request.method != "POST":
            raise Refusal(reply(404, body="not found"), "an upload to nowhere")
        kind, data = request.header("Content-Type") or "application/octet-stream", request.body
        if kind.startswith("multipart/"):
            (piece,) = pieces(request)
            kind, data = piece.mime or "", piece.data
        if len(data) != upload.length:
            raise Refusal(reply(400, body="wrong length"), f"{len(data)} bytes where {upload.length} were announced")

        def place() -> Item:
            upload.file = File(upload.name, kind, data)
            return reply(body=f"OK - {len(data)}", headers={"Content-Type": "text/plain"})

        return "upload", place

    def _files_complete_upload_external(self, values: dict[str, Any], request: Request) -> Callable[[], Item]:
        files = values["files"]
        files = strict_json(files) if isinstance(files, str) else files
        done = {one.id: one for one in self.uploads.values() if one.file is not None}
        if not files or any(set(one) - {"id", "title"} or one.get("id") not in done for one in files):
            raise _no("file_not_found")
        if "channel_id" not in values:
            raise _no("model: a file that nobody would see")
        if values["channel_id"] not in self.channels:
            raise _no("invalid_channel" if values["channel_id"][:1] in "#UW" else "channel_not_found")
        channel = self._open(self.channels[values["channel_id"]])
        thread = self._thread(channel, values.get("thread_ts"))
        comment = values.get("initial_comment") or ""
        _read(comment)

        def place() -> Item:
            for one in files:
                file = done[one["id"]].file
                pings = _pings(comment, values)
                message = Message("", comment, thread, file, one["id"], pings, values)
                self._place(channel, message)
            shown = [{"id": one["id"], "title": one.get("title", ""), "shares": {}} for one in files]
            return reply(json={"ok": True, "files": shown})

        return place


def limited(seconds: int) -> Item:
    return reply(429, json={"ok": False, "error": "ratelimited"}, headers={"Retry-After": str(seconds)})


def refusal(error: str, **more: Any) -> Item:
    """Slack's way to say no: HTTP 200."""
    return reply(json={"ok": False, "error": error, **more})


def _no(error: str, why: str = "") -> Refusal:
    return Refusal(refusal(error, response_metadata={"messages": [why]} if why else {}), f"{error} {why}")


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, str):
        match kind:
            case "integer":
                return value.isdigit()
            case "boolean":
                return value in ("true", "false", "1", "0")
            case "array":
                try:
                    return isinstance(json.loads(value), list)
                except ValueError:
                    return False
            case _:
                return True
    return {"integer": type(value) is int, "boolean": type(value) is bool, "array": isinstance(value, list)}.get(
        kind, False
    )


def _read(text: str) -> None:
    """``&`` only as one of the three escapes, ``<`` only around a link or a mention."""
    bare = re.sub(r"<(?:https?://|mailto:|[@#!])[^<>\n]+>", "", text)
    if re.search(r"<|>(?<!^>)(?<!\n>)", bare) or re.search(r"&(?!(?:amp|lt|gt);)", bare):
        raise _no("model: not escaped", text[:200])


def _pings(text: str, values: dict[str, Any]) -> list[str]:
    found = re.findall(r"<(?:@[UW]|!(?:channel|here|everyone|subteam))[^>]*>", text)
    if values.get("link_names") in (True, "true", "1") or values.get("parse") == "full":
        found += re.findall(r"@(?:channel|here|everyone|\w+)", text)
    return found
