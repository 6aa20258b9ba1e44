"""The terminal: one write, one flush."""

import errno
import io
import threading
from collections.abc import Mapping
from typing import TextIO

from returns.result import Failure, Result, Success

from messaging_core.errors import SendError, Unanswered, Unreachable
from messaging_core.flow import Exchange
from messaging_core.wire.terminal import Stream, TerminalReply, TerminalRequest

ATOMIC = 4096
"""Bytes that a pipe takes whole or not at all (Linux PIPE_BUF)."""


class TerminalEdge:
    """Writes to the streams that it is given; either may be None, as in a program without a window.

    Whether colours are shown is asked of the stream that is written to. ``NO_COLOR`` (https://no-color.org) forbids
    them, ``FORCE_COLOR`` and ``CLICOLOR_FORCE`` ask for them, ``TERM=dumb`` cannot; else a terminal has them.
    """

    def __init__(self, stdout: TextIO | None, stderr: TextIO | None, environ: Mapping[str, str]) -> None:
        self._streams: dict[Stream, TextIO | None] = {"stdout": stdout, "stderr": stderr}
        self._locks: dict[Stream, threading.Lock] = {"stdout": threading.Lock(), "stderr": threading.Lock()}
        self._wish = _colour_wish(environ)

    def __call__(self, exchange: Exchange) -> Result[TerminalReply, SendError]:
        request: TerminalRequest = exchange.request
        stream = self._streams[request.stream]
        if stream is None or stream.closed:
            return Failure(Unreachable(f"{request.stream} is closed"))
        colours = _is_terminal(stream) if self._wish is None else self._wish
        text = _encodable(request.coloured if colours and request.coloured is not None else request.text, stream)
        with self._locks[request.stream]:
            return _written(stream, request.stream, text)


def _written(stream: TextIO, name: Stream, text: str) -> Result[TerminalReply, SendError]:
    try:
        _write(stream, text)
        stream.flush()
    except BrokenPipeError:
        # A short write to a pipe without a reader was not begun; of a long one the beginning may have been read.
        short = len(text.encode("utf-8", "replace")) <= ATOMIC
        why = f"nobody reads {name} any more"
        return Failure(Unreachable(why) if short else Unanswered(why))
    except OSError as error:
        return Failure(Unanswered(f"{name} could not be written whole ({error.strerror or 'input/output error'})"))
    except ValueError:
        return Failure(Unreachable(f"{name} is closed"))
    return Success(TerminalReply(len(text)))


def _write(stream: TextIO, text: str) -> None:
    """The whole text. Python's own layer forgets what an unbuffered stream (``python -u``) did not take at once."""
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        stream.write(text)
        return
    stream.flush()
    left = text.encode(stream.encoding or "utf-8")
    while left:
        count = raw.write(left)
        if not count:
            raise BlockingIOError(errno.EAGAIN, "it takes nothing more now")
        left = left[count:]


def _colour_wish(environ: Mapping[str, str]) -> bool | None:
    """What the environment says; None where the stream decides."""
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return False if environ.get("TERM") == "dumb" else None


def _is_terminal(stream: TextIO) -> bool:
    """Streams that were put in place of the real ones may lack the method."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


def _encodable(text: str, stream: TextIO) -> str:
    """What the stream's encoding cannot hold is shown by number: nothing is lost, and no write fails half-way."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except (LookupError, UnicodeError):
        return text.encode("ascii", "backslashreplace").decode("ascii")
