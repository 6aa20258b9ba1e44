"""The registry: every channel by its platform's name. A value, passed in; third parties' channels are added by the
adapters."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeAlias

from messaging_core.channels.channel import Channel

Registry: TypeAlias = Mapping[str, Channel]

MODULES = {
    "cli": "terminal",
    "discord": "discord",
    "discord-webhook": "discord_webhook",
    "email": "email",
    "matrix": "matrix",
    "signal": "signal",
    "slack": "slack",
    "telegram": "telegram",
    "webhook": "webhook",
    "whatsapp": "whatsapp",
}
"""Platform -> module, in the order of the docs. A channel's module is imported when the channel is first asked for."""


class Shipped(Mapping[str, Channel]):
    """The channels that come with the library, each imported when first used: an agent with one channel loads one."""

    def __getitem__(self, platform: str) -> Channel:
        channel: Channel = import_module(f"{__name__}.{MODULES[platform]}").CHANNEL
        return channel

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __contains__(self, platform: object) -> bool:
        return platform in MODULES

    def __len__(self) -> int:
        return len(MODULES)


CHANNELS: Registry = Shipped()
