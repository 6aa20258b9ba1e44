"""A configuration, read: text or mapping to :class:`Configuration`, or every fault in it at once.

The schemas are made from the ``key(...)`` declarations of the settings classes (each channel's, ``Rules``, the sections
of :mod:`messaging_core.config.settings`), so that a new key of a channel needs nothing here. The files are shared with
the agents that our users have already: keys of their receiving half and sections that are not ours are left alone, but
a near miss of a key of ours never is.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from marshmallow import Schema, ValidationError
from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core.channels import Registry
from messaging_core.channels.channel import Channel, Configured, Key, Rules, Sort, key
from messaging_core.config.document import (
    Document,
    Entry,
    Format,
    Items,
    Node,
    Scalar,
    Section,
    dotted,
    read_mapping,
    read_text,
    shown_key,
)
from messaging_core.config.fields import (
    FIELDS,
    Given,
    Problem,
    Setting,
    filled,
    from_environment,
    nearest,
    problems_of,
    trimmed,
)
from messaging_core.config.settings import (
    TOOL_GROUPS,
    VERDICTS,
    Approval,
    Audit,
    AuditFile,
    Configuration,
    Gateway,
    Http,
    Security,
    Settings,
    ToolPolicy,
)
from messaging_core.errors import ConfigError, ConfigErrors
from messaging_core.secrecy import SHORTEST_REDACTED, Secrets

T = TypeVar("T")
Path = tuple[str | int, ...]

SECTIONS = ("channels", "channels_config", "gateway", "security", "http")

ALIASES = dict.fromkeys(("allowed_from", "allowed_numbers", "allowed_senders", "allowed_contacts"), "allowed_users")
"""Other names of one key, from several platforms of the ancestor."""

RECEIVING = (
    "stream_mode",
    "draft_update_interval_ms",
    "interrupt_on_new_message",
    "mention_only",
    "ack_reactions",
    "app_token",
    "thread_replies",
    "guild_id",
    "listen_to_bots",
    "verify_token",
    "app_secret",
    "user_id",
    "device_id",
    "group_id",
    "ignore_attachments",
    "ignore_stories",
    "imap_host",
    "imap_port",
    "imap_folder",
    "idle_timeout_secs",
    "dm_policy",
    "group_policy",
)
"""Keys of a channel's receiving half, left alone where the channel itself does not know them."""

MOST_KEYS = 1_000
"""Keys in one section of ours."""
MOST_FAULTS = 100
"""Faults that are listed; whoever has more has another problem."""


def load(
    text: str | bytes, format: Format, environment: Mapping[str, str], registry: Registry, where: str = "<config>"
) -> Result[Configuration, ConfigErrors]:
    """The configuration in ``text``. Errors name the file as ``where``, are sorted by line, and repeat no secret."""
    return read_text(text, format, where).bind(lambda document: configure(document, environment, registry, where))


def from_mapping(
    mapping: Mapping[str, Any], environment: Mapping[str, str], registry: Registry, where: str = "<mapping>"
) -> Result[Configuration, ConfigErrors]:
    """The configuration in a mapping that a program has read or made; its errors have no lines."""
    return read_mapping(mapping, where).bind(lambda document: configure(document, environment, registry, where))


def configure(
    document: Document, environment: Mapping[str, str], registry: Registry, where: str
) -> Result[Configuration, ConfigErrors]:
    reading = _Reading(environment, registry, where, list(document.faults))
    settings = reading.settings(document.root)
    if reading.faults:
        return Failure(_in_order(reading.faults, where))
    return Success(Configuration(settings, Secrets(reading.secrets), tuple(reading.warnings)))


def _in_order(faults: list[ConfigError], where: str) -> ConfigErrors:
    ordered = sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)
    more = len(ordered) - MOST_FAULTS
    rest = (ConfigError(where, None, "", f"{more} more faults"),) if more > 0 else ()
    return (*ordered[:MOST_FAULTS], *rest)


# --- Schemas ----------------------------------------------------------------------------------------------------------


