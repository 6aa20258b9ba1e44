"""Who is connected, and what waits for whom: the gateway's whole memory, each part of it bounded.

Everything here runs in one event loop. A message is put into the queue of each client it is for; each client's own task
empties its queue into its connection, so that nobody waits for a slow one. Whose queue is full is dropped, and told
why.
"""

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.gateway.protocol import (
    LARGEST_FRAME,
    Ack,
    CloseCode,
    Fault,
    Post,
    handed,
    message_frame,
    target_of,
    through_channel,
)
from messaging_core.gateway.status import Counts, Status
from messaging_core.gateway.targets import ROOT, Clients, Everyone, Through

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the gateway keeps. ``clients``: connections by WebSocket. ``frames``, ``bytes``: waiting for one client.

    ``all_bytes``: waiting for all clients, a frame that many wait for counted once. ``sending``: messages that
    channels have in hand. ``remembered``: ids of delivered messages, to recognize a repeat. ``acks``: ids for each
    client that it may acknowledge. ``threads``: channels sending at the same time.
    """

    clients: int = 1000
    frames: int = 1000
    bytes: int = 4 * 1024 * 1024
    all_bytes: int = 64 * 1024 * 1024
    sending: int = 64
    remembered: int = 10_000
    acks: int = 1000
    threads: int = 8


class Frame:
    """One text frame, shared by all who wait for it."""

    __slots__ = ("data", "holders")

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.holders = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a client is let go. ``patient``: what waits for it is sent first."""

    code: CloseCode
    reason: str
    patient: bool = False


class Client:
    """One connection. ``listens`` False: it only sends, and gets nothing but the answers to that."""

    def __init__(self, path: str, listens: bool, acks: int) -> None:
        self.path, self.listens = path, listens
        self.queue: deque[Frame] = deque()
        self.queued_bytes = 0
        self.wake = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
        self.ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.unacknowledged: deque[str] = deque(maxlen=acks)

    def end(self, ending: Ending) -> None:
        """Let the client go; the first reason holds."""
        if not self.ending.done():
            self.ending.set_result(ending)


