"""A strict model of the Telegram Bot API (https://core.telegram.org/bots/api), from its published description.

HTML is parsed by Telegram's own library. Wording of errors is that of the API server
(https://github.com/tdlib/telegram-bot-api).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tdjson

from tests.adapters.loopback import Item, Request, reply
from tests.platforms.far_end import (
    FarEnd,
    File,
    Refusal,
    json_of,
    kind_of,
    picture_size,
    pieces,
    spec,
    strict_json,
)

TOKEN = "123456789:FAKE-AbC_dEf-of-telegram"
FILE_OF = {
    "sendPhoto": "photo",
    "sendAnimation": "animation",
    "sendVideo": "video",
    "sendAudio": "audio",
    "sendVoice": "voice",
    "sendDocument": "document",
}
KINDS = {
    "sendPhoto": {"png", "jpeg", "webp"},
    "sendAnimation": {"gif", "mp4"},
    "sendVideo": {"mp4"},
    "sendAudio": {"mp3", "m4a"},
    "sendVoice": {"opus", "mp3", "m4a"},
}


@dataclass
class Message:
    """A message as its readers see it."""

    id: int
    method: str
    text: str
    entities: list[tuple[str, str, str]] = field(default_factory=list)
    file: File | None = None
    reply_to: int | None = None
    thread: int | None = None
    raw: str = ""


@dataclass
class Chat:
    """``type``: private, group, supergroup or channel. ``topics``: of a forum."""

    id: int
    type: str
    name: str = ""
    topics: tuple[int, ...] = ()
    messages: list[Message] = field(default_factory=list)
    forbidden: str = ""
    migrated_to: int | None = None
    takes_voice: bool = True
    next_id: int = 101
    existing: tuple[int, ...] = ()

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.messages]


class Telegram(FarEnd):
    """One bot, the chats that it may write to, and everything that arrived in them."""

    def __init__(self, *chats: Chat, token: str = TOKEN, file_limit: int = 50_000_000) -> None:
        super().__init__()
        self.token, self.file_limit = token, file_limit
        self.chats = {chat.id: chat for chat in chats or default_chats()}

    def __getitem__(self, id: int) -> Chat:
        return self.chats[id]

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        found = re.fullmatch(r"/bot([^/]+)/([A-Za-z]+)", request.path)
        if found is None or not re.fullmatch(r"\d+:[A-Za-z0-9_-]+", found[1]):
            raise _no(404, "Not Found")
        if found[1] != self.token:
            raise _no(401, "Unauthorized")
        method = found[2]
        if request.method not in ("GET", "POST") or method not in spec("telegram")["methods"]:
            raise _no(404, "Not Found")
        if request.header("Authorization"):
            raise _no(400, "Bad Request: model: a credential where none belongs")
        values, files = self._values(request)
        _typed(spec("telegram")["methods"][method], values, files, as_text=bool(files) or request.method == "GET")
        if method == "getMe":
            return method, lambda: reply(json={"ok": True, "result": {"id": 1, "is_bot": True, "first_name": "b"}})
        chat = self._chat(values["chat_id"])
        if method == "getChat":
            return method, lambda: reply(json={"ok": True, "result": {"id": chat.id, "type": chat.type}})
        if method == "sendChatAction":
            return method, lambda: reply(json={"ok": True, "result": True})
        message = self._message(method, chat, values, files)
        return method, lambda: self._place(chat, message)

    # --- Reading ----------------------------------------------------------------------------------------------------

    def _values(self, request: Request) -> tuple[dict[str, Any], dict[str, File]]:
        try:
            if request.method == "GET":
                return dict(request.query), {}
            if (request.header("Content-Type") or "").startswith("multipart/"):
                return self._form(request)
            if not request.body:
                return {}, {}
            values = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _no(400, f"Bad Request: model: {error}") from None
        if not isinstance(values, dict):
            raise _no(400, "Bad Request: can't parse JSON object")
        return values, {}

    def _form(self, request: Request) -> tuple[dict[str, Any], dict[str, File]]:
        values: dict[str, Any] = {}
        files: dict[str, File] = {}
        for piece in pieces(request):
            if piece.name in values or piece.name in files:
                raise ValueError(f"{piece.name} stands twice")
            if piece.filename is None:
                values[piece.name] = piece.data.decode()
            else:
                files[piece.name] = File(piece.filename, piece.mime or "", piece.data)
                if not piece.data:
                    raise _no(400, "Bad Request: file must be non-empty")
                if len(piece.data) > self.file_limit:
                    raise _no(413, "Request Entity Too Large")
        return values, files

    def _chat(self, id: Any) -> Chat:
        if isinstance(id, str) and id.startswith("@"):
            found = next((one for one in self.chats.values() if one.name and one.name.lower() == id[1:].lower()), None)
            if found is not None and found.type == "private":
                found = None  # persons are not found by name
        else:
            found = self.chats.get(int(id)) if re.fullmatch(r"-?\d+", str(id)) else None
        if found is None:
            raise _no(400, "Bad Request: chat not found")
        if found.forbidden:
            raise _no(403, f"Forbidden: {found.forbidden}")
        if found.migrated_to is not None:
            raise _no(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": found.migrated_to},
            )
        return found

    def _message(self, method: str, chat: Chat, values: dict[str, Any], files: dict[str, File]) -> Message:
        thread = values.get("message_thread_id")
        if thread is not None and int(thread) not in chat.topics:
            raise _no(400, "Bad Request: message thread not found")
        key, limit = ("text", 4096) if method == "sendMessage" else ("caption", 1024)
        raw = values.get(key) or ""
        text, entities = _parsed(raw, values.get("parse_mode"))
        if len(raw.encode()) > 32768:
            raise _no(400, "Bad Request: text is too long")
        text = text.strip()
        if len(text) > limit:
            raise _no(400, f"Bad Request: {'message' if key == 'text' else 'message caption'} is too long")
        if key == "text" and not text:
            raise _no(400, "Bad Request: message text is empty")
        file = files.get(FILE_OF.get(method, ""))
        if file is not None:
            self._fits(method, chat, file)
        message = Message(0, method, text, entities, file, thread=None if thread is None else int(thread), raw=raw)
        message.reply_to = self._reply(chat, values.get("reply_parameters"))
        return message

    def _fits(self, method: str, chat: Chat, file: File) -> None:
        kind = kind_of(file.data)
        if method == "sendPhoto":
            size = picture_size(file.data) or (1, 1)
            if len(file.data) > 10 * 1024 * 1024:
                raise _no(400, "Bad Request: file is too big for a photo; the maximum size is 10485760 bytes")
            if kind not in KINDS[method]:
                raise _no(400, "Bad Request: IMAGE_PROCESS_FAILED")
            if sum(size) > 10000 or max(size) > 20 * min(size):
                raise _no(400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
        elif method in KINDS and kind not in KINDS[method]:
            raise _no(400, f"Bad Request: model: {method} shows no {kind}")
        if method == "sendVoice" and not chat.takes_voice:
            raise _no(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")

    def _reply(self, chat: Chat, parameters: Any) -> int | None:
        if parameters is None:
            return None
        value = strict_json(parameters) if isinstance(parameters, str) else parameters
        _typed(spec("telegram")["types"]["ReplyParameters"], value, {}, as_text=False)
        id = int(value["message_id"])
        if id in chat.existing or any(one.id == id for one in chat.messages):
            return id
        if value.get("allow_sending_without_reply") is True:
            return None
        raise _no(400, "Bad Request: message to be replied not found")

    # --- Placing ----------------------------------------------------------------------------------------------------

    def _place(self, chat: Chat, message: Message) -> Item:
        message.id, chat.next_id = chat.next_id, chat.next_id + 1
        chat.messages.append(message)
        result: dict[str, Any] = {
            "message_id": message.id,
            "from": {"id": 123456789, "is_bot": True, "first_name": "bot"},
            "chat": {"id": chat.id, "type": chat.type},
            "date": 1764500000,
        }
        result["text" if message.method == "sendMessage" else "caption"] = message.text
        if message.thread is not None:
            result |= {"message_thread_id": message.thread, "is_topic_message": True}
        if message.reply_to is not None:
            result["reply_to_message"] = {"message_id": message.reply_to, "chat": result["chat"], "date": 1764400000}
        return reply(json={"ok": True, "result": result})


def default_chats() -> tuple[Chat, ...]:
    """A person, a group, a forum with topics, a channel with a name, and trouble of each kind."""
    return (
        Chat(42, "private", name="alice", existing=(900,)),
        Chat(43, "private"),
        Chat(-1001234567890, "supergroup", topics=(7, 8), existing=(901,)),
        Chat(-1009876543210, "channel", name="OpsLead"),
        Chat(-55, "group", migrated_to=-1005555555555),
        Chat(-1005555555555, "supergroup"),
        Chat(66, "private", forbidden="bot was blocked by the user"),
        Chat(67, "private", forbidden="bot can't initiate conversation with a user"),
        Chat(68, "private", takes_voice=False),
    )


def flooded(seconds: int) -> Item:
    """The answer of a server that wants a pause; whole seconds, as documented."""
    return _no(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds}).item


def refusal(description: str, status: int = 400) -> Item:
    return _no(status, description).item


def _no(status: int, description: str, parameters: dict[str, Any] | None = None) -> Refusal:
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": description}
    headers = {}
    if parameters:
        body["parameters"] = parameters
    if parameters and "retry_after" in parameters:
        headers["Retry-After"] = str(parameters["retry_after"])
    return Refusal(reply(status, json=body, headers=headers), f"{status} {description}")


def _typed(fields: dict[str, list[str]], values: dict[str, Any], files: dict[str, File], as_text: bool) -> None:
    for name in (*values, *files):
        if name not in fields:
            raise _no(400, f"Bad Request: model: no parameter {name}")
    for name, types in fields.items():
        if "required" in types and name not in values and name not in files:
            raise _no(400, f"Bad Request: parameter {name} is required")
        if name in files and "InputFile" not in types:
            raise _no(400, f"Bad Request: model: {name} is no file")
        if name in values and not any(_is(kind, values[name], as_text) for kind in types if kind != "required"):
            raise _no(400, f"Bad Request: model: {name} is {values[name]!r}, expected {types}")


def _is(kind: str, value: Any, as_text: bool) -> bool:
    if as_text:
        if kind in ("Integer", "Boolean", "Float"):
            form = {"Integer": r"-?\d+", "Boolean": "true|false", "Float": r"-?\d+(\.\d+)?"}[kind]
            return re.fullmatch(form, value) is not None
        if kind == "String":
            return True
        try:
            return isinstance(strict_json(value), list if kind.startswith("Array") else dict)
        except ValueError:
            return False
    match kind:
        case "Integer":
            return (type(value) is int and abs(value) < 2**52) or (
                isinstance(value, str) and re.fullmatch(r"-?\d+", value) is not None
            )
        case "Boolean":
            return type(value) is bool
        case "Float":
            return type(value) in (int, float)
        case "String":
            return isinstance(value, str)
        case "InputFile":
            return False
        case _:
            return isinstance(value, list if kind.startswith("Array") else dict)


tdjson.td_execute(b'{"@type":"setLogVerbosityLevel","new_verbosity_level":0}')


def _parsed(text: str, mode: str | None) -> tuple[str, list[tuple[str, str, str]]]:
    """The visible text and the entities (kind, text, address), by Telegram's own parser."""
    if mode is None:
        return text, []
    if mode.lower() != "html":
        raise _no(400, "Bad Request: model: only the parse mode HTML is modelled")
    asked = {"@type": "parseTextEntities", "text": text, "parse_mode": {"@type": "textParseModeHTML"}}
    answer = json.loads(tdjson.td_execute(json.dumps(asked).encode()) or b"{}")
    if answer["@type"] == "error":
        if not text:
            return "", []
        raise _no(400, f"Bad Request: can't parse entities: {answer['message']}")
    units = answer["text"].encode("utf-16-le")
    entities = []
    for one in answer["entities"]:
        shown = units[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le")
        entities.append((one["type"]["@type"].removeprefix("textEntityType"), shown, one["type"].get("url", "")))
    return answer["text"], entities
