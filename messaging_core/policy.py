"""What the owner permits: which tools, to whom, and what a person has to approve first.

A refusal says which setting it comes from. Where two rules speak, the stricter one holds.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Channel, Configured
from messaging_core.config.settings import Approval, ToolPolicy
from messaging_core.errors import ApprovalRequired, PolicyDenied, Proposal, RecipientBlocked
from messaging_core.markup.controls import clean, show_direction
from messaging_core.message import Content, Conversation, FileFacts, Ids, MediaPart, Recipient, TextPart
from messaging_core.routing import Route

# --- Tools ------------------------------------------------------------------------------------------------------------

STRICTNESS = ("allow", "supervised", "deny")
GROUPS = {"messaging": ("message", "message_send", "gateway")}
SUPERVISED_BY_ITSELF = "gateway"
"""The tool that reaches past the channels: a person approves each call, unless the settings name it or its group."""
HARMLESS = (("gateway", "status"),)
"""Actions that only look: they need no approval, but a denied tool stays denied."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """Go on."""


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A person has to say yes first; ``rule`` (a dotted path in the settings) says so."""

    rule: str


Verdict: TypeAlias = Permitted | NeedsApproval | PolicyDenied

_Ruling: TypeAlias = tuple[str, str]
"""A verdict's word, and the rule that it comes from."""


def verdict(policy: ToolPolicy, tool: str, channel: str = "", action: str = "") -> Verdict:
    """Whether ``tool`` may be called: by its own entry, its group's or the default; and by the entries for ``channel``.

    >>> verdict(ToolPolicy(tools=(("message_send", "deny"),)), "message_send")
    PolicyDenied(tool='message_send', rule='security.tool_policy.tools.message_send', channel='')
    """
    general = _general(policy, tool)
    here = tuple(_on_channel(policy, tool, channel)) if channel else ()
    word, rule = max((general, *here), key=lambda ruling: STRICTNESS.index(ruling[0]))
    if word == "deny":
        return PolicyDenied(tool, rule, channel if (word, rule) in here else "")
    if word == "supervised" and (tool, action) not in HARMLESS:
        return NeedsApproval(rule)
    return Permitted()


def _general(policy: ToolPolicy, tool: str) -> _Ruling:
    for name, word in policy.tools:
        if name == tool:
            return word, f"security.tool_policy.tools.{name}"
    grouped = [(word, f"security.tool_policy.groups.{name}") for name, word in policy.groups if tool in _members(name)]
    if grouped:
        return max(grouped, key=lambda ruling: STRICTNESS.index(ruling[0]))
    if tool == SUPERVISED_BY_ITSELF and policy.default == "allow":
        return "supervised", "the built-in rule for this tool (security.tool_policy.tools.gateway changes it)"
    return policy.default, "security.tool_policy.default"


def _members(group: str) -> tuple[str, ...]:
    return GROUPS.get(group, ())


def _on_channel(policy: ToolPolicy, tool: str, channel: str) -> Iterator[_Ruling]:
    for name, place, word in policy.channels:
        if place == channel and name in (tool, "*"):
            of_tool = "" if name == "*" else f"tools.{name}."
            yield word, f"security.tool_policy.{of_tool}channels.{place}"


# --- Recipients -------------------------------------------------------------------------------------------------------

EVERYONE = "*"


def recipient_permitted(route: Route, conversation: Conversation) -> Result[Route, RecipientBlocked]:
    """The route, if its recipient may be written to.

    It may where no ``allowed_users`` are set, or it is one of them; where it answers one of them (it is the
    conversation's recipient, and one of the sender's names is on the list); where it is the channel's own default; or
    where it is one of ``allowed_recipients``.
    """
    channel, at, recipient = route.channel, route.at, route.recipient
    users, rooms = at.rules.allowed_users, at.rules.allowed_recipients
    if (
        users is None
        or route.default
        or is_listed(channel, users, recipient)
        or is_listed(channel, rooms, recipient)
        or (route.kept and any(_is_named(channel, users, (sender,)) for sender in conversation.sender))
        or _is_default(channel, at, recipient)
    ):
        return Success(route)
    return Failure(RecipientBlocked(at.name, str(recipient), "allowed_users, allowed_recipients"))


def is_listed(channel: Channel, entries: tuple[str, ...], recipient: Recipient) -> bool:
    """Whether an entry names ``recipient``, as a whole value and as the platform compares names.

    An entry may name the chat, which permits all threads in it, or one thread as ``<chat>/<thread>``. ``"*"`` names
    everyone, ``@company.com`` every address of that mail domain.
    """
    return _is_named(channel, entries, tuple(_names(recipient)))


