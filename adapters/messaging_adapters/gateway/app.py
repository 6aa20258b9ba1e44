"""The gateway's addresses: HTTP and WebSocket in, the hub behind. What is decided, the core decides."""

import asyncio
import base64
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import resources
from typing import Any

from aiohttp import WSMsgType, web
from returns.pipeline import is_successful
from returns.result import Failure, Result, Success

from messaging_adapters.gateway.hub import Client, Ending, Frame, Hub
from messaging_core.gateway.access import Access, Caller, admit, admit_body, choose_subprotocol
from messaging_core.gateway.openapi import document
from messaging_core.gateway.protocol import (
    BEARER,
    LARGEST,
    SENDER,
    Ack,
    ClientFrame,
    CloseCode,
    Fault,
    error_frame,
    http_status,
    read_frame,
    read_object,
    read_post,
    receipt_frame,
    to_text,
)
from messaging_core.gateway.targets import is_client_path

log = logging.getLogger(__name__)

OPEN = frozenset({"/", "/health", "/openapi.json"})
"""What anybody who may come in at all may see without the token."""

BODY_SECONDS = 30.0
BODIES = 64
"""How long one body may take, and how many are read at the same time."""

PING = 20.0
"""Seconds of silence after which a client is asked whether it is there; half as many later it is gone."""

CUT_OFF = 2 * LARGEST
"""Bytes at which a frame is no longer read: the connection is cut, and only who is not still sending sees why."""

