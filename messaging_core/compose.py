"""From what was asked to the parts that one channel places: rendered, split, captioned, measured. Decided once, here.

No channel splits a text, decides on a caption or compares a size.
"""

import json
from dataclasses import replace

import regex
from returns.result import Failure, Result, Success

from messaging_core.channels.channel import Channel, Rules
from messaging_core.errors import InvalidArguments, MediaUnreadable, Refusal, TooLarge
from messaging_core.markup.blank import is_blank
from messaging_core.markup.dialect import Rendered
from messaging_core.markup.length import Length
from messaging_core.markup.plain import PLAIN
from messaging_core.markup.split import render, split, truncate
from messaging_core.markup.tree import Document, parse, verbatim
from messaging_core.media import Sniffed, sniff
from messaging_core.message import Content, FileFacts, Kind, MediaPart, Message, TextPart
from messaging_core.routing import Route

Parts = tuple[Content, ...]


def compose(route: Route, message: Message, facts: FileFacts | None) -> Result[Parts, Refusal]:
    """The parts of ``message`` on the channel of ``route``, in order. ``facts``: of its media or voice file."""
    channel, rules = route.channel, route.at.rules
    if facts is None:
        return _texts(channel, rules, message, message.text or "")
    captioned = message.caption if message.caption is not None else message.text
    more = message.text if message.caption is not None and message.text != message.caption else None
    file = _file(channel, message, facts)
    if captioned is not None:
        file = file.bind(lambda parts: _with_caption(channel, rules, message, parts, captioned))
    if more is not None:
        file = file.bind(lambda parts: _texts(channel, rules, message, more).map(lambda texts: parts + texts))
    return file


def compose_raw(route: Route, content: str) -> Result[Parts, Refusal]:
    """The content as it was given, for the tool ``message``: cut where its ancestor cuts, else split only where it
    must be."""
    if route.channel.cut_raw is not None:
        text, note = _cut(content, *route.channel.cut_raw)
        return Success((TextPart(_plain(text), markup=False, notes=note),))
    parts: tuple[Rendered, ...] = (_plain(content),)
    if not _fits(parts[0], route.channel.limits.text):
        parts = split(verbatim(content), PLAIN, route.channel.limits.text)
        if len(parts) > route.at.rules.max_parts:
            return Failure(TooLarge("The text", len(parts), route.at.rules.max_parts, "parts"))
    return Success(tuple(TextPart(part, markup=False) for part in parts))


def mute_raw(content: str) -> bool:
    """Whether the content holds a mention mark, so that the platform's switch is worth a key of its own."""
    return "@" in content


# --- Texts ------------------------------------------------------------------------------------------------------------


def _texts(channel: Channel, rules: Rules, message: Message, text: str) -> Result[Parts, Refusal]:
    if channel.raw:
        return Success((TextPart(_plain(text), markup=False),))
    document, limits, ring = _document(rules, message, text), channel.limits.text, rules.mentions == "allow"
    if not limits:
        whole = render(document, channel.dialect, mentions=ring)
        return _blank(message) if is_blank(whole.visible) else Success((TextPart(whole),))
    parts = split(document, channel.dialect, limits, mentions=ring)
    if not parts:
        return _blank(message)
    if len(parts) > 1 and rules.overflow == "reject":
        return Failure(_too_long(channel, rules, document, limits))
    if len(parts) > 1 and rules.overflow == "truncate":
        cut = truncate(document, channel.dialect, limits, mentions=ring)
        whole = render(document, channel.dialect, mentions=ring)
        return Success((TextPart(cut, notes=(f"cut to {len(cut.visible)} of {len(whole.visible)} characters",)),))
    if len(parts) > rules.max_parts:
        if not channel.capabilities.media:
            return Failure(TooLarge("The text", len(parts), rules.max_parts, "parts"))
        return Success((_as_file(text, len(parts)),))
    return Success(tuple(TextPart(part) for part in parts))


def _document(rules: Rules, message: Message, text: str) -> Document:
    return verbatim(text) if (message.format or rules.format) == "plain" else parse(text)


def _blank(message: Message) -> Result[Parts, Refusal]:
    return Failure(InvalidArguments("message_send", ("text: is empty, there is nothing to show in it",)))


