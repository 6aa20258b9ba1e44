"""What a channel is: one value that says what a platform takes, and the functions that describe requests to it.

A channel's file reads from top to bottom: settings, limits, recipients, requests, the meaning of replies, ``CHANNEL``.
The rules
that hold on several channels (routing, allowlists, rendering, splitting, captions, size checks, retries, wording) are
not in it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from returns.result import Result

from messaging_core.errors import InvalidRecipient, Refusal
from messaging_core.flow import Step
from messaging_core.markup.dialect import Dialect
from messaging_core.markup.length import Length
from messaging_core.message import Ids, Kind, Outgoing, Recipient
from messaging_core.secrecy import Secret

S = TypeVar("S")

Known: TypeAlias = Mapping[str, str]
"""What earlier sends learned and is still true: key -> value (see :class:`messaging_core.flow.Learned`)."""


# --- Settings ---------------------------------------------------------------------------------------------------------


class Sort(Enum):
    """What a setting holds. Each is checked once, in :mod:`messaging_core.config.schemas`."""

    TEXT = "text"
    """Any text but an empty one."""
    ID = "id"
    """An identifier: text from file to wire, also where the file has a bare number."""
    IDS = "ids"
    """One identifier or a list of them; kept as a tuple."""
    LIST = "list"
    """A list of identifiers, never a single one: of who is permitted, where a forgotten value must not pass. Kept as a
    tuple."""
    SECRET = "secret"
    """A token: trimmed, kept as ``Secret("<channel>.<key>")``. Printable ASCII without blanks, as it goes into headers
    and URLs."""
    PASSWORD = "password"
    """A secret that may hold blanks and any letters (a mail password): only its ends are trimmed."""
    SECRET_URL = "secret url"
    """An http(s) URL that is itself a credential: trimmed, checked, kept as a ``Secret``."""
    URL = "url"
    """An http(s) base URL; blank ends and a trailing slash are trimmed."""
    HEADERS = "map of header names to values"
    """A tuple of pairs; every value is kept as ``Secret("<channel>.<key>.<name>")`` but for Content-Type, Accept,
    User-Agent."""
    METHOD = "HTTP method"
    """Upper case on the wire."""
    TEMPLATE = "text with {{content}} in it"
    """A :class:`messaging_core.wire.template.Template`; a value that the environment put together names its pieces as
    secrets."""
    URL_TEMPLATE = "URL, with {{content}} in it where wanted"
    """A ``Template`` whose literal pieces are all secrets: ``Secret("<channel>.<key>")``, or with ``[0]``, ``[1]`` ...
    where there are several."""
    BOOLEAN = "true or false"
    NUMBER = "whole number"
    SECONDS = "seconds"
    """A number over zero, whole or decimal."""
    RATE = "rate"
    """So many per second, minute, hour or day; kept as ``20/minute``."""
    CHOICE = "one of"


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: what it holds, whether it must be there, and the sentence that the reference shows for it."""

    sort: Sort
    doc: str
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