def _names(recipient: Recipient) -> Iterator[str]:
    """What an allowlist may call it: with its thread, and without."""
    tail = "" if recipient.thread is None else f"/{recipient.thread}"
    for name in (recipient.id, recipient.shown):
        if name:
            yield name
            yield name + tail
            yield name.removesuffix(tail)


def _is_named(channel: Channel, entries: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if EVERYONE in entries:
        return True
    spelled = {channel.same(entry) for entry in entries}
    # A name that the platform's comparison leaves nothing of is equal to none: else any two such would be.
    return any(form in spelled for name in names if (form := channel.same(name))) or any(
        _domain(name) in {entry.casefold() for entry in entries} for name in names if _domain(name)
    )


def _domain(name: str) -> str:
    """``@company.com`` of a mail address; empty for what is none, such as ``@name`` or ``@name@host``."""
    local, _, domain = name.rpartition("@")
    return f"@{domain.casefold()}" if local and "@" not in local and "." in domain else ""


def _is_default(channel: Channel, at: Configured[object], recipient: Recipient) -> bool:
    default = channel.default_recipient(at.own)
    if default is None:
        return False
    own = channel.recipient(default).map(
        lambda known: bool(channel.same(known.id)) and _is_same(channel, known, recipient)
    )
    return own.value_or(False)


def _is_same(channel: Channel, one: Recipient, other: Recipient) -> bool:
    """A chat is each of its threads, and a thread itself alone."""
    there = one.thread is None or one.thread == other.thread
    return there and one.kind == other.kind and channel.same(one.id) == channel.same(other.id)


# --- Approval ---------------------------------------------------------------------------------------------------------

SHOWN = 1000
"""Code points of the content that a person is shown before "and so many more"."""


def propose(
    tool: str,
    route: Route,
    kind: str,
    parts: tuple[Content, ...],
    facts: FileFacts | None,
    approval: Approval,
    ids: Ids,
    preview: str,
) -> Proposal:
    """What a person is asked before ``parts`` go out; good until the time-out of ``approval`` after ``ids.now``."""
    to = (route.recipient.id, route.recipient.thread or "")
    file = () if facts is None else (_file(facts),)
    contents = (*to, *(piece for part in parts for piece in _bound(part)), *file)
    return proposal_of(tool, route.at.name, str(route.recipient), kind, contents, approval, ids, preview)


def proposal_of(
    tool: str,
    channel: str,
    recipient: str,
    kind: str,
    contents: tuple[str, ...],
    approval: Approval,
    ids: Ids,
    preview: str,
) -> Proposal:
    """A proposal bound to ``contents``: texts, and the SHA-256 of each file."""
    bound = json.dumps([tool, channel, recipient, kind, *contents])
    return Proposal(
        id=ids.message,
        tool=tool,
        channel=channel,
        recipient=_harmless(recipient),
        kind=kind,
        preview=_shown(_harmless(preview)),
        digest=sha256(bound.encode()).hexdigest(),
        expires=ids.now + approval.timeout_secs,
    )


def _bound(part: Content) -> tuple[str, ...]:
    match part:
        case TextPart():
            return ("text", part.text.text, part.text.formatted or "")
        case MediaPart():
            caption = ("", "") if part.caption is None else (part.caption.text, part.caption.formatted or "")
            return ("file", part.facts.name, _file(part.facts, part.data), *caption)


def _file(facts: FileFacts, data: bytes | None = None) -> str:
    """The SHA-256 of what is sent; where nobody read the whole file, what the shell compares when it opens it."""
    if data is not None:
        return sha256(data).hexdigest()
    state = (facts.path, facts.device, facts.inode, facts.size, facts.mtime_ns, facts.ctime_ns)
    return facts.sha256 or json.dumps(state)


def _harmless(text: str) -> str:
    return show_direction(clean(text))


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... (and {len(text) - SHOWN} more characters)"


def approved(proposal: Proposal, answer: bool | None, now: float) -> Result[Proposal, ApprovalRequired]:
    """The proposal, if a person said yes in time. No answer (None) and a late one mean no. ``now``: Unix seconds."""
    if answer is None:
        return Failure(ApprovalRequired(proposal, "nobody answered"))
    if now > proposal.expires:
        return Failure(ApprovalRequired(proposal, "the answer came too late" if answer else "refused"))
    return Success(proposal) if answer else Failure(ApprovalRequired(proposal, "refused"))


def unchanged(proposal: Proposal, again: Proposal, now: float) -> Result[Proposal, ApprovalRequired]:
    """``again`` is made anew from what would be sent now: only what was approved goes out, and only in time."""
    if now > proposal.expires:
        return Failure(ApprovalRequired(again, "the approval is too old"))
    if again.digest != proposal.digest:
        return Failure(ApprovalRequired(again, "it is no longer what was approved"))
    return Success(proposal)
