"""Replies of platforms, kept under ``tests/replies``: from published schemas, documentation, or real servers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from returns.result import Result, Success

from messaging_core.errors import SendError
from messaging_core.flow import Done, Exchange, Step, Stopped, drive
from messaging_core.wire.http import FormPart, HttpReply, HttpRequest, Multipart

ROOT = Path(__file__).parents[2] / "replies"


def replies(channel: str) -> dict[str, HttpReply]:
    """Every kept reply of one channel, by the name of its case."""
    return {path.stem: _read(path) for path in sorted((ROOT / channel).glob("*.json"))}


def _read(path: Path) -> HttpReply:
    kept = json.loads(path.read_bytes())
    body = kept["body"] if isinstance(kept["body"], str) else json.dumps(kept["body"], ensure_ascii=False)
    headers = tuple((name, value) for name, value in kept.get("headers", ()))
    return HttpReply(kept["status"], kept.get("reason", ""), headers, body.encode())


def send(start: Step, answers: Sequence[HttpReply]) -> tuple[list[Exchange], Result[Done, Stopped]]:
    """Drive a send with the answers in order, all of them: the exchanges that were performed, and the end."""
    seen: list[Exchange] = []
    left = list(answers)

    def perform(exchange: Exchange) -> Result[Any, SendError]:
        seen.append(exchange)
        return Success(left.pop(0))

    end = drive(perform, start)
    assert not left, f"{len(left)} answers were not asked for"
    return seen, end


def fields(request: HttpRequest) -> dict[str, Any]:
    """The JSON of a body, or the parts of a form by name (JSON read, but in texts); a file as (content, name, type)."""
    if not isinstance(request.body, Multipart):
        assert isinstance(request.body, bytes)
        return dict(json.loads(request.body))
    return {part.name: _value(part) for part in request.body.parts}


def _value(part: FormPart) -> Any:
    if part.filename is not None:
        return (part.content, part.filename, part.content_type)
    assert isinstance(part.content, bytes)
    text = part.content.decode()
    try:
        return text if part.name in ("caption", "text") else json.loads(text)
    except ValueError:
        return text
