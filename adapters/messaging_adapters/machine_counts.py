"""Counts that the processes of one user on one machine keep together, in one small file under a lock.

A command that sends one message and ends, or four workers beside each other, keep the pace of a platform only together.
Times are those of the machine's monotonic clock, which all its processes share; after a start of the machine the file's
times lie ahead and are dropped.
"""

import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from messaging_adapters.clock import Clock
from messaging_adapters.file_lock import lock
from messaging_core.pacing import SLACK, Budget, earliest

log = logging.getLogger(__name__)

LONGEST_LOCK_WAIT = 1.0
"""Seconds; then the counts are passed over, since a stopped process must not stop all others."""

Counts: TypeAlias = dict[str, list[float]]
"""Budget -> its period in seconds, then the moments that count."""


class MachineCounts:
    """The counts in ``file``. ``namespace`` tells one configuration's channels from another's of the same names."""

    def __init__(self, file: Path, clock: Clock, namespace: str = "") -> None:
        self._file = file
        self._clock = clock
        self._namespace = namespace
        self._warned = False
        self._mine = threading.local()

    def take(self, budgets: Sequence[Budget]) -> float:
        """0.0 where all budgets had a place, else the seconds until they have. A file that fails is passed over."""
        if not budgets:
            return 0.0
        try:
            with self._locked() as file:
                return self._take(file, {self._name(one): one for one in budgets})
        except OSError as error:
            if not self._warned:
                self._warned = True
                problem = error.strerror or type(error).__name__
                log.warning("%s cannot be used (%s); going by this process's own counts", self._file, problem)
            return 0.0

    def _take(self, file: int, budgets: dict[str, Budget]) -> float:
        now = self._clock.monotonic()
        counts = _current(_read(file), now)
        moments = (
            earliest(counts.get(key, [0.0])[1:], budget.count, budget.per + SLACK, now)
            for key, budget in budgets.items()
        )
        wait = max(moments) - now
        if wait > 0:
            return wait
        for key, budget in budgets.items():
            counts[key] = [budget.per, *counts.get(key, [0.0])[1:], now]
        _write(file, counts)
        self._mine.moment = now
        return 0.0

    def answered(self, budgets: Sequence[Budget]) -> None:
        """The moment that this thread took becomes the one of the answer, the last at which the request can have
        arrived. Until then, and for ever where the process is killed, it counts from when it left."""
        taken: float | None = getattr(self._mine, "moment", None)
        if not budgets or taken is None:
            return
        self._mine.moment = None
        with suppress(OSError), self._locked() as file:
            now = self._clock.monotonic()
            counts = _current(_read(file), now)
            for key in map(self._name, budgets):
                per, *moments = counts.get(key, [0.0])
                if taken in moments:
                    moments.remove(taken)
                    counts[key] = [per, *moments, now]
            _write(file, counts)

    def _name(self, budget: Budget) -> str:
        return json.dumps([self._namespace, *budget.key, budget.count, budget.per])

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            lock(file, self._clock, self._clock.monotonic() + LONGEST_LOCK_WAIT)
            yield file
        finally:
            os.close(file)


def _current(counts: Counts, now: float) -> Counts:
    """What still counts. A moment ahead is from before the machine's last start."""
    kept = {key: [per, *(t for t in times if now - per - SLACK < t <= now)] for key, (per, *times) in counts.items()}
    return {key: line for key, line in kept.items() if len(line) > 1}


def _read(file: int) -> Counts:
    """What is in the file; of one that a killed process left in the middle of writing, nothing."""
    try:
        found = json.loads(os.read(file, os.fstat(file).st_size))
        return {str(key): [float(one) for one in line] for key, line in found.items() if line}
    except (ValueError, TypeError, AttributeError):
        return {}


def _write(file: int, counts: Counts) -> None:
    raw = json.dumps(counts).encode()
    os.lseek(file, 0, os.SEEK_SET)
    os.ftruncate(file, os.write(file, raw))