Deliver = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Hub:
    """All clients, and the messages that go through.

    ``deliver``: sends through a channel (arguments of ``message_send`` in, an account of it out), in a thread of
    ``executor``; None where there is no channel. ``now``: Unix seconds. ``new_id``: of a message that brings none.
    """

    def __init__(
        self,
        *,
        deliver: Deliver | None,
        executor: Executor,
        now: Callable[[], float],
        new_id: Callable[[], str],
        channels: tuple[str, ...] = (),
        version: str = "0",
        limits: Limits | None = None,
    ) -> None:
        self._deliver, self._executor, self._now, self._new_id = deliver, executor, now, new_id
        self._channels, self._version, self.limits = channels, version, limits or Limits()
        self._started = now()
        self._clients: dict[Client, None] = {}
        self._named: dict[str, Client] = {}
        self._queued_bytes = 0
        self._counts = Counts()
        self._remembered: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()
        self._sending: dict[str, tuple[str, asyncio.Task[dict[str, Any]]]] = {}
        self._empty = asyncio.Event()
        self._empty.set()
        self.closing = False

    # --- Clients ------------------------------------------------------------------------------------------------------

    def admit(self) -> Result[None, Fault]:
        """Whether one more client may come in."""
        if self.closing:
            return Failure(SHUTTING_DOWN)
        if len(self._clients) >= self.limits.clients:
            return Failure(
                Fault("overloaded", f"{self.limits.clients} clients are connected: there is room for no more")
            )
        return Success(None)

    def join(self, client: Client) -> None:
        """The client is there; who was there under its name before is let go."""
        self._clients[client] = None
        self._empty.clear()
        self._count(connected=1)
        if client.listens and client.path != ROOT:
            before = self._named.get(client.path)
            if before is not None:
                before.end(Ending(CloseCode.REPLACED, "another client connected under this name"))
            self._named[client.path] = client
        if self.closing:
            client.end(GOING_AWAY)

    def leave(self, client: Client) -> None:
        """The client gets nothing more."""
        self._clients.pop(client, None)
        if self._named.get(client.path) is client:
            del self._named[client.path]
        self.forget_queue(client)
        if not self._clients:
            self._empty.set()

    def forget_queue(self, client: Client) -> None:
        while client.queue:
            self.took(client)

    def took(self, client: Client) -> Frame:
        """The next frame of the client's queue, which is now shorter."""
        frame = client.queue.popleft()
        client.queued_bytes -= len(frame.data)
        frame.holders -= 1
        if not frame.holders:
            self._queued_bytes -= len(frame.data)
        return frame

    def offer(self, client: Client, frame: Frame) -> bool:
        """Put the frame into the client's queue; False where it is full, and the client is let go for it."""
        limits, size = self.limits, len(frame.data)
        if client.ending.done():
            return False
        full = len(client.queue) >= limits.frames or client.queued_bytes + size > limits.bytes
        crowded = bool(client.queue) and self._queued_bytes + size > limits.all_bytes
        if full or crowded:
            self._count(dropped=1)
            waiting = f"{len(client.queue)} frames, {client.queued_bytes} bytes"
            client.end(Ending(CloseCode.POLICY, f"too slow: {waiting} were waiting"))
            self.forget_queue(client)
            return False
        if not frame.holders:
            self._queued_bytes += size
        frame.holders += 1
        client.queue.append(frame)
        client.queued_bytes += size
        client.idle.clear()
        client.wake.set()
        return True

    def acknowledged(self, client: Client, ack: Ack) -> None:
        """Count it, once, if the client was handed that message."""
        if ack.id in client.unacknowledged:
            client.unacknowledged.remove(ack.id)
            self._count(acknowledged=1)

    # --- Messages -----------------------------------------------------------------------------------------------------

    async def place(self, post: Post, sender: Client | None = None) -> Result[dict[str, Any], Fault]:
        """Pass the message on, and say what came of it. Under the id of a delivered message nothing is delivered
        again.
        """
        id = post.id or self._new_id()
        again = self._again(id, post)
        if again is not None:
            return await again
        if self.closing:
            return Failure(replace(SHUTTING_DOWN, id=post.id))
        target = target_of(post)
        if isinstance(target, Through):
            return await self._through(post, id, target)
        return self._to_clients(post, id, target, sender)

    def _again(self, id: str, post: Post) -> Awaitable[Result[dict[str, Any], Fault]] | None:
        """What is to be said to a repeat; None where the message is new."""
        running, known = self._sending.get(id), self._remembered.get(id)
        if running is None and known is None:
            return None
        digest = running[0] if running else known[0] if known else ""
        if digest != post.digest:
            return _said(Failure(Fault("id_reused", "another message was sent under this id", id)))
        return _outcome_of(running[1]) if running else _said(Success(known[1])) if known else None

    def _to_clients(
        self, post: Post, id: str, target: Clients | Everyone, sender: Client | None
    ) -> Result[dict[str, Any], Fault]:
        frame = Frame(message_frame(post, id, sender.path if sender else "api", self._now()))
        if len(frame.data) > LARGEST_FRAME:
            return Failure(Fault("too_large", f"the frame would have more than {LARGEST_FRAME} bytes", post.id))
        count = 0
        for client in list(self._listening(target)):
            if client is not sender and self.offer(client, frame):
                count += 1
                client.unacknowledged.append(id)
        outcome = handed(post, id, count)
        self._count(accepted=1, handed=count, delivered=min(count, 1), failed=int(not count))
        if count:
            self._remember(id, post, outcome)
        return Success(outcome)

    def _listening(self, target: Clients | Everyone) -> Iterator[Client]:
        if isinstance(target, Clients) and target.path != ROOT:
            named = self._named.get(target.path)
            return iter((named,) if named else ())
        everyone = isinstance(target, Everyone)
        return (client for client in self._clients if client.listens and (everyone or client.path == ROOT))

    async def _through(self, post: Post, id: str, target: Through) -> Result[dict[str, Any], Fault]:
        if len(self._sending) >= self.limits.sending:
            return Failure(
                Fault("overloaded", f"{self.limits.sending} messages are on their way through channels", post.id)
            )
        self._count(accepted=1)
        # A task of its own: it goes on where the one who asked has gone away.
        task = asyncio.create_task(
            self._sent(post, id, {**post.members, "text": post.content, "channel": target.channel})
        )
        self._sending[id] = (post.digest, task)
        task.add_done_callback(lambda _: self._sending.pop(id, None))
        return await _outcome_of(task)

    async def _sent(self, post: Post, id: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self._deliver is None:
            told: Mapping[str, Any] = {"status": "refused", "message": "This gateway has no channels"}
        else:
            try:
                told = await asyncio.get_running_loop().run_in_executor(self._executor, self._deliver, arguments)
            except Exception as error:
                log.error("sending through a channel broke off: %s", type(error).__name__)
                told = {"status": "unconfirmed", "message": "The gateway broke off while sending; it may have arrived"}
        outcome = through_channel(id, told)
        good = outcome["status"] in ("delivered", "partial")
        self._count(delivered=int(good), failed=int(not good))
        if outcome["status"] in ("delivered", "partial", "unconfirmed"):
            self._remember(id, post, outcome)
        return outcome

    def _remember(self, id: str, post: Post, outcome: dict[str, Any]) -> None:
        kept = ("id", "status", "message", "clients", "ids")
        brief: dict[str, Any] = {name: outcome[name] for name in kept if name in outcome}
        self._remembered[id] = (post.digest, brief)
        if len(self._remembered) > self.limits.remembered:
            self._remembered.popitem(last=False)

    # --- The whole ----------------------------------------------------------------------------------------------------

    def refused(self) -> None:
        """A request or frame was not taken."""
        self._count(refused=1)

    def _count(self, **more: int) -> None:
        counts = self._counts
        self._counts = replace(counts, **{name: getattr(counts, name) + number for name, number in more.items()})

    def status(self) -> Status:
        paths = Counter(client.path for client in self._clients if client.listens)
        return Status(
            version=self._version,
            uptime=max(0.0, self._now() - self._started),
            channels=self._channels,
            connections=tuple(sorted(paths.items())),
            limit=self.limits.clients,
            counts=self._counts,
            queued=sum(len(client.queue) for client in self._clients),
            queued_bytes=self._queued_bytes,
            sending=len(self._sending),
            closing=self.closing,
        )

    async def close(self, sending: float, clients: float) -> None:
        """Take nothing more; wait for what channels have in hand (at most ``sending`` seconds), then let all clients
        go, each with what waits for it (at most ``clients`` seconds)."""
        self.closing = True
        if self._sending:
            await asyncio.wait([task for _, task in self._sending.values()], timeout=sending)
        for client in list(self._clients):
            client.end(GOING_AWAY)
        try:
            await asyncio.wait_for(self._empty.wait(), clients)
        except TimeoutError:
            log.warning("%d clients did not take what waited for them", len(self._clients))


GOING_AWAY = Ending(CloseCode.GOING_AWAY, "the gateway is shutting down", patient=True)
SHUTTING_DOWN = Fault("shutting_down", "the gateway is shutting down")


async def _said(result: Result[dict[str, Any], Fault]) -> Result[dict[str, Any], Fault]:
    return result


async def _outcome_of(task: asyncio.Task[dict[str, Any]]) -> Result[dict[str, Any], Fault]:
    return Success(await asyncio.shield(task))
