"""What is to be said, to whom, and what is known of the file that goes with it.

``Message`` is what the caller asked for; ``Outgoing`` is what one channel is asked to describe: already routed,
permitted,
rendered, split and captioned, so that no channel decides any of these.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from messaging_core.flow import Part
from messaging_core.markup.dialect import Rendered


@dataclass(frozen=True, slots=True)
class Message:
    """What the caller asked to send. Absent is None; none of the texts is empty.

    ``format``: "markdown" or "plain", None for the channel's own setting.
    """

    text: str | None = None
    channel: str | None = None
    recipient: str | None = None
    media_path: str | None = None
    caption: str | None = None
    voice_path: str | None = None
    reply_to: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where the present turn takes place. An argument of every call, never remembered: two turns cannot cross.

    ``channel``: the configured channel's name. ``recipient``: the chat, room or address that answers go to.
    ``thread``: the topic,
    thread timestamp or root id, so that an answer stays where the question was. ``message_id``: the message being
    answered; it
    threads mail and serves an explicit ``reply_to``, and is never quoted by itself. ``sender``: every name of who
    wrote (id,
    username, address). ``subject``: of the mail being answered.
    """

    channel: str | None = None
    recipient: str | None = None
    thread: str | None = None
    message_id: str | None = None
    sender: tuple[str, ...] = ()
    subject: str | None = None


class Kind(Enum):
    """What a file is, by its first bytes with the name as a hint."""

    IMAGE = "image"
    ANIMATION = "animation"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a look at a file found. The shell opens ``path`` once when it sends, and refuses if these no longer hold.

    ``asked``: as the caller wrote it. ``path``: the real path. ``name``: its last segment, safe for headers.
    ``mtime_ns``, ``ctime_ns``:
    nanoseconds. ``links``: hard links. ``owner``: numeric user id. ``problem``: why it cannot be sent ("no such file",
    "a folder",
    "a named pipe", ...), empty where it can. ``head``, ``tail``: the first 4,096 and the last 512 bytes. ``sha256``:
    hexadecimal, only where it
    was asked for (an approval is bound to it).
    """

    asked: str
    path: str
    name: str
    size: int = 0
    device: int = 0
    inode: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    links: int = 1
    owner: int = 0
    problem: str = ""
    head: bytes = b""
    tail: bytes = b""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a channel sends to, in the platform's own spelling.

    ``id``: as the request carries it. ``kind``: the platform's sort ("channel", "user", "room", "alias", "group",
    ...). ``thread``: topic or
    thread inside it. ``shown``: as results, audit and allowlists name it.
    """

    id: str
    kind: str = ""
    thread: str | None = None
    shown: str = ""

    def __str__(self) -> str:
        return self.shown or self.id


@dataclass(frozen=True, slots=True)
class TextPart:
    """One message of text. ``markup`` False: ``text.text`` is to be shown as it stands, without the platform's
    markup."""

    text: Rendered
    markup: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MediaPart:
    """One message with a file. ``mime``: by content. ``kind``: how the platform should show it. ``voice``: as a voice
    message.

    ``data``: the bytes themselves where the file is made here (a long text as ``message.md``), else None and ``facts``
    say where. ``caption``
    fits the platform's limit. ``width``, ``height``: pixels, where the picture says. ``duration``: seconds, where the
    audio says.
    """

    facts: FileFacts
    kind: Kind
    mime: str
    caption: Rendered | None = None
    markup: bool = True
    voice: bool = False
    data: bytes | None = None
    width: int | None = None
    height: int | None = None
    duration: float | None = None
    notes: tuple[str, ...] = ()


Content: TypeAlias = TextPart | MediaPart


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What one channel is asked to describe.

    ``parts``: in order; the reply, if any, belongs to the first. ``reply_to``: the platform's id of the message
    replied to. ``mute``: carry the
    platform's switch that keeps mentions from ringing. ``subject``: of a mail, one line.
    ``numbered_from``: the index of the first part, where earlier ones are there already.
    """

    recipient: Recipient
    parts: tuple[Content, ...]
    reply_to: str | None = None
    mute: bool = True
    subject: str | None = None
    numbered_from: int = 1

    @property
    def numbered(self) -> Iterator[tuple[Part, Content]]:
        """Each part that is left, with its place in the whole."""
        of = self.numbered_from - 1 + len(self.parts)
        for index, content in enumerate(self.parts, self.numbered_from):
            yield Part(index, of), content


@dataclass(frozen=True, slots=True)
class Ids:
    """The id of a message: the time in milliseconds, then random signs; at most 21 ASCII letters and digits.

    With a part's number it serves as Matrix transaction id and Discord nonce (at most 25 characters).
    """

    message: str
    now: float = 0.0

    def part(self, index: int) -> str:
        return f"{self.message}.{index}"

    @property
    def boundary(self) -> str:
        """For multipart bodies: the same for equal inputs, and not to be met in content by accident.

        A token (RFC 9110, 5.6.2), since it stands without quotes in HTTP headers, where not every server takes them.
        """
        return f"part_{self.message}_{self.message[::-1]}"
