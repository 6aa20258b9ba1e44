"""What the audit log says of a send, and what can be read out of it again. Never content.

Two lines with one event id: ``begin`` before the first byte leaves, ``end`` with the outcome. What was refused has an
``end`` only. So after a process was killed at any point, the log tells what may have gone out: every ``begin`` that has
no ``end`` (:func:`unfinished`), and nothing else.

A line is one JSON object in ASCII: what a model or a server wrote cannot end the line, turn its direction or steer the
terminal of whoever reads it.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from returns.result import Failure, Result, Success

from messaging_core.errors import Refusal, SendError
from messaging_core.markup.controls import clean, show_direction
from messaging_core.outcome import Outcome
from messaging_core.secrecy import Secrets

LONGEST_NAME = 200
"""Code points of a channel, recipient or id: in the place of a name a model may put a text, and that is content."""
LONGEST_PATH = 1000

VOICE = "voice"

UNFINISHED = "unfinished"
"""The status of what has no ``end``: it is being sent just now, or its process was killed and it may have gone out."""


# --- Writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """What a record is about. ``kind``: "text", "media" or "voice"; ``file``: its path as the caller wrote it.

    ``parts``: how many visible messages are planned. Ids that begin with the time sort by it.
    """

    id: str
    tool: str
    channel: str = ""
    platform: str = ""
    recipient: str = ""
    kind: str = ""
    file: str | None = None
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Begin:
    """Written after the policy and before the first byte. ``time``: Unix seconds."""

    event: Event
    time: float


@dataclass(frozen=True, slots=True)
class End:
    """Written before the result is returned.

    ``delivered``: the indexes of the parts that are there. ``undelivered``: recipients refused inside a good reply.
    ``attempts``: requests made. ``duration``: seconds. ``error``: its class; ``code``: the far end's status.
    """

    event: Event
    time: float
    status: str
    ids: tuple[str, ...] = ()
    delivered: tuple[int, ...] = ()
    undelivered: tuple[str, ...] = ()
    attempts: int = 0
    duration: float = 0.0
    error: str | None = None
    code: int | None = None


Entry: TypeAlias = Begin | End


def begun(event: Event, now: float) -> Begin:
    """The send begins at ``now``: from here on something may go out."""
    return Begin(event, now)


def ended(event: Event, outcome: Outcome, now: float, attempts: int = 0, duration: float = 0.0) -> End:
    """What ``outcome`` says of the event."""
    return End(
        replace(event, parts=outcome.parts or event.parts),
        now,
        outcome.status.value,
        outcome.ids,
        tuple(sorted({receipt.part.index if receipt.part else 1 for receipt in outcome.receipts})),
        tuple(one.recipient for one in outcome.undelivered),
        attempts,
        duration,
        *_error(outcome.error),
    )


def refused(outcome: Outcome, now: float, kind: str = "", file: str | None = None) -> End:
    """A refusal: the ``end`` of an event that never began."""
    channel, recipient = outcome.channel or "", outcome.recipient or ""
    event = Event(outcome.event or "", outcome.tool, channel, outcome.platform or "", recipient, kind, file)
    return ended(event, outcome, now)


def _error(error: Refusal | SendError | None) -> tuple[str | None, int | None]:
    return (None, None) if error is None else (type(error).__name__, getattr(error, "status", None))


def to_line(entry: Entry, secrets: Secrets) -> str:
    """``entry`` as one line with its line end: ASCII JSON, every value without a secret.

    >>> to_line(Begin(Event("1700000000000abc", "message", "ops"), 1700000000.0), Secrets())[:75]
    '{"event":"1700000000000abc","phase":"begin","time":"2023-11-14T22:13:20.000'
    """
    about = entry.event
    fields: dict[str, Any] = {
        "event": about.id,
        "phase": "begin" if isinstance(entry, Begin) else "end",
        "time": utc(entry.time),
        **_about(about),
    }
    if isinstance(entry, End):
        fields |= {"status": entry.status, **_outcome(entry)}
    for key, longest in _NOT_OURS.items():
        if key in fields:
            fields[key] = _safe(fields[key], secrets, longest)
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")) + "\n"


def _about(event: Event) -> dict[str, Any]:
    return {
        "tool": event.tool,
        "channel": event.channel,
        "platform": event.platform,
        "recipient": event.recipient,
        "kind": event.kind,
        "media": event.file if event.kind != VOICE else None,
        "voice": event.file if event.kind == VOICE else None,
        "parts": event.parts,
    }


def _outcome(ended: "End | Record") -> dict[str, Any]:
    return {
        "ids": list(ended.ids),
        "delivered": list(ended.delivered),
        "undelivered": list(ended.undelivered),
        "attempts": ended.attempts,
        "duration": round(ended.duration, 3),
        "error": ended.error,
        "code": ended.code,
    }


_NOT_OURS = {
    **dict.fromkeys(("tool", "channel", "recipient", "ids", "undelivered"), LONGEST_NAME),
    **dict.fromkeys(("media", "voice"), LONGEST_PATH),
}
"""Fields whose values a model, a file or a server wrote, and how much of them is kept."""


def _safe(value: Any, secrets: Secrets, longest: int) -> Any:
    if isinstance(value, list):
        return [_safe(one, secrets, longest) for one in value]
    if not isinstance(value, str):
        return value
    # Redacted before it is cut: half a secret would not be recognised.
    whole = secrets.redact(value)
    return whole if len(whole) <= longest else whole[:longest] + "..."


def utc(time: float) -> str:
    """Unix seconds as ``2023-11-14T22:13:20.000Z``."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


