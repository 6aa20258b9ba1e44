"""The front door: settings and ports in, true accounts of sends out.

::

    messenger = Messenger.from_file("messaging.yaml")
    result = messenger.call_tool("message_send", {"text": "The build is green."})
    result.ok, result.message

A messenger is safe to use from several threads. It remembers no channel and no recipient: the conversation is an
argument.
"""

import logging
import os
import random
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_adapters.clock import new_message_id
from messaging_adapters.configuration import ConfigurationInvalid, read
from messaging_adapters.learned import Lessons
from messaging_adapters.ports import Ports, standard
from messaging_adapters.registry import INSTALLED
from messaging_core import audit, pacing, policy, tools
from messaging_core.channels import Registry
from messaging_core.channels.channel import Configured
from messaging_core.config.schemas import from_mapping
from messaging_core.config.settings import Configuration, Settings
from messaging_core.errors import (
    ApprovalRequired,
    InvalidArguments,
    Proposal,
    Refusal,
    SendError,
    UnknownTool,
)
from messaging_core.flow import Done, Exchange, Step, Stopped, drive
from messaging_core.message import Conversation, Ids, Message
from messaging_core.outcome import Outcome, of_done, of_stopped, refused
from messaging_core.plan import Given, Plan, plan
from messaging_core.routing import active
from messaging_core.secrecy import Secrets, scrub
from messaging_core.tools import Shape, Tool

