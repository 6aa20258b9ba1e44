"""How a send goes on: one exchange after another, each a value.

::

    Exchange ── perform ──▶ Result[reply, SendError] ── advance ──▶ Exchange | Done       Success
                                                                     Stopped(at, cause)    Failure

A send is described as its first :class:`Exchange`; the meaning of the reply is a continuation (``then``), a plain
function
or a small frozen class whose fields are its memory. Whoever has a :class:`Stopped` can take ``stopped.at`` again, and
the
send goes on from there: retrying and going on after a crash are one act.

This module knows no edge (HTTP, mail, ...), no channel and no policy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_core.errors import SendError


@dataclass(frozen=True, slots=True)
class Part:
    """Which visible part of the message an exchange places: ``index`` from 1, ``of`` how many."""

    index: int
    of: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What pace and order are kept by: the channel's name, the credential's name, the chat, and the platform's
    method."""

    channel: str
    credential: str = ""
    chat: str = ""
    method: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One part is there. ``id`` as the platform names it (None where it names none), ``recipient`` as sent to.

    ``notes`` say what a reader of the result must know: "as plain text", "cut to 2000 of 2500 characters".
    """

    part: Part | None
    id: str | None
    recipient: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Undelivered:
    """One of several recipients was refused inside an otherwise good reply (SMTP, Signal)."""

    recipient: str
    cause: SendError


@dataclass(frozen=True, slots=True)
class Learned:
    """Something worth keeping for later sends: a DM channel, a room behind an alias, a token; ``until`` in Unix
    seconds."""

    key: str
    value: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Forget:
    """What was kept under ``key`` is no longer true."""

    key: str


Lesson: TypeAlias = Learned | Forget


class Then(Protocol):
    """The meaning of a reply. It must be comparable and picklable: a module-level function or a frozen class."""

    def __call__(self, reply: Any, /) -> "Result[Step, SendError]": ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to perform, and what its reply will mean.

    ``part`` is None while nothing can be visible yet (an upload, the opening of a DM, a token). ``delivered`` and
    ``learned``
    hold what earlier exchanges of this send brought. ``within``: seconds that are left for it, where they are fewer
    than the edge's own time-outs; said by whoever performs it, and no part of what it is.
    """

    request: Any
    then: Then
    scope: Scope
    part: Part | None = None
    delivered: tuple[Receipt, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    learned: tuple[Lesson, ...] = ()
    within: float | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """The send is over: who and what was reached, and who was refused on the way."""

    delivered: tuple[Receipt, ...] = ()
    undelivered: tuple[Undelivered, ...] = ()
    learned: tuple[Lesson, ...] = ()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The send came to a halt at ``at``; everything in ``at.delivered`` is there. Take ``at`` again to go on."""

    at: Exchange
    cause: SendError

    @property
    def learned(self) -> tuple[Lesson, ...]:
        return self.at.learned


Step: TypeAlias = Exchange | Done
Perform: TypeAlias = Callable[[Exchange], Result[Any, SendError]]


def advance(at: Exchange, reply: Result[Any, SendError]) -> Result[Step, Stopped]:
    """What the reply makes of the exchange: the next one, the end, or a stop that can be gone on from."""
    return reply.bind(at.then).map(partial(_since, at)).alt(partial(Stopped, at))


def _since(at: Exchange, step: Step) -> Step:
    """``step`` with what had been brought before it."""
    if not (at.delivered or at.undelivered or at.learned):
        return step
    return replace(
        step,
        delivered=at.delivered + step.delivered,
        undelivered=at.undelivered + step.undelivered,
        learned=at.learned + step.learned,
    )


def drive(perform: Perform, start: Step) -> Result[Done, Stopped]:
    """Perform one exchange after another until the send is done or stops."""
    step = start
    while isinstance(step, Exchange):
        outcome = advance(step, perform(step))
        if not is_successful(outcome):
            return Failure(outcome.failure())
        step = outcome.unwrap()
    return Success(step)


def after(prelude: Step, go_on: "GoOn") -> Step:
    """``prelude`` and then, when it is done, what ``go_on`` makes of its outcome: a DM is opened, then written to."""
    if isinstance(prelude, Done):
        return _since(_bare(prelude), go_on(prelude))
    return replace(prelude, then=Followed(prelude.then, go_on))


def _bare(done: Done) -> Exchange:
    return Exchange(None, _ended, Scope(""), None, done.delivered, done.undelivered, done.learned)


def _ended(_: Any) -> Result[Step, SendError]:
    raise AssertionError("never performed")


class GoOn(Protocol):
    """What follows a finished prelude; comparable and picklable, like :class:`Then`."""

    def __call__(self, done: Done, /) -> Step: ...


@dataclass(frozen=True, slots=True)
class Followed:
    """The reply belongs to the prelude; when that is done, the send goes on."""

    then: Then
    go_on: GoOn

    def __call__(self, reply: Any, /) -> Result[Step, SendError]:
        return self.then(reply).map(partial(after, go_on=self.go_on))


def in_order(steps: tuple[Step, ...]) -> Step:
    """The steps one after another, as one: the parts of a long message."""
    if not steps:
        return Done()
    return after(steps[0], Rest(steps[1:])) if len(steps) > 1 else steps[0]


@dataclass(frozen=True, slots=True)
class Rest:
    """The parts that are left."""

    steps: tuple[Step, ...]

    def __call__(self, done: Done, /) -> Step:
        return in_order(self.steps)