def _too_long(channel: Channel, rules: Rules, document: Document, limits: tuple[Length, ...]) -> TooLarge:
    whole = render(document, channel.dialect, mentions=rules.mentions == "allow")
    over = next((limit for limit in limits if not limit.holds(whole)), limits[0])
    return TooLarge("The text", over.size(whole), over.limit, over.unit.value)


def _as_file(text: str, parts: int) -> MediaPart:
    data = text.encode()
    facts = FileFacts("message.md", "message.md", "message.md", size=len(data))
    return MediaPart(
        facts, Kind.DOCUMENT, "text/markdown", data=data, notes=(f"as a file, since it would take {parts} parts",)
    )


def _plain(text: str) -> Rendered:
    return Rendered(text, text)


def _fits(rendered: Rendered, limits: tuple[Length, ...]) -> bool:
    return all(limit.holds(rendered) for limit in limits)


LONGEST_CLUSTER = 200
"""Code points looked at past the cut: a longer pile of combining signs is cut all the same."""


def _cut(content: str, limit: int, sign: str) -> tuple[str, tuple[str, ...]]:
    if len(content) <= limit:
        return content, ()
    end = 0
    for grapheme in regex.finditer(r"\X", content[: limit + LONGEST_CLUSTER]):
        if grapheme.end() > limit - len(sign):
            break
        end = grapheme.end()
    text = content[: end or limit - len(sign)] + sign
    return text, (f"cut to {len(text)} of {len(content)} characters",)


# --- Files ------------------------------------------------------------------------------------------------------------

UNTOLD = ("application/octet-stream", "text/plain")
"""What a file is taken for that begins like none we know: it may yet be sound of some rarer kind."""


def _file(channel: Channel, message: Message, facts: FileFacts) -> Result[Parts, Refusal]:
    """The file as one part: readable, not empty, within the platform's limit for its kind."""
    if facts.problem:
        return Failure(MediaUnreadable(facts.asked, facts.problem))
    found: Sniffed = sniff(facts)
    limit = channel.limits.file(found.kind)
    if limit is not None and facts.size > limit:
        return Failure(TooLarge(f"The file {facts.name!r}", facts.size, limit))
    spoken, sound = message.voice_path is not None, found.kind is Kind.AUDIO
    if spoken and not sound and found.mime not in UNTOLD:
        problem = f"a voice message has to be sound, and it is {found.mime}"
        return Failure(MediaUnreadable(facts.asked, problem))
    as_voice = spoken and channel.capabilities.voice and found.mime in channel.limits.voice
    return Success(
        (
            MediaPart(
                facts,
                found.kind,
                found.mime,
                voice=as_voice,
                width=found.width,
                height=found.height,
                duration=found.duration,
                notes=("as audio" if sound else "as a file",) if spoken and not as_voice else (),
            ),
        )
    )


def _with_caption(
    channel: Channel, rules: Rules, message: Message, parts: Parts, caption: str
) -> Result[Parts, Refusal]:
    """The caption with the media where it fits; else as text that follows, and the result says so."""
    media = parts[0]
    assert isinstance(media, MediaPart)
    bare = not channel.limits.voice_captioned if media.voice else media.kind in channel.limits.uncaptioned
    rendered = render(_document(rules, message, caption), channel.dialect, mentions=rules.mentions == "allow")
    if is_blank(rendered.visible):
        return _blank(message)
    if not bare and _fits(rendered, channel.limits.caption):
        return Success((replace(media, caption=rendered),))
    told = replace(media, notes=(*media.notes, "the caption follows as text"))
    return _texts(channel, rules, message, caption).map(lambda texts: (told, *texts))


def preview_of(parts: Parts, limit: int = 200) -> str:
    """The beginning of what a reader would see, on one line, for people who approve."""
    shown = " ".join(seen(part) for part in parts)
    line = json.dumps(" ".join(shown.split()), ensure_ascii=False)[1:-1]
    return line if len(line) <= limit else line[: limit - 1] + "…"


def seen(part: Content) -> str:
    if isinstance(part, TextPart):
        return part.text.visible
    caption = f" {part.caption.visible}" if part.caption else ""
    return f"[{part.facts.name}, {part.facts.size} bytes]{caption}"
