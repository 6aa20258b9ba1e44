"""All decisions of a send, together: from what was asked to the first request, or the refusal. Pure.

::

    Message + Conversation + Settings + FileFacts ── plan ──▶ Result[Plan, Refusal]
"""

from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core import policy
from messaging_core.channels import Registry
from messaging_core.channels.channel import Known
from messaging_core.compose import Parts, compose, compose_raw, mute_raw, preview_of
from messaging_core.config.settings import Settings
from messaging_core.errors import PolicyDenied, Proposal, Refusal, SendError
from messaging_core.flow import Receipt, Rest, Step, after, drive
from messaging_core.media import Ground, permitted
from messaging_core.message import Conversation, FileFacts, Ids, Message, Outgoing
from messaging_core.routing import Route, capable, route


@dataclass(frozen=True, slots=True)
class Plan:
    """A send that only has to be performed. ``kind``: "text", "media" or "voice". ``outgoing``: what ``start``
    describes, by what was ``given``. ``proposal``: what a person must approve first, if anything."""

    tool: str
    route: Route
    kind: str
    parts: int
    start: Step
    outgoing: Outgoing
    given: "Given"
    proposal: Proposal | None = None

    @property
    def channel(self) -> str:
        return self.route.at.name

    @property
    def platform(self) -> str:
        return self.route.at.platform

    @property
    def recipient(self) -> str:
        return str(self.route.recipient)


@dataclass(frozen=True, slots=True)
class Given:
    """What the world contributes to a plan: the file that was looked at, the ground files may stand on, ids, what
    earlier sends learned."""

    ids: Ids
    facts: FileFacts | None = None
    ground: Ground | None = None
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a tool was asked to send, and in which conversation."""

    tool: str
    message: Message
    conversation: Conversation = Conversation()

    @property
    def raw(self) -> bool:
        """The tool ``message`` sends its content as it was given."""
        return self.tool == "message"

    @property
    def kind(self) -> str:
        """ "text", "media" or "voice"."""
        return "voice" if self.message.voice_path else "media" if self.message.media_path else "text"

    @property
    def file(self) -> str | None:
        """The path of the file that goes with it, as it was given."""
        return self.message.media_path or self.message.voice_path


def plan(
    asked: Asked, settings: Settings, registry: Registry, given: Given, delivered: tuple[Receipt, ...] = ()
) -> Result[Plan, Refusal]:
    """Route, permit, compose and describe. ``delivered``: receipts of an earlier attempt, so that only what is left is
    described."""
    return (
        routed(asked, settings, registry)
        .bind(lambda found: capable(found, asked.message, settings, registry))
        .bind(lambda found: policy.recipient_permitted(found, asked.conversation))
        .bind(lambda found: _permitted(asked, settings, found))
        .bind(lambda found: _parts(asked, found, given).map(lambda parts: (found, parts)))
        .bind(lambda ready: _described(asked, settings, *ready, given, delivered))
    )


def routed(asked: Asked, settings: Settings, registry: Registry) -> Result[Route, Refusal]:
    """Where it would go, whether or not it may: a refusal is told and recorded with its channel and recipient."""
    among = settings.named if asked.raw else None
    return route(asked.message, asked.conversation, settings, registry, among=among)


def _permitted(asked: Asked, settings: Settings, found: Route) -> Result[Route, PolicyDenied]:
    verdict = policy.verdict(settings.security.tool_policy, asked.tool, found.at.name)
    return Failure(verdict) if isinstance(verdict, PolicyDenied) else Success(found)


def _parts(asked: Asked, found: Route, given: Given) -> Result[Parts, Refusal]:
    if asked.raw:
        return compose_raw(found, asked.message.text or "")
    facts, ground = given.facts, given.ground
    if facts is None:
        return compose(found, asked.message, None)
    assert ground is not None
    looked: Result[FileFacts, Refusal] = Success(facts)
    return looked.bind(lambda seen: permitted(seen, ground)).bind(lambda seen: compose(found, asked.message, seen))


def _described(
    asked: Asked, settings: Settings, found: Route, parts: Parts, given: Given, delivered: tuple[Receipt, ...]
) -> Result[Plan, Refusal]:
    outgoing = _outgoing(asked, found, parts, len({receipt.part for receipt in delivered}))
    proposal = _proposal(asked, settings, found, parts, given)
    return _start(found, outgoing, given).map(
        lambda start: Plan(asked.tool, found, asked.kind, len(parts), start, outgoing, given, proposal)
    )


def _outgoing(asked: Asked, found: Route, parts: Parts, there: int) -> Outgoing:
    """What is left of the parts when ``there`` of them have arrived. An answer by mail replies to what it answers."""
    message, talk = asked.message, asked.conversation
    here = found.kept and talk.channel == found.at.name
    quiet = found.at.rules.mentions != "allow"
    return Outgoing(
        found.recipient,
        parts[there:],
        reply_to=message.reply_to or (talk.message_id if here and found.channel.threads_by_reply else None),
        mute=quiet and (not asked.raw or mute_raw(message.text or "")),
        subject=talk.subject if here else None,
        numbered_from=there + 1,
    )


def _proposal(asked: Asked, settings: Settings, found: Route, parts: Parts, given: Given) -> Proposal | None:
    verdict = policy.verdict(settings.security.tool_policy, asked.tool, found.at.name)
    if not isinstance(verdict, policy.NeedsApproval):
        return None
    approval, preview = settings.security.approval, preview_of(parts)
    return policy.propose(asked.tool, found, asked.kind, parts, given.facts, approval, given.ids, preview)


def with_known(planned: Plan, known: Known) -> Plan:
    """The same send of the same parts, described by what has been learned since it was planned."""
    if known == (planned.given.known or {}):
        return planned
    given = replace(planned.given, known=known)
    start = _start(planned.route, planned.outgoing, given)
    return start.map(lambda step: replace(planned, start=step, given=given)).value_or(planned)


def _start(found: Route, outgoing: Outgoing, given: Given) -> Result[Step, Refusal]:
    described = found.channel.describe(found.at, outgoing, given.ids, given.known or {})
    return described.map(lambda start: _probed(found, start, given))


def _probed(found: Route, start: Step, given: Given) -> Step:
    """The recipient is asked for before anything is sent to it, where the channel's settings want that."""
    if not found.at.rules.verify_recipient or found.channel.probe is None or found.channel.fixed_recipient is not None:
        return start
    return after(found.channel.probe(found.at, found.recipient, given.known or {}), Rest((start,)))


def requests_of(planned: Plan) -> tuple[Any, ...]:
    """Every request of the send, by what the platform would answer to each: nothing leaves."""
    seen: list[Any] = []

    def rehearse(exchange: Any) -> Result[Any, SendError]:
        seen.append(exchange.request)
        return Success(planned.route.channel.rehearse(exchange.request))

    drive(rehearse, planned.start)
    return tuple(seen)
