"""Everything that can go wrong, named by what the caller can do next.

::

    Refusal                     nothing was sent, and nothing will be until the input or the settings change
    ├── NoChannels              name a channel in the configuration
    ├── UnknownChannel          name one of those that there are
    ├── UnknownTool             call one of the tools that are offered
    ├── InvalidArguments        correct the arguments
    ├── NoRecipient             name a recipient, or configure a default
    ├── InvalidRecipient        spell the recipient as the platform does (also what a platform says of one)
    ├── RecipientBlocked        permit the recipient in the settings
    ├── PolicyDenied            permit the tool in the settings
    ├── ApprovalRequired        ask a person; then approve the proposal
    ├── Unsupported             use a channel that can
    ├── TooLarge                send less
    ├── MediaUnreadable         name a file that can be read
    ├── MediaForbidden          name a file in a permitted folder
    └── AuditUnavailable        mend the place of the audit log

    SendError                   sending began
    ├── Invalid                 the platform says the request is wrong: change the message or report a fault of ours
    ├── Denied                  credential or right: change the settings
    ├── RateLimited             later (``after`` seconds, where the platform says)
    ├── Unavailable             the platform says that it cannot now (5xx)
    ├── Unreachable             no connection: it never left
    ├── Unanswered              it left, no answer came: it may have arrived
    ├── Rejected                the platform understood and said no (also inside an HTTP 200)
    ├── Malformed               an answer that says neither yes nor no: it may have arrived
    ├── InvalidRecipient        the platform does not know, or does not reach, the recipient
    └── MediaUnreadable         the file changed or vanished between the look and the send

    ConfigError                 where, line, key, problem, what would be right

Refusals and send errors are values. ``str()`` of each is one readable sentence without a secret.
"""

from dataclasses import dataclass
from typing import TypeAlias

# --- Before anything is sent ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoChannels:
    """No channel is configured, or none is active."""

    def __str__(self) -> str:
        return "No channels configured. Add a 'channels' section to your config."


@dataclass(frozen=True, slots=True)
class UnknownChannel:
    """The named channel is not there; ``available`` in file order. ``inactive``: it is configured, but switched off."""

    name: str
    available: tuple[str, ...]
    inactive: bool = False

    def __str__(self) -> str:
        what = "Channel is switched off (enabled: false)" if self.inactive else "Unknown channel"
        return f"{what}: {self.name}. Available channels: {', '.join(self.available) or 'none'}"


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """The named tool is not offered; ``why`` where it exists but cannot be used now."""

    name: str
    available: tuple[str, ...]
    why: str = ""

    def __str__(self) -> str:
        reason = f" ({self.why})" if self.why else ""
        return f"Unknown tool: {self.name}{reason}. Available tools: {', '.join(self.available) or 'none'}"


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """The arguments of a tool are wrong: every problem, each naming its argument."""

    tool: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return f"Invalid arguments for {self.tool}: {'; '.join(self.problems)}"


@dataclass(frozen=True, slots=True)
class NoRecipient:
    """Nobody to send to: none was named, and ``key`` (a setting of the channel) gives no default."""

    channel: str
    key: str

    def __str__(self) -> str:
        return f"No recipient for {self.channel}: name one, or set '{self.key}' for the channel"


@dataclass(frozen=True, slots=True)
class InvalidRecipient:
    """``recipient`` is not one on this platform. ``expected`` says what would be; ``detail`` is the platform's own
    word."""

    recipient: str
    expected: str = ""
    detail: str = ""
    status: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        expected = f": expected {self.expected}" if self.expected else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"Invalid recipient {self.recipient!r}{expected}{detail}"


@dataclass(frozen=True, slots=True)
class RecipientBlocked:
    """The settings of the channel do not permit this recipient; ``key`` is where one would be permitted."""

    channel: str
    recipient: str
    key: str

    def __str__(self) -> str:
        return f"Recipient {self.recipient!r} is not on the allowlist of {self.channel} ({self.key})"


