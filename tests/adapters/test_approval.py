"""Asking a person: only a yes in time is a yes."""

import os
import pty
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from messaging_adapters.approval import Callback, Nobody, Terminal, approver_of, question
from messaging_adapters.clock import SystemClock
from messaging_core.config.settings import Approval
from messaging_core.errors import Proposal

PROPOSAL = Proposal("1", "message_send", "ops", "-100123", "text", "Release at noon\nSecond line", "ab" * 32, 9e9)


def test_nobody_never_says_yes() -> None:
    assert Nobody().ask(PROPOSAL, 60) is None


def test_a_callback_decides_by_the_proposal() -> None:
    assert Callback(lambda proposal: proposal == PROPOSAL).ask(PROPOSAL, 5) is True
    assert Callback(lambda proposal: False).ask(PROPOSAL, 5) is False


def test_only_true_is_a_yes_of_a_callback() -> None:
    assert Callback(lambda proposal: "no").ask(PROPOSAL, 5) is False  # type: ignore[arg-type, return-value]


def test_a_callback_that_raises_has_said_no_and_its_message_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def decide(proposal: Proposal) -> bool:
        raise RuntimeError("token FAKE")

    assert Callback(decide).ask(PROPOSAL, 5) is False
    assert "RuntimeError" in caplog.text
    assert "FAKE" not in caplog.text


def test_a_callback_that_takes_too_long_has_not_answered() -> None:
    late = threading.Event()

    def decide(proposal: Proposal) -> bool:
        return late.wait(20)

    assert Callback(decide).ask(PROPOSAL, 0.05) is None
    late.set()


# --- The terminal: a real pseudo-terminal, and a person at its other end ----------------------------------------------


@contextmanager
def terminal() -> Iterator[tuple[int, Path]]:
    person, program = pty.openpty()
    try:
        yield person, Path(os.ttyname(program))
    finally:
        os.close(person)
        os.close(program)


def answered(typed: bytes, timeout: float = 5.0, before: bytes = b"") -> tuple[bool | None, str]:
    """What comes of it, and what the person saw, when they type ``typed`` once the question has been asked."""
    with terminal() as (person, path):
        if before:
            os.write(person, before)
        answers: list[bool | None] = []
        asking = threading.Thread(
            target=lambda: answers.append(Terminal(SystemClock(), path).ask(PROPOSAL, timeout)), daemon=True
        )
        asking.start()
        seen = b""
        while b"anything else is no: " not in seen:
            seen += os.read(person, 10_000)
        if typed:
            os.write(person, typed)
        asking.join(10)
        while answers == [None] and b"not sent." not in seen:
            seen += os.read(person, 10_000)
        return answers[0], seen.decode()


@pytest.mark.parametrize("typed", [b"y\n", b"yes\n", b"YES\n", b" y \n"])
def test_yes_is_yes(typed: bytes) -> None:
    assert answered(typed)[0] is True


@pytest.mark.parametrize("typed", [b"n\n", b"\n", b"yess\n", b"yes please\n", b"\x04", b"y" * 300 + b"\n"])
def test_anything_else_is_no(typed: bytes) -> None:
    assert answered(typed)[0] is False


def test_an_answer_without_its_line_end_is_none_and_the_person_is_told() -> None:
    answer, seen = answered(b"y", timeout=0.2)
    assert answer is None
    assert "No answer in time: not sent." in seen


def test_what_was_typed_before_the_question_does_not_answer_it() -> None:
    assert answered(b"", timeout=0.2, before=b"yes\n")[0] is None


def test_without_a_terminal_nobody_answers() -> None:
    assert Terminal(SystemClock(), Path("/nonexistent/tty")).ask(PROPOSAL, 5) is None


def test_one_question_at_a_time_and_the_wait_for_the_other_counts() -> None:
    with terminal() as (person, path):
        asker = Terminal(SystemClock(), path)
        first = threading.Thread(target=asker.ask, args=(PROPOSAL, 10), daemon=True)
        first.start()
        while b"anything else is no: " not in os.read(person, 10_000):
            pass
        began = time.monotonic()
        assert asker.ask(PROPOSAL, 0.1) is None
        assert time.monotonic() - began < 5
        os.write(person, b"n\n")
        first.join(10)


def test_the_content_stands_behind_a_bar_so_that_it_cannot_pass_for_the_question() -> None:
    forged = "\nSend it? Answer yes\x1b[8m\r\u202e"
    shown = question(Proposal("1", "message", "ops", "a\nb", "text", forged, "", 0), 120)
    assert shown == (
        "\nA tool asks to send (message):\n"
        "  to      a b on ops\n"
        "  what    text\n"
        "  | \n"
        "  | Send it? Answer yes\n"
        "  | \\u202e\n"
        "Send it? Answer yes within 120 s, anything else is no: "
    )


def test_the_settings_choose_who_is_asked() -> None:
    assert isinstance(approver_of(Approval(), SystemClock()), Nobody)
    assert isinstance(approver_of(Approval(ask="terminal"), SystemClock()), Terminal)
