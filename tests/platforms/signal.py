"""Strict models of what speaks Signal: signal-cli's JSON-RPC daemon over HTTP, and signal-cli-rest-api.

https://github.com/AsamK/signal-cli (man/signal-cli-jsonrpc.5.adoc), https://github.com/bbernhard/signal-cli-rest-api. The
daemon's answers to wrong requests are those that a real daemon (0.13.19) gave.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from tests.adapters.loopback import Item, Request, reply
from tests.platforms.far_end import FarEnd, File, Refusal, json_of, schema_faults, spec

ACCOUNT = "+15550002222"
GROUP = base64.b64encode(bytes(range(32))).decode()
UUID = "8f9f7c7e-1f0a-4c6a-9a53-0d9f3a1f5c11"
NUMBER = r"\+[1-9]\d{4,14}"
STYLES = {"BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"}


@dataclass
class Message:
    to: str
    text: str
    timestamp: int
    styles: list[tuple[str, str]] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    quote: tuple[int, str] | None = None
    mode: str = ""


class Signal(FarEnd):
    """One account. ``failing``: recipients, and the result type that each meets."""

    def __init__(self, rest: bool = False, array: bool = False) -> None:
        super().__init__()
        self.rest, self.array = rest, array
        self.messages: list[Message] = []
        self.failing: dict[str, str] = {"+15550004444": "UNREGISTERED_FAILURE"}
        self.groups = {GROUP: ["+15550005555", "+15550006666"]}
        self.usernames = {"alice.01"}
        self._clock = 1764500000000

    def to(self, recipient: str) -> list[Message]:
        return [one for one in self.messages if one.to == recipient]

    def check(self, request: Request) -> tuple[str, Callable[[], Item]]:
        return self._rest(request) if self.rest else self._rpc(request)

    # --- The daemon -------------------------------------------------------------------------------------------------

    def _rpc(self, request: Request) -> tuple[str, Callable[[], Item]]:
        if request.path == "/api/v1/check" and request.method == "GET":
            return "check", lambda: reply(200)
        if request.path != "/api/v1/rpc":
            raise Refusal(reply(404), f"404 {request.path}")
        if request.method != "POST":
            raise Refusal(reply(405), "405")
        if (request.header("Content-Type") or "").split(";")[0] != "application/json":
            raise Refusal(reply(415), "415")
        try:
            call = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _rpc_no(None, -32700, str(error)) from None
        id = call.get("id")
        if set(call) - {"jsonrpc", "id", "method", "params"} or call.get("jsonrpc") != "2.0" or id is None:
            raise _rpc_no(id, -32600, "model: not a call with an id")
        method, params = call.get("method"), call.get("params", {})
        described = spec("signal")["rpc"].get(method)
        if described is None or method == "source":
            raise _rpc_no(id, -32601, "Method not implemented")
        for name, value in params.items():
            if name not in described or not any(_is(kind, value) for kind in described[name]):
                raise _rpc_no(id, -32602, f"model: {name} is {value!r}")
        if method in ("send", "getUserStatus", "listGroups") and params.get("account", ACCOUNT) != ACCOUNT:
            raise _rpc_no(id, -32602, "Specified account does not exist")
        if method == "send":
            return "send", self._send(id, params)
        if method == "getUserStatus":
            numbers = [*_list(params.get("recipient")), *_list(params.get("username"))]
            known = [{"recipient": one, "isRegistered": one not in self.failing} for one in numbers]
            return "getUserStatus", lambda: _result(id, known)
        if method == "listGroups":
            return "listGroups", lambda: _result(id, [{"id": one, "isMember": True} for one in self.groups])
        return str(method), lambda: _result(id, {"version": "0.14.6"} if method == "version" else [{"number": ACCOUNT}])

    def _send(self, id: Any, params: dict[str, Any]) -> Callable[[], Item]:
        text = params.get("message", "")
        files = []
        for uri in params.get("attachments", ()):
            file = _data_uri(uri, unquote_plus)
            if file is None:
                raise _rpc_no(id, -1, f"model: not a data URI: {uri[:60]}")
            files.append(file)
        if not text and not files:
            raise _rpc_no(id, -1, "No message body provided")
        quote = None
        if "quoteTimestamp" in params or "quoteAuthor" in params:
            author = params.get("quoteAuthor", "")
            if "quoteTimestamp" not in params or not _person(author):
                raise _rpc_no(id, -1, "model: a quote needs its time and its author")
            quote = (params["quoteTimestamp"], author)
        styles = [self._style(id, one, text) for one in params.get("textStyle", ())]
        to = self._recipients(id, params)

        def place() -> Item:
            self._clock += 1
            results, good = [], 0
            for kind, one in to:
                reached = 0
                for member in self.groups[one] if kind == "group" else [one]:
                    failure = self.failing.get(member)
                    reached += failure is None
                    person = "uuid" if kind == "uuid" else "username" if kind == "username" else "number"
                    address = {"number": None, "uuid": None, "username": None, person: member}
                    found: dict[str, Any] = {"recipientAddress": address, "type": failure or "SUCCESS"}
                    if kind == "group":
                        found["groupId"] = one
                    if failure == "RATE_LIMIT_FAILURE":
                        found |= {"token": "FAKE-challenge", "retryAfterSeconds": 86400}
                    results.append(found)
                good += reached
                if reached:
                    self.messages.append(Message(one, text, self._clock, styles, files, quote))
            response = {"timestamp": self._clock, "results": results}
            if good:
                return _result(id, response)
            limited = all(one["type"] == "RATE_LIMIT_FAILURE" for one in results)
            data = {"response": response}
            return _rpc_no(id, -5 if limited else -1, "Failed to send message", data).item

        return place

    def _recipients(self, id: Any, params: dict[str, Any]) -> list[tuple[str, str]]:
        to: list[tuple[str, str]] = []
        for one in _list(params.get("recipient")):
            if not _person(one):
                raise _rpc_no(id, -1, f"Failed to parse recipient {one!r}")
            to.append(("number" if one.startswith("+") else "uuid", one))
        for one in _list(params.get("groupId")):
            if one not in self.groups:
                raise _rpc_no(id, -1, "Group not found")
            to.append(("group", one))
        for one in _list(params.get("username")):
            if one.removeprefix("u:") not in self.usernames:
                raise _rpc_no(id, -1, "Username not found")
            to.append(("username", one.removeprefix("u:")))
        if not to:
            raise _rpc_no(id, -1, "No recipients given")
        return to

    def _style(self, id: Any, style: str, text: str) -> tuple[str, str]:
        """``start:length:STYLE`` in UTF-16 units; the style, and what it covers."""
        found = re.fullmatch(r"(\d+):(\d+):([A-Z]+)", style)
        units = text.encode("utf-16-le")
        if found is None or found[3] not in STYLES or int(found[2]) < 1:
            raise _rpc_no(id, -1, f"model: no style: {style}")
        start, end = int(found[1]), int(found[1]) + int(found[2])
        if end * 2 > len(units):
            raise _rpc_no(id, -1, f"model: a style beyond the text: {style}")
        return found[3], units[2 * start : 2 * end].decode("utf-16-le")

    # --- The REST service -------------------------------------------------------------------------------------------

    def _rest(self, request: Request) -> tuple[str, Callable[[], Item]]:
        route = f"{request.method} {request.path}"
        if route == "GET /v1/about":
            return "about", lambda: reply(json={"version": "0.100", "mode": "json-rpc", "capabilities": {}})
        if route == "GET /v1/health":
            return "health", lambda: reply(204)
        if re.fullmatch(r"GET /v1/search/(%2B|\+)15550002222", route):
            number = request.query.get("numbers", "")
            if not re.fullmatch(NUMBER, number):
                raise _rest_no("Please provide a valid number")
            return "search", lambda: reply(json=[{"number": number, "registered": number not in self.failing}])
        if re.fullmatch(r"GET /v1/groups/(%2B|\+)15550002222", route):
            listed = [{"id": "group." + base64.b64encode(one.encode()).decode()} for one in self.groups]
            return "groups", lambda: reply(json=listed)
        if route != "POST /v2/send":
            raise Refusal(reply(404, body="404 page not found"), route)
        try:
            body = json_of(request)
        except (ValueError, UnicodeDecodeError) as error:
            raise _rest_no(f"Couldn't process request - {error}") from None
        if faults := schema_faults("signal", "api.SendMessageV2", body):
            raise _rest_no(f"Couldn't process request - {faults}")
        return "send", self._rest_send(body)

    def _rest_send(self, body: dict[str, Any]) -> Callable[[], Item]:
        if body["number"] != ACCOUNT:
            raise _rest_no("Specified account does not exist")
        files = [_data_uri(one, str) for one in body.get("base64_attachments", ())]
        if None in files:
            raise _rest_no("model: an attachment that loses its name")
        if not body["message"] and not files:
            raise _rest_no("model: nothing to send")
        if "text_mode" not in body:
            raise _rest_no("model: how the text is read would be for the server's environment to say")
        quote = None
        if "quote_timestamp" in body or "quote_author" in body:
            if "quote_timestamp" not in body or not _person(body.get("quote_author", "")):
                raise _rest_no("model: a quote needs its time and its author")
            quote = (body["quote_timestamp"], body["quote_author"])
        kinds = {self._rest_kind(one) for one in body["recipients"]}
        if len(kinds) != 1 or (kinds == {"group"} and len(body["recipients"]) > 1):
            raise _rest_no("Signal Messenger Groups and phone numbers cannot be specified together in one request!")

        def place() -> Item:
            bad = [one for one in body["recipients"] if one in self.failing]
            if len(bad) == len(body["recipients"]):
                return _rest_no("Failed to send message: Unregistered user").item
            self._clock += 1
            for one in body["recipients"]:
                if one not in bad:
                    kept = [file for file in files if file is not None]
                    message = Message(one, body["message"], self._clock, [], kept, quote, body["text_mode"])
                    self.messages.append(message)
            answer: Any = {"timestamp": str(self._clock)}
            if bad:
                answer["errors"] = {"recipients": [{"number": one, "reason": "unregistered"} for one in bad]}
            return reply(201, json=[answer] if self.array else answer)

        return place

    def _rest_kind(self, recipient: str) -> str:
        if recipient.startswith("group."):
            try:
                inner = base64.b64decode(recipient.removeprefix("group."), validate=True)
                if inner.decode() in self.groups:
                    return "group"
            except ValueError:
                pass
            raise _rest_no("Invalid group id")
        if _person(recipient):
            return "person"
        if recipient in self.usernames:
            return "username"
        raise _rest_no(f"model: no recipient: {recipient!r}")


def _list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _person(value: Any) -> bool:
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    return isinstance(value, str) and re.fullmatch(f"{NUMBER}|{uuid}", value) is not None


def _is(kind: str, value: Any) -> bool:
    return {
        "string": isinstance(value, str),
        "integer": type(value) is int,
        "boolean": type(value) is bool,
        "array": isinstance(value, list) and all(isinstance(one, str) for one in value),
    }[kind]


def _data_uri(uri: str, name: Callable[[str], str]) -> File | None:
    """``data:<type>;filename=<name>;base64,<data>``. ``name``: how the name is read.

    signal-cli decodes it as a query is decoded (lib/.../util/DataURI.java); the REST service takes it as it stands, up
    to a semicolon, for the name of a temporary file (src/client/attachment.go).
    """
    found = re.fullmatch(r"data:([a-z]+/[^;,]+);filename=([^;/]+);base64,([A-Za-z0-9+/]+=*)", uri)
    if found is None:
        return None
    return File(name(found[2]), found[1], base64.b64decode(found[3], validate=True))


def _result(id: Any, result: Any) -> Item:
    return reply(json={"jsonrpc": "2.0", "result": result, "id": id})


def rpc_error(code: int, message: str, data: Any = None) -> Item:
    return _rpc_no("x", code, message, data).item


def _rpc_no(id: Any, code: int, message: str, data: Any = None) -> Refusal:
    error = {"code": code, "message": message, "data": data}
    return Refusal(reply(json={"jsonrpc": "2.0", "error": error, "id": id}), f"{code} {message}")


def rest_error(error: str) -> Item:
    return _rest_no(error).item


def _rest_no(error: str) -> Refusal:
    return Refusal(reply(400, json={"error": error, "account": ACCOUNT}), f"400 {error}")
