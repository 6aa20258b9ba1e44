"""Files to be sent: what one is (:mod:`.content`), whether it may be sent (:mod:`.ground`), what it is called."""

import re

from messaging_core.media.content import Sniffed, reach, sniff
from messaging_core.media.ground import Ground, permitted

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def safe_name(name: str) -> str:
    """The last segment of ``name``, fit for a header: no path, controls, direction signs, quotation marks, line ends.

    What people can read stays, in any script. Where nothing is left it is ``file``.

    >>> safe_name('../up/re"port\\r\\nX-Evil: 1.pdf')
    "re'portX-Evil: 1.pdf"
    """
    last = re.split(r"[/\\]", name)[-1].encode("utf-8", "replace").decode()
    cleaned = _UNSAFE.sub("", last).replace('"', "'").strip()
    return "file" if cleaned.strip(".") == "" else cleaned


__all__ = ["Ground", "Sniffed", "permitted", "reach", "safe_name", "sniff"]
