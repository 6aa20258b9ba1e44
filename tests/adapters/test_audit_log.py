"""The audit log as a file: no line torn or lost, whoever writes and whoever is killed."""

import json
import logging
import multiprocessing
import os
import random
import resource
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
from returns.result import Success

from messaging_adapters.audit_log import AuditLog, audit_log, default_path
from messaging_adapters.clock import SystemClock
from messaging_core.audit import Begin, End, Event, read
from messaging_core.config.settings import Audit, AuditFile
from messaging_core.errors import AuditUnavailable
from messaging_core.secrecy import Secrets

CLOCK, NONE = SystemClock(), Secrets()


def entry(id: str) -> Begin:
    return Begin(Event(id, "message_send", "ops", "telegram", "-100123", "text"), 1_700_000_000.0)


def log_at(path: Path, **more: object) -> AuditLog:
    return AuditLog(path, NONE, CLOCK, **more)  # type: ignore[arg-type]


def ids(log: AuditLog) -> list[str]:
    return [record.event.id for record in read(log.lines()).records]


def test_a_line_is_in_the_file_when_write_returns_and_the_file_is_the_users_own(tmp_path: Path) -> None:
    log = log_at(tmp_path / "deep" / "audit.jsonl")
    assert log.write(entry("1")) == Success(None)
    assert ids(log) == ["1"]
    assert stat.S_IMODE((tmp_path / "deep" / "audit.jsonl").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a", Secrets({"ops.token": "FAKE-token"}), CLOCK)
    log.write(Begin(Event("1", "message", recipient="FAKE-token"), 0.0))
    assert "FAKE" not in (tmp_path / "a").read_text()


def test_lines_are_added_to_what_is_there(tmp_path: Path) -> None:
    for id in "123":
        log_at(tmp_path / "a", sync=True).write(entry(id))
    assert ids(log_at(tmp_path / "a")) == ["1", "2", "3"]


def test_a_torn_last_line_spoils_no_other(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a")
    log.write(entry("1"))
    with (tmp_path / "a").open("a") as file:
        file.write('{"event":"2","pha')
    log.write(entry("3"))
    reading = read(log.lines())
    assert [record.event.id for record in reading.records] == ["1", "3"]
    assert reading.unreadable == 1


def test_a_full_file_moves_up_and_the_oldest_goes(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a", size=1, files=3)
    for id in "12345":
        log.write(entry(id))
    assert ids(log) == ["3", "4", "5"]
    assert log.paths == tuple(tmp_path / name for name in ("a", "a.1", "a.2"))
    assert sorted(tmp_path.iterdir()) == sorted(log.paths)
    assert {stat.S_IMODE(path.stat().st_mode) for path in log.paths} == {0o600}


def test_one_file_alone_begins_anew(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a", size=1, files=1)
    for id in "123":
        log.write(entry(id))
    assert ids(log) == ["3"]


def test_a_file_holds_no_more_than_its_size(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a", size=1000, files=9)
    for number in range(30):
        log.write(entry(f"{number:02}"))
    assert all(path.stat().st_size <= 1000 for path in log.paths if path.exists())
    assert ids(log) == [f"{number:02}" for number in range(30)]


# --- Where it cannot be written ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["file/audit.jsonl", "folder", "/dev/full", "/proc/audit.jsonl", "pipe"])
def test_a_required_log_that_cannot_be_written_is_a_refusal(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    failure = log_at(tmp_path / place).write(entry("1")).failure()
    assert isinstance(failure, AuditUnavailable)
    assert failure.where == str(tmp_path / place)
    assert failure.problem


def test_otherwise_it_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = log_at(tmp_path / "folder", required=False)
    (tmp_path / "folder").mkdir()
    assert [log.write(entry(id)) for id in "123"] == [Success(None)] * 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_an_end_that_is_lost_is_a_warning_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = log_at(tmp_path)
    assert isinstance(log.write(entry("1")).failure(), AuditUnavailable)
    assert caplog.records == []
    assert isinstance(log.write(End(entry("1").event, 0.0, "delivered")).failure(), AuditUnavailable)
    assert "a record is lost" in caplog.text


def test_where_the_disk_is_full_the_half_line_is_taken_back(tmp_path: Path) -> None:
    """The limit of a file's size stands for the disk: the kernel writes the bytes that fit, as on a full one."""
    log = log_at(tmp_path / "a")
    log.write(entry("1"))
    whole = (tmp_path / "a").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, hard))
    try:
        assert isinstance(log.write(entry("2")).failure(), AuditUnavailable)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "a").read_bytes() == whole
    log.write(entry("3"))
    assert ids(log) == ["1", "3"]


class Hurried(SystemClock):
    """A clock by which the longest wait is over at once."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds * 100


def test_a_stopped_process_that_holds_the_lock_does_not_stop_all_others(tmp_path: Path) -> None:
    import fcntl

    log = AuditLog(tmp_path / "a", NONE, Hurried())
    log.write(entry("1"))
    with (tmp_path / "a").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "lock" in str(log.write(entry("2")).failure())
    assert log.write(entry("3")) == Success(None)


# --- By the settings --------------------------------------------------------------------------------------------------


def test_the_default_file_is_in_the_users_state_folder_and_best_effort(tmp_path: Path) -> None:
    log = audit_log(Audit(), {"XDG_STATE_HOME": str(tmp_path)}, NONE, CLOCK)
    assert log.path == tmp_path / "messaging" / "audit.jsonl"
    (tmp_path / "messaging").write_text("in the way")
    assert log.write(entry("1")) == Success(None)


def test_a_relative_state_folder_is_not_one() -> None:
    assert default_path({"XDG_STATE_HOME": "here"}) == Path("~/.local/state/messaging/audit.jsonl").expanduser()


def test_a_file_that_the_settings_name_is_required_unless_they_say_otherwise(tmp_path: Path) -> None:
    named = AuditFile(str(tmp_path))
    assert isinstance(audit_log(Audit(file=named), {}, NONE, CLOCK).write(entry("1")).failure(), AuditUnavailable)
    assert audit_log(Audit(file=named, required=False), {}, NONE, CLOCK).write(entry("1")) == Success(None)
    default = {"XDG_STATE_HOME": "/proc"}
    assert isinstance(
        audit_log(Audit(required=True), default, NONE, CLOCK).write(entry("1")).failure(), AuditUnavailable
    )


def test_switched_off_it_writes_nothing(tmp_path: Path) -> None:
    log = audit_log(Audit(enabled=False), {"XDG_STATE_HOME": str(tmp_path)}, NONE, CLOCK)
    assert log.write(entry("1")) == Success(None)
    assert (log.path, log.paths, list(log.lines())) == (None, (), [])
    assert list(tmp_path.iterdir()) == []


# --- Several writers --------------------------------------------------------------------------------------------------


def test_eight_threads_lose_no_line(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a", size=3000, files=50)

    def write(name: int) -> None:
        for number in range(25):
            assert log.write(entry(f"{name}-{number}")) == Success(None)

    threads = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(ids(log)) == sorted(f"{name}-{number}" for name in range(8) for number in range(25))


def _write(path: str, name: int, count: int, said: str) -> None:
    """Write on and on; after each line that ``write`` has confirmed, say so in a file of one's own."""
    log = log_at(Path(path), size=100_000, files=200)
    with Path(said).open("w") as told:
        for number in range(count):
            if log.write(entry(f"{name}-{number}")) == Success(None):
                told.write(f"{name}-{number}\n")
                told.flush()


@pytest.mark.slow
def test_four_processes_killed_at_any_moment_lose_and_tear_no_confirmed_line(tmp_path: Path) -> None:
    """Through rotation too: every line that was confirmed is there, once, and no killed writer spoils another's."""
    spawn = multiprocessing.get_context("spawn")
    path, dice, said = tmp_path / "audit" / "a", random.Random(7), list[Path]()
    for generation in range(4):
        processes = []
        for number in range(4):
            name = generation * 4 + number
            said.append(tmp_path / f"said-{name}")
            processes.append(spawn.Process(target=_write, args=(str(path), name, 3_000, str(said[-1]))))
        for process in processes:
            process.start()
        until = time.monotonic() + 30
        while not all(told.exists() and told.stat().st_size > 200 for told in said[-4:]):
            assert time.monotonic() < until
            time.sleep(0.01)
        for process in processes:
            time.sleep(dice.random() * 0.05)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        for process in processes:
            process.join(10)
    confirmed = {line for told in said for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")}
    log = log_at(path, size=100_000, files=200)  # room for all that they can write: nothing is dropped by age
    whole, torn = list[str](), 0
    for line in log.lines():
        try:
            whole.append(json.loads(line)["event"] + "\n")
        except ValueError:
            torn += 1
    assert len(whole) == len(set(whole))
    assert confirmed <= set(whole)
    assert len(confirmed) > 200
    assert torn <= 16
    assert len([one for one in log.paths if one.exists()]) > 1
