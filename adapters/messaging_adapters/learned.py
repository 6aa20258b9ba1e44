"""What sends have learned, kept while the program runs: direct-message channels, rooms behind aliases, migrated
chats."""

import threading

from returns.pipeline import is_successful
from returns.result import Result

from messaging_adapters.clock import Clock
from messaging_core.errors import InvalidRecipient
from messaging_core.flow import Done, Forget, Lesson, Stopped


class Lessons:
    """Key -> value, each until its time is over; safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, float | None]] = {}

    def known(self) -> dict[str, str]:
        """What is still true."""
        now = self._clock.now()
        with self._lock:
            return {key: value for key, (value, until) in self._kept.items() if until is None or until > now}

    def keep(self, result: Result[Done, Stopped]) -> None:
        """Keep what a send learned, however it ended; of a chat that is no longer there, forget what leads to it."""
        ended = result.unwrap() if is_successful(result) else result.failure()
        for lesson in ended.learned:
            self._keep(lesson)
        if isinstance(ended, Stopped) and isinstance(ended.cause, InvalidRecipient) and ended.at.scope.chat:
            self._forget(ended.at.scope.chat)

    def _forget(self, chat: str) -> None:
        with self._lock:
            self._kept = {key: kept for key, kept in self._kept.items() if kept[0] != chat}

    def _keep(self, lesson: Lesson) -> None:
        with self._lock:
            match lesson:
                case Forget(key):
                    self._kept.pop(key, None)
                case _:
                    self._kept[lesson.key] = (lesson.value, lesson.until)
