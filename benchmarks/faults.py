# ruff: noqa: E501 (a row of a table stands in one line)
"""The fault matrix as a Markdown table: every channel against everything that a network, a proxy and a platform do wrong.

    python -m benchmarks.faults > docs/fault-matrix.md

Each cell is one send to a real server on the loopback interface: what the result said, and how many whole or broken
requests (for mail: connections) the server saw. A cell that told an untruth would say so. Takes about a minute.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "adapters")]

from tests.faults import mail, matrix  # noqa: E402
from tests.faults.matrix import SERVED, UNSERVED, Cell, platforms, untruths  # noqa: E402

T = TypeVar("T")


def alone(send: Callable[[], T]) -> T:
    """One send with a state folder of its own: the pace of the cells before it is not kept in it."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        return send()


def told(cell: Cell) -> str:
    false = untruths(cell)
    return f"{cell.outcome.status.value}, {cell.requests}" + (f" **UNTRUE: {'; '.join(false)}**" if false else "")


def rows() -> Iterator[tuple[str, list[str]]]:
    """The name of a fault, and its cell for each channel."""
    for name in UNSERVED:
        yield name, [told(alone(partial(matrix.unserved, name, platform))) for platform in platforms()]
    together: dict[str, dict[str, str]] = {}
    for fault in SERVED:
        line = together.setdefault(fault.name, {})
        for platform in platforms():
            if fault.holds_for(platform):
                cell = told(alone(partial(matrix.outcome_of, fault, platform)))
                line[platform] = f"{line[platform]}; {cell}" if platform in line else cell
    for name, line in together.items():
        yield name, [line.get(platform, "") for platform in platforms()]


def main() -> None:
    began = time.monotonic()
    print("# Fault matrix\n")
    print(
        "Made by `python -m benchmarks.faults`: every send goes to a real server on the loopback interface that has the fault once (three tries at most,"
    )
    print(
        "time-out 0.3 s). A cell is what the result says and how many requests the server saw; *delivered, 2* is a repeat that was safe. Discord and"
    )
    print("Matrix know a repeat by its key, so what is lost there is sent again; of the others what was lost is told as unconfirmed, and sent once.\n")  # fmt: skip
    print(f"| fault | {' | '.join(platforms())} |")
    print("|---|" + "---|" * len(platforms()))
    for name, cells in rows():
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(
        "\n## Mail\n\nThe server fails its first connection at a stage of the conversation; the number is of connections and of mails that it then has.\n"
    )
    print("| fault | result | connections | mails |\n|---|---|---|---|")
    for fault in mail.FAULTS:
        cell, server = alone(partial(mail.outcome_of, fault))
        print(
            f"| {fault.name} | {told(cell).rpartition(',')[0]} | {server.connections} | {len(server.mails)} |",
            flush=True,
        )
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
