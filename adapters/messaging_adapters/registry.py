"""The channels that are installed: the library's own, and those of other packages by their entry points."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Channel

GROUP = "messaging_core.channels"


class Installed(Mapping[str, Channel]):
    """The library's own channels first; another package cannot take the place of one. Nothing is looked for until it
    is asked for."""

    __hash__ = object.__hash__  # one value, the same for the life of the program

    def __getitem__(self, platform: str) -> Channel:
        if platform in CHANNELS:
            return CHANNELS[platform]
        channel = self._others[platform].load()
        if not isinstance(channel, Channel):
            raise TypeError(f"the entry point {platform!r} in {GROUP} is not a Channel")
        return channel

    def __iter__(self) -> Iterator[str]:
        yield from CHANNELS
        yield from self._others

    def __len__(self) -> int:
        return len(CHANNELS) + len(self._others)

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=GROUP) if point.name not in CHANNELS}


INSTALLED = Installed()
