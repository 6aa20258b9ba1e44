"""The command ``messaging``: what an agent loop does, from a shell.

Exit status: 0 delivered, 1 failed, 2 wrong usage or configuration, 3 refused, 4 partly delivered, 5 unconfirmed.
stdout carries the
result only; errors go to stderr, one readable line each.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

if TYPE_CHECKING:  # imported where used: a command that only prints its help starts in a few milliseconds
    from messaging_adapters.messenger import Messenger
    from messaging_core.channels.channel import Configured
    from messaging_core.message import Message
    from messaging_core.outcome import Outcome
    from messaging_core.plan import Plan

DELIVERED, FAILED, USAGE, REFUSED, PARTIAL, UNCONFIRMED = range(6)

EXIT = {"delivered": DELIVERED, "failed": FAILED, "refused": REFUSED, "partial": PARTIAL, "unconfirmed": UNCONFIRMED}


class Usage(Exception):
    """Wrong usage or configuration: printed as it is, exit status 2."""


class Unwritten(Exception):
    """stdout took no result; the text says why, and is empty where its reader is merely gone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    arguments = parser().parse_args(_with_dashes(list(sys.argv[1:] if argv is None else argv)))
    try:
        status: int = arguments.run(arguments)
    except Usage as error:
        for line in str(error).splitlines():
            _complain(line)
        return USAGE
    except Unwritten as error:
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        return FAILED
    finally:
        _settle()
    return status


# --- The command line -------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """All commands and options."""
    top = argparse.ArgumentParser(prog="messaging", description="Send messages, and be told the truth about them.")
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    send = _command(commands, "send", send_command, "send a text, a file or a voice message")
    send.add_argument("text", nargs="?", metavar="TEXT", help="the text; - reads it from standard input")
    for option, what in (
        ("--channel", "name of a configured channel"),
        ("--recipient", "who receives it"),
        ("--media", "a file to send"),
        ("--caption", "caption of the file"),
        ("--voice", "an audio file to send as a voice message"),
        ("--reply-to", "id of the message replied to"),
    ):
        send.add_argument(option, help=what)
    send.add_argument("--format", choices=("markdown", "plain"), help="how the text is read (default: the channel's)")
    send.add_argument("--dry-run", action="store_true", help="show what would be sent; send nothing")
    send.add_argument("--json", action="store_true", help="print one JSON object")

    call = _command(commands, "call", call_command, "call a tool, as an agent loop does")
    call.add_argument("tool", metavar="TOOL")
    call.add_argument("arguments", metavar="JSON", help="the arguments as JSON; - reads them from standard input")
    call.add_argument("--json", action="store_true", help="print one JSON object")

    _command(commands, "check", check_command, "check the configuration")
    doctor = _command(commands, "doctor", doctor_command, "ask each platform whether it knows us; nothing is sent")
    doctor.add_argument("--channel", help="only this channel")
    _command(commands, "channels", channels_command, "list the channels and what they can do")
    listing = _command(commands, "tools", tools_command, "print the tools' definitions")
    listing.add_argument("--format", choices=("json-schema", "openai", "anthropic", "mcp"), default="json-schema")

    preview = _command(commands, "preview", preview_command, "show a Markdown file as each platform would")
    preview.add_argument("file", metavar="FILE", help="a Markdown file; - reads standard input")
    preview.add_argument("--channel", help="only this channel")

    trail = _command(commands, "audit", audit_command, "print the audit log")
    trail.add_argument("--tail", type=int, metavar="N", help="the last N sends only")
    trail.add_argument("--channel", help="sends through this channel only")
    trail.add_argument("--status", help="sends with this status only")
    trail.add_argument("--since", metavar="TIME", help="sends since then: 30m, 2h, 7d, or a time (ISO 8601, UTC)")
    trail.add_argument("--json", action="store_true", help="print JSON lines")

    gateway = _command(commands, "gateway", gateway_command, "run the local gateway")
    gateway.add_argument("--host", help="address to listen on (default: the configured one)")
    gateway.add_argument("--port", type=int, help="port to listen on (default: the configured one)")
    gateway.add_argument(
        "--origin",
        action="append",
        default=[],
        help="origin of web pages that may connect besides the gateway's own, like http://localhost:5173; repeatable",
    )
    return top


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(version("agent-messaging"))
        parser.exit(0)


def _command(commands: Any, name: str, run: Any, what: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=what, description=what.capitalize() + ".")
    command.add_argument("--config", metavar="FILE", help="the configuration file (YAML, or TOML by its ending)")
    command.set_defaults(run=run)
    return command


