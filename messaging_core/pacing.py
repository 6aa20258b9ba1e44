"""When to send: whether a stopped send is taken again and after how long, and how many requests fit into which time.

Repeated is only what certainly did not arrive, or what is safe to repeat (by method, or by a key that the platform
deduplicates on). Everything here is a decision about values; the waiting is done by the shell
(:mod:`messaging_adapters.limiter` and the Messenger).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from messaging_core.channels.channel import By, Configured, Pace
from messaging_core.config.settings import Settings
from messaging_core.errors import (
    Malformed,
    RateLimited,
    SendError,
    Unanswered,
    Unavailable,
    Unreachable,
    may_have_arrived,
)
from messaging_core.flow import Exchange, Scope, Stopped
from messaging_core.wire.http import LEAST_WAIT, HttpReply, at, at_least, read_json, wait_of

# --- Taking a stopped send again --------------------------------------------------------------------------------------

FIRST_WAIT = 0.5
"""Seconds before the second try where the platform names no wait; each further wait is twice the one before."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How much is tried: ``max_wait`` a wait, ``deadline`` for the whole send (seconds), ``max_attempts`` a request.

    ``when_unanswered``: "report" an ambiguous end as unconfirmed, or "repeat" it, which may show the message twice.
    """

    max_wait: float = 60.0
    max_attempts: int = 4
    deadline: float = 300.0
    when_unanswered: str = "report"


def retry_of(settings: Settings, configured: Configured[Any]) -> Retry:
    """What the settings say for one channel."""
    return Retry(
        settings.max_wait, settings.max_attempts, settings.message_timeout_secs, configured.rules.when_unanswered
    )


@dataclass(frozen=True, slots=True)
class Wait:
    """Take ``stopped.at`` again after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Report what there is; ``why`` completes "given up: ..."."""

    why: str


def next_try(stopped: Stopped, attempt: int, elapsed: float, limits: Retry, jitter: float) -> Wait | GiveUp:
    """Whether ``stopped.at`` is taken again.

    ``attempt``: how often this exchange was tried (1 after the first). ``elapsed``: seconds since the whole send began.
    ``jitter``: from 0 to 1, so that many senders do not come back in one moment.
    """
    cause = stopped.cause
    if not is_repeatable(stopped, limits.when_unanswered):
        return GiveUp("it may have arrived" if not _is_final(cause) else "repeating it changes nothing")
    if isinstance(cause, RateLimited) and cause.code == OWN_PACE:
        return GiveUp("there was no room before the deadline")
    if attempt >= limits.max_attempts:
        return GiveUp(f"tried {attempt} times")
    named = cause.after if isinstance(cause, RateLimited | Unavailable) else None
    left = limits.deadline - elapsed
    if named is None:
        seconds = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 30) * (1 + jitter) / 2, limits.max_wait)
        if isinstance(cause, RateLimited):
            seconds = max(seconds, min(LEAST_WAIT, limits.max_wait))
    elif named > limits.max_wait:
        return GiveUp(f"the platform asks to wait {named:g} s, the longest wait is {limits.max_wait:g} s")
    else:
        seconds = named * (1 + jitter / 10)
    if seconds >= left:
        wait = f"{seconds if named is None else named:.3g}"
        return GiveUp(f"the next try would be in {wait} s, {max(left, 0):.3g} of {limits.deadline:g} s are left")
    return Wait(seconds)


def patience(elapsed: float, limits: Retry) -> float:
    """Seconds that one request may take, connecting and answer together: what is left until the deadline.

    One that leaves at the last moment is given a tenth of the whole time, and at most a second, to be answered: it
    would else be unconfirmed for want of a moment.
    """
    return round(max(limits.deadline - elapsed, min(limits.deadline / 10, 1.0)), 3)


def is_repeatable(stopped: Stopped, when_unanswered: str = "report") -> bool:
    """Whether taking ``stopped.at`` again can do no harm, or the settings accept the harm that it may do."""
    if has_not_arrived(stopped.cause):
        return True
    if _is_final(stopped.cause):
        return False
    return when_unanswered == "repeat" or bool(getattr(stopped.at.request, "repeatable", False))


def can_resume(stopped: Stopped, repeat_unconfirmed: bool = False) -> bool:
    """Whether a caller may go on by hand from ``stopped.at``: not where that may show a part twice, unless they say so.

    What was plainly refused may be taken again: the caller may have changed the settings in between.
    """
    unconfirmed = stopped.at.part is not None and may_have_arrived(stopped.cause)
    return repeat_unconfirmed or not unconfirmed or is_repeatable(stopped)


def with_doubt(earlier: SendError | None, last: Stopped) -> Stopped:
    """What is to be told of a step that was given up after several tries. ``earlier``: how a try ended that may have
    arrived; None where none did.

    A later try that did not get through takes nothing back. Only an answer does, of a far end that knows a repeat as
    one.
    """
    knows = _is_final(last.cause) and bool(getattr(last.at.request, "repeatable", False))
    return last if earlier is None or knows or may_have_arrived(last.cause) else replace(last, cause=earlier)


def has_not_arrived(cause: SendError) -> bool:
    """Whether the request certainly had no effect, and may have one later.

    503 is the server's own refusal to work on a request (RFC 9110, 15.6.4). So are 408 and 425, and the 4yz replies of
    SMTP (RFC 5321, 4.2.1), which channels give as ``Unavailable`` too. A 500 may come after the work was done.
    """
    match cause:
        case RateLimited() | Unreachable():
            return True
        case Unavailable(status=int(status), may_have_arrived=False):
            return status == 503 or 400 <= status < 500
        case _:
            return False


def _is_final(cause: SendError) -> bool:
    """Neither a wait nor a repeat makes anything else of it."""
    return not isinstance(cause, RateLimited | Unreachable | Unavailable | Unanswered | Malformed)


# --- What a reply says about the next request -------------------------------------------------------------------------

LONGEST_HOLD = 3600.0
"""Seconds, whatever a reply says: then one request asks again, so that a wrong figure cannot silence a channel."""


@dataclass(frozen=True, slots=True)
class Hold:
    """No request of ``scope`` for so many seconds. An empty field of it means all: chats, methods, credentials."""

    scope: Scope
    seconds: float

    def covers(self, scope: Scope) -> bool:
        """
        >>> Hold(Scope("ops", "ops.token"), 5.0).covers(Scope("ops", "ops.token", "-100123"))
        True
        """
        pairs = zip(_fields(self.scope), _fields(scope), strict=True)
        return all(mine in ("", theirs) for mine, theirs in pairs)


def _fields(scope: Scope) -> tuple[str, str, str, str]:
    return (scope.channel, scope.credential, scope.chat, scope.method)


def hold_of(step: Exchange, reply: Any) -> Hold | None:
    """What ``reply`` says about later requests, or None: a 429 for the whole credential, or that none remain for now.

    Headers of https://docs.discord.com/developers/topics/rate-limits (seconds, decimal), which others have taken over.
    """
    if not isinstance(reply, HttpReply):
        return None
    if reply.status == 429:
        body = read_json(reply).value_or(None)
        everywhere = (reply.header("X-RateLimit-Global") or "").lower() == "true" or at(body, "global") is True
        waits = (wait_of(reply), _seconds(at(body, "retry_after")) if everywhere else None)
        named = max((wait for wait in waits if wait is not None), default=None)
        scope = Scope(step.scope.channel, step.scope.credential) if everywhere else step.scope
        return None if named is None else _held(scope, named)
    if (reply.header("X-RateLimit-Remaining") or "").strip() == "0":
        return Hold(step.scope, _reset(reply)) if reply.header("X-RateLimit-Reset-After") else None
    return None


OWN_PACE = "pace"
"""The code of a ``RateLimited`` that is ours: the request was never made, so no platform said anything."""


def hold_after(stopped: Stopped) -> Hold | None:
    """The wait that a refusal named, in the platform's own field, as a hold of the exchange's scope."""
    match stopped.cause:
        case RateLimited(code=code) if code == OWN_PACE:
            return None
        case RateLimited(after=after):
            return _held(stopped.at.scope, LEAST_WAIT if after is None else after)
        case Unavailable(after=float(after)):
            return _held(stopped.at.scope, after)
        case _:
            return None


def _held(scope: Scope, seconds: float) -> Hold:
    return Hold(scope, min(seconds, LONGEST_HOLD))


def _reset(reply: HttpReply) -> float:
    """Unlike a refusal's, this wait may be shorter than a second: nothing went wrong."""
    try:
        seconds = float(reply.header("X-RateLimit-Reset-After") or "")
    except ValueError:
        return LEAST_WAIT
    return min(seconds, LONGEST_HOLD) if seconds >= 0 else LEAST_WAIT


