"""Whether a file may be sent: by where it really is, whose it is, what it is called. Pure, over what a look found."""

import re
from dataclasses import dataclass

from returns.result import Failure, Result, Success

from messaging_core.errors import MediaForbidden, MediaUnreadable
from messaging_core.message import FileFacts


@dataclass(frozen=True, slots=True)
class Ground:
    """Where files may be sent from. Every path is a real one (links resolved), with ``/`` between its segments.

    ``user``: the numeric id that this program runs as. ``temporary``: folders that everybody may write to, where only
    the user's own files count, even if they are among the ``roots``. ``private``: the configuration, audit log and
    approval records (a folder stands for all in it), ``private_files``: the same as (device, inode), whatever they are
    called elsewhere. ``allow_hidden``: also send hidden files and those with names of well-known secrets.
    """

    roots: tuple[str, ...]
    user: int
    temporary: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    private_files: tuple[tuple[int, int], ...] = ()
    allow_hidden: bool = False


def permitted(facts: FileFacts, ground: Ground) -> Result[FileFacts, MediaForbidden | MediaUnreadable]:
    """The file, if it may be sent and can be.

    Outside the roots the answer is the same whether or not there is a file: the place is judged before anything else.
    """
    if not facts.path:
        return Failure(MediaUnreadable(facts.asked, facts.problem))
    why = _place(facts, ground) or _privacy(facts, ground)
    if why:
        return Failure(MediaForbidden(facts.asked, ground.roots, why))
    if facts.problem:
        return Failure(MediaUnreadable(facts.asked, facts.problem))
    why = _ownership(facts, ground) or ("" if ground.allow_hidden else _contents(facts))
    return Failure(MediaForbidden(facts.asked, ground.roots, why)) if why else Success(facts)


def inside(path: str, folder: str) -> str | None:
    """What is left of ``path`` below ``folder``, or None: by whole segments, so that ``/data-old`` is not in ``/data``.

    >>> inside("/data/a/b.txt", "/data"), inside("/data-old/b.txt", "/data")
    ('a/b.txt', None)
    """
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


_OUTSIDE = "it is not in a permitted folder"
_NO_FILES = ("/proc", "/sys", "/dev")
_HIDDEN = "it is hidden or has the name of a well-known secret (allow_hidden_media permits such)"


def _place(facts: FileFacts, ground: Ground) -> str:
    """Why the place is not permitted. One root that permits it is enough."""
    if any(inside(facts.path, folder) is not None for folder in _NO_FILES):
        return _OUTSIDE
    below = [rest for root in ground.roots if (rest := inside(facts.path, root)) is not None]
    if not below:
        return _OUTSIDE
    return "" if ground.allow_hidden or not all(map(_is_hidden, below)) else _HIDDEN


def _privacy(facts: FileFacts, ground: Ground) -> str:
    """Rotated logs are named like the log, with something after a dot."""
    own = any(
        facts.path == path or inside(facts.path, path) is not None or facts.path.startswith(path + ".")
        for path in ground.private
    )
    return "it is part of this program's own configuration or records" if own or _is_private(facts, ground) else ""


def _is_private(facts: FileFacts, ground: Ground) -> bool:
    return facts.inode != 0 and (facts.device, facts.inode) in ground.private_files


def _ownership(facts: FileFacts, ground: Ground) -> str:
    if facts.owner == ground.user:
        return ""
    if facts.links > 1:
        return "it is a hard link to a file of another user"
    roots = [root for root in ground.roots if inside(facts.path, root) is not None]
    shared = all(root in ground.temporary for root in roots)
    return "in a temporary folder only your own files may be sent" if shared else ""


_SECRET_NAME = re.compile(
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|.+\.(?:pem|key|p12|pfx|pk8|ppk|jks|keystore|kdbx?|ovpn|env|keytab|tfstate)"
    r"|(?:credentials|secrets?|client_secret.*|service[-_]?account.*)(?:\.(?:json|ya?ml|toml|ini|txt|csv))?"
    r"|shadow|gshadow|htpasswd|wallet\.dat|authorized_keys|application_default_credentials\.json",
    re.IGNORECASE,
)


def _is_hidden(below: str) -> bool:
    """Whether any segment under the root is hidden, or the file is named like a secret."""
    segments = below.split("/")
    return any(segment.startswith(".") for segment in segments) or _SECRET_NAME.fullmatch(segments[-1]) is not None


_KEY = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File"
    rb"|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY)",
    re.MULTILINE,
)
"""At the beginning of any line: a certificate, or attributes that OpenSSL exports, may stand before the key."""


def _contents(facts: FileFacts) -> str:
    return "it holds a private key (allow_hidden_media permits such)" if _KEY.search(facts.head) else ""
