"""While the core's tests run, whatever the core does to touch the world fails the test that made it do so.

Python's own audit events tell: nothing is replaced. (Clocks and dice have no events; import-linter keeps them out.)
"""

import sys
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).resolve().parent.parent.parent)
CORE = str(Path(HERE) / "messaging_core")
WORLD = ("open", "socket.", "subprocess.", "os.", "shutil.", "tempfile.", "urllib.", "ftplib.", "smtplib.")
watching = True


def in_core() -> bool:
    """Whether the core itself is at it: of our own code it is the nearest on the stack, and it is not importing a module."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if "importlib" in name or (name.startswith(HERE) and not name.startswith(CORE)):
            return False
        if name.startswith(CORE):
            return True
        frame = frame.f_back
    return False


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if watching and event.startswith(WORLD) and in_core():
        raise AssertionError(f"the core touched the world: {event} {arguments!r}")


def pytest_configure() -> None:
    sys.addaudithook(watch)


def pytest_unconfigure() -> None:
    global watching
    watching = False
