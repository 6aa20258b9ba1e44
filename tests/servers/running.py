"""What every server script here needs: installs kept in a cache, a free port, and a process that ends with the test.

The scripts stand on their own: a fresh Debian 12 with root, Python, and node (or apt to get it) is enough. Nothing
listens but on 127.0.0.1.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agent-messaging" / "servers"


def venv(name: str, *packages: str) -> Path:
    """The folder of a virtual environment of its own with these packages, made once."""

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "pip"), "install", "-q", *packages])

    return _once(CACHE / "venv" / name, " ".join(packages), make)


def npm(name: str, *packages: str) -> Path:
    """A folder with these npm packages in its ``node_modules``, made once."""

    def make(folder: Path) -> None:
        if shutil.which("npm") is None:
            apt("nodejs", "npm")
        (folder / "package.json").write_text('{"private": true}')
        _run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder), *packages])

    return _once(CACHE / "npm" / name, " ".join(packages), make)


def apt(*packages: str) -> None:
    """Debian packages, installed where they are missing, without letting any of them start its own service."""
    missing = [package for package in packages if not _has_package(package)]
    if not missing:
        return None
    if os.geteuid() != 0:
        raise RuntimeError(f"needs root to install {', '.join(missing)}")
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *missing]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        with suppress(subprocess.CalledProcessError):
            return _run(install, env=quiet)
        _run(["apt-get", "update", "-q"], env=quiet)
        _run(install, env=quiet)
    finally:
        if ours:
            policy.unlink(missing_ok=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False


def wait_until(
    ready: Callable[[], bool], what: str, seconds: float = 60, alive: Callable[[], bool] = lambda: True
) -> None:
    """Come back when ``ready``; fail when that takes longer than ``seconds``, or the process behind it has ended."""
    end = time.monotonic() + seconds
    while not ready():
        if not alive():
            raise RuntimeError(f"{what} ended before it was ready")
        if time.monotonic() > end:
            raise RuntimeError(f"{what} was not ready after {seconds} s")
        time.sleep(0.1)


@contextmanager
def process(
    command: Sequence[str], log: Path, ready: Callable[[], bool], env: dict[str, str] | None = None, seconds: float = 60
) -> Iterator[subprocess.Popen[bytes]]:
    """``command``, running and ready; its output goes to ``log``, which is told where it does not come up."""
    with log.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env)
    try:
        try:
            wait_until(ready, command[0], seconds, lambda: running.poll() is None)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.read_text(errors='replace')[-3000:]}") from None
        yield running
    finally:
        running.terminate()
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def _once(folder: Path, stamp: str, make: Callable[[Path], None]) -> Path:
    """``folder``, made anew unless the stamp in it says that it is what is wanted; one maker at a time."""
    done = folder / ".done"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or done.read_text() != stamp:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.write_text(stamp)
    return folder


def _has_package(package: str) -> bool:
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout == "installed"


def _run(command: Sequence[str], env: dict[str, str] | None = None) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    except subprocess.CalledProcessError as error:
        error.add_note((error.stdout + error.stderr)[-3000:])
        raise
