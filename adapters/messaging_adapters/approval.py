"""Asking a person: on the terminal, through a callback, or nobody.

An approver answers True (yes), False (no), or None where nobody answered in time. Silence is never a yes. Proposals
that nobody answered are kept by the Messenger in memory, for ``messenger.approve(proposal)``: another process cannot
approve them, since it has neither the proposal nor what belongs to it.
"""

import logging
import os
import select
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from messaging_adapters.clock import Clock
from messaging_core.config.settings import Approval
from messaging_core.errors import Proposal
from messaging_core.markup.controls import clean, show_direction

try:
    import termios
except ImportError:  # no such terminals on this system
    termios = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

YES = ("y", "yes")
LONGEST_ANSWER = 100


class Approver(Protocol):
    """Somebody who can say yes."""

    def ask(self, proposal: Proposal, timeout: float) -> bool | None:
        """Yes, no, or None after ``timeout`` seconds without an answer. Never raises."""
        ...


class Nobody:
    """There is nobody to ask: what needs approval waits for ``messenger.approve``."""

    def ask(self, proposal: Proposal, timeout: float) -> bool | None:
        return None


class Callback:
    """Ask the program: ``decide`` returns True to approve. One that raises, or takes too long, has not said yes."""

    def __init__(self, decide: Callable[[Proposal], bool]) -> None:
        self._decide = decide

    def ask(self, proposal: Proposal, timeout: float) -> bool | None:
        answers: list[bool] = []

        def decide() -> None:
            try:
                answers.append(self._decide(proposal) is True)
            except Exception as error:
                log.warning("the approval callback failed (%s): taken as no", type(error).__name__)
                answers.append(False)

        thread = threading.Thread(target=decide, name="approval", daemon=True)
        thread.start()
        thread.join(timeout)
        return answers[0] if answers and not thread.is_alive() else None


class Terminal:
    """Ask whoever sits at the terminal, one question at a time. ``path``: of the terminal, else the process's own."""

    def __init__(self, clock: Clock, path: Path = Path("/dev/tty")) -> None:
        self._clock = clock
        self._path = path
        self._lock = threading.Lock()

    def ask(self, proposal: Proposal, timeout: float) -> bool | None:
        until = self._clock.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            return None
        try:
            return self._ask(proposal, timeout, until)
        except OSError:  # no terminal: a service, a pipeline
            return None
        finally:
            self._lock.release()

    def _ask(self, proposal: Proposal, timeout: float, until: float) -> bool | None:
        terminal = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if termios is not None and os.isatty(terminal):
                # What was typed before the question was shown does not answer it.
                termios.tcflush(terminal, termios.TCIFLUSH)
            _write(terminal, question(proposal, timeout))
            answer = self._line(terminal, until)
            if answer is None:
                _write(terminal, "\nNo answer in time: not sent.\n")
                return None
            return answer.strip().lower() in YES
        finally:
            os.close(terminal)

    def _line(self, terminal: int, until: float) -> str | None:
        """What was typed up to the line end; None where none came in time. A closed terminal has said no."""
        typed = b""
        while (left := until - self._clock.monotonic()) > 0 and len(typed) < LONGEST_ANSWER:
            ready, _, _ = select.select([terminal], [], [], left)
            if not ready:
                return None
            piece = os.read(terminal, LONGEST_ANSWER)
            typed += piece
            if not piece or b"\n" in piece:
                return typed.decode("utf-8", "replace")
        return None if left <= 0 else ""


def _write(terminal: int, text: str) -> None:
    raw = text.encode()
    while raw:
        raw = raw[os.write(terminal, raw) :]


def question(proposal: Proposal, timeout: float) -> str:
    """What the person reads. The content stands behind a bar on every line, so that it cannot pass for the question."""
    content = "\n".join(f"  | {line}" for line in _harmless(proposal.preview).split("\n"))
    return (
        f"\nA tool asks to send ({proposal.tool}):\n"
        f"  to      {_one_line(proposal.recipient)} on {_one_line(proposal.channel)}\n"
        f"  what    {_one_line(proposal.kind)}\n"
        f"{content}\n"
        f"Send it? Answer yes within {timeout:.0f} s, anything else is no: "
    )


def _harmless(text: str) -> str:
    return show_direction(clean(text))


def _one_line(text: str) -> str:
    return " ".join(_harmless(text).split())


def approver_of(approval: Approval, clock: Clock) -> Approver:
    """The approver that the settings ask for."""
    return Terminal(clock) if approval.ask == "terminal" else Nobody()
