"""Gateways that end with the test."""

from contextlib import ExitStack

import pytest
from gateways import Process, threaded


@pytest.fixture
def start():
    """Start gateways that end with the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(threaded(**options))


@pytest.fixture(scope="session")
def shared():
    """One gateway without a token for all tests that leave nothing behind."""
    with threaded(
        channels=("ops",), deliver=lambda arguments: {"status": "delivered", "message": "sent", "as": arguments}
    ) as one:
        yield one


@pytest.fixture
def process():
    """Start gateway processes; those that still run are killed after the test."""
    started = []

    def begin(*arguments):
        started.append(Process(*arguments))
        return started[-1]

    yield begin
    for one in started:
        if one.popen.poll() is None:
            one.popen.kill()
        one.popen.communicate()
