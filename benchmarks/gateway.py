"""The gateway under load: many clients, many broadcasts, no loss, no growth.

    python benchmarks/gateway.py [--clients 500] [--broadcasts 1000] [--bytes 200] [--rounds 3]

Three processes on loopback: the gateway, the clients (the ``websockets`` library), and this one, which posts. Each
round broadcasts all messages; a client counts what it gets and checks the order. Linux only (memory and CPU are read
from /proc).
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")])}
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--clients", type=int, default=500)
    options.add_argument("--broadcasts", type=int, default=1000)
    options.add_argument("--bytes", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--role", default="bench", help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    _raise_file_limit()
    match chosen.role:
        case "gateway":
            _gateway()
        case "clients":
            asyncio.run(_clients(chosen))
        case _:
            _bench(chosen)


# --- The three processes ----------------------------------------------------------------------------------------------


def _gateway() -> None:
    from messaging_adapters.gateway import run
    from messaging_core.config.settings import Settings
    from messaging_core.secrecy import Secrets

    sys.exit(run(Settings(), Secrets(), port=0))


async def _clients(chosen: argparse.Namespace) -> None:
    """Connect all, say so; then for each round read what is broadcast, and say what came."""
    from websockets.asyncio.client import connect

    url = f"ws://127.0.0.1:{chosen.port}/ws"
    sockets = []
    for _ in range(chosen.clients):
        sockets.append(await connect(url, compression=None, open_timeout=60, proxy=None))
    print(json.dumps({"connected": len(sockets)}), flush=True)

    async def read(socket) -> tuple[int, int]:
        got = wrong = 0
        for number in range(chosen.broadcasts):
            frame = json.loads(await asyncio.wait_for(socket.recv(), 120))
            got += 1
            wrong += frame["number"] != number
        return got, wrong

    for _ in range(chosen.rounds):
        results = await asyncio.gather(*(read(socket) for socket in sockets), return_exceptions=True)
        good = [result for result in results if isinstance(result, tuple)]
        told = {
            "frames": sum(got for got, _ in good),
            "out_of_order": sum(wrong for _, wrong in good),
            "lost_clients": 0,
        }
        print(json.dumps(told | {"lost_clients": len(results) - len(good)}), flush=True)
    await asyncio.gather(*(socket.close() for socket in sockets))


def _bench(chosen: argparse.Namespace) -> None:
    gateway = _start("gateway", chosen, stderr=subprocess.PIPE)
    port = int(gateway.stderr.readline().split(",")[0].rpartition(":")[2])
    bare = _memory(gateway.pid)
    clients = _start("clients", chosen, "--port", str(port), stdout=subprocess.PIPE)
    connected = json.loads(clients.stdout.readline())["connected"]
    print(f"{connected} clients, {chosen.broadcasts} broadcasts of {chosen.bytes} bytes")
    print(f"gateway: {bare:.1f} MiB bare, {_memory(gateway.pid):.1f} MiB with the clients")
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    content = "x" * chosen.bytes
    for round_ in range(1, chosen.rounds + 1):
        waits, deepest = [], 0
        cpu, began = _cpu(gateway.pid), time.perf_counter()
        for number in range(chosen.broadcasts):
            posted = time.perf_counter()
            outcome = _post(connection, {"content": content, "number": number})
            waits.append(time.perf_counter() - posted)
            assert outcome["clients"] == chosen.clients, outcome
            if number % 50 == 0:
                deepest = max(deepest, _status(connection)["queue"]["frames"])
        sent = time.perf_counter() - began
        told = json.loads(clients.stdout.readline())
        took, used = time.perf_counter() - began, _cpu(gateway.pid) - cpu
        waits.sort()
        frames, wanted = told["frames"], chosen.clients * chosen.broadcasts
        print(
            f"round {round_}: {frames} of {wanted} frames in {took:.1f} s ({frames / took:,.0f}/s), "
            f"posted in {sent:.1f} s; out of order {told['out_of_order']}, clients lost {told['lost_clients']}; "
            f"POST median {waits[len(waits) // 2] * 1000:.1f} ms, 99 % {waits[len(waits) * 99 // 100] * 1000:.1f} ms; "
            f"CPU {used / frames * 1e6:.1f} µs a frame; {_memory(gateway.pid):.1f} MiB; deepest queue {deepest}"
        )
    counts = _status(connection)["counts"]
    print(f"dropped {counts['dropped']}, handed {counts['handed']}")
    connection.close()
    clients.wait(60)
    gateway.terminate()
    print(f"ended with status {gateway.wait(60)}")


def _start(role: str, chosen: argparse.Namespace, *more: str, **pipes: int) -> "subprocess.Popen[str]":
    sizes = ["--clients", chosen.clients, "--broadcasts", chosen.broadcasts, "--rounds", chosen.rounds]
    command = [sys.executable, __file__, "--role", role, *map(str, sizes), *more]
    return subprocess.Popen(command, text=True, env=ENVIRONMENT, **pipes)


def _post(connection: HTTPConnection, body: dict) -> dict:
    connection.request("POST", "/api/broadcast", json.dumps(body), {"Content-Type": "application/json"})
    return json.loads(connection.getresponse().read())


def _status(connection: HTTPConnection) -> dict:
    connection.request("GET", "/api/status")
    return json.loads(connection.getresponse().read())


# --- What the machine says --------------------------------------------------------------------------------------------


def _memory(pid: int) -> float:
    """Resident MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def _cpu(pid: int) -> float:
    """Seconds of CPU."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _raise_file_limit() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
