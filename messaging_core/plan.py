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


def plan(
    tool: str,
    message: Message,
    conversation: Conversation,
    settings: Settings,
    registry: Registry,
    given: Given,
    delivered: tuple[Receipt, ...] = (),
) -> Result[Plan, Refusal]:
    """Route, permit, compose and describe. ``delivered``: receipts of an earlier attempt, so that only what is left is
    described."""
    among = settings.named if tool == "message" else None
    return (
        route(message, conversation, settings, registry, among=among)
        .bind(lambda found: capable(found, message, settings, registry))
        .bind(lambda found: policy.recipient_permitted(found, conversation))
        .bind(lambda found: _planned(tool, message, conversation, settings, found, given, delivered))
    )


def _planned(
    tool: str,
    message: Message,
    conversation: Conversation,
    settings: Settings,
    found: Route,
    given: Given,
    delivered: tuple[Receipt, ...],
) -> Result[Plan, Refusal]:
    verdict = policy.verdict(settings.security.tool_policy, tool, found.at.name)
    if isinstance(verdict, PolicyDenied):
        return Failure(verdict)
    raw = tool == "message"
    facts: Result[FileFacts | None, Refusal] = Success(None)
    if given.facts is not None:
        assert given.ground is not None
        facts = permitted(given.facts, given.ground).map(lambda seen: seen)
    parts = facts.bind(lambda seen: compose_raw(found, message.text or "") if raw else compose(found, message, seen))
    return parts.bind(
        lambda whole: _described(tool, message, conversation, settings, found, given, delivered, whole, verdict)
    )


def _described(
    tool: str,
    message: Message,
    conversation: Conversation,
    settings: Settings,
    found: Route,
    given: Given,
    delivered: tuple[Receipt, ...],
    parts: Parts,
    verdict: policy.Permitted | policy.NeedsApproval,
) -> Result[Plan, Refusal]:
    here = conversation.channel == found.at.name
    answered = conversation.message_id if here and found.kept and found.channel.threads_by_reply else None
    ring = found.at.rules.mentions == "allow"
    there = len({receipt.part for receipt in delivered})
    outgoing = Outgoing(
        found.recipient,
        parts[there:],
        reply_to=message.reply_to or answered,
        mute=not ring and (tool != "message" or mute_raw(message.text or "")),
        subject=conversation.subject if here and found.kept else None,
        numbered_from=there + 1,
    )
    described = _start(found, outgoing, given)
    kind = "voice" if message.voice_path else "media" if message.media_path else "text"
    proposal = (
        policy.propose(tool, found, kind, parts, given.facts, settings.security.approval, given.ids, preview_of(parts))
        if isinstance(verdict, policy.NeedsApproval)
        else None
    )
    return described.map(lambda start: Plan(tool, found, kind, len(parts), start, outgoing, given, proposal))


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
