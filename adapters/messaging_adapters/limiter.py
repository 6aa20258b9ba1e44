"""Waiting before the platform complains: pace, holds, and the order of sends to one chat.

::

    with limiter.turn(("ops", "-100123"), deadline) as turn:     a whole send: nobody else writes to the chat meanwhile
        limiter.paced(exchange, budgets, deadline, perform)      each request
        limiter.learn(hold)                                      what a reply said about later ones

What fits is computed by :mod:`messaging_core.pacing`; here is only the memory of it, the lock and the sleep. A request
takes its moment when it asks, first come first served, so each knows at once how long it would wait, and nobody polls.
No wait holds the lock: one channel's never holds up another.

The counts are of this process. Several processes share them through a :class:`SharedCounts`, for which any storage of
the library `limits` serves (:class:`messaging_adapters.shared_counts.LimitsCounts`). Its own storage in memory is not
used here: it goes by the wall clock (a step back would hold every send until the time is made up), starts a thread with
each request, and cannot tell a waiting request its moment.
"""

import threading
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from returns.result import Failure, Result, Success

from messaging_adapters.clock import Clock
from messaging_core.errors import RateLimited, SendError
from messaging_core.flow import Exchange, Perform, Scope
from messaging_core.pacing import OWN_PACE, SLACK, Budget, Hold, earliest

MOST_BUDGETS = 10_000
"""Budgets (one a chat) remembered before those that are quiet again are forgotten."""


class SharedCounts(Protocol):
    """Counts that several processes keep together."""

    def take(self, budgets: Sequence[Budget]) -> float:
        """Take one place in each of ``budgets``: 0.0, or the seconds after which to ask again. Never raises."""
        ...

    def answered(self, budgets: Sequence[Budget]) -> None:
        """The request that this thread took places for has its answer: it counts from now on. Never raises."""
        ...


class _Ticket:
    """One request: the monotonic ``moment`` that it goes or went at, and for how many seconds (``per``) it counts.

    ``not_before``: by word of the shared counts. ``under_way``: it has no answer yet, so it may reach the platform now;
    once it is answered, the moment of the answer is the last at which it can have arrived.
    """

    __slots__ = ("gone", "moment", "not_before", "per", "under_way")

    def __init__(self, per: float, under_way: bool) -> None:
        self.per = per
        self.under_way = under_way
        self.moment = 0.0
        self.not_before = 0.0
        self.gone = False

    def counts(self, now: float, per: float) -> bool:
        return not self.gone or self.under_way or self.moment + per > now


