# ruff: noqa: E501 (a row of a table stands in one line)
"""An id is the text that stands in the file, in both formats, and nothing that a parser makes of it."""

import json

import pytest
from hypothesis import given, settings, strategies
from settings_of import REGISTRY, TOKEN, settings_of, toy, toy_of

from messaging_core.config.schemas import from_mapping

BARE = [
    "-1001234567890",
    "0123",
    "1_000",
    "12:30:45",
    "1e3",
    "123456789012345678901",
    "0x1F",
    "0o17",
    "1.10",
    "+491234",
    ".5",
    "1.",
    "1_0.5",
    "true",
    "no",
    "off",
    "ON",
    "y",
    "2024-01-01",
    "2024-01-01T00:00:00Z",
    ".inf",
    ".nan",
    "190:20:30",
    "=",
    "<<x",
    "111:AAA",
    "@name",
]
BARE.remove("@name")


@pytest.mark.parametrize("text", BARE)
def test_a_bare_yaml_scalar_arrives_as_written(text):
    own = toy_of(f"chat_id: {text}\nto: [{text}, '{text}']\ntitle: {text}")
    assert own.chat_id == own.title == text
    assert own.to == (text, text)


def test_a_negative_chat_id_arrives_in_both_formats_and_from_a_mapping():
    assert toy_of("chat_id: -1001234567890").chat_id == "-1001234567890"
    assert toy_of("chat_id = -1001234567890\nto = [0, 9223372036854775807]", "toml").to == ("0", "9223372036854775807")
    mapping = {"channels": {"ops": {"type": "toy", "token": TOKEN, "chat_id": -1001234567890, "to": (1, "2")}}}
    own = from_mapping(mapping, {}, REGISTRY).unwrap().settings.channels[0].own
    assert (own.chat_id, own.to) == ("-1001234567890", ("1", "2"))


@pytest.mark.parametrize("value", [1.5, True, 2**64, 10**5000, b"x", object(), float("nan")], ids=range(7))
def test_what_is_no_exact_id_is_refused_from_a_mapping(value):
    mapping = {"channels": {"ops": {"type": "toy", "token": TOKEN, "chat_id": value}}}
    (fault,) = from_mapping(mapping, {}, REGISTRY).failure()
    assert (fault.key, fault.line, fault.did_you_mean) == ("channels.ops.chat_id", None, "quote it")


IDS = strategies.text(strategies.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(
    lambda text: text.strip() and "${" not in text
)


@settings(max_examples=150, deadline=None)
@given(IDS)
def test_any_quoted_id_survives_from_file_to_settings(text):
    quoted = '"' + "".join(f"\\U{ord(sign):08x}" for sign in text) + '"'
    for own in (toy_of(f"chat_id: {quoted}"), toy_of(f"chat_id = {quoted}", "toml")):
        assert own.chat_id == text
    mapping = {"channels": {"ops": {"type": "toy", "token": TOKEN, "chat_id": text}}}
    assert from_mapping(mapping, {}, REGISTRY).unwrap().settings.channels[0].own.chat_id == text


@settings(max_examples=150, deadline=None)
@given(strategies.text("0123456789_.:+-eExXaAbBo", min_size=1, max_size=12).filter(
    lambda text: text[0] not in "-:" and not text.endswith(":") and text != "."
))  # fmt: skip
def test_any_bare_id_survives_in_yaml(text):
    assert toy_of(f"chat_id: {text}").chat_id == text


@settings(max_examples=100, deadline=None)
@given(strategies.integers(-(2**70), 2**70))
def test_a_number_in_toml_arrives_or_is_refused(number):
    text = toy(f"chat_id = {number}", "toml")
    if -(2**63) <= number < 2**63:
        assert settings_of(text, "toml").channels[0].own.chat_id == str(number)
    else:
        with pytest.raises(AssertionError, match="quote it"):
            settings_of(text, "toml")


def test_blank_ends_of_an_id_go_only_where_the_environment_brought_them():
    own = toy_of("chat_id: ${CHAT}\nto: [' a ', '${CHAT}']", environment={"CHAT": "-100\n"})
    assert (own.chat_id, own.to) == ("-100", (" a ", "-100"))


def test_the_cases_of_converted_ids():
    """Each of these was read as another number by some program, and reached somebody else."""
    for text in ("0123", "1_000", "12:30:45", "1e3", "123456789012345678901", "0x1F", "1.10"):
        document = json.dumps({"channels": {"d": {"type": "toy", "token": TOKEN, "chat_id": "@"}}}).replace('"@"', text)
        assert settings_of(document).channels[0].own.chat_id == text
