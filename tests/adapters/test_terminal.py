"""One write, one flush, and what is said when they fail."""

import contextlib
import io
import os
import pty
import threading
import time
from typing import Any

import pytest
from returns.result import Success

from messaging_adapters.terminal import TerminalEdge
from messaging_core.errors import Unanswered, Unreachable
from messaging_core.flow import Done, Exchange, Scope
from messaging_core.wire.terminal import Stream, TerminalReply, TerminalRequest


def line(text: str = "hello\n", coloured: str | None = None, stream: Stream = "stdout") -> Exchange:
    return Exchange(TerminalRequest(stream, text, coloured), lambda reply: Success(Done()), Scope("cli"))


class Recording(io.StringIO):
    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.calls.append(text)
        return super().write(text)

    def flush(self) -> None:
        self.calls.append("flush")


def test_one_write_and_one_flush_to_the_named_stream() -> None:
    out, err = Recording(), Recording()
    edge = TerminalEdge(out, err, {})
    assert edge(line("a\nb\n")) == Success(TerminalReply(4))
    assert edge(line("c\n", stream="stderr")) == Success(TerminalReply(2))
    assert (out.calls, err.calls) == (["a\nb\n", "flush"], ["c\n", "flush"])


@pytest.mark.parametrize(
    ("environ", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "0", "FORCE_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
    ],
)
def test_colours_only_where_they_are_shown_and_wanted(environ: dict[str, str], terminal: bool, coloured: bool) -> None:
    out = Recording(terminal)
    TerminalEdge(out, None, environ)(line("plain\n", "\x1b[1mplain\x1b[0m\n"))
    assert out.calls[0] == ("\x1b[1mplain\x1b[0m\n" if coloured else "plain\n")


def test_a_text_without_colours_is_plain_everywhere() -> None:
    out = Recording(True)
    TerminalEdge(out, None, {})(line("plain\n"))
    assert out.calls[0] == "plain\n"


def test_it_is_the_stream_written_to_that_is_asked() -> None:
    """A real terminal on standard error does not make a file of standard output one."""
    ours, theirs = pty.openpty()
    reader, writer = os.pipe()
    with os.fdopen(theirs, "w") as err, os.fdopen(writer, "w") as out:
        edge = TerminalEdge(out, err, {})
        edge(line("p\n", "coloured\n"))
        edge(line("p\n", "coloured\n", "stderr"))
        assert (os.read(reader, 100), os.read(ours, 100)) == (b"p\n", b"coloured\r\n")
    os.close(ours)
    os.close(reader)


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("ascii", b"\\u20ac \\xe4 \\ud800\n"),
        ("latin-1", b"\\u20ac \xe4 \\ud800\n"),
        ("utf-8", "€ ä \\ud800\n".encode()),
    ],
)
def test_what_the_encoding_cannot_hold_is_shown_by_number(encoding: str, written: bytes) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    assert TerminalEdge(out, None, {})(line("€ ä \ud800\n")) == Success(TerminalReply(len(written.decode(encoding))))
    assert raw.getvalue() == written


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed()])
def test_no_stream(stream: Any) -> None:
    assert TerminalEdge(stream, None, {})(line()).failure() == Unreachable("stdout is closed")


def buffered(writer: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(writer, "w")))


def unbuffered(writer: int) -> io.TextIOWrapper:
    """As ``python -u`` has it."""
    return io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrapped", [buffered, unbuffered])
def test_a_pipe_without_a_reader_took_nothing_of_a_short_text(wrapped: Any) -> None:
    reader, writer = os.pipe()
    out = wrapped(writer)
    os.close(reader)
    assert TerminalEdge(out, None, {})(line()).failure() == Unreachable("nobody reads stdout any more")
    with contextlib.suppress(BrokenPipeError):
        out.close()


@pytest.mark.parametrize("wrapped", [buffered, unbuffered])
def test_a_pipe_whose_reader_left_may_have_passed_on_the_beginning_of_a_long_text(wrapped: Any) -> None:
    reader, writer = os.pipe()
    out = wrapped(writer)
    leaving = threading.Timer(0.1, lambda: (os.read(reader, 10), os.close(reader)))
    leaving.start()
    assert TerminalEdge(out, None, {})(line("x" * 1_000_000)).failure() == Unanswered("nobody reads stdout any more")
    with contextlib.suppress(BrokenPipeError):
        out.close()


class Small(io.RawIOBase):
    """Takes three bytes at a time."""

    got = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.got += bytes(data[:3])
        time.sleep(0.0001)
        return len(data[:3])


def test_a_stream_that_takes_a_little_at_a_time_gets_the_whole() -> None:
    raw = Small()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)  # type: ignore[type-var]
    assert TerminalEdge(out, None, {})(line("hello wörld\n")) == Success(TerminalReply(12))
    assert raw.got == "hello wörld\n".encode()


def test_a_full_disk() -> None:
    with open("/dev/full", "w") as out:
        failed = TerminalEdge(out, None, {})(line()).failure()
        assert failed == Unanswered("stdout could not be written whole (No space left on device)")
        with pytest.raises(OSError):
            out.close()


def test_threads_do_not_mix_their_lines() -> None:
    raw = Small()
    edge = TerminalEdge(io.TextIOWrapper(raw, write_through=True), None, {})  # type: ignore[type-var]
    texts = [f"{name * 30}\n" for name in "abcd"]
    threads = [threading.Thread(target=lambda text=text: [edge(line(text)) for _ in range(10)]) for text in texts]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    lines = raw.got.decode().splitlines(keepends=True)
    assert len(lines) == 40
    assert set(lines) == set(texts)