GOODBYE = 10.0
"""Seconds that a client has to take what was written, and to close, before its connection is cut."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "messaging-gateway",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gateway:
    """The handlers of one gateway."""

    def __init__(self, hub: Hub, access: Access, version: str) -> None:
        self._hub, self._access = hub, access
        self._bodies = asyncio.Semaphore(BODIES)
        self._openapi = to_text(document(version, bool(access.token)))
        self._page, self._hashes = _page()

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        application.on_response_prepare.append(_with_headers)
        application.router.add_get("/", self._index)
        application.router.add_get("/health", self._health)
        application.router.add_get("/openapi.json", self._describe)
        application.router.add_get("/api/status", self._status)
        application.router.add_post("/api/send", self._send)
        application.router.add_post("/api/broadcast", self._broadcast)
        application.router.add_get("/ws", self._socket, allow_head=False)
        application.router.add_get("/ws/{name}", self._socket, allow_head=False)
        return application

    # --- The door -----------------------------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Nobody comes in unasked, and whatever happens, the answer is JSON of the protocol."""
        admitted = admit(self._access, _caller(request), token_needed=request.path not in OPEN)
        if not is_successful(admitted):
            return self._refuse(admitted.failure())
        try:
            return await handler(request)
        except web.HTTPException as error:
            return self._refuse(_fault_of(error), Allow=error.headers.get("Allow"))
        except ConnectionError:
            raise
        except Exception as error:
            log.exception("a request could not be answered: %s", type(error).__name__)
            return self._refuse(Fault("internal", "the gateway failed; it may have arrived"))

    def _refuse(self, fault: Fault, **headers: str | None) -> web.Response:
        self._hub.refused()
        response = _json(fault.document(), fault.http_status)
        if fault.code == "unauthorized":
            response.headers["WWW-Authenticate"] = "Bearer"
        if fault.http_status == 503:
            response.headers["Retry-After"] = "1"
        if fault.code == "upgrade_required":
            response.headers["Upgrade"] = "websocket"
        for name, value in headers.items():
            if value:
                response.headers[name] = value
        return response

    # --- HTTP ---------------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.Response:
        # The host was checked before: it is the one that the page may talk to.
        policy = (
            f"default-src 'none'; script-src {self._hashes[0]}; style-src {self._hashes[1]}; "
            f"connect-src 'self' ws://{request.host} wss://{request.host}; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
        headers = {"Content-Security-Policy": policy, "X-Frame-Options": "DENY"}
        return web.Response(text=self._page, content_type="text/html", charset="utf-8", headers=headers)

    async def _health(self, request: web.Request) -> web.Response:
        closing = self._hub.closing
        return _json({"status": "closing" if closing else "ok"}, 503 if closing else 200)

    async def _describe(self, request: web.Request) -> web.Response:
        return web.Response(text=self._openapi, content_type="application/json")

    async def _status(self, request: web.Request) -> web.Response:
        return _json(self._hub.status().document(), 200)

    async def _send(self, request: web.Request) -> web.Response:
        return await self._post(request, broadcast=False)

    async def _broadcast(self, request: web.Request) -> web.Response:
        return await self._post(request, broadcast=True)

    async def _post(self, request: web.Request, *, broadcast: bool) -> web.Response:
        read = await self._body(request)
        post = read.bind(read_object).bind(lambda value: read_post(value, broadcast=broadcast))
        if not is_successful(post):
            return self._refuse(post.failure())
        placed = await self._hub.place(post.unwrap())
        # Each client's task now has its turn, so that only those whose connections are full fall behind.
        await asyncio.sleep(0)
        if not is_successful(placed):
            return self._refuse(placed.failure())
        return _json(placed.unwrap(), http_status(placed.unwrap()))

    async def _body(self, request: web.Request) -> Result[bytes, Fault]:
        admitted = admit_body(_caller(request))
        if not is_successful(admitted):
            return Failure(admitted.failure())
        too_large = Fault("too_large", f"the body has more than {LARGEST} bytes")
        if (request.content_length or 0) > LARGEST:
            return Failure(too_large)
        try:
            async with asyncio.timeout(BODY_SECONDS), self._bodies:
                body = bytearray()
                async for chunk in request.content.iter_any():
                    body += chunk
                    if len(body) > LARGEST:
                        return Failure(too_large)
                return Success(bytes(body))
        except TimeoutError:
            return Failure(Fault("timeout", f"the body did not come within {BODY_SECONDS:g} s"))

    # --- WebSocket ----------------------------------------------------------------------------------------------------

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if not is_client_path(request.path):
            return self._refuse(Fault("not_found", "clients connect at /ws or /ws/<name>"))
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return self._refuse(Fault("upgrade_required", "this address speaks WebSocket"))
        offered = _offered(request)
        chosen = choose_subprotocol(offered)
        if chosen is None and any(name.startswith(BEARER) for name in offered):
            return self._refuse(Fault("invalid", "offer the subprotocol 'messaging' beside the token"))
        admitted = self._hub.admit()
        if not is_successful(admitted):
            return self._refuse(admitted.failure())
        socket = web.WebSocketResponse(
            protocols=(chosen,) if chosen else (),
            heartbeat=PING,
            timeout=GOODBYE,
            compress=False,
            max_msg_size=CUT_OFF,
        )
        client = Client(request.path, chosen != SENDER, self._hub.limits.acks)
        self._hub.join(client)
        try:
            await socket.prepare(request)
            await self._serve(client, socket)
        finally:
            self._hub.leave(client)
            if request.transport is not None and request.transport.get_write_buffer_size():
                # It had its time, and a dead client never takes the rest.
                request.transport.abort()
        return socket

    async def _serve(self, client: Client, socket: web.WebSocketResponse) -> None:
        """Read and write until one side ends it; then close as the reason for it asks."""
        reading = asyncio.create_task(self._read(client, socket))
        writing = asyncio.create_task(self._write(client, socket))
        try:
            ends: set[asyncio.Future[Any]] = {reading, writing, client.ending}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            broken = reading.done() and reading.exception() is not None
            if broken:
                log.error("a frame could not be answered", exc_info=reading.exception())
                client.end(Ending(CloseCode.INTERNAL, "the gateway failed; what was sent last may have arrived"))
            if client.ending.done() and (broken or not reading.done()):
                ending, end = client.ending.result(), asyncio.get_running_loop().time() + GOODBYE
                await _stopped(reading)
                if ending.patient:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(client.idle.wait(), GOODBYE / 2)
                await _stopped(writing)
                with suppress(TimeoutError, ConnectionError):
                    async with asyncio.timeout_at(end):
                        await socket.close(code=ending.code, message=ending.reason.encode()[:123], drain=False)
        finally:
            await _stopped(reading)
            await _stopped(writing)

    async def _write(self, client: Client, socket: web.WebSocketResponse) -> None:
        """Empty the client's queue into its connection, as fast as it takes it."""
        with suppress(ConnectionError, RuntimeError):
            while True:
                while client.queue:
                    frame = self._hub.took(client)
                    await socket.send_frame(frame.data, WSMsgType.TEXT)
                client.idle.set()
                client.wake.clear()
                await client.wake.wait()

    async def _read(self, client: Client, socket: web.WebSocketResponse) -> None:
        """Take what the client says until it ends."""
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                client.end(Ending(CloseCode.UNSUPPORTED, "frames are text: JSON in UTF-8"))
            elif message.type is not WSMsgType.TEXT:
                return
            elif len(message.data.encode()) > LARGEST:
                client.end(Ending(CloseCode.TOO_BIG, f"a frame holds at most {LARGEST} bytes"))
            else:
                await self._said(client, message.data)
            if client.ending.done():
                await asyncio.Event().wait()

    async def _said(self, client: Client, raw: str) -> None:
        read: Result[ClientFrame, Fault] = read_frame(raw)
        frame = read.value_or(None)
        if isinstance(frame, Ack):
            self._hub.acknowledged(client, frame)
            return
        told = Failure(read.failure()) if frame is None else await self._hub.place(frame, client)
        if not is_successful(told):
            self._hub.refused()
        answer = receipt_frame(told.unwrap()) if is_successful(told) else error_frame(told.failure())
        self._hub.offer(client, Frame(answer))
        # Others have their turn before this client's next frame.
        await asyncio.sleep(0)


# --- Small things -----------------------------------------------------------------------------------------------------


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task


async def _with_headers(request: web.Request, response: web.StreamResponse) -> None:
    if response.status != 101:
        for name, value in HEADERS.items():
            response.headers[name] = value


def _caller(request: web.Request) -> Caller:
    headers = request.headers
    return Caller(
        host=headers.get("Host"),
        origin=", ".join(headers.getall("Origin")) if "Origin" in headers else None,
        authorization=headers.get("Authorization"),
        offered=_offered(request),
        content_type=headers.get("Content-Type"),
        content_encoding=headers.get("Content-Encoding"),
    )


def _offered(request: web.Request) -> tuple[str, ...]:
    values = request.headers.getall("Sec-WebSocket-Protocol", ())
    return tuple(name.strip() for value in values for name in value.split(","))


def _json(value: Mapping[str, Any], status: int) -> web.Response:
    return web.Response(text=json.dumps(value, ensure_ascii=True), status=status, content_type="application/json")


_FAULTS = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


def _fault_of(error: web.HTTPException) -> Fault:
    return Fault(_FAULTS.get(error.status, "invalid"), error.reason)


def _page() -> tuple[str, tuple[str, str]]:
    """The page, and the hashes of its one script and its one style, by which alone they run (CSP Level 3)."""
    page = resources.files(__package__).joinpath("index.html").read_text(encoding="utf-8")
    return page, (_hash(page, "script"), _hash(page, "style"))


def _hash(page: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    assert found is not None, tag
    return f"'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"
