"""Every channel against every fault: what the result says, how many requests the server saw, and that it is true."""

from pathlib import Path
from typing import Any

import pytest

from messaging_core.channels import CHANNELS
from messaging_core.message import Message
from tests.adapters.loopback import Item
from tests.faults import matrix
from tests.faults.matrix import (
    AT_A_STEP,
    SERVED,
    UNSERVED,
    Fault,
    outcome_at,
    outcome_of,
    platforms,
    unserved,
    untruths,
)
from tests.material import png


def cells() -> list[Any]:
    return [
        pytest.param(
            fault, platform, id=f"{platform}-{fault.name}", marks=[pytest.mark.slow] if is_slow(fault, platform) else []
        )
        for fault in SERVED
        for platform in platforms()
        if fault.holds_for(platform)
    ]


QUICK = ("telegram", "matrix", "webhook")
"""A channel without a key against repeats, one with, and one for which any 2xx is a yes: with each plain run."""


def sooner_or_later(platforms: tuple[str, ...], quick: tuple[str, ...]) -> list[Any]:
    return [pytest.param(one, marks=[] if one in quick else [pytest.mark.slow]) for one in platforms]


def is_slow(fault: Fault, platform: str) -> bool:
    return fault.slow or (platform not in QUICK and not fault.only)


@pytest.mark.parametrize(("fault", "platform"), cells())
def test_the_result_is_what_is_known_and_nothing_is_doubled(fault: Fault, platform: str) -> None:
    cell = outcome_of(fault, platform)
    assert cell.told in fault.cells(platform), cell.outcome.message
    assert untruths(cell) == []
    if fault.after is not None and cell.outcome.status.value == "failed":
        assert getattr(cell.outcome.error, "after") == fault.after


@pytest.mark.parametrize("platform", sooner_or_later(platforms(), QUICK))
@pytest.mark.parametrize("name", UNSERVED)
def test_without_a_connection_nothing_left_and_that_is_said(name: str, platform: str) -> None:
    cell = unserved(name, platform)
    assert (cell.told, untruths(cell)) == (("failed", 0), [])
    assert type(cell.outcome.error).__name__ == "Unreachable"
    assert "may have arrived" not in cell.outcome.message


def test_every_channel_of_the_registry_is_in_the_matrix() -> None:
    assert set(platforms()) | {"cli", "email"} == set(CHANNELS)
    for platform in platforms():
        assert matrix.settings_of(platform, "http://127.0.0.1:1")


# --- Sends of several requests ----------------------------------------------------------------------------------------

WITH_FILES = tuple(platform for platform in platforms() if CHANNELS[platform].capabilities.media)


@pytest.fixture
def picture(tmp_path: Path) -> str:
    path = tmp_path / "chart.png"
    path.write_bytes(png(600, 600) + b"\0" * 300_000)
    return str(path)


@pytest.mark.parametrize("platform", sooner_or_later(WITH_FILES, ("matrix", "slack")))
@pytest.mark.parametrize(("name", "item"), AT_A_STEP)
def test_a_fault_at_any_request_of_a_file_is_told_and_nothing_is_doubled(
    platform: str, name: str, item: Item, picture: str, tmp_path: Path
) -> None:
    message, roots = Message(media_path=picture, caption="June"), {"media_roots": [str(tmp_path)]}
    count = len(matrix.good_replies(platform, message, **roots))
    for step in range(count):
        last = step == count - 1
        again, _ = outcome_at(step, item, platform, message, **roots)
        assert untruths(again) == [], (step, again.outcome.message)
        assert last or again.outcome.ok, "nothing is visible yet, so an upload is taken again"
        once, _ = outcome_at(step, item, platform, message, max_attempts=1, **roots)
        assert untruths(once) == [], (step, once.outcome.message)
        if not last and not once.outcome.ok:  # a place for bytes may take any 200 for a yes
            assert once.outcome.status.value == "failed"
            assert (name == "500") or "nothing is visible" in once.outcome.message, once.outcome.message