def keys_of(settings: type[Any]) -> dict[str, Key]:
    """The settings that a class declares with ``key(...)``, in order."""
    found = ((field.name, field.metadata.get("key")) for field in dataclasses.fields(settings))
    return {name: key for name, key in found if isinstance(key, Key)}


def is_required(settings: type[Any], name: str) -> bool:
    field = next(field for field in dataclasses.fields(settings) if field.name == name)
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@cache
def schema_of(settings: type[Any]) -> Schema:
    """The schema of a settings class: one field a key, by its sort."""
    keys = keys_of(settings)
    made = {name: FIELDS[key.sort](key, required=is_required(settings, name)) for name, key in keys.items()}
    return Schema.from_dict(dict(made), name=f"{settings.__module__}.{settings.__qualname__}")()


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a section stands: its path in errors, the line it begins in, and the prefix of its secrets' names."""

    path: Path
    line: int | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """A channel of the file before it is read."""

    name: str
    section: Section
    place: _Place
    platform: str | None = None


_NUMBERED = re.compile(r"[+-]?(?a:\d)[\w.:]*")
"""What YAML would take for a number or a time: ``0123``, ``1_000``, ``0x1F``, ``12:30:45``, ``1e3``."""


class _Reading:
    """One pass over a document. It gathers faults, secrets and warnings on the way, and goes on after each fault."""

    def __init__(
        self, environment: Mapping[str, str], registry: Registry, where: str, faults: list[ConfigError]
    ) -> None:
        self.environment = environment
        self.registry = registry
        self.where = where
        self.faults = faults
        self.secrets: dict[str, str] = {}
        self.warnings: list[str] = []

    def settings(self, root: Section) -> Settings:
        own = (*SECTIONS, *keys_of(Settings))
        entries = self._entries(root, _Place(()))
        for entry in entries.values():
            if entry.key not in own and (hint := nearest(entry.key, own, cutoff=0.8)):
                self._fault((entry.key,), entry.line, "unknown section", hint)
        listed = tuple(self._listed(entries.get("channels")))
        platforms, cli, timeout = self._channels_config(entries.get("channels_config"))
        channels = self._channels((*listed, *platforms))
        known = tuple(found.name for found in (*listed, *platforms))
        top = {name: entry for name, entry in entries.items() if name in keys_of(Settings)}
        if timeout is not None:
            self._once(timeout, ("channels_config",), top.get(timeout.key))
        values = self._keys(Settings, top, _Place(()))
        if timeout is not None:
            values |= self._keys(Settings, {timeout.key: timeout}, _Place(("channels_config",)))
        return Settings(
            channels=channels,
            named=tuple(found.name for found in listed),
            cli=cli,
            gateway=self._plain(Gateway, entries.get("gateway"), "gateway", lenient=True),
            security=self._security(entries.get("security"), known),
            http=self._plain(Http, entries.get("http"), "http"),
            where=None if self.where.startswith("<") else self.where,
            **values,
        )

    # -- Channels

    def _listed(self, entry: Entry | None) -> Iterator[_Found]:
        """``channels``: name -> keys, ``type`` among them."""
        for channel in self._optional(entry, "channels").values():
            place = _Place(("channels", channel.key), channel.line, channel.key)
            hint = "cli = true or false stands under channels_config" if channel.key == "cli" else ""
            section = self._section(channel.value, place, hint)
            if section is not None:
                yield _Found(channel.key, section, place)

    def _channels_config(self, entry: Entry | None) -> tuple[tuple[_Found, ...], bool | None, Entry | None]:
        """``channels_config``: platform -> keys; besides, ``cli`` (true or false) and ``message_timeout_secs``."""
        found: list[_Found] = []
        cli: bool | None = None
        timeout: Entry | None = None
        for channel in self._optional(entry, "channels_config").values():
            place = _Place(("channels_config", channel.key), channel.line, channel.key)
            if channel.key == "message_timeout_secs":
                timeout = channel
            elif channel.key == "cli" and isinstance(channel.value, Scalar) and not channel.value.nothing:
                cli = self._keys(_Switch, {"cli": channel}, _Place(("channels_config",))).get("cli")
            elif channel.key not in self.registry:
                known = (*self.registry, "message_timeout_secs")
                hint = nearest(channel.key, known) or f"one of {', '.join(self.registry)}"
                self._fault(place.path, place.line, f"unknown platform {shown_key(channel.key)!r}", hint)
            elif (section := self._section(channel.value, place)) is not None:
                found.append(_Found(channel.key, section, place, channel.key))
        return tuple(found), cli, timeout

    def _channels(self, found: tuple[_Found, ...]) -> tuple[Configured[Any], ...]:
        """Every channel that could be read, in the order of the file."""
        first: dict[str, _Found] = {}
        channels = []
        for channel in sorted(found, key=lambda channel: channel.place.line or 0):
            if not _is_name(channel.name):
                self._fault(channel.place.path, channel.place.line, "not a name: visible signs without blank ends")
            elif (other := first.setdefault(channel.name, channel)) is not channel:
                lines = f" (line {other.place.line})" if other.place.line else ""
                problem = f"{channel.name!r} is also in {dotted(other.place.path[:1])}{lines}"
                self._fault(channel.place.path, channel.place.line, problem, "a channel stands in one section")
            channels.append(self._channel(channel))
        return tuple(channel for channel in channels if channel is not None)

    def _channel(self, found: _Found) -> Configured[Any] | None:
        entries = self._entries(found.section, found.place)
        platform = self._platform(found, entries)
        if platform is None:
            return None
        channel = self.registry[platform]
        entries = self._renamed(entries, found.place, keys_of(channel.settings))
        own, rules = keys_of(channel.settings), keys_of(Rules)
        self._unknown(entries, found.place, (*own, *rules, *ALIASES), known=(*RECEIVING, "type"))
        before = len(self.faults)
        values = self._keys(channel.settings, _some(entries, own), found.place, check=channel)
        if channel.default_key in values and not self._any_of(_ids(own), found.place, before):
            self._default(channel, values, found.place, entries)
        common = self._keys(Rules, _some(entries, [name for name in rules if name not in own]), found.place)
        if common.get("allowed_recipients") and common.get("allowed_users") is None:
            alone = "limits nothing without allowed_users, which says who else may be written to ([]: nobody)"
            self.warnings.append(f"{found.name}.allowed_recipients {alone}")
        if _lacks(channel.settings, values):
            return None
        return Configured(found.name, platform, channel.settings(**values), Rules(**common))

    def _default(
        self, channel: Channel, values: Mapping[str, Any], place: _Place, entries: Mapping[str, Entry]
    ) -> None:
        """The recipient of the settings has the form that one of an argument has: no other could ever be sent to.

        An id that is written as a number arrives as written, whatever number it is: of that there is a warning only.
        """
        missing = [name for name in keys_of(channel.settings) if is_required(channel.settings, name)]
        text = channel.default_recipient(channel.settings(**(dict.fromkeys(missing) | dict(values))))
        if text is not None:
            problem = f"no recipient on {channel.platform}" + (": it has blank ends" if text != text.strip() else "")
            name = channel.default_key
            refused = channel.recipient(text)
            if is_successful(refused):
                return
            expected = f"expected {refused.failure().expected}"
            if _NUMBERED.fullmatch(text):
                self.warnings.append(f"{dotted((*place.path, name))} is {problem} ({expected})")
            else:
                self._report(place, name, entries.get(name), [Problem(problem, expected)])

    def _any_of(self, names: Collection[str], place: _Place, since: int) -> bool:
        """Whether one of these keys was found faulty."""
        return any(fault.key in {dotted((*place.path, name)) for name in names} for fault in self.faults[since:])

    def _platform(self, found: _Found, entries: Mapping[str, Entry]) -> str | None:
        known = tuple(self.registry)
        entry = entries.get("type")
        if entry is None:
            if found.platform is None:
                self._fault((*found.place.path, "type"), found.place.line, "missing", f"one of {', '.join(known)}")
            return found.platform
        path = (*found.place.path, "type")
        platform = self._guarded(lambda: trimmed(filled(self._given(entry), numbers=False)), path, entry.line)
        if platform is None:
            return found.platform
        if platform not in self.registry:
            hint = nearest(platform, known) or f"one of {', '.join(known)}"
            shown = "" if from_environment(self._given(entry)) else f" {shown_key(platform)!r}"
            self._fault(path, entry.line, f"unknown type{shown}", hint)
            return None
        if found.platform not in (None, platform):
            self._fault(path, entry.line, f"this section is of the platform {found.platform}", "leave type out")
        return platform

    def _renamed(self, entries: Mapping[str, Entry], place: _Place, own: Collection[str]) -> dict[str, Entry]:
        """With the one name for a key that has several; two of its names at once are a fault."""
        renamed: dict[str, Entry] = {}
        for name, entry in entries.items():
            key = name if name in own else ALIASES.get(name, name)
            other = renamed.get(key)
            if other is None:
                renamed[key] = entry
            else:
                lines = f" (line {other.line})" if other.line else ""
                problem = f"the same setting as {other.key}{lines}"
                self._fault((*place.path, name), entry.line, problem, "keep one of them")
        return renamed

    # -- Other sections

    def _plain(self, settings: type[T], entry: Entry | None, name: str, *, lenient: bool = False) -> T:
        """A section whose class declares its keys. ``lenient``: it is shared, and only near misses are faults."""
        place = _Place((name,), entry.line if entry else None, name)
        entries = self._optional(entry, name)
        return self._made(settings, entries, place, lenient=lenient)

    def _made(
        self, settings: type[T], entries: Mapping[str, Entry], place: _Place, *, lenient: bool = False, **parts: Any
    ) -> T:
        keys = keys_of(settings)
        self._unknown(entries, place, (*keys, *parts), lenient=lenient)
        return settings(**self._keys(settings, _some(entries, keys), place), **parts)

    def _security(self, entry: Entry | None, channels: tuple[str, ...]) -> Security:
        place = _Place(("security",), entry.line if entry else None)
        parts = self._strict(entry, place)
        self._unknown(parts, place, ("tool_policy", "audit", "approval"), lenient=True)
        audit, file = self._part(parts, place, "audit")
        files, file_place = self._part(audit, file, "file")
        approval, asked = self._part(parts, place, "approval")
        return Security(
            self._tool_policy(*self._part(parts, place, "tool_policy"), channels),
            self._made(Audit, audit, file, file=self._made(AuditFile, files, file_place)),
            self._made(Approval, approval, asked),
        )

    def _tool_policy(self, entries: Mapping[str, Entry], place: _Place, channels: tuple[str, ...]) -> ToolPolicy:
        """Verdicts by tool, by group, by channel; a tool's own may again say ``default`` and ``channels``."""
        self._unknown(entries, place, ("default", "tools", "groups", "channels"))
        default = entries.get("default")
        tools: list[tuple[str, str]] = []
        by_channel = [("*", *pair) for pair in self._verdicts(*self._part(entries, place, "channels"), channels)]
        named, at = self._part(entries, place, "tools")
        for entry in self._foreign(named, at, tuple(tool for group in TOOL_GROUPS.values() for tool in group)):
            if isinstance(entry.value, Section):
                inner = _Place((*at.path, entry.key), entry.line)
                parts = self._entries(entry.value, inner)
                self._unknown(parts, inner, ("default", "channels"))
                tools += [(entry.key, verdict) for verdict in self._verdict(parts.get("default"), inner)]
                pairs = self._verdicts(*self._part(parts, inner, "channels"), channels)
                by_channel += [(entry.key, *pair) for pair in pairs]
            else:
                tools += [(entry.key, verdict) for verdict in self._verdict(entry, at)]
        grouped, at = self._part(entries, place, "groups")
        groups = [
            (e.key, verdict) for e in self._foreign(grouped, at, tuple(TOOL_GROUPS)) for verdict in self._verdict(e, at)
        ]
        chosen = next(iter(self._verdict(default, place)), ToolPolicy().default)
        return ToolPolicy(chosen, tuple(tools), tuple(groups), tuple(by_channel))

    def _foreign(self, entries: Mapping[str, Entry], place: _Place, own: tuple[str, ...]) -> Iterator[Entry]:
        """Those of ours; tools and groups of the agent's own are its affair, unless they are a near miss."""
        self._unknown(entries, place, own, lenient=True)
        yield from (entry for entry in entries.values() if entry.key in own)

    def _verdicts(
        self, entries: Mapping[str, Entry], place: _Place, channels: tuple[str, ...]
    ) -> Iterator[tuple[str, str]]:
        known = (*channels, "cli")
        for entry in entries.values():
            if entry.key not in known:
                hint = nearest(entry.key, known) or f"one of {', '.join(known)}"
                self._fault((*place.path, entry.key), entry.line, "no such channel", hint)
            yield from ((entry.key, verdict) for verdict in self._verdict(entry, place))

    def _verdict(self, entry: Entry | None, place: _Place) -> Iterable[str]:
        if entry is None:
            return ()
        path = (*place.path, entry.key)
        verdict = self._guarded(lambda: trimmed(filled(self._given(entry), numbers=False)), path, entry.line)
        if verdict in VERDICTS:
            return (verdict,)
        if verdict is not None:
            self._fault(path, entry.line, f"not one of {', '.join(VERDICTS)}", nearest(verdict, VERDICTS))
        return ()

    # -- Keys

    def _keys(
        self, settings: type[Any], entries: Mapping[str, Entry], place: _Place, check: Channel | None = None
    ) -> dict[str, Any]:
        """The values of the keys that could be read, sealed. ``check``: look at them together too, if each is good."""
        schema = schema_of(cast(Hashable, settings))
        given = {name: self._given(entry) for name, entry in entries.items()}
        plain, faulty = _load(schema, given)
        for name, problems in faulty.items():
            self._report(place, name, entries.get(name), problems)
        if check is not None and not faulty:
            secrets = Secrets(self._own_secrets(schema, plain, given, place))
            for fault in check.check(plain):
                # A check of another author may quote what it was given.
                problem = Problem(secrets.redact(fault.problem), secrets.redact(fault.hint))
                self._report(place, fault.key, entries.get(fault.key), [problem])
        values = {}
        for name, value in plain.items():
            sealed = _field(schema, name).seal(value, given[name], f"{place.owner}.{name}")
            values[name] = sealed.value
            for secret, held in sealed.secrets:
                if secret in self.secrets:
                    self._report(place, name, entries[name], [Problem(f"two secrets would have the name {secret}")])
                self.secrets[secret] = held
            for secret in sealed.exposed:
                what = f"{secret} has fewer than {SHORTEST_REDACTED} characters"
                self.warnings.append(f"{what}: it cannot be kept out of texts that come from outside")
        return values

    def _own_secrets(
        self, schema: Schema, plain: Mapping[str, Any], given: Mapping[str, Given], place: _Place
    ) -> dict[str, str]:
        sealed = (_field(schema, name).seal(value, given[name], name) for name, value in plain.items())
        return {secret: held for one in sealed for secret, held in one.secrets}

    def _once(self, entry: Entry, path: Path, other: Entry | None) -> None:
        if other is not None:
            lines = f" (line {other.line})" if other.line else ""
            self._fault((*path, entry.key), entry.line, f"also at the top{lines}", "keep one of them")

    def _given(self, entry: Entry) -> Given:
        return Given(entry.value, self.environment)

    def _unknown(
        self,
        entries: Mapping[str, Entry],
        place: _Place,
        own: tuple[str, ...],
        *,
        known: tuple[str, ...] = (),
        lenient: bool = False,
    ) -> None:
        for name, entry in entries.items():
            if entry.key in own or entry.key in known or name in own:
                continue
            hint = nearest(entry.key, own, 0.8 if lenient else 0.6)
            if hint or not lenient:
                self._fault((*place.path, entry.key), entry.line, "unknown key", hint or f"known: {', '.join(own)}")

    # -- Sections

    def _optional(self, entry: Entry | None, name: str) -> dict[str, Entry]:
        """The entries of a section that may be left out or empty."""
        if entry is None:
            return {}
        place = _Place((name,), entry.line)
        section = self._section(entry.value, place)
        return {} if section is None else self._entries(section, place)

    def _strict(self, entry: Entry | None, place: _Place) -> dict[str, Entry]:
        """The same, but empty is a fault: whoever writes ``tool_policy:`` and nothing else expects some policy."""
        if entry is not None and isinstance(entry.value, Scalar) and entry.value.nothing:
            self._fault(place.path, entry.line, "no value", "give it keys, or leave it out")
            return {}
        section = None if entry is None else self._section(entry.value, place)
        return {} if section is None else self._entries(section, place)

    def _part(self, entries: Mapping[str, Entry], place: _Place, name: str) -> tuple[dict[str, Entry], _Place]:
        entry = entries.get(name)
        inner = _Place((*place.path, name), entry.line if entry else None)
        return self._strict(entry, inner), inner

    def _section(self, node: Node, place: _Place, hint: str = "") -> Section | None:
        if isinstance(node, Section):
            return node
        if isinstance(node, Scalar) and node.nothing:
            return Section()
        what = "a list" if isinstance(node, Items) else "a single value"
        self._fault(place.path, place.line, f"a section of keys expected, not {what}", hint)
        return None

    def _entries(self, section: Section, place: _Place) -> dict[str, Entry]:
        if len(section.entries) > MOST_KEYS:
            self._fault(place.path, place.line, f"more than {MOST_KEYS} keys in one section")
            return {}
        return {entry.key: entry for entry in section.entries}

    # -- Faults

    def _guarded(self, read: Callable[[], T], path: Path, line: int | None) -> T | None:
        try:
            return read()
        except ValidationError as error:
            for problem in problems_of(error):
                self._fault(path, problem.line or line, problem.text, problem.hint)
            return None

    def _report(self, place: _Place, name: str, entry: Entry | None, problems: Iterable[Problem]) -> None:
        key, line = (entry.key, entry.line) if entry else (name, place.line)
        for problem in problems:
            path = (*place.path, key, *problem.below)
            self._fault(path, problem.line or line, problem.text, problem.hint)

    def _fault(self, path: Path, line: int | None, problem: str, hint: str = "") -> None:
        self.faults.append(ConfigError(self.where, line, dotted(path), problem, hint))


