"""Bodies as they are sent: bytes, or files and multipart forms streamed in constant memory, their length known before.

A file is opened once, before a connection is made. The last of its bytes leave only after a second look has found it
unchanged, so that a file which changed on the way is never a complete request.
"""

import hashlib
import os
import re
import stat
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from returns.result import Failure, Result, Success

from messaging_adapters.files import open_unfollowed
from messaging_core.errors import MediaUnreadable
from messaging_core.message import FileFacts
from messaging_core.wire.http import FileRef, FormPart, Multipart, Spliced

BLOCK = 64 * 1024
"""Bytes. No time-out is for more than one of them, so that a slow line is not taken for a dead one."""


class FileChangedError(Exception):
    """The file is not what it was: raised out of the middle of a send, and turned into a value at its end."""

    def __init__(self, refusal: MediaUnreadable) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class OpenFile:
    """An opened file, still the one that the facts were taken of."""

    def __init__(self, descriptor: int, facts: FileFacts) -> None:
        self._descriptor = descriptor
        self._facts = facts

    def close(self) -> None:
        os.close(self._descriptor)

    def __len__(self) -> int:
        return self._facts.size

    def __iter__(self) -> Iterator[bytes]:
        """The blocks from the beginning, each time."""
        digest = hashlib.sha256() if self._facts.sha256 else None
        at, size = 0, self._facts.size
        while at < size:
            block = self._read(at, min(BLOCK, size - at))
            at += len(block)
            if digest:
                digest.update(block)
            if at == size and (self._changed() or (digest and digest.hexdigest() != self._facts.sha256)):
                raise FileChangedError(changed(self._facts, "it changed while it was being sent"))
            yield block

    def _read(self, at: int, count: int) -> bytes:
        try:
            block = os.pread(self._descriptor, count, at)
        except OSError as error:
            raise FileChangedError(changed(self._facts, f"it cannot be read ({error.strerror})")) from None
        if not block:
            raise FileChangedError(changed(self._facts, "it became shorter while it was being sent"))
        return block

    def _changed(self) -> bool:
        return not same(self._facts, os.fstat(self._descriptor))


class EncodedFile(OpenFile):
    """An opened file as base64 on one line, for a document that has the file inside."""

    def __len__(self) -> int:
        return 4 * -(-super().__len__() // 3)

    def __iter__(self) -> Iterator[bytes]:
        left = b""
        for block in super().__iter__():
            left += block
            whole = len(left) - len(left) % 3
            yield b64encode(left[:whole])
            left = left[whole:]
        if left:
            yield b64encode(left)


def changed(facts: FileFacts, problem: str) -> MediaUnreadable:
    return MediaUnreadable(facts.name, problem)


def same(facts: FileFacts, found: os.stat_result) -> bool:
    """Whether an opened file is the one, unwritten, that was looked at. ctime tells of a set-back mtime."""
    return stat.S_ISREG(found.st_mode) and (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    ) == (facts.device, facts.inode, facts.size, facts.mtime_ns, facts.ctime_ns)


def open_file(facts: FileFacts, kind: type[OpenFile] = OpenFile) -> Result[OpenFile, MediaUnreadable]:
    """Open the file that was looked at, unless it is another one now. Never follows a link, never waits on a pipe."""
    try:
        descriptor = open_unfollowed(facts.path)
    except FileNotFoundError:
        return Failure(changed(facts, "it is no longer there"))
    except (OSError, ValueError):
        return Failure(changed(facts, "it changed after it was looked at, and can no longer be opened"))
    if same(facts, os.fstat(descriptor)):
        return Success(kind(descriptor, facts))
    os.close(descriptor)
    return Failure(changed(facts, "it changed after it was looked at"))


@dataclass(frozen=True, slots=True)
class Streamed:
    """Pieces in order, each with its length; can be gone through again from the beginning."""

    pieces: tuple[bytes | OpenFile, ...] = field(repr=False)

    @property
    def whole(self) -> bytes | None:
        """All of it, where it is bytes that fit into one write."""
        single = self.pieces[0] if len(self.pieces) == 1 else None
        return single if isinstance(single, bytes) and len(single) <= BLOCK else None

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            yield from (piece,) if isinstance(piece, bytes) and len(piece) <= BLOCK else blocks(piece)


def blocks(piece: bytes | OpenFile) -> Iterator[bytes]:
    if isinstance(piece, OpenFile):
        yield from piece
    else:
        for start in range(0, len(piece), BLOCK):
            yield piece[start : start + BLOCK]


@contextmanager
def opened(body: bytes | Multipart | FileRef | Spliced) -> Iterator[Result[Streamed, MediaUnreadable]]:
    """The body with its files open for as long as the context lasts, or the first file that is not what it was."""
    with ExitStack() as files:

        def one(piece: bytes | FileRef) -> Result[bytes | OpenFile, MediaUnreadable]:
            if isinstance(piece, bytes):
                return Success(piece)
            return open_file(piece.facts, EncodedFile if piece.base64 else OpenFile).map(kept)

        def kept(file: OpenFile) -> bytes | OpenFile:
            files.callback(file.close)
            return file

        ready: Result[tuple[bytes | OpenFile, ...], MediaUnreadable] = Success(())
        for piece in described(body):
            ready = Result.do((*before, now) for before in ready for now in one(piece))
        yield ready.map(Streamed)


# --- Multipart forms (RFC 7578) ---------------------------------------------------------------------------------------


def described(body: bytes | Multipart | FileRef | Spliced) -> tuple[bytes | FileRef, ...]:
    """What is sent, in order."""
    if isinstance(body, Spliced):
        return body.pieces
    if not isinstance(body, Multipart):
        return (body,)
    boundary = body.boundary.encode("ascii")
    pieces: list[bytes | FileRef] = []
    for part in body.parts:
        pieces += (b"--" + boundary + b"\r\n" + _header(part), part.content, b"\r\n")
    return _merged((*pieces, b"--" + boundary + b"--\r\n"))


def _header(part: FormPart) -> bytes:
    """The header lines of one part: names in UTF-8, as browsers do and RFC 7578 (5.1) allows."""
    line = f'Content-Disposition: form-data; name="{quoted(part.name)}"'
    if part.filename is not None:
        line += f'; filename="{quoted(part.filename)}"'
    if part.content_type is not None:
        line += f"\r\nContent-Type: {_CONTROLS.sub('', part.content_type)}"
    return (line + "\r\n\r\n").encode("utf-8", "replace")


_CONTROLS = re.compile("[\x00-\x1f\x7f]")


def quoted(name: str) -> str:
    """A name inside quotation marks: what would end it, and every control sign, percent-encoded.

    ``"``, CR and LF as https://html.spec.whatwg.org/#multipart-form-data has them; the backslash too, since some
    readers take it for an escape.
    """
    return re.sub('[\x00-\x1f\x7f"\\\\]', lambda sign: f"%{ord(sign[0]):02X}", name)


def _merged(pieces: tuple[bytes | FileRef, ...]) -> tuple[bytes | FileRef, ...]:
    """Neighbouring bytes as one, so that a small form leaves in one write."""
    merged: list[bytes | FileRef] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if isinstance(piece, bytes) and isinstance(last, bytes):
            merged[-1] = last + piece
        else:
            merged.append(piece)
    return tuple(merged)
