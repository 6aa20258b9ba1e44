"""The front door: settings and ports in, true accounts of sends out.

::

    messenger = Messenger.from_file("messaging.yaml")
    result = messenger.call_tool("message_send", {"text": "The build is green."})
    result.ok, result.message

A messenger is safe to use from several threads. It remembers no channel and no recipient: the conversation is an
argument.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from returns.pipeline import is_successful
from returns.result import Result, Success

from messaging_adapters.clock import new_message_id
from messaging_adapters.configuration import ConfigurationInvalid, read
from messaging_adapters.crew import Crew
from messaging_adapters.files import with_private_files
from messaging_adapters.learned import Lessons
from messaging_adapters.permission import Permission
from messaging_adapters.ports import Ports, standard
from messaging_adapters.registry import INSTALLED
from messaging_adapters.sending import Line, Sender
from messaging_core import audit, pacing, policy, tools
from messaging_core.channels import Registry
from messaging_core.channels.channel import Configured
from messaging_core.config.schemas import from_mapping
from messaging_core.config.settings import Configuration, Settings
from messaging_core.errors import InvalidArguments, Proposal, Refusal, UnknownTool
from messaging_core.flow import Step
from messaging_core.message import Conversation, Ids, Message
from messaging_core.outcome import Outcome, refused
from messaging_core.plan import Asked, Given, Plan, plan, routed, with_known
from messaging_core.routing import active
from messaging_core.secrecy import Secrets
from messaging_core.tools import Shape, Tool

NOWHERE = Conversation()

_WITHHELD = {"message": "no channel of the section 'channels' is active", "message_send": "no channel is active"}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call brought: ``ok``, the sentence for the model, and the whole outcome. ``unknown``: there is no
    such tool."""

    outcome: Outcome
    unknown: bool = False

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def message(self) -> str:
        return self.outcome.message

    @property
    def details(self) -> dict[str, Any]:
        return self.outcome.as_dict()