@dataclass(frozen=True, slots=True)
class _Switch:
    """The one key of ``channels_config`` that is neither a platform's section nor one of the whole."""

    cli: bool = key(Sort.BOOLEAN, "Whether the terminal is a channel.")


def _some(entries: Mapping[str, Entry], names: Collection[str]) -> dict[str, Entry]:
    return {name: entry for name, entry in entries.items() if name in names}


def _ids(keys: Mapping[str, Key]) -> tuple[str, ...]:
    """The keys that a recipient is made of."""
    return tuple(name for name, key in keys.items() if key.sort in (Sort.ID, Sort.IDS))


def _lacks(settings: type[Any], values: Mapping[str, Any]) -> bool:
    return any(is_required(settings, name) and name not in values for name in keys_of(settings))


def _is_name(name: str) -> bool:
    return name.isprintable() and name == name.strip() and 0 < len(name) <= 100


def _field(schema: Schema, name: str) -> Setting:
    field = schema.fields[name]
    assert isinstance(field, Setting)
    return field


def _load(schema: Schema, given: Mapping[str, Given]) -> tuple[dict[str, Any], dict[str, list[Problem]]]:
    """What could be read, and the problems of what could not, by key."""
    try:
        return dict(schema.load(given)), {}
    except ValidationError as error:
        assert isinstance(error.messages, dict)
        good = error.valid_data if isinstance(error.valid_data, dict) else {}
        return dict(good), {name: list(problems) for name, problems in error.messages.items()}
