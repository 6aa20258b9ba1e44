"""One send on its way: a record, its turn, pace before each request, a wait and another try after a stop, a record."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_adapters.learned import Lessons
from messaging_adapters.ports import Ports
from messaging_core import audit, pacing
from messaging_core.channels.channel import Pace
from messaging_core.errors import Refusal, SendError, may_have_arrived
from messaging_core.flow import Done, Exchange, Step, Stopped, drive
from messaging_core.outcome import Outcome, of_done, of_stopped, refused
from messaging_core.secrecy import scrub

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Line:
    """What the sends of one channel keep to: its pace, the limit of its settings, how much is tried."""

    channel: str
    platform: str
    retry: pacing.Retry
    pace: tuple[Pace, ...] = ()
    rate_limit: str | None = None


class Sender:
    """Sends what was planned, and gives a true account of it. May be shared by threads."""

    def __init__(self, ports: Ports, lessons: Lessons) -> None:
        self._ports, self._lessons = ports, lessons

    def send(self, start: Step, line: Line, event: audit.Event, anew: Callable[[], Step] | None = None) -> Outcome:
        """The whole send: nothing leaves before its ``begin`` is recorded, nothing returns before its ``end`` is.

        ``anew``: asked for the start when the turn has come, since the send before may have learned what this one would
        ask for once more (the opening of a direct-message channel).
        """
        clock = self._ports.clock
        began = clock.monotonic()
        written = self._ports.audit.write(audit.begun(event, clock.now()))
        if not is_successful(written):
            return replace(refused(event.tool, written.failure(), line.channel, event.recipient), event=event.id)
        run = _Run(self._ports, self._lessons, line, began + line.retry.deadline)
        result = self._account(run.in_turn(start, event.recipient, anew), line, event)
        self._ports.audit.write(audit.ended(event, result, clock.now(), run.attempts, clock.monotonic() - began))
        log.info("%s: %s", line.channel, result.status.value)
        return result

    def _account(self, ended: Result[Done, Stopped], line: Line, event: audit.Event) -> Outcome:
        where = (event.tool, line.channel, line.platform, event.recipient, event.parts)
        if is_successful(ended):
            result = of_done(scrub(self._ports.secrets, ended.unwrap()), *where)
        else:
            result = of_stopped(self._clean(ended.failure()), *where)
        return replace(result, event=event.id, kind=event.kind)

    def _clean(self, stopped: Stopped) -> Stopped:
        """What the far end said, of the failure and of what arrived before it; the request is ours and holds none."""
        secrets, at = self._ports.secrets, stopped.at
        delivered, undelivered = scrub(secrets, at.delivered), scrub(secrets, at.undelivered)
        return Stopped(replace(at, delivered=delivered, undelivered=undelivered), scrub(secrets, stopped.cause))

    def refuse(self, tool: str, refusal: Refusal, event: audit.Event) -> Outcome:
        """A refusal is recorded too: that it was asked for, never what was to be said."""
        said: Outcome = scrub(
            self._ports.secrets, refused(tool, refusal, event.channel or None, event.recipient or None)
        )
        result = replace(said, event=event.id, platform=event.platform or None)
        self._ports.audit.write(audit.refused(result, self._ports.clock.now(), event.kind, event.file))
        log.info("%s: refused (%s)", event.channel or tool, type(refusal).__name__)
        return result

    def ask(self, start: Step) -> Result[Done, SendError]:
        """A probe: asked once, without record, turn or pace, since nobody sees anything of it."""
        result = drive(partial(_edge, self._ports), start)
        self._lessons.keep(result)
        return result.alt(lambda stopped: self._scrubbed(stopped.cause))

    def _scrubbed(self, cause: SendError) -> SendError:
        clean: SendError = scrub(self._ports.secrets, cause)
        return clean


def _edge(ports: Ports, exchange: Exchange) -> Result[Any, SendError]:
    return ports.edges[type(exchange.request)](exchange)


class _Run:
    """One send, until it is done, given up or out of time. ``attempts``: requests made."""

    def __init__(self, ports: Ports, lessons: Lessons, line: Line, deadline: float) -> None:
        self._ports, self._lessons, self._line, self._deadline = ports, lessons, line, deadline
        self.attempts = 0

    def in_turn(self, start: Step, recipient: str, anew: Callable[[], Step] | None) -> Result[Done, Stopped]:
        """What another thread sends to the same recipient comes before all of this, or after it."""
        if isinstance(start, Done):
            return Success(start)
        with self._ports.limiter.turn((self._line.channel, recipient), self._deadline) as turn:
            if not is_successful(turn):
                return Failure(Stopped(start, turn.failure()))
            first = start if anew is None else anew()
            return Success(first) if isinstance(first, Done) else self._until_over(first)

    def _until_over(self, start: Exchange) -> Result[Done, Stopped]:
        at, attempt = start, 0
        doubt: SendError | None = None
        while True:
            result = drive(self._paced, at)
            self._lessons.keep(result)
            if is_successful(result):
                return result
            stopped = result.failure()
            hold = pacing.hold_after(stopped)
            if hold is not None:
                self._ports.limiter.learn(hold)
            same = stopped.at.request == at.request and stopped.at.part == at.part
            attempt, doubt = (attempt + 1, doubt) if same else (1, None)
            verdict = pacing.next_try(stopped, attempt, self._elapsed(), self._line.retry, random.random())
            if isinstance(verdict, pacing.GiveUp):
                return Failure(pacing.with_doubt(doubt, stopped))
            if may_have_arrived(stopped.cause):
                doubt = stopped.cause
            self._ports.clock.sleep(verdict.seconds)
            at = stopped.at

    def _elapsed(self) -> float:
        return self._ports.clock.monotonic() - (self._deadline - self._line.retry.deadline)

    def _paced(self, exchange: Exchange) -> Result[Any, SendError]:
        budgets = pacing.budgets(exchange, self._line.pace, self._line.rate_limit)
        return self._ports.limiter.paced(exchange, budgets, self._deadline, self._performed)

    def _performed(self, exchange: Exchange) -> Result[Any, SendError]:
        self.attempts += 1
        within = pacing.patience(self._elapsed(), self._line.retry)
        reply = _edge(self._ports, replace(exchange, within=within))
        hold = reply.map(partial(pacing.hold_of, exchange)).value_or(None)
        if hold is not None:
            self._ports.limiter.learn(hold)
        return reply
