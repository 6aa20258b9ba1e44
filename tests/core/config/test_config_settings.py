# ruff: noqa: E501 (a row of a table stands in one line)
"""What our users' files hold arrives in the settings; what is not ours is left alone."""

import subprocess
import sys

import pytest
from settings_of import REGISTRY, TOKEN, faults_of, read, settings_of, toy, toy_of

from messaging_core import policy
from messaging_core.channels import CHANNELS
from messaging_core.config.schemas import ALIASES, RECEIVING, from_mapping, load
from messaging_core.config.settings import TOOL_GROUPS, VERDICTS, Approval, Audit, AuditFile, ToolPolicy
from messaging_core.secrecy import Secret

DAEMON = """
channels:
  discord-general:
    type: discord-webhook
    url: ${DISCORD_WEBHOOK_URL}
  matrix-ops:
    type: matrix
    homeserver: ${MATRIX_HOMESERVER}
    room_id: ${MATRIX_ROOM_ID}
    access_token: ${MATRIX_ACCESS_TOKEN}
  alerts:
    type: webhook
    url: ${ALERT_WEBHOOK_URL}
    method: POST
    headers:
      Content-Type: application/json
    body_template: '{"text": "{{content}}"}'
"""
DAEMON_TOML = """
[channels.discord-general]
type = "discord-webhook"
url = "${DISCORD_WEBHOOK_URL}"
[channels.matrix-ops]
type = "matrix"
homeserver = "${MATRIX_HOMESERVER}"
room_id = "${MATRIX_ROOM_ID}"
access_token = "${MATRIX_ACCESS_TOKEN}"
[channels.alerts]
type = "webhook"
url = "${ALERT_WEBHOOK_URL}"
method = "POST"
headers = { Content-Type = "application/json" }
body_template = '{"text": "{{content}}"}'
"""
ENVIRONMENT = {
    "DISCORD_WEBHOOK_URL": "https://discord.test/api/webhooks/1/FAKE-secretpart",
    "MATRIX_HOMESERVER": "https://matrix.test/",
    "MATRIX_ROOM_ID": "!room:matrix.test",
    "MATRIX_ACCESS_TOKEN": "syt_FAKE",
    "ALERT_WEBHOOK_URL": "https://alerts.test/in",
}
SECTIONS = """
[gateway]
host = "127.0.0.1"
port = 16830

[channels_config]
cli = true
message_timeout_secs = 30

[channels_config.toy]
token = "123456:ABC-DEF..."
allowed_users = ["alice", "bob"]
stream_mode = "partial"

[security.tool_policy.tools]
message_send = "allow"
gateway = "supervised"     # a person approves
"""
SECTIONS_YAML = """
gateway: {host: 127.0.0.1, port: 16830}
channels_config:
  cli: true
  message_timeout_secs: 30
  toy:
    token: 123456:ABC-DEF...
    allowed_users: [alice, bob]
    stream_mode: partial
security:
  tool_policy:
    tools: {message_send: allow, gateway: supervised}
"""


@pytest.mark.parametrize(("format", "text"), [("yaml", DAEMON), ("toml", DAEMON_TOML)])
def test_the_file_of_the_tool_message(format, text):
    settings = settings_of(text, format, ENVIRONMENT)
    discord, matrix, alerts = settings.channels
    assert settings.named == ("discord-general", "matrix-ops", "alerts")
    assert discord.own.url == Secret("discord-general.url")
    assert (matrix.own.homeserver, matrix.own.room_id) == ("https://matrix.test", "!room:matrix.test")
    assert alerts.own.headers == (("Content-Type", "application/json"),)
    assert (settings.cli, settings.message_timeout_secs, settings.where) == (None, 300.0, "daemon.yaml")


