"""The clock and the dice: what the core takes as arguments, from the machine."""

import os
import string
import time
from typing import Protocol


class Clock(Protocol):
    """Time as the shells need it; a test gives one that does not wait."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, from any start."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_SIGNS = string.digits + string.ascii_lowercase


def new_message_id(now: float) -> str:
    """``now`` (Unix seconds) as 13 digits of milliseconds, then 8 random letters and digits: ids sort by their time."""
    dice = int.from_bytes(os.urandom(8))
    return f"{int(now * 1000):013d}" + "".join(_SIGNS[(dice >> shift & 0xFF) % 36] for shift in range(0, 64, 8))
