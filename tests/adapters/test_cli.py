"""The command, as a shell sees it: stdout, stderr, exit status. Run as a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.loopback import Loopback, hang, reply

ROOT = Path(__file__).resolve().parent.parent.parent


def messaging(
    *words: str, input: str | bytes | None = None, cwd: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with a terminal-less standard input (empty unless given)."""
    data = input.encode() if isinstance(input, str) else input or b""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    done = subprocess.run(
        [sys.executable, "-m", "messaging_adapters.cli", *words],
        input=data,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1", **environ},
        timeout=30,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def configure(folder: Path, text: str, name: str = "messaging.yaml") -> None:
    (folder / name).write_text(text)


def test_without_a_configuration_a_text_goes_to_the_terminal(tmp_path: Path) -> None:
    done = messaging("send", "Hello from **my agent**", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello from my agent\n", "")


def test_a_text_is_read_from_a_pipe(tmp_path: Path) -> None:
    for words in (("send",), ("send", "-")):
        assert messaging(*words, input="big\ntext\n", cwd=tmp_path).stdout == "big\ntext\n"


def test_json_is_one_object_and_the_text_moves_aside(tmp_path: Path) -> None:
    done = messaging("send", "hello", "--json", cwd=tmp_path)
    assert done.stderr == "hello\n"
    assert json.loads(done.stdout) == {
        "status": "delivered",
        "tool": "message_send",
        "channel": "cli",
        "platform": "cli",
        "recipient": "the terminal",
        "ids": [],
        "parts": {"delivered": 1, "of": 1},
        "message": "Message sent to cli (the terminal)",
        "error": None,
    }


def test_a_call_does_what_an_agent_loop_does(tmp_path: Path) -> None:
    with Loopback(reply(204)) as server:
        configure(tmp_path, "channels:\n  x:\n    type: discord-webhook\n    url: ${HOOK}\n", "daemon.yaml")
        done = messaging(
            "call", "message", '{"channel":"x","content":"hi"}', cwd=tmp_path, HOOK=server.url + "/FAKE-hook"
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "Message sent to x\n", "")
        assert server.requests[0].body == b'{"content":"hi"}'


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("call", "message", "{"), 2, "the arguments are not JSON"),
        (("call", "nope", "{}"), 2, "Unknown tool: nope"),
        (("call", "message", '{"channel":"c","content":"x"}'), 3, "Unknown channel: c. Available channels: a"),
        (("call", "message_send", '{"text":""}'), 3, "text: is empty"),
        (("send", "x", "--channel", "b"), 3, "Unknown channel: b"),
        (("send", "x", "--recipient", "-1001234567890"), 3, "Invalid recipient '-1001234567890'"),
        (("send", "x", "--recipient", "-100/7"), 3, "Invalid recipient '-100/7'"),
        (("send", "x", "--media", "missing.png"), 3, "a cannot send media"),
        (("send", "x", "--config", "nowhere.yaml"), 2, "nowhere.yaml: cannot be read"),
        (("check", "--config", "wrong.yaml"), 2, "channels.a.type"),
    ],
)
def test_what_is_refused_is_said_on_one_line_of_stderr(
    tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    configure(tmp_path, "channels:\n  a: {type: cli}\n")
    configure(tmp_path, "channels:\n  a: {type: clii}\n", "wrong.yaml")
    done = messaging(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "status", "outcome"),
    [(reply(500), 1, "failed"), (reply(200), 0, "delivered"), (hang(), 5, "unconfirmed")],
)
def test_the_exit_status_tells_the_outcome(tmp_path: Path, answer: Any, status: int, outcome: str) -> None:
    with Loopback(answer) as server:
        configure(
            tmp_path,
            f"http: {{read_timeout: 0.3}}\nchannels:\n  w: {{type: webhook, url: '{server.url}/FAKE-secret'}}\n",
        )
        done = messaging("send", "x", "--json", cwd=tmp_path)
        assert (done.returncode, json.loads(done.stdout)["status"]) == (status, outcome)
        assert "FAKE" not in done.stdout + done.stderr


def test_partly_delivered_is_exit_status_4(tmp_path: Path) -> None:
    ok = reply(json={"ok": True, "result": {"message_id": 1}})
    with Loopback(
        ok, reply(403, json={"ok": False, "error_code": 403, "description": "Forbidden: bot was kicked"})
    ) as server:
        channel = {"type": "telegram", "bot_token": "1:FAKE-token", "chat_id": "42", "api_base": server.url}
        configure(tmp_path, json.dumps({"channels": {"t": channel}}))
        done = messaging("send", "-", "--json", input="line of text\n" * 1000, cwd=tmp_path)
        shown = json.loads(done.stdout)
        assert (done.returncode, shown["status"], shown["ids"], shown["parts"]) == (
            4,
            "partial",
            ["1"],
            {"delivered": 1, "of": 4},
        )


def test_a_dry_run_shows_every_request_and_sends_none(tmp_path: Path) -> None:
    with Loopback() as server:
        channel = {"type": "webhook", "url": server.url + "/FAKE-secret", "headers": {"X-Key": "FAKE-key-1"}}
        configure(tmp_path, json.dumps({"channels": {"w": channel}}))
        shown = json.loads(messaging("send", "hi", "--dry-run", "--json", cwd=tmp_path).stdout)
        assert shown["status"] == "planned"
        assert shown["requests"] == [
            {
                "method": "POST",
                "url": "{w.url}",
                "headers": {"X-Key": "{w.headers.X-Key}", "Content-Type": "application/json"},
                "body": {"content": "hi"},
            }
        ]
        assert "FAKE" not in messaging("send", "hi", "--dry-run", cwd=tmp_path).stdout
        assert server.requests == []


