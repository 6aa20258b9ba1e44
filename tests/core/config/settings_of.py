# ruff: noqa: E501 (a row of a table stands in one line)
"""A channel with a key of every sort, so that the tests of the configuration do not depend on any platform."""

from dataclasses import dataclass, replace

from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Fault, Sort, key, no_default
from messaging_core.config.schemas import load
from messaging_core.secrecy import Secret, Text
from messaging_core.wire.template import Template


@dataclass(frozen=True, slots=True)
class Settings:
    token: Secret = key(Sort.SECRET, "The token.")
    chat_id: str | None = key(Sort.ID, "The chat.", default=None)
    to: tuple[str, ...] = key(Sort.IDS, "The recipients.", default=())
    title: str | None = key(Sort.TEXT, "The title.", default=None)
    password: Secret | None = key(Sort.PASSWORD, "The password.", default=None)
    hook: Secret | None = key(Sort.SECRET_URL, "The hook.", default=None)
    api_base: str = key(Sort.URL, "The API.", default="https://api.test")
    headers: tuple[tuple[str, Text], ...] = key(Sort.HEADERS, "The headers.", default=())
    method: str = key(Sort.METHOD, "The method.", default="POST")
    body: Template | None = key(Sort.TEMPLATE, "The body.", default=None)
    url: Template | None = key(Sort.URL_TEMPLATE, "The URL.", default=None)
    tls: bool = key(Sort.BOOLEAN, "Whether TLS.", default=True)
    port: int = key(Sort.NUMBER, "The port.", default=465, least=1, most=65535)
    patience: float = key(Sort.SECONDS, "The patience.", default=1.0)
    mode: str = key(Sort.CHOICE, "The mode.", default="fast", choices=("fast", "slow"))


def check(values):
    if values.get("mode") == "slow" and not values.get("tls", True):
        yield Fault("mode", f"slow without TLS, with {values['token']}", "turn TLS on")


TOY = replace(CHANNELS["matrix"], platform="toy", settings=Settings, check=check, default_recipient=no_default)
REGISTRY = {"toy": TOY, **{name: CHANNELS[name] for name in ("cli", "discord-webhook", "matrix", "webhook")}}
TOKEN = "tok-FAKE-0000"


def read(text, format="yaml", environment=None):
    return load(text, format, environment or {}, REGISTRY, "daemon.yaml")


def settings_of(text, format="yaml", environment=None):
    return read(text, format, environment).lash(_fail).unwrap().settings


def _fail(faults):
    raise AssertionError("\n".join(map(str, faults)))


def faults_of(text, format="yaml", environment=None):
    """(line, key, whole sentence) of every fault."""
    return [(fault.line, fault.key, str(fault)) for fault in read(text, format, environment).failure()]


def toy_of(more, format="yaml", environment=None):
    """The own settings of one toy channel with these lines besides its token."""
    own = settings_of(toy(more, format), format, environment).channels[0]
    return own.own


def toy(more, format="yaml"):
    if format == "toml":
        return f"[channels.ops]\ntype = 'toy'\ntoken = '{TOKEN}'\n{more}\n"
    return f"channels:\n  ops:\n    type: toy\n    token: {TOKEN}\n" + "".join(
        f"    {line}\n" for line in more.splitlines()
    )
