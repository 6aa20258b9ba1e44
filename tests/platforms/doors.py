"""Each channel with its model behind it, so that a cell of the capability table is one test over all of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from messaging_adapters.registry import INSTALLED
from tests.adapters.loopback import Item
from tests.platforms import discord, signal, slack, telegram, whatsapp
from tests.platforms.far_end import FarEnd, File, Front, front


@dataclass
class Arrived:
    """One message as the far end holds it. ``text``: as sent (Telegram: as shown)."""

    id: str
    to: str
    text: str
    file: File | None = None
    reply_to: str | None = None
    thread: str | None = None
    voice: bool = False


@dataclass(frozen=True)
class Door:
    """``call``: what the model calls the placing of a text. ``no``: the platform's plain refusal of one, and ``flood``
    its word for "too many", with the seconds that it names. ``reply``: an existing message's id, and one that is gone.
    """

    platform: str
    model: Callable[[], Any]
    settings: Callable[[str], dict[str, Any]]
    arrived: Callable[[Any], list[Arrived]]
    default: str
    call: str
    no: Item
    flood: tuple[Item, float] | None
    caption: int = 0
    reply: tuple[str, str] | None = None
    voice: bool = False
    name: str = "main"

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        return {"channels": {self.name: {"type": self.platform, **self.settings(url), **more}}}

    @contextmanager
    def open(self, folder: Path, far_end: FarEnd | None = None, **more: Any) -> Iterator[tuple[Front, Any]]:
        """The front door and the model. ``more``: settings of the channel."""
        model = self.model() if far_end is None else far_end
        with front(model, lambda url: self.config(url, **more), folder) as door:
            yield door, model

    def __str__(self) -> str:
        return self.platform


def _telegram(model: telegram.Telegram) -> list[Arrived]:
    return [
        Arrived(
            str(one.id),
            str(chat.id),
            one.text,
            one.file,
            None if one.reply_to is None else str(one.reply_to),
            None if one.thread is None else str(one.thread),
            one.method == "sendVoice",
        )
        for chat in model.chats.values()
        for one in chat.messages
    ]


def _discord(model: discord.Discord) -> list[Arrived]:
    return [
        Arrived(
            one.id,
            channel.parent or channel.id,
            one.content,
            one.files[0] if one.files else None,
            one.reply_to,
            channel.id if channel.parent else None,
            bool(one.flags & discord.VOICE),
        )
        for channel in model.channels.values()
        for one in channel.messages
    ]


def _slack(model: slack.Slack) -> list[Arrived]:
    return [
        Arrived(one.file_id or one.ts, channel.id, one.text, one.file, one.thread, one.thread)
        for channel in model.channels.values()
        for one in channel.messages
    ]


def _whatsapp(model: whatsapp.WhatsApp) -> list[Arrived]:
    return [Arrived(one.id, one.to, one.text, one.file, one.reply_to, None, one.voice) for one in model.messages]


def _signal(model: signal.Signal) -> list[Arrived]:
    return [
        Arrived(
            str(one.timestamp),
            one.to,
            one.text,
            one.files[0] if one.files else None,
            None if one.quote is None else f"{one.quote[0]}:{one.quote[1]}",
        )
        for one in model.messages
    ]


TELEGRAM = Door(
    "telegram",
    telegram.Telegram,
    lambda url: {"bot_token": telegram.TOKEN, "api_base": url, "chat_id": 42},
    _telegram,
    "42",
    "sendMessage",
    telegram.refusal("Bad Request: not enough rights to send text messages to the chat"),
    (telegram.flooded(7), 7.0),
    1024,
    ("900", "899"),
    True,
)
DISCORD = Door(
    "discord",
    discord.Discord,
    lambda url: {"bot_token": discord.TOKEN, "api_base": f"{url}/api/v10", "channel_id": "789"},
    _discord,
    "789",
    "message",
    discord.refusal(403, 50013, "Missing Permissions"),
    (discord.limited(1.3), 2.0),
    2000,
    ("5000", "4999"),
    True,
)
WEBHOOK = Door(
    "discord-webhook",
    discord.Discord,
    lambda url: {"url": f"{url}/api/webhooks/55/{discord.HOOK_TOKEN}"},
    _discord,
    "789",
    "webhook",
    discord.refusal(403, 50013, "Missing Permissions"),
    (discord.limited(2.7), 3.0),
    2000,
)
SLACK = Door(
    "slack",
    slack.Slack,
    lambda url: {"bot_token": slack.TOKEN, "api_base": f"{url}/api", "channel_id": "C0123456789"},
    _slack,
    "C0123456789",
    "chat.postMessage",
    slack.refusal("restricted_action"),
    (slack.limited(11), 11.0),
    3900,
    ("1712345678.123456", "1712345678.000009"),
)
WHATSAPP = Door(
    "whatsapp",
    whatsapp.WhatsApp,
    lambda url: {
        "access_token": whatsapp.TOKEN,
        "phone_number_id": whatsapp.PHONE,
        "to": "+1 650 555-1234",
        "api_base": f"{url}/v25.0",
    },
    _whatsapp,
    "16505551234",
    "messages",
    whatsapp.refusal(403, 131031, "Account has been locked"),
    (whatsapp.refusal(400, 131056, "(#131056) Pair rate limit hit"), 6.0),
    1024,
    ("wamid.EXISTING==", "wamid.GONE=="),
    True,
)
SIGNAL = Door(
    "signal",
    signal.Signal,
    lambda url: {"http_url": url, "account": signal.ACCOUNT, "to": "+15550003333"},
    _signal,
    "+15550003333",
    "send",
    signal.rpc_error(-1, "Failed to send message"),
    None,
    0,
    ("1712345678901:+15550003333", ""),
)
SIGNAL_REST = Door(
    "signal",
    lambda: signal.Signal(rest=True),
    lambda url: {"http_url": url, "account": signal.ACCOUNT, "to": "+15550003333", "mode": "rest"},
    _signal,
    "+15550003333",
    "send",
    signal.rest_error("Failed to send message: Unregistered user"),
    None,
    0,
    ("1712345678901:+15550003333", ""),
)

ALL = (TELEGRAM, DISCORD, WEBHOOK, SLACK, WHATSAPP, SIGNAL, SIGNAL_REST)


def doors(*only: Door) -> Any:
    """Run a test for each door (default: all) whose platform is installed."""
    marked = [
        pytest.param(
            one,
            id="signal-rest" if one is SIGNAL_REST else one.platform,
            marks=() if one.platform in INSTALLED else pytest.mark.skip(reason=f"there is no channel {one.platform}"),
        )
        for one in only or ALL
    ]
    return pytest.mark.parametrize("door", marked)