_VALUED = ("--recipient", "--reply-to", "--channel", "--caption", "--media", "--voice")


def _with_dashes(argv: list[str]) -> list[str]:
    """``--recipient -100/7`` as ``--recipient=-100/7``: ids of groups begin with a dash, and argparse would take them
    for options."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] in _VALUED and word.startswith("-") and word[1:2] not in ("", "-"):
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined


# --- Commands ---------------------------------------------------------------------------------------------------------


def send_command(arguments: argparse.Namespace) -> int:
    from messaging_core.tools import read_message_send

    given = {
        "text": _text(arguments),
        "channel": arguments.channel,
        "recipient": arguments.recipient,
        "media_path": arguments.media,
        "caption": arguments.caption,
        "voice_path": arguments.voice,
        "reply_to": arguments.reply_to,
    }
    messenger = _messenger(arguments, quiet=arguments.json)
    message = read_message_send(given).map(lambda read: _formatted(read, arguments.format))
    if arguments.dry_run:
        return _dry_run(messenger, message, arguments.json)
    return _say(messenger.send_read("message_send", message), arguments.json, sending=True)


def _formatted(message: "Message", format: str | None) -> "Message":
    from dataclasses import replace

    return replace(message, format=format)


def _text(arguments: argparse.Namespace) -> str | None:
    piped = not sys.stdin or not sys.stdin.isatty()
    nothing = arguments.text is None and arguments.media is None and arguments.voice is None
    if arguments.text == "-" or (nothing and piped and sys.stdin):
        return _standard_input()
    text: str | None = arguments.text
    return text


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace").removeprefix("\ufeff") if sys.stdin else ""


def call_command(arguments: argparse.Namespace) -> int:
    text = _standard_input() if arguments.arguments == "-" else arguments.arguments
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Usage(f"the arguments are not JSON: {error}") from None
    messenger = _messenger(arguments, quiet=arguments.json)
    result = messenger.call_tool(arguments.tool, values)
    status = _say(result.outcome, arguments.json)
    return USAGE if result.unknown else status


def check_command(arguments: argparse.Namespace) -> int:
    messenger = _messenger(arguments)
    for warning in messenger.warnings:
        _complain(f"warning: {warning}")
    names = ", ".join(one.name for one in messenger.channels())
    _print(f"{messenger.settings.where or 'no configuration file'}: ok ({names or 'no channel'})")
    return DELIVERED


def doctor_command(arguments: argparse.Namespace) -> int:
    messenger = _messenger(arguments)
    worst = DELIVERED
    for at in _chosen(messenger, arguments.channel):
        if messenger.ports.registry[at.platform].probe is None:
            _print(f"{at.name}: there is nothing to ask ({at.platform})")
        for name, trouble in messenger.probe(at.name):
            _print(f"{name}: {'ok' if trouble is None else trouble}")
            worst = worst if trouble is None else FAILED
    return worst


def _chosen(messenger: "Messenger", name: str | None) -> "tuple[Configured[Any], ...]":
    """The active channels, or the one that is named. Raises ``Usage`` where there is none of that name."""
    from messaging_core.errors import UnknownChannel

    active = messenger.channels()
    chosen = tuple(one for one in active if name in (None, one.name))
    if name is not None and not chosen:
        inactive = messenger.settings.channel(name) is not None
        raise Usage(str(UnknownChannel(name, tuple(one.name for one in active), inactive)))
    return chosen


def channels_command(arguments: argparse.Namespace) -> int:
    from messaging_core.display import channel_table

    messenger = _messenger(arguments)
    _print(channel_table(messenger.channels(), messenger.ports.registry))
    return DELIVERED


def tools_command(arguments: argparse.Namespace) -> int:
    _print(json.dumps(_messenger(arguments).tool_definitions(arguments.format), indent=2))
    return DELIVERED


def preview_command(arguments: argparse.Namespace) -> int:
    from messaging_core.display import preview
    from messaging_core.markup.controls import clean

    text = _standard_input() if arguments.file == "-" else _file(arguments.file)
    messenger = _messenger(arguments)
    _print(clean(preview(text, _chosen(messenger, arguments.channel), messenger.ports.registry)))
    return DELIVERED


def _file(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise Usage(f"{path}: {error.strerror}") from None


def audit_command(arguments: argparse.Namespace) -> int:
    from returns.pipeline import is_successful

    from messaging_core import audit
    from messaging_core.outcome import Status

    known = (*(status.value for status in Status), audit.UNFINISHED)
    if arguments.status not in (None, *known):
        raise Usage(f"--status: {arguments.status!r} is none of {', '.join(known)}")
    messenger = _messenger(arguments)
    if messenger.ports.audit.path is None:
        raise Usage("the audit log is switched off (security.audit.enabled: false)")
    since = None
    if arguments.since is not None:
        moment = audit.since(arguments.since, messenger.ports.clock.now())
        if not is_successful(moment):
            raise Usage(f"--since: {moment.failure()}")
        since = moment.unwrap()
    filters = audit.Filters(arguments.channel, arguments.status, since, arguments.tail)
    try:
        reading = audit.read(messenger.ports.audit.lines(), filters)
    except OSError as error:
        raise Usage(f"{messenger.ports.audit.path}: {error.strerror}") from None
    for record in reading.records:
        _print(json.dumps(audit.as_dict(record)) if arguments.json else audit.shown(record))
    if reading.unreadable:
        _complain(f"{reading.unreadable} lines could not be read")
    return DELIVERED


def gateway_command(arguments: argparse.Namespace) -> int:
    from messaging_adapters.gateway import run
    from messaging_core.tools import read_message_send

    with _messenger(arguments) as messenger:

        def deliver(values: Any, /) -> dict[str, Any]:
            return messenger.send_read("message_send", read_message_send(values)).as_dict()

        return run(
            messenger.settings,
            messenger.ports.secrets,
            arguments.host,
            arguments.port,
            deliver,
            channels=tuple(one.name for one in messenger.channels()),
            origins=tuple(arguments.origin),
        )


# --- What is printed --------------------------------------------------------------------------------------------------


def _print(result: str) -> None:
    """The result, on stdout, flushed; ``Unwritten`` where that cannot be done."""
    if sys.stdout is None:
        raise Unwritten("the result cannot be shown: stdout is closed")
    try:
        print(_encodable(_harmless(result)), flush=True)
    except BrokenPipeError:
        raise Unwritten from None
    except OSError as error:
        raise Unwritten(f"the result cannot be shown: {error.strerror or 'input/output error'}") from None


def _harmless(text: str) -> str:
    """What a server or a model wrote steers no terminal; in JSON it stays the same value."""
    from messaging_core.markup.controls import by_number

    return by_number(text)


def _encodable(text: str) -> str:
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _json(value: Any) -> str:
    """In the letters themselves, or in JSON's own escapes where stdout cannot hold them."""
    text = json.dumps(value, ensure_ascii=False)
    return text if sys.stdout is None or _encodable(text) == text else json.dumps(value)


