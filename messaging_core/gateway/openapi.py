"""The gateway's HTTP API as an OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.0), made from the protocol
itself.
"""

from dataclasses import fields
from typing import Any

from messaging_core.gateway.protocol import DEEPEST, FAULTS, GIVEN_BY, LARGEST, OUTCOMES
from messaging_core.gateway.status import Counts

Document = dict[str, Any]


def document(version: str, token_needed: bool) -> Document:
    """The whole document. ``token_needed``: whether this gateway asks for a bearer token."""
    security: list[Document] = [{"bearer": []}] if token_needed else []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Messaging gateway",
            "version": version,
            "description": (
                "Hands messages to the clients connected by WebSocket at /ws and /ws/{name}, and sends messages out "
                f"through configured channels. Bodies and frames hold at most {LARGEST} bytes, nested at most "
                f"{DEEPEST} levels deep."
            ),
        },
        "paths": {
            "/api/send": {"post": _post("send", "Send one message to a target", "Message", security)},
            "/api/broadcast": {"post": _post("broadcast", "Send one message to every client", "Broadcast", security)},
            "/api/status": {
                "get": {
                    "operationId": "status",
                    "summary": "How the gateway is",
                    "security": security,
                    "responses": _faults("unauthorized", "forbidden_host", "forbidden_origin")
                    | {"200": _answer("The status", "Status")},
                }
            },
            "/health": {
                "get": {
                    "operationId": "health",
                    "summary": "Whether the gateway takes messages",
                    "security": [],
                    "responses": _faults("forbidden_host", "forbidden_origin")
                    | {
                        "200": _answer("It does", "Health"),
                        "503": _answer("It is shutting down", "Health"),
                    },
                }
            },
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Message": _message("target"),
                "Broadcast": _message(),
                "Outcome": _outcome(),
                "Fault": _fault(),
                "Status": _status(),
                "Health": _object({"status": {"enum": ["ok", "closing"]}}),
            },
        },
    }


# --- Operations -------------------------------------------------------------------------------------------------------

_POST_FAULTS = tuple(code for code in FAULTS if code not in ("method_not_allowed", "upgrade_required", "not_found"))


def _post(name: str, summary: str, body: str, security: list[Any]) -> Document:
    return {
        "operationId": name,
        "summary": summary,
        "security": security,
        "requestBody": {"required": True, "content": _json(body)},
        "responses": _faults(*_POST_FAULTS)
        | {
            "200": _answer("Delivered, or partly where a channel says so", "Outcome"),
            "403": _either("A channel refused; or this host or origin may not use the gateway"),
            "404": _answer("Nobody is connected there", "Outcome"),
            "502": _answer("The channel failed", "Outcome"),
            "504": _answer("The channel got no answer: it may have arrived", "Outcome"),
        },
    }


def _faults(*codes: str) -> Document:
    by_status: dict[int, list[str]] = {}
    for code in codes:
        by_status.setdefault(FAULTS[code], []).append(code)
    return {str(status): _answer(" or ".join(names), "Fault") for status, names in by_status.items()}


def _answer(description: str, schema: str) -> Document:
    return {"description": description, "content": _json(schema)}


def _either(description: str) -> Document:
    schema = {"oneOf": [_reference("Outcome"), _reference("Fault")]}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _json(schema: str) -> Document:
    return {"application/json": {"schema": _reference(schema)}}


def _reference(schema: str) -> Document:
    return {"$ref": f"#/components/schemas/{schema}"}


# --- Schemas ----------------------------------------------------------------------------------------------------------


def _object(properties: Document, *optional: str, more: bool = False) -> Document:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


_CLIENTS = r"/ws(/[A-Za-z0-9][A-Za-z0-9._-]{0,63})?|\*"


def _message(*also: str) -> Document:
    target = {
        "type": "string",
        "pattern": rf"^({_CLIENTS}|[^\s/*:\x00-\x1f\x7f][^\s/:\x00-\x1f\x7f]{{0,127}})$",
        "description": "/ws: every client there. /ws/<name>: the client of that name. *: every client. "
        "Else: a configured channel's name.",
    }
    properties = {
        "type": {
            "type": ["string", "null"],
            "pattern": r"^(?!(ack|receipt|error)$)[A-Za-z][A-Za-z0-9_.:-]{0,63}$",
            "default": "text",
            "description": "Kind of message, as its readers know it.",
        },
        "content": {"type": "string", "minLength": 1, "description": "The text."},
        "id": {
            "type": ["string", "null"],
            "pattern": "^[!-~]{1,128}$",
            "description": "Idempotency key: a delivered message is not delivered again under the same id.",
        },
    }
    properties |= {"target": target} if also else {"target": {"enum": ["*", None]}}
    optional = ("type", "id") if also else ("type", "id", "target")
    message = _object(properties, *optional, more=True)
    given = {"not": {"anyOf": [{"required": ["from"]}, {"required": ["time"]}]}}
    for_clients = {"properties": {"target": {"pattern": f"^({_CLIENTS})$"}}}
    for_channels = {"properties": {"type": {"enum": ["text", None]}} | dict.fromkeys(GIVEN_BY, False)}
    return message | given | ({"anyOf": [for_clients, for_channels]} if also else {})


_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}


def _outcome() -> Document:
    properties = {
        "id": _TEXT,
        "status": {"enum": list(OUTCOMES)},
        "message": _TEXT,
        "clients": _COUNT | {"description": "How many clients it was handed to."},
        "code": _TEXT,
    }
    return _object(properties, "clients", "code", more=True)


def _fault() -> Document:
    code = {"enum": list(FAULTS)}
    identity = {"type": ["string", "null"]}
    return _object({"id": identity, "status": {"const": "refused"}, "code": code, "message": _TEXT})


def _status() -> Document:
    by_path = {"type": "object", "additionalProperties": _COUNT}
    return _object(
        {
            "status": {"enum": ["ok", "closing"]},
            "version": _TEXT,
            "uptime": {"type": "number", "minimum": 0, "description": "Seconds."},
            "channels": {"type": "array", "items": _TEXT},
            "connections": _object({"total": _COUNT, "limit": _COUNT, "by_path": by_path}),
            "counts": _object({field.name: _COUNT for field in fields(Counts)}),
            "queue": _object({"frames": _COUNT, "bytes": _COUNT, "sending": _COUNT}),
        }
    )