class Limiter:
    """The memory of what was sent when, for several threads. A ``deadline`` is in ``clock.monotonic()`` seconds."""

    def __init__(self, clock: Clock, shared: SharedCounts | None = None, most_budgets: int = MOST_BUDGETS) -> None:
        self._clock = clock
        self._most_budgets = most_budgets
        self._shared = shared
        self._lock = threading.Lock()
        self._lines: dict[Hashable, deque[threading.Event]] = {}
        self._tickets: dict[Budget, list[_Ticket]] = {}
        self._holds: dict[Scope, float] = {}

    # --- Order ------------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self, key: Hashable, deadline: float) -> Iterator[Result[None, SendError]]:
        """The turn of one whole send among all that share ``key``, in the order of asking.

        Yields a ``RateLimited`` where the turn has not come by the deadline: then nothing may be sent.
        """
        mine = threading.Event()
        with self._lock:
            line = self._lines.setdefault(key, deque())
            line.append(mine)
            line[0].set()
        try:
            wait = max(deadline - self._clock.monotonic(), 0.0)
            yield Success(None) if mine.wait(wait) else Failure(_busy(wait))
        finally:
            with self._lock:
                line.remove(mine)
                if line:
                    line[0].set()
                else:
                    del self._lines[key]

    # --- Pace -------------------------------------------------------------------------------------------------------

    def paced(
        self, step: Exchange, budgets: Sequence[Budget], deadline: float, perform: Perform
    ) -> Result[Any, SendError]:
        """Perform ``step`` as soon as it may leave. ``RateLimited`` at once where that would be after the deadline."""
        ticket = _Ticket(max((budget.per for budget in budgets), default=0.0) + SLACK, under_way=True)
        return self._admitted(ticket, step, budgets, deadline).bind(
            lambda _: self._performed(ticket, step, budgets, perform)
        )

    def admit(self, step: Exchange, budgets: Sequence[Budget], deadline: float) -> Result[None, SendError]:
        """Only wait until ``step`` may leave: for what has no answer, as it counts from when it left."""
        ticket = _Ticket(max((budget.per for budget in budgets), default=0.0) + SLACK, under_way=False)
        return self._admitted(ticket, step, budgets, deadline)

    def learn(self, hold: Hold) -> None:
        """Hold back every request of the scope; of two holds the longer one counts."""
        until = self._clock.monotonic() + hold.seconds
        with self._lock:
            self._holds[hold.scope] = max(until, self._holds.get(hold.scope, until))

    def _admitted(
        self, ticket: _Ticket, step: Exchange, budgets: Sequence[Budget], deadline: float
    ) -> Result[None, SendError]:
        try:
            while (wait := self._reserve(ticket, step.scope, budgets)) > 0:
                if ticket.moment > deadline:
                    return Failure(_too_slow(wait, max(deadline - self._clock.monotonic(), 0.0)))
                self._clock.sleep(wait)
            return Success(None)
        finally:
            if not ticket.gone:
                self._forget(ticket, budgets)

    def _performed(
        self, ticket: _Ticket, step: Exchange, budgets: Sequence[Budget], perform: Perform
    ) -> Result[Any, SendError]:
        try:
            return perform(step)
        finally:
            with self._lock:
                ticket.moment, ticket.under_way = self._clock.monotonic(), False
            if self._shared is not None:
                self._shared.answered(budgets)

    def _reserve(self, ticket: _Ticket, scope: Scope, budgets: Sequence[Budget]) -> float:
        """Give the ticket its moment, again after each sleep: 0.0 where that is now, else the seconds until then."""
        with self._lock:
            now = self._clock.monotonic()
            self._tidy(now, budgets)
            start = max(now, ticket.not_before, self._held_until(scope, now))
            ticket.moment = self._moment(ticket, now, start, budgets)
            for budget in budgets:
                line = self._tickets.setdefault(budget, [])
                if ticket not in line:
                    line.append(ticket)
            if ticket.moment > now:
                return ticket.moment - now
            if self._shared is None:
                ticket.gone = True
                return 0.0
        wait = self._shared.take(budgets)
        ticket.moment = ticket.not_before = now + wait
        ticket.gone = wait <= 0
        return wait

    def _moment(self, ticket: _Ticket, now: float, start: float, budgets: Sequence[Budget]) -> float:
        """The first moment that every budget leaves free."""
        moment = start
        while True:
            free = (earliest(self._times(b, ticket, now), b.count, b.per + SLACK, moment) for b in budgets)
            later = max(free, default=moment)
            if later <= moment:
                return moment
            moment = later

    def _times(self, budget: Budget, mine: _Ticket, now: float) -> list[float]:
        """The moments that count for ``mine``: of all that went, and of those waiting that came before it.

        One that came later and goes earlier (its chat is free, mine is not) has gone by the time that mine comes.
        """
        line = self._tickets.get(budget, [])
        before = line.index(mine) if mine in line else len(line)
        counting = (one for place, one in enumerate(line) if one is not mine and (one.gone or place < before))
        return sorted(now if one.gone and one.under_way else one.moment for one in counting)

    def _held_until(self, scope: Scope, now: float) -> float:
        self._holds = {held: until for held, until in self._holds.items() if until > now}
        return max((until for held, until in self._holds.items() if Hold(held, 0.0).covers(scope)), default=now)

    def _tidy(self, now: float, budgets: Sequence[Budget]) -> None:
        """Forget what no budget counts any more."""
        for budget in budgets:
            line = self._tickets.get(budget)
            if line is not None:
                line[:] = [one for one in line if one.counts(now, budget.per + SLACK)]
        if len(self._tickets) > self._most_budgets:
            counting = (
                (key, line) for key, line in self._tickets.items() if any(one.counts(now, one.per) for one in line)
            )
            self._tickets = dict(counting)

    def _forget(self, ticket: _Ticket, budgets: Sequence[Budget]) -> None:
        with self._lock:
            for budget in budgets:
                line = self._tickets.get(budget, [])
                if ticket in line:
                    line.remove(ticket)


def _too_slow(wait: float, left: float) -> RateLimited:
    detail = f"not sent: the pace of the channel would have it wait {wait:.3g} s, {left:.3g} s were left"
    return RateLimited(code=OWN_PACE, detail=detail, after=wait)


def _busy(waited: float) -> RateLimited:
    detail = f"not sent: at the pace of earlier messages to the chat, no turn came in {waited:.3g} s"
    return RateLimited(code=OWN_PACE, detail=detail)
