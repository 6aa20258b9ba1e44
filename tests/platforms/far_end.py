"""What the models of the platforms share: a strict reading of requests, scripted trouble, and a way to speak to them.

A model is asked for each request that reaches a loopback server. It checks everything that the platform's published
description says, and more strictly than the platform where that finds faults (unknown fields are refused). What it
refused stands in ``refused``; a test whose sends are all good asserts that this is empty.
"""

import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from messaging_adapters.clock import SystemClock
from messaging_adapters.limiter import Limiter
from messaging_adapters.messenger import Messenger, ToolResult
from messaging_core.message import Conversation
from tests.adapters.loopback import Item, Loopback, Request, reply


@cache
def spec(platform: str) -> Any:
    """The reduced copy of the platform's published description."""
    return json.loads((Path(__file__).parent / "specs" / f"{platform}.json").read_text())


class Refusal(Exception):
    """The platform's answer to something wrong; ``why`` for the test's reader."""

    def __init__(self, item: Item, why: str) -> None:
        super().__init__(why)
        self.item, self.why = item, why


@dataclass
class File:
    """A file as it arrived."""

    name: str
    mime: str
    data: bytes


# --- A model ----------------------------------------------------------------------------------------------------------


@dataclass
class _Trouble:
    item: Item | None
    placed: bool


class FarEnd:
    """Ask it with a request. ``check`` of the subclass returns the call's name and what placing it does."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.calls: list[str] = []
        self.times: list[float] = []
        self._troubles: dict[str, deque[_Trouble]] = {}
        self._lock = threading.RLock()

    def script(self, call: str, *items: Item | None, placed: bool = False) -> None:
        """The next good requests of ``call`` get these answers (None: the ordinary one); nothing is placed for them
        (``placed``: it is).
        """
        self._troubles.setdefault(call, deque()).extend(_Trouble(item, placed) for item in items)

    def __call__(self, request: Request) -> Item:
        with self._lock:
            try:
                name, place = self.check(request)
                self.calls.append(name)
                self.times.append(request.at)
                troubles = self._troubles.get(name)
                if not troubles:
                    return place()
                trouble = troubles.popleft()
                if trouble.item is None:
                    return place()
                if trouble.placed:
                    place()
                return trouble.item
            except Refusal as refusal:
                self.refused.append(refusal.why)
                return refusal.item

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        raise NotImplementedError


# --- Reading strictly -------------------------------------------------------------------------------------------------

_DISPOSITION = re.compile(r'form-data; name="([^"\\\r\n]+)"(?:; filename="((?:[^"\\\r\n]|\\["\\])*)")?')


@dataclass
class Piece:
    """One part of a form: ``filename`` None where it is a plain field."""

    name: str
    filename: str | None
    mime: str | None
    data: bytes


TOKEN = r"[0-9A-Za-z'+_.-]{1,70}"
QUOTED = r"[0-9A-Za-z'()+_,./:=?-]{1,70}"
"""What a boundary may hold (RFC 2046, 5.1.1), as a bare value (a token of RFC 9110, 5.6.2) and in quotes."""


def pieces(request: Request) -> list[Piece]:
    """A multipart body by RFC 7578: no other headers than the two, no ``filename*``. ValueError says what is wrong."""
    kind = request.header("Content-Type") or ""
    found = re.fullmatch(rf'multipart/form-data; ?boundary=(?:({TOKEN})|"({QUOTED})")', kind)
    if found is None:
        raise ValueError(f"not multipart/form-data with a boundary: {kind}")
    if int(request.header("Content-Length") or -1) != len(request.body):
        raise ValueError("no exact Content-Length")
    mark = b"--" + (found[1] or found[2]).encode()
    body = request.body
    if not body.startswith(mark + b"\r\n") or not body.rstrip(b"\r\n").endswith(b"\r\n" + mark + b"--"):
        raise ValueError("the body does not begin and end with its boundary")
    read: list[Piece] = []
    at = len(mark) + 2
    while True:
        head_end = body.index(b"\r\n\r\n", at)
        end = body.index(b"\r\n" + mark, head_end + 2)
        read.append(_piece(body[at:head_end].decode(), body[head_end + 4 : end]))
        at = end + 2 + len(mark)
        if body[at : at + 2] == b"--":
            return read
        if body[at : at + 2] != b"\r\n":
            raise ValueError("something stands behind a boundary")
        at += 2


def _piece(head: str, data: bytes) -> Piece:
    fields: dict[str, str] = {}
    for line in head.split("\r\n"):
        name, colon, value = line.partition(": ")
        if not colon or name.lower() in fields or name.lower() not in ("content-disposition", "content-type"):
            raise ValueError(f"a header that does not belong into a part: {line!r}")
        fields[name.lower()] = value
    found = _DISPOSITION.fullmatch(fields.get("content-disposition", ""))
    if found is None:
        raise ValueError(f"not one name and one file name, quoted: {fields.get('content-disposition')!r}")
    name = found[2]
    if name is not None:
        # https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data
        name = re.sub(r'\\(["\\])', r"\1", name).replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
    return Piece(found[1], name, fields.get("content-type"), data)


def json_of(request: Request, charset: bool = False) -> Any:
    """A JSON body without doubled keys. ValueError says what is wrong."""
    kind = (request.header("Content-Type") or "").lower().replace(" ", "")
    if kind not in ("application/json", "application/json;charset=utf-8"):
        raise ValueError(f"not JSON: {kind}")
    return strict_json(request.body.decode())


def strict_json(text: str) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in found}) != len(found):
            raise ValueError("a key stands twice")
        return dict(found)

    return json.loads(text, object_pairs_hook=pairs)


def schema_faults(platform: str, name: str, value: Any) -> list[tuple[str, str]]:
    """Where (dotted) and why ``value`` is not what the published schema ``name`` describes."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": spec(platform)["$defs"]}
    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return [(".".join(map(str, error.absolute_path)), error.message) for error in found]


def picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG."""
    return (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) if data[:4] == b"\x89PNG" else None


def kind_of(data: bytes) -> str:
    """What a file is, by its first bytes, as a platform would find it."""
    for start, kind in (
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\xff\xd8\xff", "jpeg"),
        (b"GIF8", "gif"),
        (b"%PDF-", "pdf"),
        (b"ID3", "mp3"),
        (b"\xff\xfb", "mp3"),
    ):
        if data.startswith(start):
            return kind
    if data[:4] == b"OggS":
        return "opus" if b"OpusHead" in data[:100] else "ogg"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[4:8] == b"ftyp":
        return {b"heic": "heic", b"M4A ": "m4a"}.get(data[8:12], "mp4")
    return "other"


# --- Speaking to it ---------------------------------------------------------------------------------------------------


class Hurry:
    """A clock on which waiting takes no time: what is slept through is added to what it shows. Safe for threads."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._ahead = 0.0
        self._lock = threading.Lock()

    def now(self) -> float:
        return time.time() + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self._ahead += seconds


class Front:
    """The front door as an agent loop uses it, and where its files are."""

    def __init__(self, config: dict[str, Any], folder: Path, clock: Any, **world: Any) -> None:
        environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
        made = Messenger.from_config({"media_roots": [str(folder)], **config}, environ=environ, **world)
        self.folder, self.clock = folder, clock
        self.messenger = Messenger(
            made.settings, replace(made.ports, clock=clock, limiter=Limiter(clock)), made.warnings
        )

    def send(self, conversation: Conversation | None = None, **arguments: Any) -> ToolResult:
        """Call ``message_send``; the result is a whole account of itself."""
        result = self.messenger.call_tool("message_send", arguments, conversation)
        assert result.message and result.ok == (result.details["status"] == "delivered")
        return result

    def file(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    @property
    def audit(self) -> list[dict[str, Any]]:
        lines = "".join(file.read_text() for file in sorted((self.folder / "state").rglob("*.jsonl")))
        return [json.loads(line) for line in lines.splitlines()]


@contextmanager
def front(
    far_end: FarEnd, config: Callable[[str], dict[str, Any]], folder: Path, *, hurry: bool = True, **world: Any
) -> Iterator[Front]:
    """A messenger whose channels lead to ``far_end`` over real sockets. ``config``: the configuration for its URL."""
    with ExitStack() as stack:
        server = stack.enter_context(Loopback(respond=far_end))
        door = Front(config(server.url), folder, Hurry() if hurry else SystemClock(), **world)
        stack.enter_context(door.messenger)
        yield door


def too_many(status: int = 429, headers: dict[str, str] | None = None, **body: Any) -> Item:
    return reply(status, json=body, headers=headers)


# --- Files ------------------------------------------------------------------------------------------------------------

HEIC = bytes.fromhex("000000186674797068656963") + b"\0\0\0\0heicmif1" + bytes(40)
GIF = b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\0\0\0\0\0,\0\0\0\0\x02\0\x02\0\0\x02\x02D\n\0;"
MP4 = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0\0\0\x08free" + b"\0\0\0\x08mdat"
M4A = b"\0\0\0\x18ftypM4A \0\0\0\0M4A mp42" + b"\0\0\0\x08free" + b"\0\0\0\x08mdat"
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\0\x02\0\x02\x03\x01\x22\0\x02\x11\x01\x03\x11\x01\xff\xd9"
PDF = b"%PDF-1.4\r\n--not-a-boundary\r\n\r\n%%EOF\n"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' width='2' height='2'/>"
TXT = "Größe: 5 µm\r\n".encode()
