# ruff: noqa: E501 (a row of a table stands in one line)
"""Every fault is found at once, in its line, under its key, with what would be right."""

import pytest
from settings_of import TOKEN, faults_of, toy

from messaging_core.channels import CHANNELS
from messaging_core.config.schemas import load

HEAD = "channels:\n  ops:\n    type: toy\n    token: tok-FAKE-0000\n"
TOML = "[channels.ops]\ntype = 'toy'\ntoken = 'tok-FAKE-0000'\n"


TABLE = {
    # one key of the toy channel, in line 5: the fault of the key, and what its sentence says
    "chat_id: [1]": "text expected, not a list",
    "chat_id: {a: 1}": "text expected, not a section",
    "chat_id:": "no value",
    "chat_id: ~": "no value",
    "chat_id: ''": "is empty",
    "chat_id: '  '": "is empty",
    "chat_id: ${NOT_SET}": "the environment variable NOT_SET is not set",
    "chat_id: ${EMPTY}": "is empty (the environment variable EMPTY is empty)",
    "title: '${1BAD}'": "${1BAD} is not a placeholder",
    "title: '${A-B}'": "${A-B} is not a placeholder",
    "title: '${UNCLOSED'": "${UNCLOSED is not a placeholder",
    "title: '${}'": "${} is not a placeholder",
    "title: '${A:-${B}}'": "is not a placeholder",
    "to: {a: 1}": "a list expected",
    "to: [a, '']": "to[1]: is empty",
    "to: [a, [b]]": "to[1]: text expected, not a list",
    "password: ''": "is empty",
    'password: "a\\nb"': "a control character inside",
    "hook: discord.test/x": "no scheme",
    "hook: ftp://discord.test/x": "no scheme http or https",
    "hook: https:///x": "names no host",
    "hook: https://[::1/x": "not a URL",
    "hook: https://h.test:99999/": "not a URL",
    "hook: 'https://h.test/a b'": "a blank, control or invisible character",
    "hook: 'https://h.test/a\u200b'": "a blank, control or invisible character",
    "hook: '\ufeffhttps://h.test/a'": "a blank, control or invisible character",
    "hook: 'https://good.test\\@evil.test/'": "names no host",
    "hook: ${EMPTY}": "EMPTY is empty",
    "api_base: https://me:secretpart@h.test": "user name and password do not belong",
    "api_base: https://h.test/?a=secretpart": "ends before '?'",
    "headers: [a]": "header names with their values",
    "headers: {'X Y': a}": "not the name of a header",
    'headers: {X-A: "a\\nB: secretpart"}': "a line end or control character",
    "headers: {X-A: ☃}": "beyond Latin-1",
    "headers: {X-A: a, x-a: b}": "given twice",
    "headers: {X-A: 'Bearer ${EMPTY}'}": "EMPTY is empty",
    "headers: {X-A: 'Bearer ${NOT_SET}'}": "NOT_SET is not set",
    "method: 'PO ST'": "not an HTTP method",
    "body: ''": "is empty",
    "url: https://{{content}}/x": "the content would name the host",
    "url: https://a.{{content}}:80/x": "the content would name the host",
    "url: '{{content}}'": "no scheme",
    "tls: 'true'": "true or false expected, not text (leave the quotes out)",
    "tls: 1": "true or false expected",
    "tls: maybe": "true or false expected",
    "tls:": "no value",
    "port: '465'": "a whole number expected, not text (leave the quotes out)",
    "port: many": "a whole number expected",
    "port: 4.5": "a whole number expected",
    "port: 0777": "a whole number expected",
    "port: 0": "less than 1",
    "port: 65536": "more than 65535",
    "patience: 0": "over zero",
    "patience: -1": "over zero",
    "patience: .inf": "over zero",
    "patience: 1e9": "over zero",
    "patience: 9999999": "over zero",
    "mode: fas": "not one of fast, slow (did you mean 'fast'?)",
    "mode: [fast]": "text expected, not a list",
    "titel: x": "unknown key (did you mean 'title'?)",
    "zzz: x": "unknown key (known: token, chat_id",
    "recipient_allowlst: ['42']": "recipient_allowlst: unknown key",
    "allowed_users:": "no value (a list in brackets: [] for none, ['*'] for all)",
    "allowed_users: ~": "no value",
    "allowed_users: ''": "a list expected",
    "allowed_users: alice": "a list expected",
    "allowed_users: '*'": "a list expected",
    "allowed_users: ${USERS}": "a list expected",
    "allowed_users: {a: b}": "a list expected",
    "allowed_users: [a, ~]": "allowed_users[1]: no value",
    "allowed_from: alice": "a list expected",
    "allowed_recipients: alice": "a list expected",
    "enabled: perhaps": "true or false expected",
    "rate_limit: fast": "not a rate",
    "rate_limit: 20/week": "not a rate",
    "rate_limit: 0/minute": "not a rate",
    "max_parts: 0": "less than 1",
    "overflow: splt": "did you mean 'split'?",
    "title: !!python/object:os.system x": "tags are not used here",
    "title: !secretpart x": "tags are not used here",
}


