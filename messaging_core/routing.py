"""Which channel, which recipient. What is named is used or refused, and never replaced by something else."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels import Registry
from messaging_core.channels.channel import Capabilities, Channel, Configured
from messaging_core.config.settings import Settings
from messaging_core.errors import InvalidArguments, NoChannels, NoRecipient, Refusal, UnknownChannel, Unsupported
from messaging_core.message import Conversation, Message, Recipient

TERMINAL = "cli"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message goes. ``default``: nobody was named, and the recipient is the channel's own.

    ``kept``: the recipient is the one that the conversation is with.
    """

    channel: Channel
    at: Configured[Any]
    recipient: Recipient
    default: bool = False
    kept: bool = False


def active(settings: Settings, registry: Registry) -> tuple[Configured[Any], ...]:
    """The channels that can be sent to, in file order, terminals last; the program's own terminal unless it is
    switched off."""
    on = tuple(one for one in settings.channels if one.rules.enabled)
    terminals = tuple(one for one in on if one.platform == TERMINAL)
    if settings.cli is False:
        terminals = tuple(one for one in terminals if one.name != TERMINAL)
    elif not terminals and all(one.name != TERMINAL for one in settings.channels):
        terminals = (Configured(TERMINAL, TERMINAL, registry[TERMINAL].settings()),)
    return (*(one for one in on if one.platform != TERMINAL), *terminals)


def route(
    message: Message,
    conversation: Conversation,
    settings: Settings,
    registry: Registry,
    *,
    among: tuple[str, ...] | None = None,
) -> Result[Route, Refusal]:
    """The channel named, else the conversation's, else the first active one; then the recipient on it.

    ``among``: only channels of these names (the tool ``message`` knows those of its own section).
    """
    return _channel(message, conversation, settings, registry, among).bind(
        lambda at: _route(message, conversation, at, settings, registry)
    )


def _channel(
    message: Message, conversation: Conversation, settings: Settings, registry: Registry, among: tuple[str, ...] | None
) -> Result[Configured[Any], Refusal]:
    there = active(settings, registry)
    if among is not None:
        there = tuple(one for one in there if one.name in among)
    if not there:
        return Failure(NoChannels())
    wanted = message.channel or conversation.channel
    if wanted is None:
        return Success(there[0])
    found = next((one for one in there if one.name == wanted), None)
    if found is not None:
        return Success(found)
    names = tuple(one.name for one in settings.channels if among is None or one.name in among)
    listed = tuple(one.name for one in sorted(there, key=lambda one: _place(one.name, names)))
    return Failure(UnknownChannel(wanted, listed, inactive=settings.channel(wanted) is not None and wanted in names))


def _place(name: str, names: tuple[str, ...]) -> int:
    return names.index(name) if name in names else len(names)


def _route(
    message: Message, conversation: Conversation, at: Configured[Any], settings: Settings, registry: Registry
) -> Result[Route, Refusal]:
    channel, here = registry[at.platform], conversation.channel == at.name
    if message.reply_to is not None and message.channel is None and not here:
        others = (one for one in active(settings, registry) if one.name != at.name)
        if channel.ids_per_chat and any(registry[one.platform].capabilities.reply for one in others):
            problem = "reply_to: name the channel too, its ids mean nothing elsewhere"
            return Failure(InvalidArguments("message_send", (problem,)))
    return _recipient(message, conversation if here else Conversation(), at, channel)


def _recipient(
    message: Message, conversation: Conversation, at: Configured[Any], channel: Channel
) -> Result[Route, Refusal]:
    """Named, else the conversation's, else the channel's default. The conversation's thread is kept where its chat
    is."""
    keep = _keeper(conversation, channel)
    if message.recipient is not None:
        return channel.recipient(message.recipient).map(lambda named: Route(channel, at, *keep(named)))
    if channel.fixed_recipient is not None:
        fixed = replace(channel.fixed_recipient, thread=conversation.thread)
        return Success(Route(channel, at, fixed, default=True))
    if conversation.recipient is not None:
        return channel.recipient(conversation.recipient).map(lambda current: Route(channel, at, *keep(current)))
    default = channel.default_recipient(at.own)
    if default is None:
        return Failure(NoRecipient(at.name, channel.default_key))
    return channel.recipient(default).map(lambda own: Route(channel, at, own, default=True))


def _keeper(conversation: Conversation, channel: Channel) -> Callable[[Recipient], tuple[Recipient, bool, bool]]:
    current = None if conversation.recipient is None else channel.recipient(conversation.recipient).value_or(None)

    def keep(recipient: Recipient) -> tuple[Recipient, bool, bool]:
        kept = current is not None and channel.same(current.id) == channel.same(recipient.id)
        if kept and recipient.thread is None:
            recipient = replace(recipient, thread=conversation.thread)
        return recipient, False, kept

    return keep


def capable(route: Route, message: Message, settings: Settings, registry: Registry) -> Result[Route, Refusal]:
    """Whether the channel can do what is asked of it; if not, which active channels can."""
    can, rules = route.channel.capabilities, route.at.rules
    voice_as_audio = can.media and rules.voice_as == "audio"
    for wanted, what, has, hint in (
        (message.media_path, "media", can.media, ""),
        (message.voice_path, "voice messages", can.voice or voice_as_audio, _hint(can)),
        (message.reply_to, "a reply", can.reply, ""),
    ):
        if wanted is not None and not has:
            able = tuple(one.name for one in active(settings, registry) if _able(registry[one.platform], what))
            return Failure(Unsupported(route.at.name, what, able, hint))
    return Success(route)


def _hint(can: Capabilities) -> str:
    return "voice_as: audio on the channel sends it as an ordinary audio file" if can.media else ""


def _able(channel: Channel, what: str) -> bool:
    can = channel.capabilities
    return {"media": can.media, "voice messages": can.voice, "a reply": can.reply}[what]