log = logging.getLogger(__name__)

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
        self._proposed: dict[str, tuple[Proposal, _Request]] = {}
        self._lock = threading.Lock()

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
        """Close the connections that were opened."""
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
                from messaging_adapters.gateway_tool import call

                return ToolResult(call(self, arguments))
            case _:
                why = {
                    "message": "no channel of the section 'channels' is active",
                    "message_send": "no channel is active",
                }
                refusal = UnknownTool(str(name), tuple(sorted(known)), why.get(str(name), ""))
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
        return (
            message.map(partial(self._send, tool, conversation or NOWHERE))
            .lash(
                lambda refusal: Success(self._refused(tool, refusal, Message(), new_message_id(self.ports.clock.now())))
            )
            .unwrap()
        )

    def plan(self, tool: str, message: Message, conversation: Conversation | None = None) -> Result[Plan, Refusal]:
        """What would be sent, without sending it."""
        return self._plan(_Request(tool, message, conversation or NOWHERE), self._ids())

    def broadcast(self, text: str, channels: Iterable[str] | None = None) -> tuple[Outcome, ...]:
        """One text to several channels (default: all active ones) at the same time; the outcomes in their order."""
        names = tuple(channels) if channels is not None else tuple(one.name for one in self.channels())
        if not names:
            return ()
        with ThreadPoolExecutor(len(names)) as threads:
            return tuple(threads.map(lambda name: self.send(Message(text=text, channel=name)), names))

    def resume(self, outcome: Outcome, *, repeat_unconfirmed: bool = False) -> Outcome:
        """Go on with a send that stopped, from where it stopped; what was delivered is not sent again.

        A part that may have arrived is taken again only with ``repeat_unconfirmed``: it may then be there twice.
        """
        stopped = outcome.stopped
        if stopped is None or not pacing.can_resume(stopped, repeat_unconfirmed):
            return outcome
        channel = outcome.channel or ""
        id = new_message_id(self.ports.clock.now())
        platform, recipient = outcome.platform or "", outcome.recipient or ""
        event = audit.Event(id, outcome.tool, channel, platform, recipient, outcome.kind, parts=outcome.parts)
        at = next(one for one in self.channels() if one.name == channel)
        return self._perform(stopped.at, at, event)

    def approve(self, proposal: Proposal) -> Outcome:
        """Send just what was proposed and nothing else, once, within its time."""
        with self._lock:
            kept = self._proposed.pop(proposal.id, None)
        if kept is None or kept[0] != proposal:
            return refused(proposal.tool, ApprovalRequired(proposal, "there is no such proposal, or it was used"))
        return self._go(kept[1], self._ids(), approved=proposal)

    def probe(self, channel: str | None = None) -> Iterator[tuple[str, str | None]]:
        """Ask each platform whether it knows us and the default recipient: channel, and what is wrong (None:
        nothing)."""
        for at in self.channels():
            definition = self.ports.registry[at.platform]
            if (channel is None or at.name == channel) and definition.probe is not None:
                default = definition.default_recipient(at.own)
                recipient = None if default is None else definition.recipient(default).value_or(None)
                for asked in (None, recipient) if recipient is not None else (None,):
                    result = drive(self._edge, definition.probe(at, asked, self._lessons.known()))
                    if not is_successful(result):
                        yield at.name, str(scrub(self.ports.secrets, result.failure().cause))
                        break
                else:
                    yield at.name, None

    # --- One send ---------------------------------------------------------------------------------------------------

    def _ids(self) -> Ids:
        now = self.ports.clock.now()
        return Ids(new_message_id(now), now)

    def _send(self, tool: str, conversation: Conversation, message: Message) -> Outcome:
        return self._go(_Request(tool, message, conversation), self._ids())

    def _go(self, request: "_Request", ids: Ids, approved: Proposal | None = None) -> Outcome:
        planned = self._plan(request, ids)
        if not is_successful(planned):
            return self._refused(request.tool, planned.failure(), request.message, ids.message)
        found = planned.unwrap()
        permission = self._permission(found, request, approved)
        if not is_successful(permission):
            return self._refused(request.tool, permission.failure(), request.message, ids.message, found)
        return self._perform(found.start, found.route.at, _event(ids.message, found, request.message))

    def _plan(self, request: "_Request", ids: Ids) -> Result[Plan, Refusal]:
        message = request.message
        path = message.media_path or message.voice_path
        digest = path is not None and self._supervised(request.tool)
        facts = None if path is None else self.ports.look(path, digest=digest)
        given = Given(ids, facts, self.ports.ground, self._lessons.known())
        return plan(request.tool, message, request.conversation, self.settings, self.ports.registry, given)

    def _supervised(self, tool: str) -> bool:
        """Whether a proposal may come of it, which is bound to the file's content."""
        rules, names = self.settings.security.tool_policy, ("", *(one.name for one in self.channels()))
        return any(isinstance(policy.verdict(rules, tool, name), policy.NeedsApproval) for name in names)

    def _permission(
        self, planned: Plan, request: "_Request", approved: Proposal | None
    ) -> Result[Proposal | None, ApprovalRequired]:
        """Nothing to ask, or a person's yes."""
        proposal, now = planned.proposal, self.ports.clock.now()
        if proposal is None:
            return Success(None)
        if approved is not None:
            return policy.unchanged(approved, proposal, now).map(lambda same: same)
        answer = self.ports.approver.ask(proposal, self.settings.security.approval.timeout_secs)
        if answer is None:
            with self._lock:
                self._proposed = {key: kept for key, kept in self._proposed.items() if kept[0].expires > now}
                self._proposed[proposal.id] = (proposal, request)
        return policy.approved(proposal, answer, self.ports.clock.now()).map(lambda same: same)

    def _refused(
        self, tool: str, refusal: Refusal, message: Message, event: str, planned: Plan | None = None
    ) -> Outcome:
        """A refusal is recorded too: that it was asked for, never what was to be said."""
        channel = planned.channel if planned else message.channel
        recipient = planned.recipient if planned else message.recipient
        scrubbed: Outcome = scrub(self.ports.secrets, refused(tool, refusal, channel, recipient))
        result = replace(scrubbed, event=event)
        self.ports.audit.write(audit.refused(result, self.ports.clock.now(), _kind(message), _file(message)))
        log.info("%s: refused (%s)", channel, type(refusal).__name__)
        return result

    def _perform(self, start: Step, at: Configured[Any], event: audit.Event) -> Outcome:
        clock = self.ports.clock
        began = clock.monotonic()
        written = self.ports.audit.write(audit.begun(event, clock.now()))
        if not is_successful(written):
            return replace(refused(event.tool, written.failure(), at.name, event.recipient), event=event.id)
        send = _Send(self, at, began + self.settings.message_timeout_secs)
        ended = send.run(start, event.recipient)
        where = (event.tool, at.name, at.platform, event.recipient, event.parts)
        if is_successful(ended):
            result = of_done(scrub(self.ports.secrets, ended.unwrap()), *where)
        else:
            result = of_stopped(_scrubbed(self.ports, ended.failure()), *where)
        result = replace(result, event=event.id, kind=event.kind)
        self.ports.audit.write(audit.ended(event, result, clock.now(), send.attempts, clock.monotonic() - began))
        log.info("%s: %s", at.name, result.status.value)
        return result

    def _edge(self, exchange: Exchange) -> Result[Any, SendError]:
        return self.ports.edges[type(exchange.request)](exchange)


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked, to plan it again when it has been approved."""

    tool: str
    message: Message
    conversation: Conversation


def _event(id: str, planned: Plan, message: Message) -> audit.Event:
    return audit.Event(
        id,
        planned.tool,
        planned.channel,
        planned.platform,
        planned.recipient,
        planned.kind,
        _file(message),
        planned.parts,
    )


def _file(message: Message) -> str | None:
    return message.media_path or message.voice_path


def _kind(message: Message) -> str:
    return "voice" if message.voice_path else "media" if message.media_path else "text"


def _scrubbed(ports: Ports, stopped: Stopped) -> Stopped:
    return replace(stopped, cause=scrub(ports.secrets, stopped.cause))


def _environ(world: Mapping[str, Any]) -> Mapping[str, str]:
    """An empty one that was given is empty, and not the process's own."""
    given: Mapping[str, str] | None = world.get("environ")
    return os.environ if given is None else given


