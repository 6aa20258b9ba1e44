"""Threads that are kept from one fan-out to the next."""

import os
import threading
from collections.abc import Iterator

import pytest

from messaging_adapters.crew import Crew


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew()
    yield made
    made.close()


def test_all_are_at_work_at_the_same_time_and_answer_in_order(crew: Crew) -> None:
    together = threading.Barrier(20)

    def meet(number: int) -> int:
        together.wait(10)
        return number * 2

    for _ in range(2):
        assert crew.each(meet, range(20)) == tuple(range(0, 40, 2))
    assert crew.each(meet, ()) == ()


def test_the_threads_of_the_last_time_are_used_again(crew: Crew) -> None:
    together = threading.Barrier(3)

    def who(_: int) -> threading.Thread:
        together.wait(10)
        return threading.current_thread()

    assert set(crew.each(who, range(3))) == set(crew.each(who, range(3)))


def test_a_larger_fan_out_than_the_last_gets_a_thread_for_each(crew: Crew) -> None:
    crew.each(str, range(2))
    together = threading.Barrier(5)
    assert len(crew.each(lambda _: together.wait(10), range(5))) == 5


def test_whoever_comes_while_the_threads_are_at_work_does_not_wait_for_them(crew: Crew) -> None:
    crew.each(str, range(2))
    go_on = threading.Event()
    busy = threading.Thread(target=crew.each, args=(lambda _: go_on.wait(10), range(2)))
    busy.start()
    try:
        assert crew.each(str, range(2)) == ("0", "1")
    finally:
        go_on.set()
        busy.join()
    assert crew.each(str, range(2)) == ("0", "1")


def test_a_forked_process_has_threads_of_its_own(crew: Crew) -> None:
    crew.each(str, range(3))
    child = os.fork()
    if child == 0:
        os._exit(0 if crew.each(str, range(2)) == ("0", "1") else 1)
    for _ in range(500):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child waits for threads that only its parent has")
    assert status == 0


def test_a_fault_in_one_is_raised_and_the_crew_goes_on(crew: Crew) -> None:
    with pytest.raises(ZeroDivisionError):
        crew.each(lambda number: 1 // number, range(3))
    assert crew.each(str, range(3)) == ("0", "1", "2")


def test_after_it_was_closed_it_begins_anew(crew: Crew) -> None:
    crew.each(str, range(2))
    crew.close()
    assert crew.each(str, range(2)) == ("0", "1")
