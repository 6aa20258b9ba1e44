"""What several test suites need: configured channels from the docs' own examples, files of each kind, ids."""

import re
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from messaging_core.config.schemas import load
from messaging_core.config.settings import Configuration
from messaging_core.message import FileFacts, Ids
from tests.documented import DOCUMENTED, REGISTRY

ROOT = Path(__file__).resolve().parent.parent
IDS = Ids("1764500000000abcdefgh", 1764500000.0)

SECRET = "FAKE-s3cret-value"
"""Every variable of a docs example has this in its value, so a search for it finds any leak."""


class Environment(dict[str, str]):
    """A variable for every name that an example asks for: an address where the name says so, else a token."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> str:  # type: ignore[override]
        return self[name]

    def __missing__(self, name: str) -> str:
        return f"https://hooks.test/in/{SECRET}" if name.endswith("URL") else f"{SECRET}-{name}"


@cache
def example(platform: str) -> Configuration:
    """The configuration in the docs page of ``platform``: its first YAML block."""
    where = f"docs/channels/{platform}.md"
    return load(_shown(platform, where), "yaml", Environment(), REGISTRY, where=where).unwrap()


def _shown(platform: str, where: str) -> str:
    if platform in DOCUMENTED:
        return DOCUMENTED[platform][1]
    found = re.search(r"```yaml\n(.*?)```", (ROOT / where).read_text(), re.DOTALL)
    assert found is not None, f"{where} shows no YAML example"
    return found[1]


def png(width: int = 2, height: int = 2) -> bytes:
    """A real PNG of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + b"\xff\0\0" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def ogg_opus(seconds: int = 1) -> bytes:
    """The pages of an Ogg Opus file that say what it is and how long."""

    def page(kind: int, granule: int, data: bytes) -> bytes:
        return b"OggS\0" + bytes([kind]) + struct.pack("<qIII", granule, 1, 0, 0) + bytes([1, len(data)]) + data

    head = b"OpusHead\x01\x01" + struct.pack("<HIhB", 312, 48000, 0, 0)
    return page(2, 0, head) + page(4, 48000 * seconds + 312, b"\xfc\xff\xfe")


MP3 = b"ID3\x04\0\0\0\0\0\0" + b"\xff\xfb\x90\x00" + b"\0" * 400


def facts(name: str, data: bytes) -> FileFacts:
    """As a look at a file with these bytes would find it."""
    return FileFacts(
        asked=name,
        path=f"/srv/out/{name}",
        name=name,
        size=len(data),
        device=1,
        inode=2,
        owner=0,
        head=data[:4096],
        tail=data[-512:],
    )
