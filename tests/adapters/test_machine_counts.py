"""Processes beside each other keep one pace together."""

import fcntl
import multiprocessing
import stat
from pathlib import Path

import pytest
from returns.result import Result, Success

from messaging_adapters.clock import SystemClock
from messaging_adapters.limiter import Limiter
from messaging_adapters.machine_counts import MachineCounts
from messaging_core.errors import SendError
from messaging_core.flow import Done, Exchange, Part, Scope, Step
from messaging_core.pacing import SLACK, Budget

TWO = Budget(("credential", "ops", "ops.token"), 2, 10.0)
CHAT = Budget(("chat", "ops", "ops.token", "-100123"), 1, 1.0)


class Set(SystemClock):
    """A clock that the test sets."""

    def __init__(self, time: float = 1000.0) -> None:
        self.time = time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def test_two_processes_share_the_places(tmp_path: Path) -> None:
    clock = Set()
    one, other = (MachineCounts(tmp_path / "state" / "counts", clock) for _ in "12")
    assert [one.take((TWO,)), other.take((TWO,))] == [0.0, 0.0]
    clock.time += 4
    assert one.take((TWO,)) == other.take((TWO,)) == pytest.approx(6.0 + SLACK)
    clock.time += 6.2
    assert other.take((TWO,)) == 0.0
    assert stat.S_IMODE((tmp_path / "state" / "counts").stat().st_mode) == 0o600


def test_a_request_that_one_budget_refuses_takes_no_place_in_another(tmp_path: Path) -> None:
    counts = MachineCounts(tmp_path / "counts", Set())
    assert counts.take((TWO, CHAT)) == 0.0
    assert counts.take((TWO, CHAT)) == pytest.approx(1.0 + SLACK)
    assert counts.take((TWO,)) == 0.0
    assert counts.take(()) == 0.0


def test_two_paces_of_one_credential_both_hold(tmp_path: Path) -> None:
    clock = Set()
    counts = MachineCounts(tmp_path / "counts", clock)
    key = ("credential", "ops")
    both = (Budget(key, 1, 2.0), Budget(key, 2, 60.0))
    assert counts.take(both) == 0.0
    assert counts.take(both) == pytest.approx(2.0 + SLACK)
    clock.time += 3
    assert counts.take(both) == 0.0
    clock.time += 3
    assert counts.take(both) == pytest.approx(54.0 + SLACK)


def test_channels_of_one_name_in_two_configurations_do_not_count_for_each_other(tmp_path: Path) -> None:
    clock = Set()
    for place in ("a.yaml", "b.yaml"):
        assert MachineCounts(tmp_path / "counts", clock, place).take((CHAT,)) == 0.0


def test_what_no_longer_counts_is_forgotten(tmp_path: Path) -> None:
    clock = Set()
    counts = MachineCounts(tmp_path / "counts", clock)
    for number in range(50):
        counts.take((Budget(("chat", str(number)), 1, 1.0),))
        clock.time += 5
    assert (tmp_path / "counts").stat().st_size < 100


def test_times_from_before_the_machine_was_started_are_dropped(tmp_path: Path) -> None:
    MachineCounts(tmp_path / "counts", Set(1e6)).take((CHAT,))
    assert MachineCounts(tmp_path / "counts", Set(5.0)).take((CHAT,)) == 0.0


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"a": null}', '{"a": ["x"]}', "\x00" * 100])
def test_a_file_that_cannot_be_read_counts_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "counts").write_text(content)
    counts = MachineCounts(tmp_path / "counts", Set())
    assert counts.take((CHAT,)) == 0.0
    assert counts.take((CHAT,)) > 0.0


def test_a_place_that_fails_is_passed_over_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    counts = MachineCounts(tmp_path / "file" / "counts", Set())
    assert [counts.take((CHAT,)) for _ in "123"] == [0.0] * 3
    assert len(caplog.records) == 1


def test_a_stopped_process_that_holds_the_lock_does_not_stop_all_others(tmp_path: Path) -> None:
    counts = MachineCounts(tmp_path / "counts", Set())
    counts.take((CHAT,))
    with (tmp_path / "counts").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert counts.take((CHAT,)) == 0.0


def placed(reply: object, /) -> Result[Step, SendError]:
    return Success(Done())


def _send(file: str, told: str) -> None:
    clock = SystemClock()
    limiter = Limiter(clock, MachineCounts(Path(file), clock))
    step = Exchange("request", placed, Scope("ops", "ops.token"), Part(1, 1))
    with Path(told).open("w") as times:
        for _ in range(6):
            assert limiter.admit(step, (Budget(("credential", "ops"), 5, 0.5),), clock.monotonic() + 60) == Success(
                None
            )
            times.write(f"{clock.monotonic()}\n")


@pytest.mark.slow
def test_four_processes_together_keep_the_pace_and_lose_nothing(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    told = [tmp_path / f"told-{number}" for number in range(4)]
    processes = [spawn.Process(target=_send, args=(str(tmp_path / "counts"), str(one))) for one in told]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    left = sorted(float(line) for one in told for line in one.read_text().split())
    assert len(left) == 24
    assert all(later - sooner > 0.5 for sooner, later in zip(left, left[5:]))
    assert left[-1] - left[0] < 10
