"""Arguments come from a model: whatever they are, the answer is a message or a refusal that says what would be right."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from returns.pipeline import is_successful
from returns.result import Success

from messaging_core.message import Message
from messaging_core.tools import MESSAGE, MESSAGE_SEND, SHAPES, read_message, read_message_send

ANCESTOR = {
    "type": "object",
    "properties": {
        "channel": {
            "type": "string",
            "description": "Channel identifier (e.g., 'discord-general', 'matrix-ops'). Must match a configured channel.",
        },
        "content": {"type": "string", "description": "Message content to send."},
    },
    "required": ["channel", "content"],
}


def test_the_schema_of_message_is_the_published_one() -> None:
    assert json.loads(MESSAGE.schema) == ANCESTOR


def test_each_shape_holds_the_same_schema() -> None:
    openai, anthropic, mcp = (MESSAGE.shaped(shape) for shape in ("openai", "anthropic", "mcp"))
    assert openai == {
        "type": "function",
        "function": {"name": "message", "description": MESSAGE.description, "parameters": ANCESTOR},
    }
    assert anthropic == {"name": "message", "description": MESSAGE.description, "input_schema": ANCESTOR}
    assert mcp == {"name": "message", "description": MESSAGE.description, "inputSchema": ANCESTOR}
    assert set(SHAPES) == {"json-schema", "openai", "anthropic", "mcp"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (None, "expected an object, got nothing"),
        ([1], "expected an object, got a list"),
        ("text", "expected an object, got a text"),
        ({"channel": "x"}, "content: missing"),
        ({"content": "hi"}, "channel: missing"),
        ({"channel": "x", "content": None}, "content: is null, expected a text"),
        ({"channel": "x", "content": ""}, "content: is empty"),
        ({"channel": "x", "content": " \n\t "}, "content: is empty"),
        ({"channel": "x", "content": "\u200b\u2060\ufeff"}, "content: is empty"),
        ({"channel": "x", "content": 5}, "content: expected a text, got a number"),
        ({"channel": True, "content": "hi"}, "channel: expected a text, got true or false"),
        ({"channel": ["a"], "content": "hi"}, "channel: expected a text, got a list"),
        ({"channel": "a\nb", "content": "hi"}, "channel: holds a control character"),
        ({"channel": "x", "content": "hi", "to": "y"}, "to: unknown (there are channel, content)"),
    ],
)
def test_what_is_wrong_with_the_arguments_of_message_is_said(arguments: Any, problem: str) -> None:
    assert read_message(arguments).failure().problems == (problem,)


def test_every_problem_is_named_at_once() -> None:
    refusal = read_message({"content": "", "chanel": 1}).failure()
    assert refusal.problems == ("chanel: unknown (there are channel, content)", "channel: missing", "content: is empty")
    assert str(refusal).startswith("Invalid arguments for message: ")


def test_content_is_taken_as_it_is_and_names_are_trimmed() -> None:
    assert read_message({"channel": " ops ", "content": "  hi \n"}) == Success(Message(text="  hi \n", channel="ops"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "give at least one of text, media_path, voice_path"),
        ({"text": ""}, "text: is empty"),
        ({"recipient": "42"}, "give at least one of text, media_path, voice_path"),
        ({"text": "x", "recipient": ""}, "recipient: is empty"),
        ({"text": "x", "recipient": ["1", "2"]}, "recipient: expected a text, got a list"),
        ({"caption": "c"}, "caption: there is no media_path that it belongs to"),
        ({"text": "t", "caption": "c"}, "caption: there is no media_path that it belongs to"),
        ({"media_path": "a", "voice_path": "b"}, "media_path and voice_path: send them one after the other"),
        ({"media_path": "a\x00b"}, "media_path: holds a control character"),
    ],
)
def test_what_is_wrong_with_the_arguments_of_message_send_is_said(arguments: Any, problem: str) -> None:
    assert read_message_send(arguments).failure().problems == (problem,)


def test_null_is_absent() -> None:
    nulls = dict.fromkeys(("channel", "recipient", "media_path", "caption", "voice_path", "reply_to"))
    assert read_message_send({"text": "x", **nulls}) == Success(Message(text="x"))


def test_surrogates_that_no_wire_can_carry_do_not_stop_a_message() -> None:
    assert read_message_send({"text": "a\ud83d\ude00b\ud800"}).unwrap().text == "a😀b\ufffd"


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*json.loads(MESSAGE_SEND.schema)["properties"], "content", "other"])


@given(json_values | st.dictionaries(names, json_values, max_size=7))
def test_whatever_a_model_hands_over_is_read_or_refused(arguments: Any) -> None:
    for read in (read_message, read_message_send):
        result = read(arguments)
        if is_successful(result):
            message = result.unwrap()
            assert message.text or message.media_path or message.voice_path
        else:
            assert result.failure().problems
            str(result.failure()).encode()
