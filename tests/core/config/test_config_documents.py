# ruff: noqa: E501 (a row of a table stands in one line)
"""Texts of every kind become the same tree; absurd ones are refused before they cost anything."""

from time import process_time

import pytest
import yaml
from hypothesis import given, settings, strategies
from settings_of import REGISTRY, TOKEN, faults_of, read, settings_of, toy, toy_of

from messaging_core.config.document import read_text
from messaging_core.config.schemas import from_mapping
from messaging_core.config.yaml_document import syntax_fault

YAML = f"# the team\nchannels:\n  ops:\n    type: toy\n    token: {TOKEN}\n    title: Grüße\n"


@pytest.mark.parametrize(
    "text",
    [
        YAML,
        "\ufeff" + YAML,
        YAML.encode(),
        b"\xef\xbb\xbf" + YAML.encode(),
        YAML.encode("utf-16"),
        YAML.replace("\n", "\r\n"),
        YAML.replace("\n", "\r\n").encode("utf-8-sig"),
        "--- " + YAML + "...\n",
    ],
)
def test_byte_order_marks_and_line_ends_do_not_matter(text):
    assert settings_of(text).channels[0].own.title == "Grüße"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_same_in_toml(mark):
    text = mark + toy("title = 'Grüße'", "toml").replace("\n", "\r\n")
    assert settings_of(text.encode(), "toml").channels[0].own.title == "Grüße"
    assert [fault[0] for fault in faults_of(text + "nope = 1\r\n", "toml")] == [5]


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "~", "channels:\n", "channels_config:\ngateway:\nhttp: ~\n"]
)
def test_an_empty_configuration_is_one_without_channels(text):
    assert settings_of(text).channels == ()


def test_anchors_and_merge_keys_work():
    text = f"""
x-common: &common {{type: toy, token: {TOKEN}, port: 25, mode: fast}}
x-more: &more {{port: 26, tls: no, allowed_users: &team [alice, 7]}}
channels:
  one: {{<<: *common, port: 27}}
  two:
    <<: [*common, *more]
    allowed_recipients: *team
  three: *common
"""
    one, two, three = settings_of(text).channels
    assert (one.own.port, two.own.port, two.own.tls, three.own.port) == (27, 25, False, 25)
    assert two.rules.allowed_users == two.rules.allowed_recipients == ("alice", "7")


def test_explicit_core_tags_are_taken_and_a_quoted_merge_sign_is_a_key():
    assert toy_of("chat_id: !!str 1_0\ntitle: !!int 12").chat_id == "1_0"
    assert [key for _, key, _ in faults_of(toy("'<<': {a: 1}"))] == ["channels.ops.…"]


@pytest.mark.parametrize(
    "text",
    [
        "a: *secretpart",
        "a: !secretpart!x y",
        "a: [x\nsecretpart: y",
        "a: 'secretpart",
        "%secretpart x\na: 1",
        "a: @secretpart",
    ],
)
def test_the_words_of_the_parser_are_kept_without_what_they_quote(text):
    """The slower parser of the library, which is used where the fast one was not built, quotes more."""
    try:
        list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        assert "secretpart" not in str(syntax_fault(error, "f"))
        assert syntax_fault(error, "f").line in (1, 2)


BLOCK = "\n".join(" " * depth + "a:" for depth in range(900))
ABSURD = {
    "five megabytes of YAML": ("yaml", "a: b\n" * 1_000_000),
    "five megabytes of TOML": ("toml", "a='b'\n" * 900_000),
    "five megabytes in bytes": ("yaml", b"a" * 5_000_000),
    "a megabyte of keys": ("yaml", "".join(f"k{index}: v\n" for index in range(90_000))),
    "a megabyte of duplicates": ("yaml", "a: b\n" * 199_000),
    "a megabyte of sections": ("toml", "".join(f"[k{index}.a.b]\nx=1\n" for index in range(40_000))),
    "brackets": ("yaml", "[" * 10_000),
    "closed brackets": ("yaml", "[" * 10_000 + "]" * 10_000),
    "braces": ("yaml", "{a: " * 10_000),
    "indentation": ("yaml", BLOCK),
    "dashes": ("yaml", "- " * 10_000),
    "question marks": ("yaml", "? " * 10_000),
    "depth by aliases": ("yaml", "".join(f"a{i}: &a{i} [{f'*a{i - 1}' if i else ''}]\n" for i in range(10_000))),
    "an alias bomb": (
        "yaml",
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20)),
    ),
    "a bomb of merges": (
        "yaml",
        "a0: &a0 {" + ",".join(f"k{i}: 1" for i in range(900)) + "}\n"
        + "".join(f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 20)}]}}\n" for i in range(1, 200)),
    ),
    "TOML brackets": ("toml", "a=" + "[" * 10_000 + "]" * 10_000),
    "TOML braces": ("toml", "a=" + "{a=" * 10_000 + "1" + "}" * 10_000),
    "TOML, not quite so deep": ("toml", "a=" + "[" * 100 + "]" * 100),
    "dots": ("toml", "a." * 400_000 + "a=1"),
    "dots in a header": ("toml", "[" + "a . " * 200_000 + "a]"),
    "quoted dots": ("toml", '"a".' * 200_000 + "b=1"),
    "digits": ("toml", "a = " + "9" * 900_000),
    "quotes": ("toml", 'a = """' + '"" ' * 300_000),
}  # fmt: skip


