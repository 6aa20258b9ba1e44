"""Where a URL leads: host, exact target, proxy, login. The environment is asked once for each place."""

import base64
import netrc
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import quote, unquote

from requests import utils
from returns.result import Failure, Result, Success

from messaging_core.config.settings import Http
from messaging_core.errors import Invalid
from messaging_core.secrecy import Secrets

_URL = re.compile(
    r"(?P<origin>(?P<scheme>https?)://(?P<authority>[^/?#\\]+))(?P<target>[^#]*)", re.IGNORECASE | re.DOTALL
)
_AUTHORITY = re.compile(
    r"(?:(?P<login>.*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s@:\[\]]+)(?::(?P<port>[0-9]{1,5}))?", re.DOTALL
)
_UNSENDABLE = re.compile(r"[^\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Destination:
    """A place to connect to. ``authorization``: the URL's or netrc's, for requests that bring none of their own.

    ``logins``: what is sent there or to the proxy without being a secret of the settings, in case a reply quotes it.
    """

    scheme: str
    host: str
    port: int
    proxy: str | None = field(default=None, repr=False)
    authorization: str | None = field(default=None, repr=False)
    logins: Secrets = field(default_factory=Secrets, repr=False, compare=False)

    @property
    def root(self) -> str:
        default = {"http": 80, "https": 443}[self.scheme]
        return f"{self.scheme}://{self.host}" + ("" if self.port == default else f":{self.port}")


class Target(str):
    """What a request line asks for. Its repr is empty, since it may hold a token, and whoever reports a bug may show
    the variables of every frame."""

    def __repr__(self) -> str:
        return "Target()"


class Destinations:
    """Places by URL, each resolved once: proxies and their exceptions, netrc.

    ``direct``: hosts and ports on this machine that the environment's proxies are not for.
    """

    def __init__(self, http: Http, secrets: Secrets, direct: Collection[tuple[str, int]] = ()) -> None:
        self._proxy = secrets[http.proxy.name] if http.proxy else None
        self._direct = direct
        self._known: dict[str, Destination] = {}

    def of(self, url: str) -> Result[tuple[Destination, Target], Invalid]:
        """The place, and the request target as it is written in the URL, byte for byte.

        Only what no request line can carry (blanks, controls, non-ASCII signs) is percent-encoded; nothing is decoded,
        and no dot segment resolved.
        """
        found = _URL.match(url)
        if not found:
            return Failure(
                Invalid(detail="the URL cannot be used: it has to begin with http:// or https:// and a host")
            )
        known = self._known.get(found["origin"])
        place = Success(known) if known else self._resolve(found["origin"], found["scheme"].lower(), found["authority"])
        return place.map(lambda there: (there, _target(found["target"])))

    def _resolve(self, origin: str, scheme: str, authority: str) -> Result[Destination, Invalid]:
        parts = _AUTHORITY.fullmatch(authority)
        port = int((parts and parts["port"]) or {"http": 80, "https": 443}[scheme])
        if not parts or not 0 < port < 65536:
            return Failure(Invalid(detail="the URL cannot be used: its host or port cannot be read"))
        host = parts["host"].lower()
        proxy = self._proxy_for(Destination(scheme, host, port))
        authorization = self._authorization(parts["login"], host)
        logins = Secrets({**_words("proxy", _proxy_login(proxy)), **_words("login", authorization)})
        place = Destination(scheme, host, port, proxy, authorization, logins)
        self._known[origin] = place
        return Success(place)

    def _proxy_for(self, place: Destination) -> str | None:
        if self._proxy is None and (place.host, place.port) in self._direct:
            return None
        chosen = self._proxy or utils.select_proxy(place.root, utils.get_environ_proxies(place.root))
        return chosen if not chosen or "://" in chosen else f"http://{chosen}"

    def _authorization(self, login: str | None, host: str) -> str | None:
        if login:
            user, _, password = login.partition(":")
            return basic(unquote(user), unquote(password))
        return self._logins.get(host)

    @cached_property
    def _logins(self) -> Mapping[str, str]:
        """By host, from the netrc file; its ``default`` is for nobody, since servers name hosts too."""
        places = [os.environ["NETRC"]] if "NETRC" in os.environ else ["~/.netrc", "~/_netrc"]
        path = next(filter(os.path.isfile, map(os.path.expanduser, places)), None)
        try:
            hosts = netrc.netrc(path).hosts if path else {}
        except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
            return {}
        return {host: basic(user or account or "", word or "") for host, (user, account, word) in hosts.items()}


def basic(user: str, password: str) -> str:
    """The value of ``Authorization`` by RFC 7617."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _proxy_login(proxy: str | None) -> str | None:
    login, at, _ = (proxy or "").partition("://")[2].rpartition("@")
    user, _, password = login.partition(":")
    return basic(unquote(user), unquote(password)) if at else None


def _words(name: str, authorization: str | None) -> Mapping[str, str]:
    """The header's value and the password in it, each of which a reply may quote."""
    if authorization is None:
        return {}
    coded = authorization.removeprefix("Basic ")
    return {name: coded, f"{name}.password": base64.b64decode(coded).decode().partition(":")[2]}


def _target(written: str) -> Target:
    target = _UNSENDABLE.sub(lambda signs: quote(signs[0], safe="", errors="replace"), written)
    return Target(target if target.startswith("/") else "/" + target)
