"""Pace, holds and order: before the platform complains, and first come, first served."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from limits.storage import MemoryStorage
from returns.result import Failure, Result, Success

from messaging_adapters.clock import SystemClock
from messaging_adapters.limiter import Limiter
from messaging_adapters.shared_counts import LimitsCounts
from messaging_core.errors import RateLimited, SendError
from messaging_core.flow import Done, Exchange, Part, Scope, Step
from messaging_core.pacing import OWN_PACE, SLACK, Budget, Hold

NEVER = 1e6


def placed(reply: object, /) -> Result[Step, SendError]:
    return Success(Done())


STEP = Exchange("request", placed, Scope("ops", "ops.token", "-100123"), Part(1, 1))
OTHER_CHAT = replace(STEP, scope=Scope("ops", "ops.token", "-100999"))
OTHER_CHANNEL = replace(STEP, scope=Scope("team", "team.token", "C1"))
FIVE_IN_TWO = Budget(("credential", "ops", "ops.token"), 5, 2.0)


class Leap:
    """A clock for one thread: sleeping is a leap."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.time += seconds


class Together:
    """A clock for ``threads`` threads: when all that are left sleep, it leaps to the first that wakes."""

    def __init__(self, threads: int) -> None:
        self.time = 0.0
        self._left = threads
        self._sleepers: list[float] = []
        self.asleep = threading.Semaphore(0)
        self._changed = threading.Condition()

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        with self._changed:
            until = self.time + seconds
            self._sleepers.append(until)
            self.asleep.release()
            self._leap()
            assert self._changed.wait_for(lambda: self.time >= until, 20)
            self._sleepers.remove(until)

    def leave(self) -> None:
        with self._changed:
            self._left -= 1
            self._leap()

    def _leap(self) -> None:
        awake = self._left - len([until for until in self._sleepers if until > self.time])
        if not awake and self._left and self._sleepers:
            self.time = min(until for until in self._sleepers if until > self.time)
            self._changed.notify_all()


