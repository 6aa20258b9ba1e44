"""Signal, which has no API of its own, by one of two programs that are a device of an account.

They are signal-cli's daemon (mode ``jsonrpc``, in ``_signal_daemon.py``) and signal-cli-rest-api (mode ``rest``, in
``_signal_rest.py``). Neither knows a message again, so nothing here is safe to repeat.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

from returns.result import Failure, Result, Success

from messaging_core.channels import _signal_daemon, _signal_rest
from messaging_core.channels._signal import Account, Draft, Quote
from messaging_core.channels.channel import Capabilities, Channel, Configured, Known, Limits, Sort, key
from messaging_core.errors import InvalidArguments, InvalidRecipient, Refusal
from messaging_core.flow import Step, in_order
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.signal import SIGNAL
from messaging_core.message import Ids, Outgoing, Recipient
from messaging_core.wire.http import HttpReply


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a ``signal`` channel."""

    http_url: str = key(Sort.URL, "Address of the daemon, `http://127.0.0.1:8080`.")
    account: str = key(Sort.ID, "Number of the account that sends, `+4915112345678`.")
    mode: str = key(
        Sort.CHOICE,
        "Which program it is: signal-cli's daemon, or signal-cli-rest-api.",
        default="jsonrpc",
        choices=("jsonrpc", "rest"),
    )
    to: str | None = key(Sort.ID, "Default recipient: a number, user id, username or group.", default=None)


TEXT = Length(64_000, Unit.BYTES, Of.RAW)
"""Over 2,000 bytes the daemon sends the text as an attachment that clients show as text, up to 64 KiB."""

FILE = 100_000_000
"""Bytes; clients take no more. The file travels inside the JSON, a third larger, and the daemon keeps it in memory."""


# --- Recipients -------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"\+[1-9][0-9]{1,14}")
PUNCTUATION = re.compile(r"[ ()./\u00a0-]")
USER_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
USERNAME = re.compile(r"(?:u:)?([a-z_][a-z0-9_]*\.[0-9]{2,9})", re.IGNORECASE)


def recipient(text: str) -> Result[Recipient, InvalidRecipient]:
    """A number in international form, a user's id, ``name.01``, or ``group:`` and the group's id.

    ``group.`` and the id in base64 once more is how signal-cli-rest-api spells a group.
    """
    if text.startswith(("group:", "group.")):
        group = text[6:] if text[5] == ":" else _bytes(text[6:]).decode("ascii", "replace")
        if _bytes(group):
            return Success(Recipient(group, "group", shown=f"group:{group}"))
    elif NUMBER.fullmatch(number := PUNCTUATION.sub("", text)):
        return Success(Recipient(number, "number"))
    elif USER_ID.fullmatch(text):
        return Success(Recipient(text.lower(), "user"))
    elif username := USERNAME.fullmatch(text):
        return Success(Recipient(username[1], "username"))
    return Failure(
        InvalidRecipient(text, "a number (+49151...), a user's id (UUID), a username (name.01) or group:<id in base64>")
    )


def _bytes(text: str) -> bytes:
    """What base64 stands for; empty where it is none."""
    try:
        return base64.b64decode(text.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return b""


def same(text: str) -> str:
    """One form for every spelling of a recipient; only in a group's id do capitals count."""
    found = recipient(text).value_or(None)
    if found is None:
        return text.casefold()
    return str(found) if found.kind == "group" else found.id.casefold()


# --- Requests ---------------------------------------------------------------------------------------------------------


def describe(at: Configured[Settings], outgoing: Outgoing, ids: Ids, known: Known) -> Result[Step, Refusal]:
    """One request for each part; the reply belongs to the first."""
    quote = read_quote(outgoing)
    if outgoing.reply_to is not None and quote is None:
        expected = "reply_to: expected timestamp:author (milliseconds, then a number or user id)"
        return Failure(InvalidArguments("message_send", (expected,)))
    send = _signal_rest.send if at.own.mode == "rest" else _signal_daemon.send
    drafts = (
        Draft(outgoing.recipient, part, content, ids.part(part.index), quote if part.index == 1 else None)
        for part, content in outgoing.numbered
    )
    return Success(in_order(tuple(send(account_of(at), draft) for draft in drafts)))


def account_of(at: Configured[Settings]) -> Account:
    return Account(at.name, at.own.account, at.own.http_url)


QUOTED = re.compile(r"([1-9][0-9]{0,15})(?::(\S+))?")


def read_quote(outgoing: Outgoing) -> Quote | None:
    """``timestamp:author``; in a chat with one person the author may be left out: it is that person."""
    found = QUOTED.fullmatch(outgoing.reply_to or "")
    if found is None:
        return None
    author = outgoing.recipient if found[2] is None else recipient(found[2]).value_or(None)
    return Quote(int(found[1]), author.id) if author is not None and author.kind in ("number", "user") else None


def probe(at: Configured[Settings], recipient: Recipient | None, known: Known) -> Step:
    """Whether the program has our account; whether a number or username is registered, and we are in a group.

    Signal limits how often the second may be asked; of a user's id it cannot be asked.
    """
    asked = None if recipient is None or recipient.kind == "user" else recipient
    ask = _signal_rest.ask if at.own.mode == "rest" else _signal_daemon.ask
    return ask(account_of(at), asked)


def rehearse(request: Any) -> HttpReply:
    """What the program would answer that has such an address."""
    by_daemon = request.url.endswith(_signal_daemon.PATH)
    return _signal_daemon.rehearse(request) if by_daemon else _signal_rest.rehearse(request)


CHANNEL = Channel(
    platform="signal",
    settings=Settings,
    capabilities=Capabilities(media=True, reply=True),
    limits=Limits(text=(TEXT,), caption=(TEXT,), any_file=FILE),
    dialect=SIGNAL,
    describe=describe,
    recipient=recipient,
    default_recipient=lambda own: own.to,
    default_key="to",
    same=same,
    probe=probe,
    rehearse=rehearse,
)