@pytest.mark.parametrize("line", TABLE)
def test_a_fault_in_a_key_is_told_with_its_line_and_key(line):
    faults = faults_of(toy(line), environment={"EMPTY": "", "USERS": "alice"})
    assert [fault[0] for fault in faults] == [5]
    key = line.partition(":")[0]
    assert faults[0][1].startswith(f"channels.ops.{key}")
    assert TABLE[line] in faults[0][2]
    assert faults[0][2].startswith(f"daemon.yaml:5: channels.ops.{key}")
    assert "secretpart" not in faults[0][2]


TOML_TABLE = {
    "chat_id = 1_000": "quote it",
    "chat_id = 0x1F": "quote it",
    "chat_id = 0o17": "quote it",
    "chat_id = +5": "quote it",
    "chat_id = -0": "quote it",
    "chat_id = 1.10": "quote it",
    "chat_id = 1e3": "quote it",
    "chat_id = inf": "quote it",
    "chat_id = 123456789012345678901": "quote it",
    "chat_id = 12:30:45": "quote it",
    "chat_id = 1979-05-27": "quote it",
    "chat_id = true": "quote it",
    "to = [1, 2_0]": "to[1]: a number that may lose its form",
    "title = 5": "text expected, not a number",
    "tls = 'true'": "leave the quotes out",
    "port = '465'": "leave the quotes out",
    "port = 0x10": "in plain digits",
    "port = 4.5": "a whole number expected",
    "patience = nan": "over zero",
    "allowed_users = 'alice'": "a list expected",
    "allowed_user = ['alice']": "did you mean 'allowed_users'?",
    "headers = { X-A = 1.10 }": "headers.X-A: a number that may lose its form",
}


@pytest.mark.parametrize("line", TOML_TABLE)
def test_the_same_in_toml(line):
    faults = faults_of(toy(line, "toml"), "toml")
    assert [fault[0] for fault in faults] == [4]
    assert faults[0][1].startswith(f"channels.ops.{line.partition(' =')[0]}")
    assert TOML_TABLE[line] in faults[0][2]