def _registry(world: Mapping[str, Any]) -> Registry:
    return world.get("registry") or INSTALLED


class _Send:
    """One send on its way: pace before each request, a wait and another try after a stop, until the deadline."""

    def __init__(self, messenger: Messenger, at: Configured[Any], deadline: float) -> None:
        self._messenger, self._at, self._deadline = messenger, at, deadline
        self._ports = messenger.ports
        self._pace = self._ports.registry[at.platform].pace
        self._retry = pacing.retry_of(messenger.settings, at)
        self.attempts = 0

    def run(self, start: Step, recipient: str) -> Result[Done, Stopped]:
        """The whole send in its turn: what another thread sends to the same recipient comes before or after it."""
        if isinstance(start, Done):
            return Success(start)
        with self._ports.limiter.turn((self._at.name, recipient), self._deadline) as turn:
            if not is_successful(turn):
                return Failure(Stopped(start, turn.failure()))
            return self._try(start)

    def _try(self, start: Exchange) -> Result[Done, Stopped]:
        at, attempt = start, 0
        while True:
            result = drive(self._perform, at)
            self._messenger._lessons.keep(result)
            if is_successful(result):
                return result
            stopped = result.failure()
            attempt = attempt + 1 if stopped.at.request == at.request and stopped.at.part == at.part else 1
            verdict = pacing.next_try(stopped, attempt, self._elapsed, self._retry, random.random())
            if isinstance(verdict, pacing.GiveUp):
                return result
            hold = pacing.hold_after(stopped)
            if hold is not None:
                self._ports.limiter.learn(hold)
            self._ports.clock.sleep(verdict.seconds)
            at = stopped.at

    @property
    def _elapsed(self) -> float:
        return self._ports.clock.monotonic() - (self._deadline - self._retry.deadline)

    def _perform(self, exchange: Exchange) -> Result[Any, SendError]:
        budgets = pacing.budgets(exchange, self._pace, self._at.rules.rate_limit)
        return self._ports.limiter.admit(exchange, budgets, self._deadline).bind(lambda _: self._ask(exchange))

    def _ask(self, exchange: Exchange) -> Result[Any, SendError]:
        self.attempts += 1
        reply = self._messenger._edge(exchange)
        hold = reply.map(partial(pacing.hold_of, exchange)).value_or(None)
        if hold is not None:
            self._ports.limiter.learn(hold)
        return reply