def test_tools_come_in_the_shapes_that_models_take(tmp_path: Path) -> None:
    for shape, key in (
        ("openai", "function"),
        ("anthropic", "input_schema"),
        ("mcp", "inputSchema"),
        ("json-schema", "properties"),
    ):
        definitions = json.loads(messaging("tools", "--format", shape, cwd=tmp_path).stdout)
        assert all(key in definition for definition in definitions)


def test_a_preview_shows_each_channels_parts(tmp_path: Path) -> None:
    configure(tmp_path, "channels:\n  d: {type: discord-webhook, url: 'https://d.test/FAKE'}\n  c: {type: cli}\n")
    (tmp_path / "a.md").write_text("# Title\n\n" + "word " * 700)
    shown = messaging("preview", "a.md", cwd=tmp_path).stdout
    assert "=== d (discord-webhook, 2,000 characters raw) ===" in shown
    assert "--- part 2 of 2" in shown and "=== c (cli, no limit) ===" in shown


def test_the_record_of_what_was_sent_can_be_read(tmp_path: Path) -> None:
    messaging("send", "hello", cwd=tmp_path)
    (record,) = [json.loads(line) for line in messaging("audit", "--json", cwd=tmp_path).stdout.splitlines()]
    assert (record["status"], record["channel"], record["tool"]) == ("delivered", "cli", "message_send")
    assert "hello" not in json.dumps(record)


def in_bash(command: str, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """The command line as bash runs it; ``messaging`` in it is the command."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    script = f'messaging() {{ {sys.executable} -m messaging_adapters.cli "$@"; }}; {command}'
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1", **environ}
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=30
    )


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    done = in_bash("messaging tools | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}", tmp_path)
    assert done.stderr == ""


UNWRITTEN = {
    # what stdout is -> what stderr says of it
    ">&-": "stdout is closed",
    ">/dev/full": "No space left on device",
}


@pytest.mark.parametrize("stdout", UNWRITTEN)
def test_a_result_that_cannot_be_shown_is_told_in_one_line(tmp_path: Path, stdout: str) -> None:
    done = in_bash(f"messaging tools {stdout}", tmp_path)
    assert (done.returncode, done.stderr) == (1, f"messaging: the result cannot be shown: {UNWRITTEN[stdout]}\n")


@pytest.mark.parametrize("stdout", [">&-", ">/dev/full", "| true; exit ${PIPESTATUS[0]}"])
@pytest.mark.parametrize("json_", ["", "--json"])
def test_what_was_delivered_is_exit_status_0_even_if_nobody_can_be_told(
    tmp_path: Path, stdout: str, json_: str
) -> None:
    with Loopback(reply(204)) as far:
        configure(tmp_path, f"channels:\n  hook: {{type: webhook, url: '{far.url}/x'}}\n")
        done = in_bash(f"messaging send {json_} hi {stdout}", tmp_path)
    assert (done.returncode, len(far.requests)) == (0, 1), done.stderr
    assert len(done.stderr.splitlines()) <= 1


def test_a_closed_stderr_puts_nothing_among_the_results(tmp_path: Path) -> None:
    assert in_bash("messaging call message '{}' 2>&-", tmp_path).stdout == ""
    done = in_bash("messaging send --json hi 2>&-", tmp_path)
    assert (json.loads(done.stdout)["status"], done.returncode) == ("failed", 1), "its text could go nowhere"


def test_json_stays_json_where_stdout_has_few_letters(tmp_path: Path) -> None:
    done = in_bash("messaging send --json --dry-run 'Grüße 😀'", tmp_path, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["requests"][0]["body"] == "Grüße 😀\n"


def test_an_empty_name_of_a_configuration_is_not_replaced_by_another(tmp_path: Path) -> None:
    """As it comes of ``--config "$FILE"`` where the variable is not set."""
    configure(tmp_path, "channels:\n  a: {type: cli}\n", "daemon.yaml")
    done = messaging("send", "hi", "--config", "", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--config" in done.stderr


def test_check_names_the_file_and_its_channels(tmp_path: Path) -> None:
    configure(
        tmp_path, "channels:\n  m: {type: matrix, homeserver: 'https://hs.test', access_token: abc, room_id: '!r'}\n"
    )
    done = messaging("check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "messaging.yaml: ok (m, cli)\n")
    assert "m.access_token" in done.stderr, "a secret too short to be masked is warned of"


def test_doctor_says_something_of_every_channel_and_refuses_one_that_is_not_there(tmp_path: Path) -> None:
    configure(tmp_path, "channels:\n  console: {type: cli}\n  off: {type: cli, enabled: false}\n")
    done = messaging("doctor", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "console: there is nothing to ask (cli)\n")
    for name in ("nope", "off"):
        done = messaging("doctor", "--channel", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith(f": {name}. Available channels: console\n")


def test_a_package_whose_channel_cannot_be_loaded_is_named_on_one_line(tmp_path: Path) -> None:
    installed = tmp_path / "broken-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[messaging_core.channels]\npager = no_such_package:CHANNEL\n")
    configure(tmp_path, "channels:\n  p: {type: pager}\n")
    done = messaging("check", cwd=tmp_path)
    said = "messaging: the channel 'pager' of another package (no_such_package:CHANNEL) cannot be loaded: "
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1


def test_a_status_that_there_is_none_of_is_not_taken_for_nothing_found(tmp_path: Path) -> None:
    done = messaging("audit", "--status", "faild", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("messaging: --status: 'faild' is none of delivered, partial, unconfirmed, failed,")
    assert messaging("audit", "--status", "unfinished", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path)).returncode == 0