FILES = {
    "all faults of a file at once, by line": (
        "yaml",
        "chanels: {}\nchannels:\n  a: {type: toi}\n  b:\n    token: x\n  c:\n    type: toy\n    tls: 3\n  d: 5\nmax_attempts: 0\n",
        [
            (1, "chanels", "did you mean 'channels'?"),
            (3, "channels.a.type", "unknown type 'toi' (did you mean 'toy'?)"),
            (4, "channels.b.type", "missing (one of toy, cli, discord-webhook, matrix, webhook)"),
            (6, "channels.c.token", "missing (The token.)"),
            (8, "channels.c.tls", "true or false expected"),
            (9, "channels.d", "a section of keys expected"),
            (10, "max_attempts", "less than 1"),
        ],
    ),
    "a channel given twice, both lines": (
        "yaml",
        "channels:\n  ops:\n    type: toy\n    token: aaaaaa\n  ops:\n    type: toy\n    token: bbbbbb\n",
        [(5, "channels.ops", "'ops' is given twice, in lines 2 and 5")],
    ),
    "a key given twice in a flow mapping": (
        "yaml",
        "channels: {a: {type: cli, type: cli}}\n",
        [(1, "channels.a.type", "twice")],
    ),
    "a key given twice inside a list": ("yaml", "x:\n- a: 1\n  a: 2\n", [(3, "x[0].a", "in lines 2 and 3")]),
    "a TOML key given twice, both lines": (
        "toml",
        "[channels.ops]\ntype = 'cli'\n\ntype = 'cli'\n",
        [(4, "channels.ops.type", "'type' is given twice, in lines 2 and 4")],
    ),
    "a TOML section given twice, both lines": (
        "toml",
        "[channels.ops]\ntype = 'cli'\n[channels.ops]\n",
        [(3, "channels.ops", "'ops' is given twice, in lines 1 and 3")],
    ),
    "an item of a list has its own line": (
        "toml",
        TOML + "to = [\n  'a',\n  1_0,\n]\n",
        [(6, "channels.ops.to[1]", "quote it")],
    ),
    "an item of a YAML list": ("yaml", HEAD + "    to:\n    - a\n    - ''\n", [(7, "channels.ops.to[1]", "is empty")]),
    "the same name in two sections": (
        "yaml",
        "channels:\n  cli: {type: cli}\nchannels_config:\n  cli: {stream: stderr}\n",
        [(4, "channels_config.cli", "'cli' is also in channels (line 2)")],
    ),
    "two names of one key": (
        "toml",
        TOML + "allowed_users = []\nallowed_numbers = ['*']\n",
        [(5, "channels.ops.allowed_numbers", "the same setting as allowed_users (line 4)")],
    ),
    "an unknown platform": (
        "toml",
        "[channels_config]\nmessage_timeout_secs = 3\n[channels_config.matrx]\n",
        [(3, "channels_config.matrx", "unknown platform 'matrx' (did you mean 'matrix'?)")],
    ),
    "a type that contradicts its section": (
        "toml",
        "[channels_config.cli]\ntype = 'toy'\n",
        [
            (2, "channels_config.cli.type", "this section is of the platform cli"),
            (1, "channels_config.cli.token", "missing"),
        ],
    ),
    "cli as a switch in the wrong place": (
        "yaml",
        "channels:\n  cli: true\n",
        [(2, "channels.cli", "under channels_config")],
    ),
    "the time-out in two places": (
        "yaml",
        "message_timeout_secs: 5\nchannels_config:\n  message_timeout_secs: 6\n",
        [(3, "channels_config.message_timeout_secs", "also at the top (line 1)")],
    ),
    "a policy that is none": (
        "yaml",
        "security:\n  tool_policy:\n  approval:\n    ask: nobody\n    timeout_secs: 0\n  audti: {}\n",
        [
            (2, "security.tool_policy", "no value"),
            (4, "security.approval.ask", "not one of none, terminal"),
            (5, "security.approval.timeout_secs", "over zero"),
            (6, "security.audti", "did you mean 'audit'?"),
        ],
    ),
    "verdicts": (
        "yaml",
        "channels: {ops: {type: cli}}\nsecurity:\n  tool_policy:\n    default: alow\n    tools:\n      mesage_send: deny\n"
        "      gateway: [deny]\n      message: {channels: {opps: deny, ops: never}, defualt: deny}\n      shell: whatever\n"
        "    groups: {messging: deny}\n    channels: {cli: no}\n    channel: {}\n",
        [
            (4, "security.tool_policy.default", "not one of allow, supervised, deny (did you mean 'allow'?)"),
            (6, "security.tool_policy.tools.mesage_send", "did you mean 'message_send'?"),
            (7, "security.tool_policy.tools.gateway", "text expected, not a list"),
            (8, "security.tool_policy.tools.message.channels.opps", "no such channel (did you mean 'ops'?)"),
            (8, "security.tool_policy.tools.message.channels.ops", "not one of allow, supervised, deny"),
            (8, "security.tool_policy.tools.message.defualt", "did you mean 'default'?"),
            (10, "security.tool_policy.groups.messging", "did you mean 'messaging'?"),
            (11, "security.tool_policy.channels.cli", "not one of"),
            (12, "security.tool_policy.channel", "did you mean 'channels'?"),
        ],
    ),
    "other sections": (
        "toml",
        "media_roots = '/tmp'\n[gateway]\nport = 70000\nallowed_target = []\n[http]\nread_timout = 3\nproxy = 'squid:3128'\n"
        "[security.audit.file]\nmax_size_mb = 0\nfoo = 1\n",
        [
            (1, "media_roots", "a list expected"),
            (3, "gateway.port", "more than 65535"),
            (4, "gateway.allowed_target", "did you mean 'allowed_targets'?"),
            (6, "http.read_timout", "did you mean 'read_timeout'?"),
            (7, "http.proxy", "no scheme"),
            (9, "security.audit.file.max_size_mb", "less than 1"),
            (10, "security.audit.file.foo", "unknown key"),
        ],
    ),
    "a channel's own check": (
        "yaml",
        HEAD + "    mode: slow\n    tls: false\n",
        [(5, "channels.ops.mode", "slow without TLS, with *** (turn TLS on)")],
    ),
    "the check of the webhook": (
        "yaml",
        "channels:\n  w:\n    type: webhook\n    url: https://h.test/\n    body_template: '{\"a\": 1}'\n",
        [(5, "channels.w.body_template", "the content would be lost")],
    ),
    "a name that is none": (
        "yaml",
        "channels:\n  ' a': {type: cli}\n  '': {type: cli}\n",
        [(2, "channels. a", "not a name"), (3, "channels.", "not a name")],
    ),
    "no mapping": ("yaml", "- a\n", [(1, "", "keys and values expected")]),
    "two documents": ("yaml", "a: 1\n---\nb: 2\n", [(2, "", "a second document")]),
    "broken YAML": (
        "yaml",
        "channels:\n  a: b: secretpart\n",
        [(2, "", "not valid YAML: mapping values are not allowed")],
    ),
    "an alias without its anchor": ("yaml", "a: 1\nb: *secretpart\n", [(2, "", "an alias (*) without its anchor")]),
    "an alias inside its anchor": ("yaml", "a: &a [*a]\n", [(1, "", "an alias inside of what it stands for")]),
    "a control character": ("yaml", "a: 1\nb: \x07secretpart\n", [(2, "", "a control character")]),
    "broken TOML": ("toml", "a = 1\nb = secretpart\n", [(2, "", "not valid TOML: a value that is none")]),
    "TOML: a section after a key that is its own": (
        "toml",
        "a.b.c = 1\n[a.b]\n",
        [(2, "", "not valid TOML: a section that stands there already")],
    ),
    "TOML: a section below a value": ("toml", "a = 1\n[a.b]\n", [(2, "", "a key that has a value already")]),
    "TOML: an open header": ("toml", "[a\nb = 1\n", [(1, "", "a section's name without its ']'")]),
    "TOML: text that goes on": ("toml", 'a = "secretpart\n', [(1, "", "without its closing quote in the same line")]),
    "TOML: a control character": ("toml", "a = '\x01secretpart'\n", [(1, "", "a control character")]),
    "unclosed TOML": ("toml", "a = 1\nb = 'secretpart\n", [(2, "", "not valid TOML")]),
    "not UTF-8": ("yaml", b"a: 1\nb: \xff\n", [(2, "", "not UTF-8")]),
    "a surrogate": ("yaml", "a: 1\nb: \ud800\n", [(2, "", "surrogate")]),
    "a value that lost its place": (
        "yaml",
        "channels: {a: {type: toy, token:secretpart}}\n",
        [(1, "channels.a.token", "missing"), (1, "channels.a.token…", "unknown key")],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_faults_of_a_file(name):
    format, text, expected = FILES[name]
    faults = faults_of(text, format)
    assert sorted((line, key) for line, key, _ in faults) == sorted((line, key) for line, key, _ in expected)
    for line, key, words in expected:
        assert any(fault[:2] == (line, key) and words in fault[2] for fault in faults), faults
    assert [fault[0] for fault in faults] == sorted(fault[0] for fault in faults)
    assert not any("secretpart" in fault[2] or TOKEN in fault[2] for fault in faults)


def test_absurdly_many_faults_are_counted_not_listed():
    faults = faults_of("channels:\n" + "".join(f"  c{index}: {{type: nope}}\n" for index in range(900)))
    assert len(faults) == 101
    assert "800 more faults" in faults[-1][2]


DEFAULTS = {
    # type, the rest of the channel, and the key whose value nobody could be written to by
    "telegram": ("bot_token: '1:FAKE-token'", {"chat_id": ("abc", "' 42 '", "'42/7'", "'${WHO}'")}),
    "discord": ("bot_token: FAKE-token", {"channel_id": ("general", "'#ops'")}),
    "slack": ("bot_token: xoxb-FAKE", {"channel_id": ("no channel",)}),
    "matrix": ("homeserver: https://hs.test, access_token: FAKE-token", {"room_id": ("foo", "ops:hs.test")}),
    "whatsapp": ("access_token: FAKE-token, phone_number_id: 100200300", {"to": ("bob",)}),
    "signal": ("http_url: http://127.0.0.1:8080, account: '+15550002222'", {"to": ("Bob Smith",)}),
    "email": ("smtp_host: smtp.test, from_address: bot@example.org", {"to": ("nobody", "[ops@example.org, nobody]")}),
}


@pytest.mark.parametrize(
    ("platform", "key", "value"),
    [(platform, key, value) for platform, (_, keys) in DEFAULTS.items() for key in keys for value in keys[key]],
)
def test_a_default_recipient_that_is_none_is_found_when_loading(platform, key, value):
    text = f"channels:\n  c: {{type: {platform}, {DEFAULTS[platform][0]},\n    {key}: {value}}}\n"
    (fault,) = load(text, "yaml", {"WHO": "secretpart"}, CHANNELS, "daemon.yaml").failure()
    assert (fault.line, fault.key) == (3, f"channels.c.{key}")
    assert "secretpart" not in str(fault)
    assert fault.did_you_mean


@pytest.mark.parametrize(
    ("platform", "key", "value"),
    [("telegram", "chat_id", "1_000"), ("discord", "channel_id", "0123"), ("whatsapp", "to", "12:30:45")],
)
def test_an_id_that_is_written_as_a_number_arrives_as_written_and_is_warned_of(platform, key, value):
    text = f"channels:\n  c: {{type: {platform}, {DEFAULTS[platform][0]}, {key}: {value}}}\n"
    loaded = load(text, "yaml", {}, CHANNELS, "daemon.yaml").unwrap()
    assert getattr(loaded.settings.channels[0].own, key) == value
    assert any(f"channels.c.{key}" in warning for warning in loaded.warnings)


def test_a_list_of_folders_is_not_advised_to_hold_a_sign_for_everyone():
    (fault,) = load("media_roots: /srv/out\n", "yaml", {}, CHANNELS, "daemon.yaml").failure()
    assert (fault.problem, fault.did_you_mean) == ("a list expected", "a list in brackets: [] for none")


def test_a_faulty_default_recipient_is_told_beside_the_other_faults():
    text = "channels:\n  c:\n    type: telegram\n    chat_id: abc\n    message_thread_id: 7\n    max_part: 1\n"
    faults = load(text, "yaml", {}, CHANNELS, "daemon.yaml").failure()
    assert [fault.key for fault in faults] == [f"channels.c.{key}" for key in ("bot_token", "chat_id", "max_part")]


def test_slacks_star_is_no_default_recipient_and_no_fault():
    text = "channels:\n  c: {type: slack, bot_token: xoxb-FAKE, channel_id: '*'}\n"
    assert load(text, "yaml", {}, CHANNELS, "daemon.yaml").map(lambda _: True).value_or(False)
