"""The fault matrix: every channel against everything that a network, a proxy and a platform do wrong.

A :class:`Fault` is what a real server on the loopback interface does with the first request (everything after it is
answered well). :func:`outcome_of` sends one text through the front door and gives back a :class:`Cell`: what the result
said, and what the server saw. What must hold of every cell, whatever it is, is :func:`untruths`.

The channels are those of the registry, with the settings of the docs' own examples. Mail is in :mod:`tests.faults.mail`.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from email.utils import formatdate
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import yaml

from messaging_adapters.messenger import Messenger
from messaging_core.channels import CHANNELS, Registry
from messaging_core.channels.channel import Sort
from messaging_core.message import Message
from messaging_core.outcome import Outcome
from messaging_core.plan import requests_of
from messaging_core.wire.http import HttpReply, HttpRequest
from tests.adapters.loopback import Item, Loopback, Request, close, hang, huge, nowhere, redirect, reply, reset
from tests.material import ROOT, Environment

READ_TIMEOUT = 0.3
PATIENCE = {
    "http": {"connect_timeout": 1, "read_timeout": READ_TIMEOUT},
    "max_attempts": 3,
    "max_wait": 0.05,
    "message_timeout_secs": 20,
}

# --- The channels -----------------------------------------------------------------------------------------------------


@cache
def platforms() -> tuple[str, ...]:
    """Those that speak HTTP: by the request that they describe."""
    return tuple(platform for platform in CHANNELS if platform not in ("cli", "email"))


def settings_of(platform: str, url: str) -> dict[str, Any]:
    """The docs page's example (its first YAML block), every address in it replaced by ``url``."""
    page = (ROOT / "docs" / "channels" / f"{platform}.md").read_text()
    text = page.split("```yaml\n", 1)[1].split("```", 1)[0]
    settings = next(iter(yaml.safe_load(text)["channels"].values()))
    paths = {
        Sort.URL: "",
        Sort.SECRET_URL: "/api/webhooks/1/FAKE-hook-token-1234",
        Sort.URL_TEMPLATE: "/in/FAKE-in-token",
    }
    own = {field.name: field.metadata["key"].sort for field in fields(CHANNELS[platform].settings)}
    return settings | {name: url + paths[sort] for name, sort in own.items() if sort in paths}


class World(Environment):
    """The variables of the examples, and the folders of the test that runs."""

    def __missing__(self, name: str) -> str:
        return os.environ.get(name, "") if name.startswith("XDG_") else super().__missing__(name)


UNHURRIED: Registry = {platform: replace(CHANNELS[platform], pace=()) for platform in CHANNELS}
"""The channels without their platforms' pace, for tests that send much and are not about it."""


def messenger_for(platform: str, url: str, registry: Registry = CHANNELS, **more: Any) -> Messenger:
    config = {"channels": {"c": settings_of(platform, url)}, **PATIENCE, **more}
    return Messenger.from_config(config, environ=World(), registry=registry)


def good_replies(platform: str, message: Message, **more: Any) -> list[Item]:
    """What the platform answers to each request of the send, by the channel's own rehearsal."""
    with messenger_for(platform, "http://127.0.0.1:1", **more) as messenger:
        requests = requests_of(messenger.plan("message_send", message).unwrap())
    return [item_of(CHANNELS[platform].rehearse(request)) for request in requests]


def item_of(answer: HttpReply) -> Item:
    return reply(answer.status, body=answer.body, headers=dict(answer.headers))


@cache
def is_repeatable(platform: str) -> bool:
    """Whether the platform knows a repeat of a text by its key, as its channel says."""
    with messenger_for(platform, "http://127.0.0.1:1") as messenger:
        request = requests_of(messenger.plan("message_send", Message(text="x")).unwrap())[-1]
    assert isinstance(request, HttpRequest)
    return request.repeatable


# --- The faults -------------------------------------------------------------------------------------------------------

DELIVERED, UNCONFIRMED, FAILED = "delivered", "unconfirmed", "failed"


