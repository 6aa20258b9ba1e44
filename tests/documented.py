"""The channels that the docs show how to write, taken from the page as it stands, beside the library's own.

The contract suite runs over both: what a newcomer copies is held to what the library's channels are held to.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Channel

PAGE = Path(__file__).resolve().parent.parent / "docs" / "adding-a-channel.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def _shown() -> Iterator[tuple[str, tuple[Channel, str]]]:
    """Each code block as a module of its own (so that its classes can be pickled), with the YAML that follows it."""
    for number, (code, yaml) in enumerate(zip(blocks("python"), blocks("yaml"), strict=True)):
        module: Any = ModuleType(f"tests.documented_{number}")
        sys.modules[module.__name__] = module
        exec(compile(code, f"{PAGE}[{number}]", "exec"), module.__dict__)
        yield module.CHANNEL.platform, (module.CHANNEL, yaml)


DOCUMENTED: dict[str, tuple[Channel, str]] = dict(_shown())
REGISTRY: dict[str, Channel] = {**CHANNELS, **{platform: channel for platform, (channel, _) in DOCUMENTED.items()}}
