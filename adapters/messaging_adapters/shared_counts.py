"""Counts that several processes or machines keep together, in any storage of the library `limits` (Redis, MongoDB ...).

::

    Limiter(SystemClock(), LimitsCounts(storage_from_string("redis://localhost:6379")))
"""

import logging
import math
import time
from collections.abc import Sequence

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.storage import Storage
from limits.strategies import MovingWindowRateLimiter

from messaging_core.pacing import Budget

log = logging.getLogger(__name__)

LEAST_PAUSE = 0.05
"""Seconds between two questions, so that a full window is not asked without end."""


class LimitsCounts:
    """A moving window for each budget. Periods are whole seconds there, so broken ones are rounded up."""

    def __init__(self, storage: Storage) -> None:
        self._windows = MovingWindowRateLimiter(storage)

    def take(self, budgets: Sequence[Budget]) -> float:
        """0.0 where all had a place, else seconds to wait. A storage that fails is passed over, with a warning."""
        try:
            waits = [self._wait(budget) for budget in budgets]
            if any(waits):
                return max(waits)
            return 0.0 if all(self._windows.hit(_item(budget), *budget.key) for budget in budgets) else LEAST_PAUSE
        except Exception as error:  # each storage brings its own library and its own exceptions
            log.warning("the shared counts cannot be reached (%s); going by this process's own", type(error).__name__)
            return 0.0

    def answered(self, budgets: Sequence[Budget]) -> None:
        """Nothing: such a storage keeps the moment at which a place was taken."""

    def _wait(self, budget: Budget) -> float:
        item = _item(budget)
        if self._windows.test(item, *budget.key):
            return 0.0
        return max(self._windows.get_window_stats(item, *budget.key).reset_time - time.time(), LEAST_PAUSE)


def _item(budget: Budget) -> RateLimitItem:
    return RateLimitItemPerSecond(budget.count, math.ceil(budget.per), namespace="messaging")