@dataclass(frozen=True)
class Fault:
    """``does``: the server's acts, from the good reply and the URL of another host. ``taken``: whether the far end has
    the message after it (None: nobody can know). ``expected``: status and requests of a channel that the platform gives
    no key against repeats; ``keyed``: of one that it gives a key; ``any_2xx``: of a plain webhook, for which any 2xx is
    a yes. ``or_else``: what is told where the end was seen before a byte left. ``only``: the platforms that it is of.
    """

    name: str
    does: Callable[[Item, str], tuple[Item, ...]]
    taken: bool | None
    expected: tuple[str, int]
    keyed: tuple[str, int] | None = None
    any_2xx: tuple[str, int] | None = None
    only: tuple[str, ...] = ()
    slow: bool = False
    after: float | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    or_else: tuple[str, int] | None = None

    def cells(self, platform: str) -> tuple[tuple[str, int], ...]:
        """What may be told: mostly one thing."""
        return (self.cell(platform), *((self.or_else,) if self.or_else else ()))

    def cell(self, platform: str) -> tuple[str, int]:
        if platform == "webhook" and self.any_2xx:
            return self.any_2xx
        return self.keyed if self.keyed and is_repeatable(platform) else self.expected

    def holds_for(self, platform: str) -> bool:
        return not self.only or platform in self.only


def one(item: Item) -> Callable[[Item, str], tuple[Item, ...]]:
    return lambda good, elsewhere: (item,)


def dripping(good: Item, elsewhere: str) -> tuple[Item, ...]:
    """The head at once, then the body so slowly that its end comes long after the deadline, each byte in time."""
    body = good.body if isinstance(good.body, bytes) and len(good.body) > 12 else b'{"ok": true      }'
    head = reply(200, body=body, headers={"Content-Type": "application/json"}).head
    return (Item(head, lambda: (body[at : at + 1] for at in range(len(body))), every=0.1),)


def claiming(more: int) -> Callable[[Item, str], tuple[Item, ...]]:
    def script(good: Item, elsewhere: str) -> tuple[Item, ...]:
        body = good.body if isinstance(good.body, bytes) and good.body else b'{"id": "1"}'
        return (reply(200, body=body).claiming(len(body) + more),)

    return script


def limited(**headers: str) -> Callable[[Item, str], tuple[Item, ...]]:
    return one(reply(429, body="slow down", headers={name.replace("_", "-"): value for name, value in headers.items()}))


def date(seconds: float) -> str:
    return formatdate(1_764_500_000 + seconds, usegmt=True)


WAITING = (("max_wait", 0.5),)
"""A wait of a second is then too long: the result tells it at once, and no test sits it out."""

BUT_HOOKS = tuple(platform for platform in CHANNELS if platform != "discord-webhook")

ONCE, AGAIN = (FAILED, 1), (DELIVERED, 2)
UNSURE = (UNCONFIRMED, 1)
YES = (DELIVERED, 1)

LOST = (  # the answer is lost, or none
    Fault("reset before the request was read", one(reset(read="nothing")), None, (UNCONFIRMED, 0), YES, or_else=YES),
    Fault("reset inside the request", one(reset(read="head")), None, UNSURE, AGAIN),
    Fault("reset after the request", one(reset()), True, UNSURE, AGAIN),
    Fault("closed before the request was read", one(close(read="nothing")), None, (UNCONFIRMED, 0), YES, or_else=YES),
    Fault("closed after the request", one(close()), True, UNSURE, AGAIN),
    Fault("no answer, request unread", one(hang(read="nothing")), None, (UNCONFIRMED, 0), YES, slow=True),
    Fault("no answer, request read", one(hang()), True, UNSURE, AGAIN),
    Fault("answer later than the time-out", lambda good, _: (good.later(0.6),), True, UNSURE, AGAIN, slow=True),
    Fault("head that drips", lambda good, _: (good.drip(every=0.1),), True, UNSURE, AGAIN, slow=True),
    Fault("body that drips", dripping, True, UNSURE, AGAIN, YES),
    Fault(
        "reset inside the answer",
        lambda good, _: (reply(200, body='{"ok": tr').breaking_off(4),),
        True,
        UNSURE,
        AGAIN,
        YES,
    ),
)

