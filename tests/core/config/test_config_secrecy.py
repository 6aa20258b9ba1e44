# ruff: noqa: E501 (a row of a table stands in one line)
"""No value of a secret is in the settings, in an error, in a repr or a pickle; all of them are in ``secrets``."""

import pickle

import pytest
from hypothesis import given, settings, strategies
from settings_of import REGISTRY, faults_of, read, toy

from messaging_core.config.schemas import from_mapping
from messaging_core.secrecy import Secret
from messaging_core.wire.template import Place

NEEDLE = "secretpart"
FULL = """
token: tok-secretpart
password: " pass secretpart Ü "
hook: https://h.test/secretpart
headers: {Authorization: Bearer secretpart, Content-Type: text/plain, X-Priority: 1}
body: '{"key": "${KEY}", "text": "{{content}}"}'
url: https://h.test/secretpart/{{content}}?k=secretpart
""".strip()
TOY = "channels:\n  ops:\n    type: toy\n" + "".join(f"    {line}\n" for line in FULL.splitlines())
TOY += "http: {proxy: 'http://u:secretpart@proxy.test:3128'}\ngateway: {token: gw-secretpart}\n"


def test_every_secret_stands_by_its_name():
    configuration = read(TOY, environment={"KEY": "k-secretpart"}).unwrap()
    own = configuration.settings.channels[0].own
    assert own.token == Secret("ops.token")
    assert own.password == Secret("ops.password")
    assert own.hook == Secret("ops.hook")
    assert own.headers == (
        ("Authorization", (Secret("ops.headers.Authorization"),)),
        ("Content-Type", "text/plain"),
        ("X-Priority", (Secret("ops.headers.X-Priority"),)),
    )
    assert configuration.settings.http.proxy == Secret("http.proxy")
    assert configuration.settings.gateway.token == Secret("gateway.token")
    reveal = configuration.secrets.reveal
    assert reveal(own.url.fill("hi", Place.URL)) == "https://h.test/secretpart/hi?k=secretpart"
    assert reveal(own.body.fill("hi", Place.JSON)) == '{"key": "k-secretpart", "text": "hi"}'
    assert configuration.secrets["ops.password"] == "pass secretpart Ü"
    assert [piece for piece in own.url.pieces if isinstance(piece, Secret)] == [
        Secret("ops.url[0]"),
        Secret("ops.url[1]"),
    ]
    assert configuration.warnings == ()


def test_no_value_is_in_a_repr_or_a_pickle():
    configuration = read(TOY, environment={"KEY": "k-secretpart"}).unwrap()
    assert NEEDLE not in repr(configuration)
    assert NEEDLE not in str(configuration)
    assert NEEDLE.encode() not in pickle.dumps(configuration)
    assert pickle.loads(pickle.dumps(configuration.settings)) == configuration.settings


def test_a_template_without_the_environment_stays_plain_and_a_url_without_content_is_one_secret():
    text = TOY.replace("${KEY}", "plain").replace("secretpart/{{content}}?k=secretpart", "in")
    own = read(text).unwrap().settings.channels[0].own
    assert own.body.pieces[0] == '{"key": "plain", "text": "'
    assert own.url.pieces == (Secret("ops.url"),)


def test_blank_ends_are_trimmed():
    environment = {"TOKEN": "xoxb-FAKE-0000-secretpart\n", "HOOK": " https://h.test/x\r\n"}
    text = "channels:\n  ops: {type: toy, token: '${TOKEN}', hook: '${HOOK}', api_base: ' https://h.test:8443/sub/hooks/ '}\n"
    configuration = read(text, environment=environment).unwrap()
    assert configuration.secrets["ops.token"] == "xoxb-FAKE-0000-secretpart"
    assert configuration.secrets["ops.hook"] == "https://h.test/x"
    assert configuration.settings.channels[0].own.api_base == "https://h.test:8443/sub/hooks"


@pytest.mark.parametrize("inner", [" ", "\n", "\r\n", "\t", "\0", "\x7f", "\u00a0", "\u2028", "“"])
def test_a_token_with_something_inside_is_refused_without_being_shown(inner):
    text = "channels:\n  ops: {type: toy, token: '${TOKEN}'}\n"
    ((_, key, sentence),) = faults_of(text, environment={"TOKEN": f"secretpart{inner}secretpart"})
    assert key == "channels.ops.token"
    assert NEEDLE not in sentence


def test_what_looks_like_a_placeholder_inside_a_secret_is_not_shown():
    ((_, _, sentence),) = faults_of("channels: {ops: {type: toy, token: 'abc${secretpart'}}")
    assert NEEDLE not in sentence


def test_short_secrets_are_warned_of_by_name():
    text = toy("password: abc12\nheaders: {X-Key: '${K}', X-Priority: 1}\nbody: 'a {{content}} ${K}'")
    warnings = read(text, environment={"K": "k1"}).unwrap().warnings
    assert [warning.split()[0] for warning in warnings] == ["ops.password", "ops.headers.X-Key"]
    assert "abc12" not in "".join(warnings)


def test_two_secrets_never_share_a_name():
    text = """
channels:
  a: {type: toy, token: aaaaaa, headers: {token: hhhhhh}}
  a.headers: {type: toy, token: bbbbbb}
  http: {type: toy, token: cccccc}
"""
    ((line, key, sentence),) = faults_of(text)
    assert "two secrets would have the name a.headers.token" in sentence
    assert not any(value in sentence for value in ("hhhhhh", "bbbbbb"))


NAMED = tuple(f"daemon.yaml:{line}: channels.ops.type: unknown type" for line in range(4, 8))
"""What is shown on purpose: the word that is no type."""
KEYS = (
    "token",
    "password",
    "hook",
    "headers",
    "url",
    "body",
    "api_base",
    "method",
    "mode",
    "port",
    "tls",
    "to",
    "title",
    "type",
)
SECRET = ("token", "password")
VALUES = (
    "{n}",
    "https://{n}",
    "https://u:{n}@h.test/",
    "{n} x",
    "[{n}]",
    "{{X: {n}}}",
    "'{n}\\n'",
    "*{n}",
    "!{n} x",
    "'a${{{n}'",
    '"{n}',
    "{n}: x",
)


@settings(max_examples=150, deadline=None)
@given(
    strategies.lists(
        strategies.tuples(strategies.sampled_from(KEYS), strategies.sampled_from(VALUES)),
        max_size=4,
        unique_by=lambda pair: pair[0],
    )
)
def test_no_fault_shows_a_value(pairs):
    text = "channels:\n  ops:\n    enabled: 3\n" + "".join(
        f"    {key}: {value.format(n=NEEDLE)}\n"
        for key, value in pairs
        if key in SECRET or "${" not in value.format(n="")
    )
    faults = faults_of(text)
    assert not any(NEEDLE in sentence for _, _, sentence in faults if not sentence.startswith(NAMED))


@pytest.mark.parametrize("value", ["tok secretpart", 5.5, ["secretpart"], {"a": "secretpart"}, b"secretpart", object()])
def test_no_fault_of_a_mapping_shows_a_value(value):
    faults = from_mapping({"channels": {"ops": {"type": "toy", "token": value}}}, {}, REGISTRY).failure()
    assert [fault.key for fault in faults] == ["channels.ops.token"]
    assert NEEDLE not in repr(faults)