class Held(Leap):
    """A clock whose sleepers wake when the test says so; then their time has come."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = threading.Semaphore(0)
        self.wake = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.asleep.release()
        assert self.wake.wait(20)
        super().sleep(seconds)


# --- Pace -------------------------------------------------------------------------------------------------------------


def test_the_first_request_does_not_wait() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    assert limiter.admit(STEP, (FIVE_IN_TWO,), NEVER) == Success(None)
    assert limiter.admit(STEP, (), NEVER) == Success(None)
    assert clock.slept == []


def test_the_sixth_of_five_waits_for_the_rest_of_the_period() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    for _ in range(6):
        limiter.admit(STEP, (FIVE_IN_TWO,), NEVER)
        clock.time += 0.1
    assert clock.slept == [pytest.approx(2.0 + SLACK - 0.5)]


def test_what_would_wait_past_the_deadline_is_refused_at_once_and_says_how_long() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    once = Budget(("channel", "ops"), 1, 60.0)
    limiter.admit(STEP, (once,), NEVER)
    refused = limiter.admit(STEP, (once,), 10.0)
    detail = "not sent: the pace of the channel would have it wait 60.1 s, 10 s were left"
    assert refused == Failure(RateLimited(code=OWN_PACE, detail=detail, after=60.1))
    assert str(refused.failure()) == detail
    assert clock.slept == []


def test_a_request_counts_from_its_answer_since_it_may_have_arrived_as_late_as_that() -> None:
    """The first one opens a connection and takes its time; the next ones come by it and are fast."""
    clock = Leap()
    limiter = Limiter(clock)
    once = Budget(("channel", "ops"), 1, 1.0)

    def slow(step: Exchange) -> Result[object, SendError]:
        clock.time += 0.7
        return Success("answer")

    assert limiter.paced(STEP, (once,), NEVER, slow) == Success("answer")
    limiter.admit(STEP, (once,), NEVER)
    assert clock.time == pytest.approx(0.7 + 1.0 + SLACK)


def test_a_request_that_is_not_answered_yet_may_arrive_now() -> None:
    clock = Held()
    limiter = Limiter(clock)
    once = Budget(("channel", "ops"), 1, 1.0)
    left, answer = threading.Event(), threading.Event()

    def hanging(step: Exchange) -> Result[object, SendError]:
        left.set()
        assert answer.wait(20)
        raise KeyError

    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(limiter.paced, STEP, (once,), NEVER, hanging)
        assert left.wait(10)
        clock.time = 50.0
        assert limiter.admit(STEP, (once,), 50.5).failure().after == pytest.approx(1.1)  # type: ignore[union-attr]
        answer.set()
        assert isinstance(pending.exception(10), KeyError)
    clock.time = 60.0
    assert limiter.admit(STEP, (once,), 60.0) == Success(None)


def test_a_refused_request_takes_nobodys_place() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    once = Budget(("channel", "ops"), 1, 60.0)
    limiter.admit(STEP, (once,), NEVER)
    for _ in range(5):
        limiter.admit(STEP, (once,), 10.0)
    limiter.admit(STEP, (once,), NEVER)
    assert clock.slept == [pytest.approx(60.1)]


def test_every_budget_has_to_have_room() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    chat, whole = Budget(("chat", "1"), 1, 1.0), Budget(("credential", "x"), 2, 10.0)
    times = []
    for _ in range(4):
        limiter.admit(STEP, (chat, whole), NEVER)
        times.append(round(clock.time, 6))
    assert times == [0.0, 1.1, 10.1, 11.2]


def test_two_paces_of_one_credential_both_hold() -> None:
    """As on Discord: so many in two seconds, and so many in a minute."""
    clock = Leap()
    limiter = Limiter(clock)
    key = ("credential", "ops")
    for _ in range(10):
        limiter.admit(STEP, (Budget(key, 3, 2.0), Budget(key, 9, 60.0)), NEVER)
    assert clock.time == pytest.approx(60.0 + SLACK)


def test_thirty_parallel_sends_keep_to_five_in_two_seconds_without_a_refusal() -> None:
    clock = Together(30)
    limiter = Limiter(clock)
    left: list[float] = []

    def send(_: int) -> None:
        limiter.admit(STEP, (FIVE_IN_TWO,), NEVER)
        left.append(clock.time)
        clock.leave()

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(send, range(30)))
    left.sort()
    assert len(left) == 30
    assert all(later - sooner > 2.0 for sooner, later in zip(left, left[5:]))
    assert left[-1] == pytest.approx(5 * (2.0 + SLACK))


def test_those_who_wait_go_in_the_order_of_asking() -> None:
    clock = Together(8)
    limiter = Limiter(clock)
    once, order = Budget(("channel", "ops"), 1, 1.0), list[int]()
    limiter.admit(STEP, (once,), NEVER)

    def send(number: int) -> None:
        limiter.admit(STEP, (once,), NEVER)
        order.append(number)
        clock.leave()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
        assert clock.asleep.acquire(timeout=10)
    for thread in threads:
        thread.join(10)
    assert order == list(range(8))


def test_a_chat_that_has_to_wait_does_not_hold_up_another_of_the_same_credential() -> None:
    clock = Held()
    limiter = Limiter(clock)
    whole = Budget(("credential", "ops", "ops.token"), 30, 1.0)
    slow, free = Budget(("chat", "slow"), 1, 60.0), Budget(("chat", "free"), 1, 60.0)
    limiter.admit(STEP, (slow, whole), NEVER)
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(limiter.admit, STEP, (slow, whole), NEVER)
        assert clock.asleep.acquire(timeout=10)
        assert limiter.admit(OTHER_CHAT, (free, whole), NEVER) == Success(None)
        assert not pending.done()
        clock.wake.set()
        assert pending.result(10) == Success(None)


# --- Holds ------------------------------------------------------------------------------------------------------------


def test_a_hold_stops_its_scope_and_no_other() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    limiter.learn(Hold(STEP.scope, 3.0))
    limiter.admit(OTHER_CHAT, (), NEVER)
    limiter.admit(OTHER_CHANNEL, (), NEVER)
    assert clock.slept == []
    limiter.admit(STEP, (), NEVER)
    assert clock.slept == [3.0]


def test_a_hold_of_the_credential_stops_all_its_chats() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    limiter.learn(Hold(Scope("ops", "ops.token"), 3.0))
    limiter.admit(OTHER_CHANNEL, (), NEVER)
    assert clock.slept == []
    limiter.admit(OTHER_CHAT, (), NEVER)
    assert clock.slept == [3.0]


def test_the_longer_of_two_holds_counts() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    limiter.learn(Hold(STEP.scope, 3.0))
    limiter.learn(Hold(STEP.scope, 1.0))
    limiter.admit(STEP, (), NEVER)
    assert clock.slept == [3.0]
    assert limiter._holds == {}


def test_after_a_hold_those_who_waited_do_not_all_come_at_once() -> None:
    """They had moments from before the hold; the pace holds for the new ones too."""
    clock = Together(12)
    limiter = Limiter(clock)
    left: list[float] = []

    def send(number: int) -> None:
        limiter.admit(STEP, (FIVE_IN_TWO,), NEVER)
        left.append(clock.time)
        if number == 0:
            limiter.learn(Hold(STEP.scope, 10.0))
        clock.leave()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(send, range(12)))
    late = sorted(moment for moment in left if moment >= 10.0)
    assert not [moment for moment in left if 0 < moment < 10.0]
    assert late
    assert all(later - sooner > 2.0 for sooner, later in zip(late, late[5:]))


def test_a_hold_past_the_deadline_is_refused_at_once() -> None:
    clock = Leap()
    limiter = Limiter(clock)
    limiter.learn(Hold(STEP.scope, 600.0))
    assert limiter.admit(STEP, (), 300.0).failure().after == 600.0  # type: ignore[union-attr]
    assert clock.slept == []


# --- Order per chat ---------------------------------------------------------------------------------------------------


def test_the_parts_of_two_sends_to_one_chat_stand_together() -> None:
    limiter, arrived = Limiter(SystemClock()), list[str]()
    begin = threading.Barrier(4)

    def send(name: str) -> None:
        begin.wait(10)
        with limiter.turn("chat", SystemClock().monotonic() + 20) as turn:
            assert turn == Success(None)
            for part in range(5):
                arrived.append(f"{name}{part}")
                SystemClock().sleep(0.001)

    threads = [threading.Thread(target=send, args=(name,)) for name in "ABCD"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    blocks = [arrived[place : place + 5] for place in range(0, 20, 5)]
    assert sorted(blocks) == [[f"{name}{part}" for part in range(5)] for name in "ABCD"]


def test_turns_come_in_the_order_of_asking() -> None:
    limiter, order = Limiter(SystemClock()), list[int]()
    deadline = SystemClock().monotonic() + 20

    def send(number: int) -> None:
        with limiter.turn("chat", deadline):
            order.append(number)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(10)]
    with limiter.turn("chat", deadline):
        for number, thread in enumerate(threads):
            thread.start()
            wait_for(limiter, number + 2)
    for thread in threads:
        thread.join(20)
    assert order == list(range(10))
    assert limiter._lines == {}


def wait_for(limiter: Limiter, waiting: int) -> None:
    for _ in range(2000):
        if len(limiter._lines["chat"]) == waiting:
            return
        SystemClock().sleep(0.002)
    raise AssertionError("it never came")


def test_one_chats_turn_does_not_hold_up_another() -> None:
    limiter = Limiter(SystemClock())
    deadline = SystemClock().monotonic() + 20
    with limiter.turn("one", deadline), limiter.turn("other", deadline) as turn:
        assert turn == Success(None)


def test_a_turn_that_does_not_come_by_the_deadline_says_so_and_is_passed_on() -> None:
    limiter, seen = Limiter(SystemClock()), list[Result[None, SendError]]()
    soon = SystemClock().monotonic() + 0.05

    def send() -> None:
        with limiter.turn("chat", soon) as turn:
            seen.append(turn)

    with limiter.turn("chat", soon + 20):
        thread = threading.Thread(target=send)
        thread.start()
        thread.join(10)
    assert "no turn came" in str(seen[0].failure())
    with limiter.turn("chat", soon + 20) as turn:
        assert turn == Success(None)


def test_a_turn_is_passed_on_when_the_send_raises() -> None:
    limiter = Limiter(SystemClock())
    deadline = SystemClock().monotonic() + 20
    with pytest.raises(KeyError), limiter.turn("chat", deadline):
        raise KeyError
    with limiter.turn("chat", deadline) as turn:
        assert turn == Success(None)


# --- Shared counts ----------------------------------------------------------------------------------------------------


class OnePlaceAt:
    """Shared counts that are full until a moment."""

    def __init__(self, clock: Leap, free: float) -> None:
        self._clock, self._free = clock, free

    def take(self, budgets: Sequence[Budget]) -> float:
        return max(self._free - self._clock.time, 0.0)

    def answered(self, budgets: Sequence[Budget]) -> None:
        pass


def test_shared_counts_are_waited_for_too() -> None:
    clock = Leap()
    limiter = Limiter(clock, OnePlaceAt(clock, 7.0))
    assert limiter.admit(STEP, (FIVE_IN_TWO,), NEVER) == Success(None)
    assert clock.slept == [7.0]
    full = Limiter(clock, OnePlaceAt(clock, 100.0))
    assert full.admit(STEP, (FIVE_IN_TWO,), 50.0).failure().after == 93.0  # type: ignore[union-attr]


def test_the_storages_of_limits_serve_as_shared_counts() -> None:
    """Two limiters, as two processes would have them, on one storage."""
    storage = MemoryStorage()
    counts = LimitsCounts(storage), LimitsCounts(storage)
    hourly = Budget(("channel", "ops"), 2, 3600.0)
    assert [count.take((hourly,)) for count in counts] == [0.0, 0.0]
    assert 3590 < counts[0].take((hourly,)) <= 3600
    clock = Leap()
    refused = Limiter(clock, counts[1]).admit(STEP, (hourly,), 60.0)
    assert isinstance(refused.failure(), RateLimited)


class Broken(MemoryStorage):
    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        raise ConnectionError("redis://user:password@host")


def test_a_storage_that_fails_is_passed_over_with_a_warning_without_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert LimitsCounts(Broken()).take((FIVE_IN_TWO,)) == 0.0
    assert "ConnectionError" in caplog.text
    assert "password" not in caplog.text


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_quiet_chats_are_forgotten() -> None:
    clock = Leap()
    limiter = Limiter(clock, most_budgets=10)
    for number in range(100):
        limiter.admit(STEP, (Budget(("chat", str(number)), 1, 1.0),), NEVER)
        clock.time += 2.0
    assert len(limiter._tickets) <= 11