SAID = (  # an answer of another kind
    Fault("not HTTP", one(Item(b"SSH-2.0-OpenSSH_9.6\r\n", then="close")), True, UNSURE, AGAIN),
    Fault("invalid JSON", one(reply(200, body='{"ok": true, "id": ')), True, UNSURE, AGAIN, YES),
    Fault("HTML page", one(reply(200, body="<html><body>Log in</body></html>", headers={"Content-Type": "text/html"})), True, UNSURE, AGAIN, YES),
    Fault("empty body", one(reply(200)), True, UNSURE, AGAIN, YES, only=BUT_HOOKS),
    Fault("empty body", one(reply(200)), True, YES, only=("discord-webhook",)),
    Fault("body of 1 GB", one(huge(10**9)), True, UNSURE, AGAIN, YES, slow=True),
    Fault("Content-Length too large", claiming(1000), True, YES),
    Fault("Content-Length too small", claiming(-1), True, UNSURE, AGAIN, YES),
    Fault("redirect (307) to another host", lambda good, elsewhere: (redirect(elsewhere, 307),), False, ONCE),
    Fault("redirect (302) to another host", lambda good, elsewhere: (redirect(elsewhere, 302),), False, ONCE),
    Fault("400", one(reply(400, body="no")), False, ONCE),
    Fault("401", one(reply(401, body="no")), False, ONCE),
    Fault("500", one(reply(500, body="<html>oops</html>")), False, ONCE, AGAIN),
    Fault("502", one(reply(502, body="<html>bad gateway</html>")), None, UNSURE, AGAIN),
    Fault("503", one(reply(503, body="")), False, AGAIN),
    Fault("503 that names a wait", one(reply(503, headers={"Retry-After": "0.03"})), False, AGAIN),
    Fault("504", one(reply(504, body="")), None, UNSURE, AGAIN),
    Fault("503 for ever", lambda good, _: (reply(503),) * 9, False, (FAILED, 3)),
)  # fmt: skip

