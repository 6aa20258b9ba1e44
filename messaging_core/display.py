"""Plans, channels and previews as people and JSON read them. Pure: no request is sent to show one."""

import json
from typing import Any

from messaging_core.channels import Registry
from messaging_core.channels.channel import Channel, Configured
from messaging_core.compose import compose, seen
from messaging_core.message import FileFacts, MediaPart, Message, Recipient, TextPart
from messaging_core.plan import Plan, requests_of
from messaging_core.routing import Route
from messaging_core.secrecy import shown
from messaging_core.wire.http import FileRef, HttpRequest, Multipart, as_planned
from messaging_core.wire.terminal import TerminalRequest

MARKS = (("text", "text"), ("media", "media"), ("voice", "voice"), ("reply", "reply"))


def capability_table(registry: Registry) -> str:
    """What each platform can do, as a Markdown table: the one in the docs."""
    rows = ["| channel | text | media | voice | reply |", "|---|---|---|---|---|"]
    for platform in registry:
        can = registry[platform].capabilities
        rows.append(f"| {platform} | " + " | ".join("yes" if getattr(can, name) else "no" for name, _ in MARKS) + " |")
    return "\n".join(rows)


def channel_table(channels: tuple[Configured[Any], ...], registry: Registry) -> str:
    """The active channels: name, platform, default recipient, what each can do."""
    rows = [("CHANNEL", "PLATFORM", "RECIPIENT", "CAN SEND")]
    for at in channels:
        definition = registry[at.platform]
        can = ", ".join(what for name, what in MARKS if getattr(definition.capabilities, name))
        rows.append((at.name, at.platform, default_of(definition, at), can))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])) for row in rows
    )


def default_of(channel: Channel, at: Configured[Any]) -> str:
    if channel.fixed_recipient is not None:
        return str(channel.fixed_recipient)
    return channel.default_recipient(at.own) or "-"


# --- Plans ------------------------------------------------------------------------------------------------------------


def planned_json(plan: Plan) -> dict[str, Any]:
    """``{status: planned, tool, channel, ..., requests: [{method, url, headers, body}]}``: JSON bodies as JSON,
    secrets by name."""
    return {
        "status": "planned",
        "tool": plan.tool,
        "channel": plan.channel,
        "platform": plan.platform,
        "recipient": plan.recipient,
        "parts": {"delivered": 0, "of": plan.parts},
        "approval_required": plan.proposal is not None,
        "requests": [request_json(request) for request in requests_of(plan)],
    }


def request_json(request: Any) -> dict[str, Any]:
    """One request, of whatever kind, without a secret in it."""
    match request:
        case HttpRequest():
            planned = as_planned(request)
            headers = {name: shown(value) for name, value in planned.headers}
            if isinstance(request.body, Multipart):
                headers["Content-Type"] = f"multipart/form-data; boundary={request.body.boundary}"
            return {
                "method": planned.method,
                "url": shown(planned.url),
                "headers": headers,
                "body": _body(planned.body),
            }
        case TerminalRequest():
            return {"method": "WRITE", "url": request.stream, "headers": {}, "body": request.text}
        case _:
            describe = getattr(request, "shown", None)
            if describe is not None:
                return dict(describe())
            return {"method": type(request).__name__, "url": "", "headers": {}, "body": repr(request)}


def _body(body: Any) -> Any:
    match body:
        case bytes():
            return _readable(body)
        case FileRef():
            return {"file": body.facts.name, "size": body.facts.size}
        case Multipart():
            return [
                {
                    "name": part.name,
                    **({"filename": part.filename} if part.filename else {}),
                    **({"content_type": part.content_type} if part.content_type else {}),
                    "content": _body(part.content),
                }
                for part in body.parts
            ]
        case tuple():
            return _readable(shown(body).encode())
        case _:
            describe = getattr(body, "shown", None)
            return describe() if describe is not None else repr(body)


def _readable(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def planned_text(plan: Plan) -> str:
    """The requests of a send for people: one a paragraph."""
    count = f"{plan.parts} part{'s' if plan.parts != 1 else ''}"
    head = f"{plan.channel} ({plan.platform}) -> {plan.recipient}: {count}, nothing is sent"
    blocks = []
    for number, request in enumerate(requests_of(plan), 1):
        planned = request_json(request)
        body = planned["body"]
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, indent=2)
        blocks.append(f"{number}. {planned['method']} {planned['url']}\n{text}")
    return "\n\n".join((head, *blocks))


# --- Previews ---------------------------------------------------------------------------------------------------------


def preview(text: str, channels: tuple[Configured[Any], ...], registry: Registry) -> str:
    """The message as each channel would show it, parts and limits marked."""
    return "\n\n".join(_preview(text, at, registry[at.platform]) for at in channels)


def _preview(text: str, at: Configured[Any], channel: Channel) -> str:
    route = Route(channel, at, channel.fixed_recipient or Recipient("preview"))
    limits = (
        "; ".join(f"{limit.limit:,} {limit.unit.value} {limit.of.value}" for limit in channel.limits.text) or "no limit"
    )
    title = f"=== {at.name} ({at.platform}, {limits}) ==="
    nothing: FileFacts | None = None
    parts = compose(route, Message(text=text), nothing)
    return (
        parts.map(
            lambda whole: "\n".join((title, *(_part(part, index, len(whole)) for index, part in enumerate(whole, 1))))
        )
        .lash(lambda refusal: parts.from_value(f"{title}\n(refused: {refusal})"))
        .unwrap()
    )


def _part(part: TextPart | MediaPart, index: int, of: int) -> str:
    shown_part = seen(part)
    notes = f" ({'; '.join(part.notes)})" if part.notes else ""
    return f"--- part {index} of {of}, {len(shown_part)} characters{notes} ---\n{shown_part}"
