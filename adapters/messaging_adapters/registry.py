"""The channels that are installed: the library's own, and those of other packages by their entry points."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Channel

GROUP = "messaging_core.channels"


class ChannelBroken(Exception):
    """Another package names a channel that cannot be had."""

    def __init__(self, point: EntryPoint, problem: str) -> None:
        super().__init__(f"the channel {point.name!r} of another package ({point.value}) cannot be loaded: {problem}")


class Installed(Mapping[str, Channel]):
    """The library's own channels first; another package cannot take the place of one. Nothing is looked for until it
    is asked for."""

    __hash__ = object.__hash__  # one value, the same for the life of the program

    def __getitem__(self, platform: str) -> Channel:
        if platform in CHANNELS:
            return CHANNELS[platform]
        return _loaded(self._others[platform])

    def __iter__(self) -> Iterator[str]:
        yield from CHANNELS
        yield from self._others

    def __len__(self) -> int:
        return len(CHANNELS) + len(self._others)

    @cached_property
    def _others(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=GROUP) if point.name not in CHANNELS}


def _loaded(point: EntryPoint) -> Channel:
    """Whatever another package's code does when it is imported, the name of the one at fault is told."""
    try:
        channel = point.load()
    except Exception as error:
        raise ChannelBroken(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(channel, Channel):
        raise ChannelBroken(point, "it is no Channel")
    return channel


INSTALLED = Installed()