LIMITED = (  # every way to tell the wait
    Fault("429, wait unnamed", limited(), False, AGAIN),
    Fault("429, decimal seconds", limited(Retry_After="0.03"), False, AGAIN, after=0.03),
    Fault("429, whole seconds", limited(Retry_After="1"), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, an HTTP date", limited(Retry_After=date(7), Date=date(0)), False, ONCE, after=7.0, settings=WAITING),
    Fault("429, a date that is past", limited(Retry_After=date(-9), Date=date(0)), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, zero", limited(Retry_After="0"), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, less than zero", limited(Retry_After="-5"), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, garbage", limited(Retry_After="soon"), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, not a number", limited(Retry_After="nan"), False, ONCE, after=1.0, settings=WAITING),
    Fault("429, a day", limited(Retry_After="86400"), False, ONCE, after=86400.0, settings=WAITING),
    Fault("429 for ever", lambda good, _: (reply(429, headers={"Retry-After": "0.03"}),) * 9, False, (FAILED, 3)),
)  # fmt: skip


def in_json(name: str, platform: str, body: Any, after: float, status: int = 429, **headers: str) -> Fault:
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    fits = after <= PATIENCE["max_wait"]  # type: ignore[operator]
    does = one(reply(status, json=body, headers=given))
    return Fault(
        name, does, False, AGAIN if fits else ONCE, only=(platform,), after=after, settings=() if fits else WAITING
    )


IN_JSON = (  # in the platform's own field and unit
    in_json("429, JSON seconds", "telegram", {"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 9", "parameters": {"retry_after": 9}}, 9.0),
    in_json("429, JSON decimal seconds", "discord", {"message": "limited", "retry_after": 0.04, "global": False}, 0.04),
    in_json("429, JSON decimal seconds", "discord-webhook", {"message": "limited", "retry_after": 0.04, "global": False}, 0.04),
    in_json("429, header and JSON: the longer", "discord", {"message": "limited", "retry_after": 8.5, "global": True}, 8.5, Retry_After="1"),
    in_json("429, JSON garbage", "discord", {"message": "limited", "retry_after": "soon"}, 1.0),
    in_json("429, JSON milliseconds", "matrix", {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 40}, 0.04),
    in_json("429, JSON milliseconds", "matrix", {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 2500}, 2.5),
    in_json("200 that is a limit", "slack", {"ok": False, "error": "ratelimited"}, 4.0, status=200, Retry_After="4"),
    Fault("200 that is a limit", one(reply(200, json={"jsonrpc": "2.0", "id": "1", "error": {"code": -5, "message": "Rate limit"}})), False, AGAIN, only=("signal",)),
    in_json("429, header alone", "slack", {"ok": False, "error": "ratelimited"}, 4.0, Retry_After="4"),
    in_json("400 that is a limit, seconds by rule", "whatsapp", {"error": {"code": 131056, "message": "(#131056) pair rate limit"}}, 6.0, status=400),
    in_json("400 that is a limit, minutes in a header", "whatsapp", {"error": {"code": 80007, "message": "limit"}}, 120.0, status=400,
            X_Business_Use_Case_Usage='{"1": [{"estimated_time_to_regain_access": 2}]}'),
)  # fmt: skip


def refused(platform: str, body: Any, expected: tuple[str, int] = ONCE, taken: bool | None = False) -> Fault:
    return Fault("200 that is a no", one(reply(200, json=body)), taken, expected, only=(platform,))


REFUSED = (  # the platform's own form of a failure inside a success
    refused("telegram", {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}),
    refused("slack", {"ok": False, "error": "channel_not_found"}),
    Fault("200 that is half a no", one(reply(200, json={"ok": False, "error": "fatal_error"})), None, UNSURE, only=("slack",)),
    refused("whatsapp", {"error": {"code": 131030, "message": "(#131030) Recipient phone number not in allowed list"}}),
    Fault("200 without an id", one(reply(200, json={})), None, UNSURE, AGAIN, only=("matrix", "signal", "telegram", "whatsapp", "slack")),
    refused("signal", {"jsonrpc": "2.0", "id": "1", "error": {"code": -1, "message": "Unregistered user"}}),
)  # fmt: skip

SERVED = (*LOST, *SAID, *LIMITED, *IN_JSON, *REFUSED)
"""Faults of a server that is there."""

UNSERVED = (
    "refused connection",
    "name that is not there",
    "certificate that nobody trusts",
    "certificate of another host",
)
"""Faults before there is a connection: nothing leaves, and that is certain."""


# --- One cell ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What came of one send. ``copies``: visible messages that the far end has, as the platform counts them.
    ``elsewhere``: requests that went to another host."""

    outcome: Outcome
    requests: int
    copies: int
    seconds: float
    elsewhere: int = 0

    @property
    def told(self) -> tuple[str, int]:
        return self.outcome.status.value, self.requests


def untruths(cell: Cell) -> list[str]:
    """What is false in what the result says, whatever the fault was."""
    status, found = cell.outcome.status.value, []
    if status == DELIVERED and cell.copies < 1:
        found.append("delivered, and the far end does not have it")
    if status == FAILED and cell.copies:
        found.append("failed, and the far end has it")
    if cell.copies > 1:
        found.append(f"the far end shows it {cell.copies} times")
    if cell.elsewhere:
        found.append("something went to another host")
    if status == UNCONFIRMED and "may have arrived" not in cell.outcome.message:
        found.append("unconfirmed, and the sentence does not say so")
    if status == FAILED and not cell.outcome.message.startswith("Failed to send to c"):
        found.append(f"the sentence is {cell.outcome.message!r}")
    if cell.seconds > 5:
        found.append(f"it took {cell.seconds:.1f} s")
    return found


def outcome_of(fault: Fault, platform: str) -> Cell:
    """Send one text through ``platform``, whose far end has ``fault`` once."""
    message = Message(text="Hello **you**")
    (good,) = good_replies(platform, message)
    with Loopback() as other, Loopback(*fault.does(good, other.url), default=good) as server:
        with messenger_for(platform, server.url, **dict(fault.settings)) as messenger:
            outcome, seconds = timed(lambda: messenger.send(message))
        copies = copies_of(server.requests, fault, platform)
        return Cell(outcome, len(server.requests), copies, seconds, len(other.requests) + other.connections)


def copies_of(requests: list[Request], fault: Fault, platform: str) -> int:
    """What readers see: the faulty requests that were taken, and those after them; one where the keys are equal."""
    complete = [request for request in requests if request.complete]
    first = 1 if len(requests) and fault.does(reply(), "x")[0].read != "nothing" else 0
    forever = len(fault.does(reply(), "http://x.test")) > 1
    taken = complete[:1] if fault.taken and first else []
    later = [] if forever else complete[first if requests and requests[0].complete else 0 :]
    return len({key_of(request, platform) or number for number, request in enumerate(taken + later)})


def key_of(request: Request, platform: str) -> str | None:
    """What the platform knows a repeat by, read from the request itself."""
    if platform == "matrix":
        return request.target
    if platform == "discord":
        body = request.json()
        return str(body["nonce"]) if body.get("enforce_nonce") is True else None
    return None


def timed(act: Callable[[], Outcome]) -> tuple[Outcome, float]:
    began = time.monotonic()
    return act(), time.monotonic() - began


def unserved(name: str, platform: str) -> Cell:
    """Send one text where no connection comes about."""
    with place_of(name) as (url, settings, seen), messenger_for(platform, url, UNHURRIED, **settings) as messenger:
        outcome, seconds = timed(lambda: messenger.send("Hello"))
        requests = seen()
    return Cell(outcome, requests, requests, seconds)


@contextmanager
def place_of(name: str) -> Iterator[tuple[str, dict[str, Any], Callable[[], int]]]:
    """A URL, the settings that go with it, and how many requests came there."""
    http: dict[str, Any] = dict(PATIENCE["http"])  # type: ignore[call-overload]
    with ExitStack() as servers:
        match name:
            case "refused connection":
                yield nowhere(), {}, lambda: 0
            case "name that is not there":
                yield "https://nothing-is-here.invalid", {}, lambda: 0
            case "certificate that nobody trusts":
                server = servers.enter_context(Loopback(tls=True))
                yield server.url, {}, lambda: len(server.requests)
            case _:
                server = servers.enter_context(Loopback(tls=True, names=("other.test",)))
                yield server.url, {"http": http | {"ca_file": server.ca_file}}, lambda: len(server.requests)


# --- Where in a send of several requests ------------------------------------------------------------------------------

AT_A_STEP: tuple[tuple[str, Item], ...] = (
    ("reset after the request", reset()),
    ("no answer, request read", hang()),
    ("500", reply(500)),
    ("502", reply(502)),
    ("invalid JSON", reply(200, body='{"ok": tru')),
)


def outcome_at(step: int, item: Item, platform: str, message: Message, **settings: Any) -> tuple[Cell, int]:
    """Send ``message``, the fault at the request number ``step`` (from 0); the cell, and how many requests a good send
    has. The server names itself as the place to upload to."""
    good = good_replies(platform, message, **settings)
    seen: list[int] = []

    def respond(request: Request) -> Item:
        number = next(place for place, kind in enumerate(kinds) if kind == kind_of(request.path, platform))
        seen.append(number)
        if number == step and seen.count(step) == 1:
            return item
        body = good[number].body
        assert isinstance(body, bytes)
        return reply(200, body=body.replace(b"127.0.0.1:1/", f"127.0.0.1:{server.port}/".encode()))

    with messenger_for(platform, "http://127.0.0.1:1", **settings) as messenger:
        planned = requests_of(messenger.plan("message_send", message).unwrap())
        kinds = [kind_of(urlsplit(messenger.ports.secrets.reveal(one.url)).path, platform) for one in planned]
    with Loopback(respond=respond) as server, messenger_for(platform, server.url, UNHURRIED, **settings) as messenger:
        outcome, seconds = timed(lambda: messenger.send(message))
    last = [request for request in server.requests if kind_of(request.path, platform) == kinds[-1]]
    lost = item.then in ("reset", "hang") or (item.head.startswith(b"HTTP/1.1 200"))
    shown = last if step < len(good) - 1 or lost else last[1:]
    copies = len({key_of_form(request, platform) or number for number, request in enumerate(shown)})
    return Cell(outcome, len(server.requests), copies, seconds), len(good)


def key_of_form(request: Request, platform: str) -> str | None:
    if platform == "discord" and "multipart" in (request.header("Content-Type") or ""):
        return str(json.loads(request.part("payload_json").content)["nonce"])
    return key_of(request, platform)


def kind_of(path: str, platform: str) -> str:
    """The path without what differs from send to send."""
    return path.rsplit("/", 1)[0] if platform == "matrix" and "/send/" in path else path
