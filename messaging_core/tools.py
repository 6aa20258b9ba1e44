"""The tools as a model sees them: names, schemas, and arguments read into values.

Arguments come from a model: whatever they are, the answer is a value, never an exception.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from returns.result import Failure, Result, Success

from messaging_core.errors import InvalidArguments
from messaging_core.markup.blank import is_blank
from messaging_core.message import Message

Shape = Literal["json-schema", "openai", "anthropic", "mcp"]
SHAPES: tuple[Shape, ...] = ("json-schema", "openai", "anthropic", "mcp")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its name, what it does, and the JSON Schema of its arguments (as JSON text, so that the value is
    immutable)."""

    name: str
    description: str
    schema: str

    def shaped(self, shape: Shape) -> dict[str, Any]:
        """The definition as this kind of model interface takes it.

        openai: https://platform.openai.com/docs/guides/function-calling
        anthropic: https://docs.anthropic.com/en/docs/build-with-claude/tool-use
        mcp: https://modelcontextprotocol.io/specification/2025-06-18/server/tools
        """
        schema = json.loads(self.schema)
        match shape:
            case "openai":
                function = {"name": self.name, "description": self.description, "parameters": schema}
                return {"type": "function", "function": function}
            case "anthropic":
                return {"name": self.name, "description": self.description, "input_schema": schema}
            case "mcp":
                return {"name": self.name, "description": self.description, "inputSchema": schema}
            case "json-schema":
                return {"title": self.name, "description": self.description, **schema}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


MESSAGE = Tool(
    "message",
    "Send a message to a configured communication channel.",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "channel": _text(
                    "Channel identifier (e.g., 'discord-general', 'matrix-ops'). Must match a configured channel."
                ),
                "content": _text("Message content to send."),
            },
            "required": ["channel", "content"],
        }
    ),
)

MESSAGE_SEND = Tool(
    "message_send",
    "Send text, a file or a voice message to a person or chat. Without a channel it goes where the conversation is. "
    "Give at least one of text, media_path and voice_path.",
    json.dumps(
        {
            "type": "object",
            "properties": {
                "text": _text("Text of the message, in Markdown. Beside media it is the caption."),
                "channel": _text("Name of a configured channel. Default: the conversation's channel."),
                "recipient": _text("Who receives it (user id, chat id, address). Default: the current user."),
                "media_path": _text("Path of a file to send (image, document, video, audio)."),
                "caption": _text("Caption of the media."),
                "voice_path": _text("Path of an audio file to send as a voice message."),
                "reply_to": _text("Id of the message to reply to, as the platform names it."),
            },
        }
    ),
)


def read_message(arguments: Any) -> Result[Message, InvalidArguments]:
    """Arguments of ``message``: channel and content, both texts that are not blank."""
    return _read(MESSAGE, arguments).bind(_message)


def _message(values: Mapping[str, str]) -> Result[Message, InvalidArguments]:
    return Success(Message(text=values["content"], channel=values["channel"]))


def read_message_send(arguments: Any) -> Result[Message, InvalidArguments]:
    """Arguments of ``message_send``: null is absent; an empty text is refused; there is something to send."""
    return _read(MESSAGE_SEND, arguments).bind(lambda values: check(Message(**values)))


def check(message: Message) -> Result[Message, InvalidArguments]:
    """Whether the message has something to send, and nothing that excludes something else."""
    problems = []
    if message.text is None and message.media_path is None and message.voice_path is None:
        problems.append(
            "caption: there is no media_path that it belongs to"
            if message.caption is not None
            else "give at least one of text, media_path, voice_path"
        )
    elif message.caption is not None and message.media_path is None:
        problems.append("caption: there is no media_path that it belongs to")
    if message.media_path is not None and message.voice_path is not None:
        problems.append("media_path and voice_path: send them one after the other")
    return Failure(InvalidArguments(MESSAGE_SEND.name, tuple(problems))) if problems else Success(message)


TRIMMED = frozenset({"channel", "recipient", "reply_to"})
"""Blank ends of these are a slip of the pen; what is left is what every check judges."""

ONE_LINE = frozenset({"channel", "recipient", "reply_to", "media_path", "voice_path"})


def _read(tool: Tool, arguments: Any) -> Result[dict[str, str], InvalidArguments]:
    if not isinstance(arguments, Mapping):
        return Failure(InvalidArguments(tool.name, (f"expected an object, got {_kind(arguments)}",)))
    schema = json.loads(tool.schema)
    names, required = tuple(schema["properties"]), schema.get("required", ())
    values: dict[str, str] = {}
    problems = [f"{_quoted(name)}: unknown (there are {', '.join(names)})" for name in arguments if name not in names]
    for name in names:
        value = arguments.get(name)
        if value is None:
            if name in required:
                problems.append(f"{name}: missing" if name not in arguments else f"{name}: is null, expected a text")
            continue
        if not isinstance(value, str):
            problems.append(f"{name}: expected a text, got {_kind(value)}")
            continue
        clean = _whole(value.strip() if name in TRIMMED else value)
        if is_blank(clean):
            problems.append(f"{name}: is empty")
        elif name in ONE_LINE and any(sign < " " or sign == "\x7f" for sign in clean):
            problems.append(f"{name}: holds a control character")
        else:
            values[name] = clean
    return Failure(InvalidArguments(tool.name, tuple(problems))) if problems else Success(values)


def _whole(text: str) -> str:
    """Lone surrogates, which no wire can carry, become U+FFFD; a pair that was written as two becomes its sign."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _quoted(name: Any) -> str:
    return ascii(name)[:60].strip("'\"") if isinstance(name, str) else _kind(name)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case None:
            return "nothing"
        case _:
            return "an object"
