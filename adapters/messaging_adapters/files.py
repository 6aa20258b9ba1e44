"""Looking at a file that is to be sent: what is there, without following it anywhere it may not go."""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from messaging_core.media import Ground, reach, safe_name
from messaging_core.media.ground import inside
from messaging_core.message import FileFacts

_BLOCK = 1024 * 1024


def look(path: str, roots: Iterable[str], *, digest: bool = False) -> FileFacts:
    """What is at ``path`` (relative to the working folder, ``~/`` for the home). Never raises, never waits on a pipe.

    ``roots``: real paths (see :func:`ground`). A file outside them is not even looked at: its facts are those of a
    missing one. ``digest``: with the SHA-256 of the whole. ``problem`` says why it cannot be sent: "no such file",
    "it is a folder", "it is empty (0 bytes)" ...
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path):
        return FileFacts(path, "", "file", problem="it is a URL: only files can be sent")
    try:
        real = real_path(path)
    except (OSError, ValueError):
        return FileFacts(path, "", "file", problem="that is no path")
    facts = FileFacts(path, real, safe_name(real), problem="no such file")
    if all(inside(real, root) is None for root in roots):
        return facts
    try:
        return _looked_at(facts, digest)
    except (FileNotFoundError, NotADirectoryError):
        return facts
    except PermissionError:
        return replace(facts, problem="it may not be read")
    except OSError as error:
        return replace(facts, problem=f"it cannot be read ({error.strerror})")


def real_path(path: str) -> str:
    """The path without links and dots, with ``/`` between its segments on every system."""
    expanded = os.path.expanduser(path) if path.startswith(("~/", "~\\")) else path
    real = os.path.realpath(expanded)
    return real if os.sep == "/" else Path(real).as_posix()


def ground(media_roots: Iterable[str] | None, private: Iterable[str] = (), *, allow_hidden: bool = False) -> Ground:
    """Where files may be sent from. ``media_roots`` None: the working folder and the folders for temporary files.

    A program that was started in ``/`` has not chosen it: there, only the temporary folders are left. ``private``:
    configuration, audit log, approval records, whether or not they exist.
    """
    temporary = tuple(
        dict.fromkeys(map(real_path, ("/tmp", tempfile.gettempdir()) if os.sep == "/" else (tempfile.gettempdir(),)))
    )
    chosen = (
        (root for root in (real_path("."), *temporary) if root != "/")
        if media_roots is None
        else map(real_path, media_roots)
    )
    return with_private_files(
        Ground(
            roots=tuple(dict.fromkeys(chosen)),
            user=getattr(os, "getuid", int)(),
            temporary=temporary,
            private=tuple(dict.fromkeys(map(real_path, private))),
            allow_hidden=allow_hidden,
        )
    )


def with_private_files(ground: Ground) -> Ground:
    """The ground with the private files that there are now: logs come and move on while a program runs, and a hard link
    gives one another name."""
    found = (_identity(path) for path in ground.private)
    return replace(ground, private_files=tuple(identity for identity in found if identity is not None))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _looked_at(facts: FileFacts, digest: bool) -> FileFacts:
    with _parent(facts.path) as (name, folder):
        problem = _kind_problem(os.stat(name, dir_fd=folder, follow_symlinks=False))
        if problem:
            return replace(facts, problem=problem)
        descriptor = os.open(name, _reading(), dir_fd=folder)
    try:
        return _read(facts, descriptor, digest)
    finally:
        os.close(descriptor)


def open_unfollowed(path: str) -> int:
    """A descriptor to read from, never by a link, never waiting on a pipe, not inherited. ``path``: a real one, so that
    a link in any place of it has come there since, to lead out."""
    with _parent(path) as (name, folder):
        return os.open(name, _reading(), dir_fd=folder)


@contextmanager
def _parent(path: str) -> Iterator[tuple[str, int | None]]:
    """The last name of a real path and its opened folder, reached without following a link: whoever may write above it
    could otherwise swap a folder for one between the resolving of the path and its opening."""
    if os.open not in os.supports_dir_fd:  # Windows
        yield path, None
        return
    *folders, name = path.strip("/").split("/")
    # O_PATH: a folder that may be gone through need not be one that may be listed.
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | _flag("O_PATH")
    folder = os.open("/", flags)
    try:
        for below in folders:
            above, folder = folder, os.open(below, flags, dir_fd=folder)
            os.close(above)
        yield name or ".", folder
    finally:
        os.close(folder)


def _reading() -> int:
    return os.O_RDONLY | _flag("O_NOFOLLOW") | _flag("O_CLOEXEC") | _flag("O_NONBLOCK") | _flag("O_NOCTTY")


def _flag(name: str) -> int:
    """Zero where the system does not have it (Windows)."""
    return int(getattr(os, name, 0))


def _kind_problem(found: os.stat_result) -> str:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if stat.S_ISLNK(mode):
        return "it is a link that leads nowhere"
    if stat.S_ISFIFO(mode):
        return "it is a named pipe, not a file"
    return "it is a socket, not a file" if stat.S_ISSOCK(mode) else "it is a device, not a file"


def _read(facts: FileFacts, descriptor: int, digest: bool) -> FileFacts:
    found = os.fstat(descriptor)
    size = found.st_size
    head = os.pread(descriptor, 4096, 0)
    first, last = reach(head)
    return replace(
        facts,
        size=size,
        device=found.st_dev,
        inode=found.st_ino,
        mtime_ns=found.st_mtime_ns,
        ctime_ns=found.st_ctime_ns,
        links=found.st_nlink,
        owner=found.st_uid,
        problem=_kind_problem(found) or ("it is empty (0 bytes)" if size == 0 else ""),
        head=head if first <= len(head) else head + os.pread(descriptor, first - len(head), len(head)),
        tail=os.pread(descriptor, last, max(0, size - last)),
        sha256=_digest(descriptor) if digest else "",
    )


def _digest(descriptor: int) -> str:
    digest, at = hashlib.sha256(), 0
    while block := os.pread(descriptor, _BLOCK, at):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()