@pytest.mark.parametrize(("format", "text"), [("yaml", SECTIONS_YAML), ("toml", SECTIONS)])
def test_the_file_of_the_tool_message_send(format, text):
    settings = settings_of(text, format)
    (toy,) = settings.channels
    assert (toy.name, toy.platform, toy.rules.allowed_users) == ("toy", "toy", ("alice", "bob"))
    assert (settings.cli, settings.named, settings.message_timeout_secs, settings.gateway.port) == (
        True,
        (),
        30.0,
        16830,
    )
    assert settings.security.tool_policy.tools == (("message_send", "allow"), ("gateway", "supervised"))


def test_both_formats_and_a_mapping_give_the_same_settings():
    mapping = {
        "gateway": {"host": "127.0.0.1", "port": 16830},
        "channels_config": {
            "cli": True,
            "message_timeout_secs": 30,
            "toy": {"token": "123456:ABC-DEF...", "allowed_users": ["alice", "bob"], "stream_mode": "partial"},
        },
        "security": {"tool_policy": {"tools": {"message_send": "allow", "gateway": "supervised"}}},
    }
    one = load(SECTIONS, "toml", {}, REGISTRY).unwrap()
    two = load(SECTIONS_YAML, "yaml", {}, REGISTRY).unwrap()
    three = from_mapping(mapping, {}, REGISTRY).unwrap()
    assert one.settings == two.settings == three.settings
    assert dict(one.secrets) == dict(two.secrets) == dict(three.secrets) == {"toy.token": "123456:ABC-DEF..."}
    assert one.settings.where is None


def test_channels_stand_in_file_order_whatever_section_they_are_in():
    text = "[channels_config.toy]\ntoken='aaaaaa'\n[channels.b]\ntype='cli'\n[channels_config.cli]\n[channels.a]\ntype='cli'\n"
    settings = settings_of(text, "toml")
    assert [channel.name for channel in settings.channels] == ["toy", "b", "cli", "a"]
    assert settings.named == ("b", "a")


@pytest.mark.parametrize("alias", [*ALIASES, "allowed_users"])
def test_the_list_of_the_permitted_has_several_names(alias):
    text = toy(f"{alias}: ['*', 42, '@company.com']")
    assert settings_of(text).channels[0].rules.allowed_users == ("*", "42", "@company.com")


def test_an_absent_list_is_no_limit_and_an_empty_one_permits_nobody():
    assert settings_of(toy("")).channels[0].rules.allowed_users is None
    assert settings_of(toy("allowed_users: []")).channels[0].rules.allowed_users == ()


def test_keys_of_the_receiving_half_and_other_sections_are_left_alone():
    text = toy("\n".join(f"{key}: [1, {{}}]" for key in RECEIVING)) + "agent: 5\nmemory: {a: [b]}\ntools: ~\n"
    text += (
        "gateway: {require_pairing: true}\nsecurity: {sandbox: {enabled: true}, tool_policy: {tools: {shell: ask}}}\n"
    )
    assert settings_of(text).named == ("ops",)


def test_every_sort_of_value():
    keys = (
        "to: one@a.test",
        "method: put",
        "tls: off",
        "port: 1_0",
        "patience: 2.5",
        "api_base: http://localhost:8065/x//",
    )
    own = toy_of("\n".join(keys))
    assert (own.to, own.method, own.tls, own.port) == (("one@a.test",), "PUT", False, 10)
    assert (own.patience, own.mode, own.api_base) == (2.5, "fast", "http://localhost:8065/x")


@pytest.mark.parametrize("rate", ["20/minute", "20 per minute", "20 / Minute", "'20/minute'"])
def test_a_rate(rate):
    assert settings_of(toy(f"rate_limit: {rate}")).channels[0].rules.rate_limit == "20/minute"


