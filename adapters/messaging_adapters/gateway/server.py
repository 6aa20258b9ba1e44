"""Listening, signals, the end: the gateway as a process."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from aiohttp import web
from aiohttp.web_log import AccessLogger

from messaging_adapters.clock import new_message_id
from messaging_adapters.gateway.app import Gateway
from messaging_adapters.gateway.hub import Deliver, Hub, Limits
from messaging_core.gateway.access import Access
from messaging_core.gateway.targets import bracketed

IDLE = 75.0
"""Seconds that a connection may take for its first request, or stay without another; a half-sent head counts as
none.
"""

OTHERS = 200
"""Connections besides those of clients: requests by HTTP, and upgrades on their way."""

ANSWERS = 2.0
"""Seconds at the end for what was accepted to be answered. By then all of it has its outcome: who is still writing a
request is not waited for.
"""

QUIET = logging.Logger("messaging.gateway.http", logging.CRITICAL)
"""The library's own log quotes what strangers send."""


@asynccontextmanager
async def listening(
    host: str,
    port: int,
    *,
    token: str = "",
    deliver: Deliver | None = None,
    channels: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    version: str = "0",
    limits: Limits | None = None,
    sending: float = 300.0,
    clients: float = 30.0,
) -> AsyncIterator[tuple[int, Hub]]:
    """A gateway that listens within the block; gives the port that it has, and the hub.

    At the end nothing more is taken; what channels have in hand gets ``sending`` seconds, what waits for clients
    ``clients`` seconds. ``OSError`` where the address cannot be had.
    """
    limits = limits or Limits()
    executor = ThreadPoolExecutor(limits.threads, "gateway-channel")
    hub = Hub(
        deliver=deliver,
        executor=executor,
        now=time.time,
        new_id=lambda: new_message_id(time.time()),
        channels=channels,
        version=version,
        limits=limits,
    )
    application = Gateway(hub, Access(host, token, origins), version).application()
    runner = web.AppRunner(
        application,
        access_log=None,
        access_log_class=AccessLogger,
        keepalive_timeout=IDLE,
        auto_decompress=False,
        logger=QUIET,
        shutdown_timeout=ANSWERS,
    )
    logging.getLogger("aiohttp.websocket").setLevel(logging.CRITICAL)
    await runner.setup()
    try:
        door = await asyncio.get_running_loop().create_server(_door(runner, limits), host, port, backlog=1024)
        try:
            yield door.sockets[0].getsockname()[1], hub
        finally:
            door.close()
            await hub.close(sending, clients)
    finally:
        await runner.cleanup()
        executor.shutdown(wait=False, cancel_futures=True)


def _door(runner: web.AppRunner, limits: Limits) -> Callable[[], asyncio.Protocol]:
    """Connections, as long as there are not too many: the next is told so and closed."""
    server = runner.server
    assert server is not None
    most = limits.clients + OTHERS

    def connection() -> asyncio.Protocol:
        return server() if len(server.connections) < most else _Full()

    return connection


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        transport.close()


async def serve(
    gateway: AbstractAsyncContextManager[tuple[int, Hub]], host: str, ready: Callable[[str], None] = lambda url: None
) -> None:
    """Run a gateway (see :func:`listening`) until SIGTERM or SIGINT; the second signal ends it at once.

    ``ready`` is told its address.
    """
    _raise_file_limit()
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    async with gateway as (bound, _):
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, ValueError):  # Windows; not the main thread
                loop.add_signal_handler(number, end, number)
        ready(f"http://{bracketed(host or '0.0.0.0')}:{bound}")
        await stop.wait()


def _raise_file_limit() -> None:
    """Take as many open files as the system lets this process have: each connection is one."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
