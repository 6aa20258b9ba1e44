"""Logging: what became of sends, by channel and outcome alone; and other libraries' records without secrets.

The library's own records go to loggers under ``messaging_adapters`` and hold neither content nor recipients. It adds no
handler and sets no level. The one thing that it touches are the records of the libraries that it sends with, some of
which name a whole URL at DEBUG, and with it a token.
"""

import logging
import traceback
import weakref
from collections.abc import Callable

from messaging_core.secrecy import Secrets

FOREIGN = (
    "urllib3",
    "urllib3.connection",
    "urllib3.connectionpool",
    "urllib3.poolmanager",
    "urllib3.response",
    "urllib3.util.retry",
    "requests",
    "websockets",
    "websockets.client",
    "websockets.protocol",
    "charset_normalizer",
    "asyncio",
)
"""Loggers whose records may hold what was sent. A logger's filter sees the records made there, not its children's."""


class Redaction(logging.Filter):
    """Takes every known secret out of a record. Holds the secrets weakly: it ends with their Messenger."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = weakref.ref(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        secrets = self._secrets()
        if secrets is None:
            return True
        try:
            said = record.getMessage()
        except Exception:  # arguments that do not fit would be shown by logging's own report of that
            said, record.msg, record.args = str(record.msg), "", ()
        safe = secrets.redact(said)
        if safe != record.getMessage():
            record.msg, record.args = safe, ()
        if record.exc_info and record.exc_info[1] is not None:
            trace = "".join(traceback.format_exception(record.exc_info[1]))
            record.exc_text, record.exc_info = trace.rstrip("\n"), None
        if record.exc_text:  # ours, or what another messenger's secrets were taken out of before
            record.exc_text = secrets.redact(record.exc_text)
        return True


def keep_clean(secrets: Secrets) -> Callable[[], None]:
    """Keep ``secrets`` out of other libraries' records from now on; call what is returned to stop."""
    redaction = Redaction(secrets)
    loggers = tuple(map(logging.getLogger, FOREIGN))
    for logger in loggers:
        logger.addFilter(redaction)

    def stop() -> None:
        for logger in loggers:
            logger.removeFilter(redaction)

    weakref.finalize(secrets, stop)
    return stop