def _settle() -> None:
    """What stdout did not take is dropped, since the interpreter would try it again at exit, and complain."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(line: str) -> None:
    """One line on stderr, or nowhere: never among the results."""
    if line and sys.stderr is not None:
        with suppress(OSError):
            print(f"messaging: {_harmless(line)}", file=sys.stderr, flush=True)


def _say(outcome: "Outcome", as_json: bool, sending: bool = False) -> int:
    status = outcome.status.value
    try:
        if as_json:
            _print(_json(outcome.as_dict()))
        elif status != "delivered":
            _complain(outcome.message)
        elif not (sending and outcome.platform == "cli"):  # the text itself has been printed: it is the result
            _print(outcome.message)
    except Unwritten as error:
        _complain(str(error))  # the exit status still tells what became of the message, so that nobody sends it again
    return EXIT[status]


def _dry_run(messenger: "Messenger", message: Any, as_json: bool) -> int:
    from returns.pipeline import is_successful

    from messaging_core.display import planned_json, planned_text

    planned = message.bind(lambda read: messenger.plan("message_send", read))
    if not is_successful(planned):
        from messaging_core.outcome import refused

        return _say(refused("message_send", planned.failure()), as_json)
    found: Plan = planned.unwrap()
    _print(_json(planned_json(found)) if as_json else planned_text(found))
    return DELIVERED


def _messenger(arguments: argparse.Namespace, quiet: bool = False) -> "Messenger":
    """The messenger of the configuration that is found; ``quiet``: the terminal channel writes to stderr, or nowhere
    where that is closed."""
    from messaging_adapters.configuration import ConfigurationInvalid, find
    from messaging_adapters.messenger import Messenger
    from messaging_adapters.registry import ChannelBroken

    if arguments.config == "":
        raise Usage("--config names no file: its value is empty")
    aside: TextIO | None = sys.stderr
    if aside is None:
        aside = StringIO()
        aside.close()
    try:
        return Messenger.from_file(find(arguments.config, os.environ), stdout=aside if quiet else sys.stdout)
    except (ConfigurationInvalid, ChannelBroken) as error:
        raise Usage(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
