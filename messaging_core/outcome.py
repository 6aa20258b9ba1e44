"""What became of a send: one of five truths, and the sentence that says it. Never "sent" for less.

=============  ====================================================================================================
delivered      everything is there
partial        some parts, or some recipients: the receipts say which
unconfirmed    it left and no usable answer came: it may have arrived
failed         tried, and it did not leave, or the far end said no
refused        not tried
=============  ====================================================================================================
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from messaging_core.errors import InvalidRecipient, RateLimited, Refusal, SendError, Unavailable, may_have_arrived
from messaging_core.flow import Done, Receipt, Stopped, Undelivered
from messaging_core.pacing import OWN_PACE


class Status(Enum):
    DELIVERED = "delivered"
    PARTIAL = "partial"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The whole account of one send.

    ``message``: the sentence for the model. ``parts``: how many the message has (0 where that was never known).
    ``stopped``: where to go on from,
    for ``Messenger.resume``. ``event``: the id that the audit log has it under. ``kind``: "text", "media" or "voice".
    ``details``: what else a tool brought (the gateway's status).
    """

    status: Status
    tool: str
    message: str
    channel: str | None = None
    platform: str | None = None
    recipient: str | None = None
    receipts: tuple[Receipt, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    parts: int = 0
    error: Refusal | SendError | None = None
    stopped: Stopped | None = None
    event: str | None = None
    kind: str = ""
    details: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether everything is there."""
        return self.status is Status.DELIVERED

    @property
    def ids(self) -> tuple[str, ...]:
        """The platform's ids of what is there, in order."""
        return tuple(receipt.id for receipt in self.receipts if receipt.id)

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it: status, tool, channel, platform, recipient, ids, parts, message, error (class, detail, and
        after: seconds, where a wait was named)."""
        error: dict[str, Any] | None = None
        if self.error is not None:
            error = {"class": type(self.error).__name__, "detail": str(self.error)}
            if (after := _wait(self.error)) is not None:
                error["after"] = after
        shown: dict[str, Any] = {
            "status": self.status.value,
            "tool": self.tool,
            "channel": self.channel,
            "platform": self.platform,
            "recipient": self.recipient,
            "ids": list(self.ids),
            "parts": {"delivered": len(_parts(self.receipts)), "of": self.parts},
            "message": self.message,
            "error": error,
        }
        if self.undelivered:
            shown["undelivered"] = [{"recipient": one.recipient, "detail": str(one.cause)} for one in self.undelivered]
        return shown | dict(self.details)


def refused(tool: str, refusal: Refusal, channel: str | None = None, recipient: str | None = None) -> Outcome:
    """Nothing was tried; the refusal is the sentence."""
    return Outcome(Status.REFUSED, tool, str(refusal), channel, recipient=recipient, error=refusal)


def of_done(done: Done, tool: str, channel: str, platform: str, recipient: str, parts: int) -> Outcome:
    """The send ran to its end; some of several recipients may have been refused on the way."""
    whole = not done.undelivered
    status = Status.DELIVERED if whole else Status.PARTIAL if done.delivered else Status.FAILED
    error = None if whole else done.undelivered[0].cause
    message = _sent(tool, channel, recipient, done.delivered) if done.delivered else f"Failed to send to {channel}"
    if not whole:
        missing = ", ".join(f"{one.recipient} ({_spoken(one.cause)})" for one in done.undelivered)
        message = f"Partly sent to {channel}: not to {missing}" if done.delivered else f"{message}: {missing}"
    return Outcome(status, tool, message, channel, platform, recipient, done.delivered, done.undelivered, parts, error)


def of_stopped(stopped: Stopped, tool: str, channel: str, platform: str, recipient: str, parts: int) -> Outcome:
    """The send came to a halt. Before anything could be visible (an upload), an unanswered request is a plain
    failure."""
    at, cause = stopped.at, stopped.cause
    open_end = at.part is not None and may_have_arrived(cause)
    why = _spoken(cause) + ("" if tool == "message" or open_end else _waiting(cause))
    if at.delivered:
        status = Status.PARTIAL
        there = _parts(at.delivered)
        ids = ", ".join(receipt.id for receipt in at.delivered if receipt.id)
        index = at.part.index if at.part else len(there) + 1
        halt = (
            f"part {index} is unconfirmed: {why}; it may have arrived"
            if open_end
            else f"stopped at part {index}: {why}"
        )
        message = f"Partly sent to {_place(tool, channel, recipient)}: {len(there)} of {parts} parts arrived"
        message += f" ({'ids' if len(there) > 1 else 'id'} {ids}); {halt}" if ids else f"; {halt}"
    elif open_end and _status_of(cause) is None:
        status = Status.UNCONFIRMED
        message = f"Delivery to {channel} is unconfirmed: {why}; it may have arrived"
    elif open_end:
        status = Status.UNCONFIRMED
        message = f"Failed to send to {channel}: {why}; it may have arrived"
    else:
        status = Status.FAILED
        nothing = "; nothing is visible" if at.part is None and may_have_arrived(cause) else ""
        # Where the recipient is at fault, the model has to see which one it named.
        named = isinstance(cause, InvalidRecipient) and cause.status is not None
        where = _place(tool, channel, recipient) if named else channel
        message = f"Failed to send to {where}: {why}{nothing}"
    return Outcome(
        status, tool, message, channel, platform, recipient, at.delivered, at.undelivered, parts, cause, stopped
    )


def _sent(tool: str, channel: str, recipient: str, receipts: tuple[Receipt, ...]) -> str:
    """``Message sent to tg (-1001), id 7 (as plain text)``; the tool ``message`` says no more than its ancestor did."""
    notes = dict.fromkeys(note for receipt in receipts for note in receipt.notes)
    tail = f" ({'; '.join(notes)})" if notes else ""
    head = f"Message sent to {_place(tool, channel, recipient)}"
    if tool == "message":
        return head + tail
    count = len(_parts(receipts))
    ids = [receipt.id for receipt in receipts if receipt.id]
    parts = f" in {count} parts" if count > 1 else ""
    named = f", {'ids' if len(ids) > 1 else 'id'} {', '.join(ids)}" if ids else ""
    return f"{head}{parts}{named}{tail}"


def _place(tool: str, channel: str, recipient: str) -> str:
    return channel if tool == "message" or not recipient else f"{channel} ({recipient})"


def _parts(receipts: tuple[Receipt, ...]) -> set[int]:
    return {receipt.part.index if receipt.part else 1 for receipt in receipts}


def _status_of(cause: SendError) -> int | None:
    return getattr(cause, "status", None)


def _wait(cause: Refusal | SendError) -> float | None:
    """Seconds that the far end asked to be left alone."""
    return cause.after if isinstance(cause, RateLimited | Unavailable) else None


def _waiting(cause: SendError) -> str:
    """The wait that was named, unless the words say it already: those of the far end, or of our own pace."""
    wait = _wait(cause)
    if not isinstance(cause, RateLimited | Unavailable) or wait is None or cause.code == OWN_PACE:
        return ""
    figure = f"{wait:.10g}"
    if re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", cause.detail):
        return ""
    return f"{'; ' if cause.detail or cause.code else ': '}retry after {figure} s"


def _spoken(cause: SendError) -> str:
    """The error as the sentence has it: ``{status} {statusText}: {detail}``, also where the recipient is at fault."""
    if isinstance(cause, InvalidRecipient) and cause.status is not None:
        return f"{cause.status} {cause.reason}".strip() + f": {cause.detail or 'the recipient was refused'}"
    return str(cause)
