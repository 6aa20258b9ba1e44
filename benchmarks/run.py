"""What a send costs, beside bare ``http.client`` with one kept connection and ``requests.Session.post``, in one run.

::

    python benchmarks/run.py [--sends 1000] [--json]

The server is another process. CPU is this process's alone; each figure is the best of three rounds that take turns,
so that another load on the machine falls on all of them. Aims are named where there are any.
"""

import argparse
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
if (HERE.parent / "messaging_core").is_dir():
    sys.path[:0] = [str(HERE.parent), str(HERE.parent / "adapters")]
sys.path.insert(0, str(HERE))

import requests  # noqa: E402
import server as far  # noqa: E402

from messaging_adapters.clock import new_message_id  # noqa: E402
from messaging_adapters.http_requests import HttpEdge  # noqa: E402
from messaging_adapters.messenger import Messenger  # noqa: E402
from messaging_core.markup.dialect import Rendered  # noqa: E402
from messaging_core.message import Ids, Message, Outgoing, TextPart  # noqa: E402
from messaging_core.wire.http import HttpRequest  # noqa: E402

TEXT = "Deployment of *api* finished: 12 checks passed, none failed."
ROUNDS = 3


@dataclass
class Cost:
    """Of one call, the best round: seconds on the clock, seconds of CPU."""

    clock: float = float("inf")
    cpu: float = float("inf")

    def round(self, call: Callable[[], object], count: int) -> None:
        cpu, clock = time.process_time(), time.perf_counter()
        for _ in range(count):
            call()
        self.clock = min(self.clock, (time.perf_counter() - clock) / count)
        self.cpu = min(self.cpu, (time.process_time() - cpu) / count)


def compared(calls: dict[str, Callable[[], object]], counts: dict[str, int]) -> dict[str, Cost]:
    costs = {name: Cost() for name in calls}
    for name, call in calls.items():
        for _ in range(min(20, counts[name])):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            costs[name].round(call, counts[name])
    return costs


def configuration(url: str, ca_file: str | None, audit: str) -> dict[str, object]:
    chosen: dict[str, object] = {
        "channels": {"bench": {"type": "webhook", "url": url + "/in"}},
        "channels_config": {"telegram": {"bot_token": "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "api_base": url}},
        "security": {"audit": {"file": {"path": audit}}},
    }
    if ca_file:
        chosen["http"] = {"ca_file": ca_file}
    return chosen


@contextmanager
def messenger_at(server: far.Server) -> Iterator[Messenger]:
    with tempfile.TemporaryDirectory() as folder:
        mapping = configuration(server.url, server.ca_file, folder + "/audit.jsonl")
        with Messenger.from_config(mapping) as messenger:
            yield messenger


def describing() -> dict[str, float]:
    """Microseconds: the channel's own description, and the whole plan (route, permit, render, describe)."""
    with far.start() as server, messenger_at(server) as messenger:
        bench = messenger.settings.channel("bench")
        assert bench is not None
        channel = messenger.ports.registry[bench.platform]
        plan = messenger.plan("message_send", Message(text=TEXT, channel="bench")).unwrap()
        outgoing = Outgoing(plan.route.recipient, (TextPart(Rendered(TEXT, TEXT), markup=False),))
        ids = Ids(new_message_id(time.time()), time.time())
        calls = {
            "describe": lambda: channel.describe(bench, outgoing, ids, {}),
            "plan": lambda: messenger.plan("message_send", Message(text=TEXT, channel="bench")),
        }
        costs = compared(calls, dict.fromkeys(calls, 2000))
        return {name: cost.cpu * 1e6 for name, cost in costs.items()}


def sending(sends: int, *, tls: bool) -> dict[str, dict[str, float]]:
    with far.start(tls=tls) as server, messenger_at(server) as messenger:
        body = json.dumps({"content": TEXT}).encode()
        headers = {"Content-Type": "application/json"}
        context = ssl.create_default_context(cafile=server.ca_file) if tls else None
        kept = (
            http.client.HTTPSConnection("127.0.0.1", server.port, context=context)
            if tls
            else http.client.HTTPConnection("127.0.0.1", server.port)
        )
        session = requests.Session()
        edge = messenger.ports.edges[HttpRequest]
        assert isinstance(edge, HttpEdge)
        step = messenger.plan("message_send", Message(text=TEXT, channel="bench")).unwrap().start

        def bare() -> None:
            kept.request("POST", "/in", body, headers)
            assert kept.getresponse().read()

        def posted() -> None:
            assert session.post(server.url + "/in", json={"content": TEXT}, verify=server.ca_file or True).ok

        def anew() -> None:
            assert requests.post(server.url + "/in", json={"content": TEXT}, verify=server.ca_file or True).ok

        def edged() -> None:
            assert edge(step).unwrap()  # type: ignore[arg-type]

        def sent() -> None:
            outcome = messenger.send(Message(text=TEXT, channel="bench"))
            assert outcome.ok, outcome.message

        calls: dict[str, Callable[[], object]] = {
            "http.client, one connection": bare,
            "requests.Session.post": posted,
            "a connection for each message": anew,
            "our HTTP edge alone": edged,
            "our whole send": sent,
        }
        counts = dict.fromkeys(calls, sends)
        counts["a connection for each message"] = min(sends, 100)
        costs = compared(calls, counts)
        server.connections()
        with messenger_at(server) as fresh:
            for _ in range(sends):
                fresh.send(Message(text=TEXT, channel="bench"))
        connections = server.connections()
        kept.close()
        session.close()
    found = {name: {"per second": 1 / cost.clock, "cpu us": cost.cpu * 1e6} for name, cost in costs.items()}
    found["our whole send"]["connections"] = connections
    return found


def starting() -> dict[str, float]:
    """Milliseconds on the clock, the best of five: interpreter, imports, command."""
    quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path[:3])}

    def once(*command: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], env=environ, check=True, **quiet)  # type: ignore[call-overload]
        return (time.perf_counter() - began) * 1e3

    run = "import sys; from messaging_adapters.cli import main; sys.argv = ['messaging', 'channels']; sys.exit(main())"
    calls = {
        "python": ("-c", "pass"),
        "import json, dataclasses, marshmallow": ("-c", "import json, dataclasses, marshmallow"),
        "import messaging_core": ("-c", "import messaging_core"),
        "import messaging_adapters.messenger": ("-c", "import messaging_adapters.messenger"),
        "messaging channels": ("-c", run),
    }
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(5):
        for name, arguments in calls.items():
            best[name] = min(best[name], once(*arguments))
    return best


