"""How a send goes on: every step is a value, and a stop can be gone on from."""

import pickle
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from returns.result import Failure, Result, Success

from messaging_core.errors import RateLimited, SendError, Unanswered, Unreachable
from messaging_core.flow import (
    Done,
    Exchange,
    Learned,
    Part,
    Receipt,
    Rest,
    Scope,
    Step,
    Stopped,
    advance,
    after,
    drive,
    in_order,
)


@dataclass(frozen=True, slots=True)
class Placed:
    """The reply is the id."""

    part: Part

    def __call__(self, reply: str, /) -> Result[Step, SendError]:
        return Success(Done((Receipt(self.part, reply, "room"),)))


def opened(reply: str, /) -> Result[Step, SendError]:
    return Success(Done(learned=(Learned("dm", reply),)))


def exchange(index: int, of: int) -> Exchange:
    part = Part(index, of)
    return Exchange(f"request {index}", Placed(part), Scope("tg", chat="42"), part)


def message(count: int) -> Step:
    return in_order(tuple(exchange(index, count) for index in range(1, count + 1)))


def answer(at: Exchange) -> Result[str, SendError]:
    return Success(f"id of {at.request}")


def test_parts_are_placed_in_order_and_each_leaves_a_receipt() -> None:
    expected = tuple(Receipt(Part(i, 3), f"id of request {i}", "room") for i in (1, 2, 3))
    assert drive(answer, message(3)) == Success(Done(expected))


def test_a_prelude_is_performed_first_and_what_it_teaches_is_kept() -> None:
    prelude = Exchange("open", opened, Scope("discord"))
    done = drive(answer, after(prelude, Rest((message(1),)))).unwrap()
    assert done == Done((Receipt(Part(1, 1), "id of request 1", "room"),), learned=(Learned("dm", "id of open"),))


def test_a_stop_in_the_middle_holds_what_was_learned_and_delivered() -> None:
    prelude = Exchange("open", opened, Scope("discord"))

    def perform(at: Exchange) -> Result[str, SendError]:
        return Failure(Unanswered("no answer")) if at.request == "request 2" else answer(at)

    stopped = drive(perform, after(prelude, Rest((message(3),)))).failure()
    assert stopped.cause == Unanswered("no answer")
    assert stopped.at.request == "request 2"
    assert [receipt.id for receipt in stopped.at.delivered] == ["id of request 1"]
    assert stopped.learned == (Learned("dm", "id of open"),)


@given(st.integers(1, 12), st.data())
def test_going_on_from_any_stop_places_every_part_exactly_once(count: int, data: st.DataObject) -> None:
    """However often the line fails before a request leaves, in the end each part was placed once, in order."""
    failures = data.draw(st.lists(st.integers(1, count), max_size=8))
    placed: list[str] = []

    def perform(at: Exchange) -> Result[str, SendError]:
        assert at.part is not None
        if at.part.index in failures:
            failures.remove(at.part.index)
            return Failure(Unreachable())
        placed.append(at.request)
        return answer(at)

    step, result = message(count), None
    for _ in range(20):
        result = drive(perform, step)
        lost = result.swap().value_or(None)
        if not isinstance(lost, Stopped):
            break
        step = lost.at
    assert placed == [f"request {index}" for index in range(1, count + 1)]
    assert result is not None and [r.id for r in result.unwrap().delivered] == [f"id of {name}" for name in placed]


@given(st.integers(1, 6))
def test_equal_descriptions_are_equal_and_survive_pickling_at_every_step(count: int) -> None:
    step: Step = message(count)
    assert step == message(count)
    while isinstance(step, Exchange):
        assert pickle.loads(pickle.dumps(step)) == step
        step = advance(step, answer(step)).unwrap()
    assert step == drive(answer, message(count)).unwrap()


def test_a_failed_reply_stops_at_the_exchange_itself() -> None:
    first = exchange(1, 1)
    assert advance(first, Failure(RateLimited(429))) == Failure(Stopped(first, RateLimited(429)))


def test_nothing_to_do_is_done() -> None:
    assert in_order(()) == Done()
    assert after(Done(learned=(Learned("a", "b"),)), Rest(())) == Done(learned=(Learned("a", "b"),))
    assert drive(partial(lambda at: answer(at)), Done()) == Success(Done())


def test_a_changed_memory_makes_a_different_continuation() -> None:
    assert replace(exchange(1, 2), then=Placed(Part(2, 2))) != exchange(1, 2)