@dataclass(frozen=True, slots=True)
class PolicyDenied:
    """``rule`` (a dotted path in the settings) denies the tool, or the tool on that channel."""

    tool: str
    rule: str
    channel: str = ""

    def __str__(self) -> str:
        on = f" on {self.channel}" if self.channel else ""
        return f"Tool {self.tool} is denied{on} by {self.rule}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a person is asked to approve, bound to the text and the file by ``digest`` (SHA-256, hexadecimal)."""

    id: str
    tool: str
    channel: str
    recipient: str
    kind: str
    preview: str
    digest: str
    expires: float

    def __str__(self) -> str:
        return f"{self.tool} to {self.channel} ({self.recipient}), {self.kind}: {self.preview}"


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    """A person has to approve first; ``proposal`` is what they are asked. ``why``: no one to ask, refused, or too
    late."""

    proposal: Proposal
    why: str = "nobody is there to ask"

    def __str__(self) -> str:
        return f"Approval required ({self.why}): {self.proposal}"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The channel cannot do ``what``; ``channels_that_can`` are configured and active."""

    channel: str
    what: str
    channels_that_can: tuple[str, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        can = ", ".join(self.channels_that_can) or "none"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.channel} cannot send {self.what}. Channels that can: {can}{hint}"


@dataclass(frozen=True, slots=True)
class TooLarge:
    """``what`` measures ``size``, the platform takes ``limit``, both in ``unit``."""

    what: str
    size: int
    limit: int
    unit: str = "bytes"

    def __str__(self) -> str:
        return f"{self.what} is too large: {self.size} {self.unit}, the limit is {self.limit} {self.unit}"


@dataclass(frozen=True, slots=True)
class MediaUnreadable:
    """The file named ``name`` (never a path beyond what the caller wrote) cannot be sent: ``problem``."""

    name: str
    problem: str

    def __str__(self) -> str:
        return f"Cannot send {self.name!r}: {self.problem}"


@dataclass(frozen=True, slots=True)
class MediaForbidden:
    """The file is outside the permitted folders, whether or not it exists."""

    path: str
    roots: tuple[str, ...]
    why: str = "it is not in a permitted folder"

    def __str__(self) -> str:
        return f"May not send {self.path!r}: {self.why}. Permitted folders: {', '.join(self.roots) or 'none'}"


@dataclass(frozen=True, slots=True)
class AuditUnavailable:
    """The audit log named by the settings cannot be written, so nothing is sent."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"Nothing was sent: the audit log {self.where} cannot be written ({self.problem})"


Refusal: TypeAlias = (
    NoChannels
    | UnknownChannel
    | UnknownTool
    | InvalidArguments
    | NoRecipient
    | InvalidRecipient
    | RecipientBlocked
    | PolicyDenied
    | ApprovalRequired
    | Unsupported
    | TooLarge
    | MediaUnreadable
    | MediaForbidden
    | AuditUnavailable
)


# --- After sending began ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answered:
    """What the far end said: HTTP or SMTP ``status``, its ``reason`` phrase, the platform's ``code`` and ``detail``."""

    status: int | None = None
    reason: str = ""
    code: str = ""
    detail: str = ""

    def __str__(self) -> str:
        head = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        tail = f"{self.code} {self.detail}".strip() if self.code and self.code not in self.detail else self.detail
        return ": ".join(part for part in (head, tail) if part) or type(self).__name__


@dataclass(frozen=True, slots=True)
class Invalid(_Answered):
    """The platform cannot use the request as it is: repeating it changes nothing."""


@dataclass(frozen=True, slots=True)
class Denied(_Answered):
    """The credential is wrong, or lacks the right."""


@dataclass(frozen=True, slots=True)
class RateLimited(_Answered):
    """Too much: not taken, and may be repeated after ``after`` seconds (None: the platform did not say)."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Unavailable(_Answered):
    """The far end is in trouble (5xx). ``may_have_arrived``: a gateway answered in the stead of the one that may have
    taken it."""

    may_have_arrived: bool = False
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected(_Answered):
    """The platform understood, and said no (as Slack does inside an HTTP 200)."""


@dataclass(frozen=True, slots=True)
class Malformed(_Answered):
    """An answer that says neither yes nor no. After a success status the message may have arrived."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No connection could be made, so nothing left: ``detail`` says why, without an address or a credential."""

    detail: str = "could not connect"

    def __str__(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The request left, or may have; no usable answer came, so it may have arrived."""

    detail: str

    def __str__(self) -> str:
        return self.detail


SendError: TypeAlias = (
    Invalid
    | Denied
    | RateLimited
    | Unavailable
    | Rejected
    | Malformed
    | Unreachable
    | Unanswered
    | InvalidRecipient
    | MediaUnreadable
)


def may_have_arrived(cause: SendError) -> bool:
    """Whether a visible message may be there although this error came."""
    match cause:
        case Unanswered():
            return True
        case Unavailable():
            return cause.may_have_arrived
        case Malformed():
            return cause.status is None or cause.status < 300
        case _:
            return False


# --- Configuration ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigError:
    """One fault of a configuration: which file, which line (from 1; None if unknown), which key (dotted), what, and
    what would be right."""

    where: str
    line: int | None
    key: str
    problem: str
    did_you_mean: str = ""

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        key = f"{self.key}: " if self.key else ""
        hint = f" ({self.did_you_mean})" if self.did_you_mean else ""
        return f"{place}: {key}{self.problem}{hint}"


ConfigErrors: TypeAlias = tuple[ConfigError, ...]