class Messenger:
    """Sends messages by the settings, through the ports."""

    def __init__(self, settings: Settings, ports: Ports, warnings: tuple[str, ...] = ()) -> None:
        self.settings, self.ports, self.warnings = settings, ports, warnings
        self._lessons = Lessons(ports.clock)
        self._sender = Sender(ports, self._lessons)
        self._crew = Crew()
        self._permission = Permission(ports, settings.security.approval.timeout_secs)

    # --- Making one -------------------------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: str | os.PathLike[str] | None, **world: Any) -> "Messenger":
        """By a configuration file; with None the terminal alone. Raises ``ConfigurationInvalid`` with every fault.

        ``world``: what :func:`messaging_adapters.ports.standard` takes.
        """
        if path is None:
            return cls._of(Success(Configuration(Settings(), Secrets())), world)
        return cls._of(read(Path(path), _environ(world), _registry(world)), world)

    @classmethod
    def from_config(cls, mapping: Mapping[str, Any], **world: Any) -> "Messenger":
        """By a configuration as the program has it already. Raises ``ConfigurationInvalid`` with every fault."""
        return cls._of(from_mapping(mapping, _environ(world), _registry(world)), world)

    @classmethod
    def _of(cls, loaded: Result[Configuration, Any], world: Mapping[str, Any]) -> "Messenger":
        if not is_successful(loaded):
            raise ConfigurationInvalid(loaded.failure())
        configuration = loaded.unwrap()
        return cls(configuration.settings, standard(configuration, **world), configuration.warnings)

    def close(self) -> None:
        """Close the connections that were opened, and let the threads of broadcasts end."""
        self._crew.close()
        closing = getattr(self.ports.edges, "close", None)
        if closing is not None:
            closing()

    def __enter__(self) -> "Messenger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Tools ------------------------------------------------------------------------------------------------------

    def tool_definitions(self, shape: Shape = "json-schema") -> list[dict[str, Any]]:
        """The tools that can be called with these settings, as a model interface takes them."""
        return [tool.shaped(shape) for tool in self._tools]

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        from messaging_core.gateway.tool import GATEWAY

        offered: list[Tool] = []
        if any(one.name in self.settings.named for one in self.channels()):
            offered.append(tools.MESSAGE)
        if self.channels():
            offered.append(tools.MESSAGE_SEND)
        return (*offered, GATEWAY)

    def call_tool(self, name: str, arguments: Any, conversation: Conversation | None = None) -> ToolResult:
        """Call a tool as a model asked. Never raises for anything that the model or the network did."""
        known = {tool.name for tool in self._tools}
        match name:
            case "message_send" if name in known:
                return ToolResult(self.send_read(name, tools.read_message_send(arguments), conversation))
            case "message" if name in known or not self.settings.named:
                return ToolResult(self.send_read(name, tools.read_message(arguments), conversation))
            case "gateway":
                from messaging_adapters.gateway_tool import GatewayTool

                gateway = GatewayTool(self.settings, self._sender, self._permission, self._ids)
                return ToolResult(gateway.call(arguments))
            case _:
                refusal = UnknownTool(str(name), tuple(sorted(known)), _WITHHELD.get(str(name), ""))
                return ToolResult(refused(str(name), refusal), unknown=True)

    # --- Sending ----------------------------------------------------------------------------------------------------

    def channels(self) -> tuple[Configured[Any], ...]:
        """The active channels, in the order in which they are chosen."""
        return active(self.settings, self.ports.registry)

    def send(self, message: Message | str, conversation: Conversation | None = None) -> Outcome:
        """Send a message, as ``message_send`` does."""
        asked = Message(text=message) if isinstance(message, str) else message
        return self.send_read("message_send", tools.check(asked), conversation)

    def send_read(
        self, tool: str, message: Result[Message, InvalidArguments], conversation: Conversation | None = None
    ) -> Outcome:
        """Send what was read from a tool's arguments, or record its refusal."""
        ids = self._ids()
        read = partial(self._read, tool, conversation or NOWHERE, ids)
        refuse = partial(self._sender.refuse, tool, event=audit.Event(ids.message, tool))
        return message.map(read).lash(lambda refusal: Success(refuse(refusal))).unwrap()

    def _read(self, tool: str, conversation: Conversation, ids: Ids, message: Message) -> Outcome:
        return self._go(Asked(tool, message, conversation), ids)

    def plan(self, tool: str, message: Message, conversation: Conversation | None = None) -> Result[Plan, Refusal]:
        """What would be sent, without sending it."""
        return self._plan(Asked(tool, message, conversation or NOWHERE), self._ids())

    def broadcast(self, text: str, channels: Iterable[str] | None = None) -> tuple[Outcome, ...]:
        """One text to several channels (default: all active ones) at the same time; the outcomes in their order."""
        names = tuple(channels) if channels is not None else tuple(one.name for one in self.channels())
        return self._crew.each(lambda name: self.send(Message(text=text, channel=name)), names)

    def resume(self, outcome: Outcome, *, repeat_unconfirmed: bool = False) -> Outcome:
        """Go on with a send that stopped, from where it stopped; what was delivered is not sent again.

        A part that may have arrived is taken again only with ``repeat_unconfirmed``: it may then be there twice.
        """
        stopped = outcome.stopped
        if stopped is None or not pacing.can_resume(stopped, repeat_unconfirmed):
            return outcome
        at = next((one for one in self.channels() if one.name == outcome.channel), None)
        if at is None:
            return outcome
        event = audit.Event(
            self._ids().message,
            outcome.tool,
            at.name,
            at.platform,
            outcome.recipient or "",
            outcome.kind,
            parts=outcome.parts,
        )
        return self._sender.send(stopped.at, self._line(at), event)

    def approve(self, proposal: Proposal) -> Outcome:
        """Send just what was proposed and nothing else, once, within its time."""
        refuse = partial(self._sender.refuse, proposal.tool, event=audit.Event(self._ids().message, proposal.tool))
        taken = self._permission.taken(proposal)
        return taken.map(lambda again: again(proposal)).lash(lambda refusal: Success(refuse(refusal))).unwrap()

    def probe(self, channel: str | None = None) -> Iterator[tuple[str, str | None]]:
        """Ask each platform whether it knows us and the default recipient: channel, and what is wrong (None:
        nothing)."""
        for at in self.channels():
            definition = self.ports.registry[at.platform]
            if (channel is None or at.name == channel) and definition.probe is not None:
                default = definition.default_recipient(at.own)
                recipient = None if default is None else definition.recipient(default).value_or(None)
                for asked in (None, recipient) if recipient is not None else (None,):
                    result = self._sender.ask(definition.probe(at, asked, self._lessons.known()))
                    if not is_successful(result):
                        yield at.name, str(result.failure())
                        break
                else:
                    yield at.name, None

    # --- One send ---------------------------------------------------------------------------------------------------

    def _ids(self) -> Ids:
        now = self.ports.clock.now()
        return Ids(new_message_id(now), now)

    def _go(self, asked: Asked, ids: Ids, approved: Proposal | None = None) -> Outcome:
        planned = self._plan(asked, ids)
        if not is_successful(planned):
            return self._sender.refuse(asked.tool, planned.failure(), self._refused_event(ids, asked))
        found = planned.unwrap()
        event = _event(ids, asked, found)
        permitted = self._permission.of(found.proposal, partial(self._again, asked), approved)
        if not is_successful(permitted):
            return self._sender.refuse(asked.tool, permitted.failure(), event)
        return self._sender.send(found.start, self._line(found.route.at), event, partial(self._start, found))

    def _refused_event(self, ids: Ids, asked: Asked) -> audit.Event:
        """Where it would have gone; where even that is not known, the names that were given."""
        named = (asked.message.channel or "", "", asked.message.recipient or "")
        found = routed(asked, self.settings, self.ports.registry)
        where = found.map(lambda to: (to.at.name, to.at.platform, str(to.recipient))).value_or(named)
        return audit.Event(ids.message, asked.tool, *where, asked.kind, asked.file)

    def _start(self, planned: Plan) -> Step:
        return with_known(planned, self._lessons.known()).start

    def _again(self, asked: Asked, approved: Proposal) -> Outcome:
        return self._go(asked, self._ids(), approved)

    def _line(self, at: Configured[Any]) -> Line:
        pace = self.ports.registry[at.platform].pace
        return Line(at.name, at.platform, pacing.retry_of(self.settings, at), pace, at.rules.rate_limit)

    def _plan(self, asked: Asked, ids: Ids) -> Result[Plan, Refusal]:
        digest = asked.file is not None and self._supervised(asked.tool)
        facts = None if asked.file is None else self.ports.look(asked.file, digest=digest)
        ground = self.ports.ground if asked.file is None else with_private_files(self.ports.ground)
        given = Given(ids, facts, ground, self._lessons.known())
        return plan(asked, self.settings, self.ports.registry, given)

    def _supervised(self, tool: str) -> bool:
        """Whether a proposal may come of it, which is bound to the file's content."""
        rules, names = self.settings.security.tool_policy, ("", *(one.name for one in self.channels()))
        return any(isinstance(policy.verdict(rules, tool, name), policy.NeedsApproval) for name in names)


def _event(ids: Ids, asked: Asked, planned: Plan) -> audit.Event:
    """What the record says of it: never what was to be said."""
    where = (planned.channel, planned.platform, planned.recipient)
    return audit.Event(ids.message, asked.tool, *where, asked.kind, asked.file, planned.parts)


def _environ(world: Mapping[str, Any]) -> Mapping[str, str]:
    """An empty one that was given is empty, and not the process's own."""
    given: Mapping[str, str] | None = world.get("environ")
    return os.environ if given is None else given


def _registry(world: Mapping[str, Any]) -> Registry:
    return world.get("registry") or INSTALLED