def test_the_policy_by_tool_group_and_channel():
    text = """
channels: {ops: {type: cli}, dev: {type: cli}}
security:
  tool_policy:
    default: supervised
    tools:
      gateway: deny
      message: {default: allow, channels: {ops: deny}}
      message_send: {channels: {ops: supervised}}
    groups: {messaging: allow}
    channels: {dev: deny, cli: allow}
  approval: {ask: terminal, timeout_secs: 5}
  audit: {sync: true, required: false, file: {path: /var/log/m.jsonl, max_size_mb: 2, max_files: 1}}
"""
    security = settings_of(text).security
    assert security.tool_policy == ToolPolicy(
        "supervised",
        (("gateway", "deny"), ("message", "allow")),
        (("messaging", "allow"),),
        (
            ("*", "dev", "deny"),
            ("*", "cli", "allow"),
            ("message", "ops", "deny"),
            ("message_send", "ops", "supervised"),
        ),
    )
    assert security.approval == Approval("terminal", 5.0)
    assert security.audit == Audit(True, True, False, AuditFile("/var/log/m.jsonl", 2, 1))


def test_the_policy_reads_the_same_words():
    assert VERDICTS == policy.STRICTNESS
    assert TOOL_GROUPS == policy.GROUPS


def test_other_settings():
    text = "media_roots: [/srv/out, 'C:\\x']\nallow_hidden_media: yes\nmax_wait: 5\nmax_attempts: 2\nhttp: {connect_timeout: 0.5}\n"
    settings = settings_of(text)
    assert (settings.media_roots, settings.allow_hidden_media) == (("/srv/out", "C:\\x"), True)
    assert (settings.max_wait, settings.max_attempts, settings.http.connect_timeout) == (5.0, 2, 0.5)
    assert settings_of("media_roots: []\n").media_roots == ()
    assert settings_of("").media_roots is None


def test_a_channel_that_is_switched_off_is_kept_and_still_checked():
    (channel,) = settings_of(toy("enabled: false")).channels
    assert channel.rules.enabled is False
    assert faults_of("channels: {ops: {type: toy, enabled: false}}")


def test_templates_of_a_webhook_keep_what_is_not_a_placeholder():
    """``$${KEEP}`` is a literal, ``price $5`` is itself."""
    for written, arrives in (("$${KEEP}", "${KEEP}"), ("price $5", "price $5")):
        text = f"channels: {{w: {{type: webhook, url: 'https://h.test/', body_template: '{{\"a\": \"{written}{{{{content}}}}\"}}'}}}}"
        own = settings_of(text, environment={"KEEP": "zzz"}).channels[0].own
        assert own.body_template.pieces[0] == f'{{"a": "{arrives}'


def test_a_url_is_used_as_written():
    url = "https://chat.test:8443/team/hooks/abc123FAKE"
    configuration = read(f"channels: {{mm: {{type: discord-webhook, url: '{url}'}}}}").unwrap()
    assert configuration.secrets["mm.url"] == url


def test_every_shipped_channel_has_a_schema():
    for platform in CHANNELS:
        faults = load(f"channels: {{x: {{type: {platform}, nope: 1}}}}", "yaml", {}, CHANNELS).failure()
        assert any(fault.key == "channels.x.nope" for fault in faults)


def test_loading_imports_no_parser_that_it_does_not_use():
    code = (
        "import sys, messaging_core.config.schemas; print(sorted({'yaml', 'tomllib', 'requests'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_value_that_a_program_gives_as_it_gave_the_file():
    mapping = {"channels": {"ops": {"type": "toy", "token": TOKEN, "tls": False, "port": 25, "patience": 0.5, 5: 1}}}
    (fault,) = from_mapping(mapping, {}, REGISTRY).failure()
    assert (fault.where, fault.line, fault.key) == ("<mapping>", None, "channels.ops.5")


def test_a_list_of_rooms_that_limits_nothing_by_itself_is_warned_of():
    assert read(toy("allowed_users: [a]\nallowed_recipients: [r]")).unwrap().warnings == ()
    (warning,) = read(toy("allowed_recipients: [r]")).unwrap().warnings
    assert warning.startswith("ops.allowed_recipients limits nothing without allowed_users")