def fanning_out(count: int = 50, wait: float = 0.02) -> dict[str, float]:
    """Milliseconds, warm, over TLS, against a server that takes 20 ms: one send, and ``count`` channels at once."""
    with far.start(tls=True, wait=wait) as server, tempfile.TemporaryDirectory() as folder:
        mapping = configuration(server.url, server.ca_file, folder + "/audit.jsonl")
        names = [f"c{n}" for n in range(count)]
        mapping["channels"] = {name: {"type": "webhook", "url": f"{server.url}/{name}"} for name in names}
        with Messenger.from_config(mapping) as messenger:
            one, many = Cost(), Cost()
            for _ in range(2):
                messenger.broadcast(TEXT, names)
            for _ in range(5):
                one.round(lambda: messenger.send(Message(text=TEXT, channel="c0")), 5)
                many.round(lambda: messenger.broadcast(TEXT, names), 1)
    return {"one send": one.clock * 1e3, f"{count} at once": many.clock * 1e3}


def shown(found: dict[str, object]) -> Iterator[str]:
    describe: dict[str, float] = found["describing, us"]  # type: ignore[assignment]
    yield f"describing: {describe['describe']:.1f} us of CPU (aim: under 20); the whole plan {describe['plan']:.1f} us"
    for title in ("plain", "TLS"):
        sends: dict[str, dict[str, float]] = found[f"sending, {title}"]  # type: ignore[assignment]
        ours, bare = sends["our whole send"], sends["http.client, one connection"]
        post, anew = sends["requests.Session.post"], sends["a connection for each message"]
        yield f"\nsending one after another, {title}"
        for name, cost in sends.items():
            ratio = cost["cpu us"] / post["cpu us"]
            yield f"  {name:32} {cost['per second']:7.0f}/s {cost['cpu us']:7.0f} us of CPU {ratio:6.2f} x Session.post"
        yield f"  CPU of our whole send to Session.post: {ours['cpu us'] / post['cpu us']:.2f} (aim: at most 1)"
        yield f"  CPU of our whole send to bare http.client: {ours['cpu us'] / bare['cpu us']:.2f}"
        faster = ours["per second"] / anew["per second"]
        yield f"  messages a second to a connection for each: {faster:.0f} x" + (" (aim: 30)" if title == "TLS" else "")
        yield f"  connections for all sends: {ours['connections']:.0f} (aim: 1)"
    start: dict[str, float] = found["starting, ms"]  # type: ignore[assignment]
    yield "\ncold start"
    for name, value in start.items():
        yield f"  {name:40} {value:6.0f} ms"
    ratio = start["import messaging_core"] / start["import json, dataclasses, marshmallow"]
    yield f"  import messaging_core to that of the three libraries: {ratio:.2f} (aim: under 2)"
    one, many = found["fanning out, ms"].values()  # type: ignore[attr-defined]
    yield f"\nfan-out, TLS, 20 ms server: {one:.1f} ms for one, {many:.1f} ms for 50: {many / one:.2f} x (aim: under 3)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sends", type=int, default=1000, help="messages in each round")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    wanted = parser.parse_args()
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        os.environ.pop(name, None)
    found: dict[str, object] = {
        "describing, us": describing(),
        "sending, plain": sending(wanted.sends, tls=False),
        "sending, TLS": sending(wanted.sends, tls=True),
        "starting, ms": starting(),
        "fanning out, ms": fanning_out(),
    }
    print(json.dumps(found, indent=1) if wanted.json else "\n".join(shown(found)))


if __name__ == "__main__":
    main()
