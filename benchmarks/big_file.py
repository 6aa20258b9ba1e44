"""A file of 200 MB as multipart: memory at its peak, and time beside bare ``http.client`` with the same bytes.

::

    python benchmarks/big_file.py [--megabytes 200] [--json]
"""

import argparse
import http.client
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
if (HERE.parent / "messaging_core").is_dir():
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "adapters")]
sys.path.insert(0, str(HERE))

import server as far  # noqa: E402

from messaging_adapters.files import look, real_path  # noqa: E402
from messaging_adapters.http_requests import HttpEdge  # noqa: E402
from messaging_core.config.settings import Http  # noqa: E402
from messaging_core.flow import Done, Exchange, Scope  # noqa: E402
from messaging_core.secrecy import Secrets  # noqa: E402
from messaging_core.wire.http import FileRef, FormPart, HttpRequest, Multipart  # noqa: E402


def peak_mb(*, afresh: bool = False) -> float:
    """Of this process, so far; ``afresh``: from now on (Linux)."""
    if afresh:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, far.start() as server:
        file = Path(folder) / "big.bin"
        with file.open("wb") as writing:
            for _ in range(wanted.megabytes):
                writing.write(os.urandom(1024) * 1024)
        edge = HttpEdge(Http(), Secrets({}))
        warm = Exchange(HttpRequest("POST", server.url, body=b"x"), _nothing, Scope("bench"))
        edge(warm).unwrap()
        idle = peak_mb(afresh=True)
        took = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            facts = look(str(file), (real_path(folder),))
            form = Multipart((FormPart("chat_id", b"1"), FormPart("document", FileRef(facts), "big.bin")), "=_bench")
            edge(Exchange(HttpRequest("POST", server.url, body=form), _nothing, Scope("bench"))).unwrap()
            took = min(took, time.perf_counter() - began)
        over = peak_mb() - idle
        bare = min(_bare(server.port, file) for _ in range(3))
    found = {"megabytes": wanted.megabytes, "peak_mb_over_idle": over, "seconds": took, "bare_seconds": bare}
    if wanted.json:
        print(json.dumps(found))
        return
    print(f"{wanted.megabytes} MB as multipart: {over:.1f} MB over the idle peak (aim: under 20)")
    print(f"{took:.2f} s; bare http.client with the file alone {bare:.2f} s: {took / bare:.2f} x")


def _nothing(reply: object) -> Done:
    return Done()


def _bare(port: int, file: Path) -> float:
    began = time.perf_counter()
    kept = http.client.HTTPConnection("127.0.0.1", port)
    with file.open("rb") as reading:
        kept.request("POST", "/", reading, {"Content-Length": str(file.stat().st_size)})
        kept.getresponse().read()
    kept.close()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