def key(
    sort: Sort,
    doc: str,
    *,
    default: Any = MISSING,
    choices: tuple[str, ...] = (),
    least: int | None = None,
    most: int | None = None,
) -> Any:
    """Declare a setting in a channel's settings class; without a default it must be given.

    The file's schema, its error messages and the configuration reference are made from these declarations.
    """
    metadata = {"key": Key(sort, doc, choices, least, most)}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that every channel has."""

    enabled: bool = key(Sort.BOOLEAN, "Whether the channel takes part at all.", default=True)
    allowed_users: tuple[str, ...] | None = key(
        Sort.LIST, "Who may be written to: names or ids; '*' all, [] none. Not given: no such limit.", default=None
    )
    allowed_recipients: tuple[str, ...] = key(Sort.LIST, "Rooms and groups that may be written to besides.", default=())
    verify_recipient: bool = key(Sort.BOOLEAN, "Ask the platform for the recipient before sending.", default=False)
    format: str = key(Sort.CHOICE, "How texts are read.", default="markdown", choices=("markdown", "plain"))
    overflow: str = key(
        Sort.CHOICE, "What happens to a text over the limit.", default="split", choices=("split", "truncate", "reject")
    )
    max_parts: int = key(Sort.NUMBER, "More parts than this go as a file instead.", default=10, least=1, most=100)
    mentions: str = key(Sort.CHOICE, "Whether mentions in a text ring.", default="inert", choices=("inert", "allow"))
    voice_as: str = key(
        Sort.CHOICE,
        "What becomes of a voice message where there are none.",
        default="voice",
        choices=("voice", "audio"),
    )
    rate_limit: str | None = key(Sort.RATE, 'At most so many messages, as in "20/minute".', default=None)
    when_unanswered: str = key(
        Sort.CHOICE, "What follows an unanswered send.", default="report", choices=("report", "repeat")
    )


@dataclass(frozen=True, slots=True)
class Configured(Generic[S]):
    """One configured channel: its name in the file, its platform, its own settings and the common ones. No secret
    values."""

    name: str
    platform: str
    own: S
    rules: Rules = Rules()

    def secret(self, key: str) -> Secret:
        return Secret(f"{self.name}.{key}")


# --- What a platform takes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What can be sent. The table in the docs, ``messaging channels`` and the refusals all read this."""

    text: bool = True
    media: bool = False
    voice: bool = False
    reply: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How much fits: every ``Length`` of a text holds at once; ``files`` in bytes by kind (a kind that is not named:
    ``any_file``)."""

    text: tuple[Length, ...] = ()
    caption: tuple[Length, ...] = ()
    files: tuple[tuple[Kind, int], ...] = ()
    any_file: int | None = None
    voice: tuple[str, ...] = ()
    """MIME types that are taken as a voice message; others go as ordinary audio, and the result says so."""
    voice_captioned: bool = False
    """Whether a voice message may carry a caption."""
    uncaptioned: frozenset[Kind] = frozenset()
    """Kinds of file that carry no caption: it follows as text."""

    def file(self, kind: Kind) -> int | None:
        return dict(self.files).get(kind, self.any_file)


class By(Enum):
    """What a pace is kept by."""

    CHAT = "chat"
    CREDENTIAL = "credential"
    METHOD = "method"


@dataclass(frozen=True, slots=True)
class Pace:
    """At most ``count`` requests in ``per`` seconds for one chat, credential or method."""

    count: int
    per: float
    by: By


class Describe(Protocol):
    """The requests that place ``outgoing``, as the first step of the send."""

    def __call__(self, at: Configured[Any], outgoing: Outgoing, ids: Ids, known: Known, /) -> Result[Step, Refusal]: ...


class Probe(Protocol):
    """Ask the platform who we are and whether the recipient (None: ourselves only) is there; nothing visible
    happens."""

    def __call__(self, at: Configured[Any], recipient: Recipient | None, known: Known, /) -> Step: ...


@dataclass(frozen=True, slots=True)
class Fault:
    """What a channel's own check finds wrong with its settings: the key, the problem, and what would be right."""

    key: str
    problem: str
    hint: str = ""


def no_faults(values: Mapping[str, Any]) -> Iterable[Fault]:
    return ()


def no_default(own: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Channel:
    """A platform, whole: what the settings are, what it takes, and how a send is described.

    ``recipient``: from the text of an argument to the platform's spelling. ``default_recipient``: the text used when
    none is named, and
    ``default_key`` the setting it comes from. ``fixed_recipient``: where the platform has but one, and any that is
    named is refused.
    ``same``: the form in which two spellings of one recipient or sender are equal (case, leading ``@``, punctuation).
    ``rehearse``: what the platform would answer to a request, so that a whole send can be listed without a network.
    ``check``: faults that
    show only when the settings are seen together; it gets the values as loaded, secrets included, and must not repeat
    one. ``ids_per_chat``: the id of a
    message means something in its chat only. ``threads_by_reply``: an answer in a conversation replies to its message
    (mail). ``raw``: texts go
    out as given, neither rendered nor split. ``cut_raw``: where the tool ``message`` cuts (code points, and the sign
    that it was cut).
    """

    platform: str
    settings: type[Any]
    capabilities: Capabilities
    dialect: Dialect
    describe: Describe
    recipient: Callable[[str], Result[Recipient, InvalidRecipient]]
    rehearse: Callable[[Any], Any]
    limits: Limits = Limits()
    fixed_recipient: Recipient | None = None
    default_recipient: Callable[[Any], str | None] = no_default
    default_key: str = ""
    pace: tuple[Pace, ...] = ()
    probe: Probe | None = None
    same: Callable[[str], str] = str.casefold
    check: Callable[[Mapping[str, Any]], Iterable[Fault]] = no_faults
    ids_per_chat: bool = True
    threads_by_reply: bool = False
    raw: bool = False
    cut_raw: tuple[int, str] | None = None
