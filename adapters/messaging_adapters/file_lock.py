"""A lock on an open file, kept among processes and threads; the system lifts it when its holder ends, in any way."""

import errno
from types import ModuleType

from messaging_adapters.clock import Clock

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # a system without such locks: processes are not kept apart
    fcntl = None

LONGEST_PAUSE = 0.02
"""Seconds between two tries. A wait without them could not be ended, and a stopped holder would stop everybody."""


def lock(file: int, clock: Clock, until: float) -> None:
    """Lock ``file`` (a descriptor) until it is closed. ``OSError`` where others hold it up to ``until`` (monotonic)."""
    pause = 0.001
    while not _locked(file):
        if clock.monotonic() >= until:
            raise OSError(errno.EAGAIN, "another process holds its lock")
        clock.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _locked(file: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