# --- Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One send as the log has it. ``began``, ``ended``: as written (UTC), None where the line is not there."""

    event: Event
    began: str | None
    ended: str | None
    status: str = UNFINISHED
    ids: tuple[str, ...] = ()
    delivered: tuple[int, ...] = ()
    undelivered: tuple[str, ...] = ()
    attempts: int = 0
    duration: float = 0.0
    error: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which records are wanted; ``since`` in Unix seconds, ``tail`` the last so many."""

    channel: str | None = None
    status: str | None = None
    since: float | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Records in the order of their first lines, and how many lines could not be read (a torn one, somebody's edit)."""

    records: tuple[Record, ...]
    unreadable: int = 0


def read(lines: Iterable[str], filters: Filters | None = None) -> Reading:
    """What the lines of a log say, oldest first."""
    wanted = filters or Filters()
    found: dict[str, Record] = {}
    unreadable = 0
    for line in lines:
        if not line.strip():
            continue
        fields = _fields(line)
        if fields is None:
            unreadable += 1
            continue
        id = _text(fields, "event")
        found[id] = _with(found.get(id), fields)
    records = tuple(record for record in found.values() if _matches(record, wanted))
    if wanted.tail is not None:
        records = records[-wanted.tail :] if wanted.tail > 0 else ()
    return Reading(records, unreadable)


def unfinished(records: Iterable[Record]) -> tuple[Record, ...]:
    """What may have gone out without a word of it: a ``begin`` without its ``end``."""
    return tuple(record for record in records if record.status == UNFINISHED)


def _fields(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    good = isinstance(fields, dict) and fields.get("phase") in ("begin", "end") and _text(fields, "event")
    return fields if good else None


def _with(known: Record | None, fields: dict[str, Any]) -> Record:
    event = Event(
        _text(fields, "event"),
        _text(fields, "tool"),
        _text(fields, "channel"),
        _text(fields, "platform"),
        _text(fields, "recipient"),
        _text(fields, "kind"),
        _text(fields, "media") or _text(fields, "voice") or None,
        _whole(fields, "parts") or 0,
    )
    if fields["phase"] == "begin":
        return known or Record(event, _text(fields, "time"), None)
    duration = fields.get("duration")
    return Record(
        event,
        known.began if known else None,
        _text(fields, "time"),
        _text(fields, "status") or UNFINISHED,
        tuple(_list(fields, "ids", str)),
        tuple(_list(fields, "delivered", int)),
        tuple(_list(fields, "undelivered", str)),
        _whole(fields, "attempts") or 0,
        float(duration) if isinstance(duration, int | float) else 0.0,
        _text(fields, "error") or None,
        _whole(fields, "code"),
    )


def _whole(fields: dict[str, Any], key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


def _text(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _list(fields: dict[str, Any], key: str, sort: type[Any]) -> Iterator[Any]:
    value = fields.get(key)
    return (one for one in value if isinstance(one, sort)) if isinstance(value, list) else iter(())


def _matches(record: Record, wanted: Filters) -> bool:
    return (
        (wanted.channel is None or record.event.channel == wanted.channel)
        and (wanted.status is None or record.status == wanted.status)
        # Times are all of one form, so they compare as texts.
        and (wanted.since is None or (record.began or record.ended or "") >= utc(wanted.since))
    )


_AGO = re.compile(r"(\d{1,6})\s*([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def since(text: str, now: float) -> Result[float, str]:
    """``30m``, ``2h``, ``7d`` ago, or a date or time (ISO 8601, UTC where no zone is named), as Unix seconds.

    >>> since("2h", 10_000.0)
    <Success: 2800.0>
    """
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return Success(max(now - int(ago[1]) * _SECONDS[ago[2]], 0.0))
    try:
        moment = datetime.fromisoformat(text.strip())
        return Success(max((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), 0.0))
    except (ValueError, OverflowError):
        return Failure("expected 30m, 2h, 7d or a date, as in 2026-01-31 or 2026-01-31T12:00")


def shown(record: Record) -> str:
    """One line for people: when, what became of it, which tool, where to, what.

    >>> shown(Record(Event("1", "message", "ops", "matrix", "!r:hs", "text", parts=1), "2026-01-31T12:00:00Z", None))
    '2026-01-31T12:00:00Z unfinished message ops (matrix) to !r:hs: text, 0 of 1 parts'
    """
    about = record.event
    pieces = (
        f"{about.kind or 'nothing'}{f' {about.file}' if about.file else ''}",
        f"{len(record.delivered)} of {about.parts} parts" if about.parts else "",
        f"ids {' '.join(record.ids)}" if record.ids else "",
        f"not to {' '.join(record.undelivered)}" if record.undelivered else "",
        f"{record.error or ''} {record.code or ''}".strip(),
        f"{record.attempts} attempts" if record.attempts > 1 else "",
    )
    place = f"{about.channel} ({about.platform})" if about.platform else about.channel
    head = f"{record.began or record.ended} {record.status} {about.tool} {place}"
    to = f" to {about.recipient}" if about.recipient else ""
    return _one_line(f"{head}{to}: {', '.join(piece for piece in pieces if piece)}")


def as_dict(record: Record) -> dict[str, Any]:
    """As JSON shows it, with the names that the log has."""
    about = record.event
    return {
        "event": about.id,
        "began": record.began,
        "ended": record.ended,
        "status": record.status,
        **_about(about),
        **_outcome(record),
    }


def _one_line(text: str) -> str:
    return " ".join(show_direction(clean(text)).split())
