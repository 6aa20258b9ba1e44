"""Reading from a socket until a deadline: each read may take only what is left, so that dripping bytes extend
nothing."""

import io
import socket
from collections.abc import Callable
from typing import Any


class WatchedFile(io.RawIOBase):
    """What ``sock`` receives until ``until`` (in ``monotonic`` seconds), then ``TimeoutError``.

    ``most``: bytes after which a far end that says ever more is taken for a lost one (``ConnectionError``).
    """

    def __init__(
        self, sock: socket.socket, monotonic: Callable[[], float], until: float, most: int | None = None
    ) -> None:
        self._sock, self._monotonic, self._until, self._left = sock, monotonic, until, most
        self._file = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        seconds = self._until - self._monotonic()
        if seconds <= 0:
            raise TimeoutError
        if self._left is not None and self._left <= 0:
            raise ConnectionError
        self._sock.settimeout(seconds)
        count = self._file.readinto(buffer)
        if self._left is not None:
            self._left -= count or 0
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
