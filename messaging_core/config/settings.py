"""The settings, frozen, without secret values: what the rest of the core decides by."""

from dataclasses import dataclass, replace
from typing import Any

from messaging_core.channels.channel import Configured, Sort, key
from messaging_core.secrecy import Secret, Secrets


@dataclass(frozen=True, slots=True)
class Http:
    """How HTTP is spoken; time-outs in seconds."""

    connect_timeout: float = key(Sort.SECONDS, "Seconds to wait for a connection.", default=10.0)
    read_timeout: float = key(Sort.SECONDS, "Seconds to wait for an answer.", default=30.0)
    proxy: Secret | None = key(Sort.SECRET_URL, "Proxy for all requests; not given: the environment's.", default=None)
    ca_file: str | None = key(Sort.TEXT, "A file of certificates to trust instead of the built-in ones.", default=None)

    def within(self, seconds: float | None) -> "Http":
        """The same with no time-out longer than ``seconds``."""
        if seconds is None or seconds >= max(self.connect_timeout, self.read_timeout):
            return self
        return replace(
            self, connect_timeout=min(self.connect_timeout, seconds), read_timeout=min(self.read_timeout, seconds)
        )


@dataclass(frozen=True, slots=True)
class Gateway:
    """The local gateway that the tool ``gateway`` talks to."""

    host: str = key(Sort.TEXT, "Host of the gateway.", default="127.0.0.1")
    port: int = key(Sort.NUMBER, "Port of the gateway.", default=16830, least=1, most=65535)
    token: Secret | None = key(Sort.SECRET, "Bearer token that the gateway asks for.", default=None)
    allowed_targets: tuple[str, ...] = key(Sort.LIST, "Other targets that a payload may name.", default=())


VERDICTS = ("allow", "supervised", "deny")
TOOL_GROUPS = {"messaging": ("message", "message_send", "gateway")}


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """``allow``, ``supervised`` or ``deny``: by tool, by group of tools, by channel within a tool, else ``default``.

    ``tools``: (tool, verdict). ``groups``: (group, verdict); the group "messaging" holds all three tools. ``channels``:
    (tool or "*", channel, verdict): the stricter of tool and channel holds.
    """

    default: str = "allow"
    tools: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    channels: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AuditFile:
    """Where the audit log is: ``path`` None is the user's state folder, best effort."""

    path: str | None = key(Sort.TEXT, "The file; not given: in the user's state folder.", default=None)
    max_size_mb: int = key(Sort.NUMBER, "Size at which a new file is begun.", default=10, least=1)
    max_files: int = key(Sort.NUMBER, "How many files are kept.", default=5, least=1)


@dataclass(frozen=True, slots=True)
class Audit:
    """What is recorded. ``required`` None: yes where the settings name the file, no for the default file."""

    enabled: bool = key(Sort.BOOLEAN, "Whether sends are recorded.", default=True)
    sync: bool = key(Sort.BOOLEAN, "Whether each line is forced to disk before going on.", default=False)
    required: bool | None = key(Sort.BOOLEAN, "Whether a send without a record is refused.", default=None)
    file: AuditFile = AuditFile()


@dataclass(frozen=True, slots=True)
class Approval:
    """How approvals are asked: ``ask`` is "terminal" or "none" (a callback is given in code)."""

    ask: str = key(Sort.CHOICE, "Who is asked.", default="none", choices=("none", "terminal"))
    timeout_secs: float = key(Sort.SECONDS, "Seconds after which no answer means no.", default=120.0)


@dataclass(frozen=True, slots=True)
class Security:
    tool_policy: ToolPolicy = ToolPolicy()
    audit: Audit = Audit()
    approval: Approval = Approval()


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. ``channels`` in file order, inactive ones included.

    ``named``: those under ``channels`` (the tool ``message``'s own). ``cli``: None where the file says nothing; False
    switches the terminal off. ``where``: the file, never sent as media. Waiting: see :mod:`messaging_core.pacing`.
    """

    channels: tuple[Configured[Any], ...] = ()
    named: tuple[str, ...] = ()
    cli: bool | None = None
    gateway: Gateway = Gateway()
    security: Security = Security()
    media_roots: tuple[str, ...] | None = key(
        Sort.LIST,
        "Folders whose files may be sent; not given: the working folder and the temporary folder.",
        default=None,
    )
    allow_hidden_media: bool = key(Sort.BOOLEAN, "Whether hidden files in these folders may be sent.", default=False)
    message_timeout_secs: float = key(
        Sort.SECONDS, "Seconds for a whole send, waits included; also taken inside `channels_config`.", default=300.0
    )
    max_wait: float = key(Sort.SECONDS, "Seconds that one wait before a repetition lasts at most.", default=60.0)
    max_attempts: int = key(Sort.NUMBER, "How often a request is tried at most.", default=4, least=1, most=100)
    http: Http = Http()
    where: str | None = None

    def channel(self, name: str) -> Configured[Any] | None:
        return next((channel for channel in self.channels if channel.name == name), None)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What loading gives: the settings, the values of the secrets that they name, and what is worth a warning."""

    settings: Settings
    secrets: Secrets
    warnings: tuple[str, ...] = ()
