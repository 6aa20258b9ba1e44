"""Threads for what is done several times at once, kept from one time to the next."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class _Hands:
    count: int
    process: int
    threads: ThreadPoolExecutor


class Crew:
    """One thread for each of the things to be done, so that none waits for another. May be shared by threads.

    To begin fifty threads takes longer than what they do here, so those of the last time are kept. Whoever comes while
    they are at work gets others; a forked process has none of its parent's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: _Hands | None = None

    def each(self, do: Callable[[A], B], things: Iterable[A]) -> tuple[B, ...]:
        """``do`` for all ``things`` at the same time; what it returned, in their order."""
        wanted = tuple(things)
        if not wanted:
            return ()
        hands = self._taken(len(wanted))
        try:
            return tuple(hands.threads.map(do, wanted))
        finally:
            self._keep(hands)

    def close(self) -> None:
        """Let the threads end. They begin anew when there is something to do."""
        self._dismiss(self._swap(None))

    def _taken(self, count: int) -> _Hands:
        kept, process = self._swap(None), os.getpid()
        if kept is not None and kept.process == process and kept.count >= count:
            return kept
        self._dismiss(kept)
        return _Hands(count, process, ThreadPoolExecutor(count, thread_name_prefix="messaging"))

    def _keep(self, hands: _Hands) -> None:
        self._dismiss(self._swap(hands))

    def _swap(self, hands: _Hands | None) -> _Hands | None:
        with self._lock:
            kept, self._kept = self._kept, hands
        return kept

    def _dismiss(self, hands: _Hands | None) -> None:
        if hands is not None and hands.process == os.getpid():
            hands.threads.shutdown(wait=False)
