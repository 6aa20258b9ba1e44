"""Where bytes may go that a server asks for: the one check of URLs that come out of replies, not out of the settings.

A reply is foreign text. Before a file is sent where it says, the place must be the platform's own, or at the host that
the settings name; and whoever builds the request gives it no credential.
"""

import re
from urllib.parse import urlsplit

from returns.result import Failure, Result, Success

from messaging_core.errors import Rejected

PLACE = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
"""Nothing that two parsers could read as two hosts: no user, no escape or backslash at the host, nothing but ASCII."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Three names of this machine: a stand-in that runs here may call itself by another than the settings do."""

Origin = tuple[str, str, int]


def upload_place(url: str, base: str, domains: tuple[str, ...]) -> Result[str, Rejected]:
    """``url`` if a file may go there: https on one of ``domains`` or below, or scheme, host and port of ``base``.

    >>> upload_place("https://files.slack.com/upload/v1/abc", "https://slack.com/api", ("slack.com",)).unwrap()
    'https://files.slack.com/upload/v1/abc'
    """
    found = PLACE.fullmatch(url)
    if found is None:
        return _refused("is not a plain http(s) URL")
    origin = _origin(found["scheme"], found["host"], found["port"])
    scheme, host, port = origin
    if (scheme, port) == ("https", 443) and any(host == own or host.endswith("." + own) for own in domains):
        return Success(url)
    if origin == _origin_of(base):
        return Success(url)
    return _refused(f"is at {scheme}://{host}:{port}, which is neither the platform's nor the one in the settings")


def _origin(scheme: str, host: str, port: str | int | None) -> Origin:
    scheme, host = scheme.lower(), host.lower()
    return scheme, "localhost" if host in LOOPBACK else host, int(port or (443 if scheme == "https" else 80))


def _origin_of(base: str) -> Origin | None:
    try:
        split = urlsplit(base)
        host = split.hostname or ""
        return _origin(split.scheme, f"[{host}]" if ":" in host else host, split.port)
    except ValueError:
        return None


def _refused(problem: str) -> Result[str, Rejected]:
    return Failure(Rejected(detail=f"the upload place that the server named {problem}"))