def test_aliases_do_not_get_around_the_depth():
    chain = [f"a{i}: &a{i} [{f'*a{i - 1}' if i else ''}]\n" for i in range(64)]
    assert read("".join(chain[:63])).value_or(None) is not None
    assert faults_of("".join(chain))[0][2].endswith("nested more than 64 deep, which no configuration is")


def test_many_dots_in_a_text_or_comment_of_toml_are_no_long_key():
    dots = ".".join("a" * 70)
    read(f"# {dots}\na = 'https://h.test/{dots}' # {dots}\nb = ['{dots}', \"{dots}\"]\n", "toml").unwrap()


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_texts_are_refused_in_bounded_time(name):
    format, text = ABSURD[name]
    begun = process_time()
    assert faults_of(text, format)
    assert process_time() - begun < 10


def test_absurd_mappings_are_refused():
    endless = {}
    endless["channels"] = endless
    assert "deep" in str(from_mapping(endless, {}, REGISTRY).failure()[0])
    wide = [0] * 100
    for _ in range(5):
        wide = [wide] * 100
    assert "values" in str(from_mapping({"x": wide}, {}, REGISTRY).failure()[0])
    assert (
        from_mapping({f"k{i}": 0 for i in range(2000)}, {}, REGISTRY)
        .failure()[0]
        .problem.startswith("more than 1000 keys")
    )


@settings(max_examples=200, deadline=None)
@given(
    strategies.text(alphabet="ab: -[]{}&*!|>'\"#%@\n\t<,?~=.0_\\\ufeff\r", max_size=60),
    strategies.sampled_from(["yaml", "toml"]),
)
def test_no_text_makes_the_reader_raise(text, format):
    read(text, format).map(repr).alt(repr)
    read(text.encode(), format)


KEY = strategies.text(alphabet="ab.\"'\\ =#[\u00e9", min_size=1, max_size=4)
VALUE = strategies.recursive(
    strategies.one_of(
        strategies.sampled_from(["1_000", "0x1F", "+1", "1.10", "1979-05-27 07:32:00", "true", "inf"]),
        strategies.text(alphabet="ab\"'\\#=,]}\n", max_size=6).map(lambda text: ("text", text)),
    ),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(KEY, inner, max_size=3),
    max_leaves=6,
)


def _quoted(text):
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
    return '"' + "".join(escapes.get(sign, sign) for sign in text) + '"'


def _toml(value):
    if isinstance(value, tuple):
        text = value[1]
        if "'" not in text and not text.startswith("\n"):
            return f"'''{text}'''"
        return _quoted(text)
    if isinstance(value, list):
        return "[\n" + "".join(f" {_toml(item)}, # ] '\n" for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_quoted(key)} = {_toml(item)}" for key, item in value.items()) + " }"
    return value


def _written(node):
    match type(node).__name__:
        case "Section":
            return {entry.key: _written(entry.value) for entry in node.entries}
        case "Items":
            return [_written(item) for item in node.items]
        case _:
            return ("text", node.text) if node.form.name == "TEXT" else node.text


@settings(max_examples=100, deadline=None)
@given(strategies.dictionaries(KEY, VALUE, max_size=4), strategies.booleans())
def test_the_scan_of_toml_finds_every_value_as_written_and_every_key_in_its_line(values, headers):
    """The scan is our own reading of TOML: it has to agree with the parser on every key, and with the writer on every line."""
    lines, text = {}, "# begin\n"
    for key, value in values.items():
        lines[key] = text.count("\n") + 1
        if headers and isinstance(value, dict):
            text += f"[ {_quoted(key)} ]\n" + "".join(f"{_quoted(k)}={_toml(v)}\n" for k, v in value.items())
        elif headers:
            text += f"[{_quoted(key)}]\nvalue = {_toml(value)}\n"
        else:
            text += f"{_quoted(key)} = {_toml(value)}  # done\n"
    root = read_text(text, "toml", "f").unwrap().root
    wanted = {k: v if not headers or isinstance(v, dict) else {"value": v} for k, v in values.items()}
    assert _written(root) == wanted
    assert {entry.key: entry.line for entry in root.entries} == lines


def test_arrays_of_tables_and_dotted_keys_have_their_lines():
    text = "[[a]]\nb.c = 1\nb.d = 0x2\n[[a]]\n[a.e]\nf = 3_0\n"
    root = read_text(text, "toml", "f").unwrap().root
    first, second = root.entries[0].value.items
    assert [(entry.key, entry.line, entry.value.text) for entry in first.entries[0].value.entries] == [
        ("c", 2, "1"),
        ("d", 3, "0x2"),
    ]
    assert [(entry.key, entry.line, entry.value.text) for entry in second.entries[0].value.entries] == [("f", 6, "3_0")]
