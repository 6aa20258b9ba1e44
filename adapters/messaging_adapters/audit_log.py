"""The audit log as a file that several processes write at once.

A line is written under a lock on the file itself, by a process that has looked, once it had the lock, whether this is
still the file (another may have begun a new one). A process that is killed in the middle leaves at worst a torn last
line; the next writer ends that line first, so it spoils no other. Where the disk is full, the half line is taken back.
"""

import errno
import logging
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from returns.result import Failure, Result, Success

from messaging_adapters.clock import Clock
from messaging_adapters.configuration import ConfigurationInvalid
from messaging_adapters.file_lock import lock
from messaging_core.audit import End, Entry, to_line
from messaging_core.config.settings import Audit
from messaging_core.errors import AuditUnavailable, ConfigError
from messaging_core.secrecy import Secrets

log = logging.getLogger(__name__)

LONGEST_LOCK_WAIT = 5.0
"""Seconds that a writer waits for others. Each holds the lock for one line; a stopped one must not stop them all."""
MEGABYTE = 1_000_000
NAME = "audit.jsonl"


def default_path(environ: Mapping[str, str]) -> Path | None:
    """``messaging/audit.jsonl`` in the user's state folder; None where the user has no home.

    The folder is ``$XDG_STATE_HOME``, or ``~/.local/state`` (https://specifications.freedesktop.org/basedir-spec/latest/).
    """
    state = Path(environ.get("XDG_STATE_HOME", ""))
    try:
        return (state if state.is_absolute() else Path("~/.local/state").expanduser()) / "messaging" / NAME
    except RuntimeError:
        log.warning("there is no home folder for the audit log; sends go on without a record")
        return None


def _at_home(named: str) -> Path:
    try:
        return Path(named).expanduser()
    except RuntimeError:
        where, problem = "security.audit.file.path", "there is no home folder that ~ could stand for"
        raise ConfigurationInvalid((ConfigError("settings", None, where, problem, "name it from / on"),)) from None


def audit_log(audit: Audit, environ: Mapping[str, str], secrets: Secrets, clock: Clock) -> "AuditLog":
    """The log that the settings ask for. Where they switch it off, it has no path and writing does nothing."""
    named = audit.file.path
    path = default_path(environ) if named is None else _at_home(named)
    return AuditLog(
        path if audit.enabled else None,
        secrets,
        clock,
        size=audit.file.max_size_mb * MEGABYTE,
        files=audit.file.max_files,
        sync=audit.sync,
        required=(named is not None) if audit.required is None else audit.required,
    )


class AuditLog:
    """One log: the file at ``path``, older ones at ``path.1`` and on; ``files`` in all, up to ``size`` bytes each."""

    def __init__(
        self,
        path: Path | None,
        secrets: Secrets,
        clock: Clock,
        *,
        size: int = 10 * MEGABYTE,
        files: int = 5,
        sync: bool = False,
        required: bool = True,
    ) -> None:
        self.path = None if path is None else path.absolute()
        self._secrets = secrets
        self._clock = clock
        self._size = size
        self._files = files
        self._sync = sync
        self._required = required
        self._lock = threading.Lock()
        self._warned = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file of the log, the present one first, whether or not it is there: none is ever sent as media."""
        return () if self.path is None else (self.path, *(_older(self.path, n) for n in range(1, self._files)))

    def write(self, entry: Entry) -> Result[None, AuditUnavailable]:
        """Append ``entry``; on return it is in the file (with ``sync``: on the disk).

        A failure is returned where the log is required, so that nothing is sent without a record; otherwise it is a
        warning, once. An ``end`` that is lost is a warning in any case: it is too late to refuse.
        """
        if self.path is None:
            return Success(None)
        try:
            self._append(self.path, to_line(entry, self._secrets).encode("ascii"))
            return Success(None)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if not self._warned and (not self._required or isinstance(entry, End)):
            self._warned = True
            log.warning("the audit log %s cannot be written (%s): a record is lost", self.path, problem)
        return Failure(AuditUnavailable(str(self.path), problem)) if self._required else Success(None)

    def lines(self) -> Iterator[str]:
        """Every line, the oldest first; a file that is not there has none. Raises ``OSError`` for one without right."""
        for path in reversed(self.paths):
            try:
                with path.open(encoding="ascii", errors="replace", newline="\n") as file:
                    yield from file
            except FileNotFoundError:
                continue

    # --- Writing ----------------------------------------------------------------------------------------------------

    def _append(self, path: Path, line: bytes) -> None:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # With a limit, since a process that was forked off in the middle of a write finds the lock taken for ever.
        if not self._lock.acquire(timeout=LONGEST_LOCK_WAIT):
            raise OSError(errno.EAGAIN, "another thread holds its lock")
        try:
            until = self._clock.monotonic() + LONGEST_LOCK_WAIT
            while not self._appended(path, line, until):
                pass
        finally:
            self._lock.release()

    def _appended(self, path: Path, line: bytes, until: float) -> bool:
        """Whether the line is in. If not, the file was, or is now, an older one: open the name again."""
        file = _open(path)
        try:
            lock(file, self._clock, until)
            size = os.fstat(file).st_size
            if not _is_current(file, path):
                return False
            if size and size + len(line) > self._size:
                self._begin_new(path)
                return False
            self._add(file, line, size)
            return True
        finally:
            os.close(file)

    def _add(self, file: int, line: bytes, size: int) -> None:
        torn = size > 0 and os.lseek(file, size - 1, os.SEEK_SET) >= 0 and os.read(file, 1) != b"\n"
        whole = b"\n" + line if torn else line
        try:
            if os.write(file, whole) < len(whole):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if self._sync:
                os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise

    def _begin_new(self, path: Path) -> None:
        """Move each file one place up; the oldest goes. The present one, whose lock keeps others away, moves last."""
        if self._files == 1:
            path.unlink(missing_ok=True)
            return
        for number in range(self._files - 1, 1, -1):
            if _older(path, number - 1).exists():
                _older(path, number - 1).replace(_older(path, number))
        path.replace(_older(path, 1))


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _open(path: Path) -> int:
    # O_NONBLOCK: the name may lead to a pipe, which would otherwise wait for its reader.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is not an ordinary file")
    return file


def _is_current(file: int, path: Path) -> bool:
    """Whether the name still leads to the file that is locked."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