def _seconds(value: Any) -> float | None:
    return None if value is None else at_least(value)


# --- How many requests fit --------------------------------------------------------------------------------------------

SLACK = 0.1
"""Seconds added to every period: where only the departure is known, requests may arrive a little closer together."""

ROUNDING = 1e-6
"""Seconds. ``(moment + per) - moment`` is not always ``per``."""

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``count`` requests in any ``per`` seconds among all those that share ``key``."""

    key: Key
    count: int
    per: float


def budgets(step: Exchange, pace: Iterable[Pace], rate_limit: str | None = None) -> tuple[Budget, ...]:
    """What ``step`` has to fit into: the platform's pace, and the ``rate_limit`` of the channel's settings.

    A pace by chat and the ``rate_limit`` count what is visible; uploads, tokens and the opening of a DM are not.
    """
    scope, visible = step.scope, step.part is not None
    found: list[Budget] = []
    for rule in pace:
        match rule.by:
            case By.CHAT if visible:
                found.append(Budget(("chat", scope.channel, scope.credential, scope.chat), rule.count, rule.per))
            case By.CREDENTIAL:
                found.append(Budget(("credential", scope.channel, scope.credential), rule.count, rule.per))
            case By.METHOD if scope.method:
                found.append(Budget(("method", scope.channel, scope.credential, scope.method), rule.count, rule.per))
            case _:
                pass
    if rate_limit is not None and visible:
        found.append(Budget(("channel", scope.channel), *rate(rate_limit)))
    return tuple(found)


_PERIODS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


def rate(text: str) -> tuple[int, float]:
    """A ``rate_limit``, in the form that the settings keep, as count and seconds. Another is a bug (``ValueError``).

    >>> rate("20/minute")
    (20, 60.0)
    """
    count, _, period = text.partition("/")
    if not count.isdecimal() or period not in _PERIODS:
        raise ValueError(f'expected a rate_limit such as "20/minute", got {text!r}')
    return int(count), _PERIODS[period]


def earliest(times: Sequence[float], count: int, per: float, start: float) -> float:
    """The first moment from ``start`` on at which one more still leaves no more than ``count`` in any ``per`` seconds.

    ``times``: moments already taken, in order; some may lie ahead.

    >>> earliest((0.0, 0.5, 0.9), 3, 2.0, start=1.0)
    2.0
    """
    moments = (start, *(moment for taken in times if (moment := taken + per) > start))
    return next(moment for moment in moments if _fits(times, count, per, moment))


def _fits(times: Sequence[float], count: int, per: float, moment: float) -> bool:
    place = bisect_left(times, moment)
    near = (*times[max(place - count, 0) : place], moment, *times[place : place + count])
    return all(later - sooner >= per - ROUNDING for sooner, later in zip(near, near[count:], strict=False))
