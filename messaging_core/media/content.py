"""What a file is, by its first bytes; the ending of its name tells apart what they leave open (texts, archives).

A table of its own, for want of a library that would be less: those that are small know neither sizes nor durations nor
which Ogg is Opus, and that is what the platforms ask for.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass

from messaging_core.message import FileFacts, Kind


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is. ``width``, ``height``: pixels, ``duration``: seconds; None where the file does not say it.

    ``kind`` IMAGE: JPEG, PNG and WebP alone, which every platform shows as pictures. HEIC, AVIF, SVG, TIFF and BMP are
    documents. ``mime`` is ``audio/ogg`` for Ogg with Opus alone, since that is the one that platforms take as a voice
    message.
    """

    kind: Kind
    mime: str
    width: int | None = None
    height: int | None = None
    duration: float | None = None


NOTHING_KNOWN = Sniffed(Kind.DOCUMENT, "application/octet-stream")

LOOK = (4096, 512)
"""First and last bytes that most kinds need."""


def reach(head: bytes) -> tuple[int, int]:
    """How many first and last bytes :func:`sniff` wants to see of a file that begins like this.

    A JPEG has its size behind the camera's notes, and the last page of an Ogg, with the time on it, may be 64 KiB long.
    """
    if head.startswith(b"\xff\xd8\xff"):
        return (128 * 1024, 512)
    return (4096, 66 * 1024) if head.startswith(b"OggS") else LOOK


def sniff(facts: FileFacts) -> Sniffed:
    """What the file is.

    >>> sniff(FileFacts("a.jpg", "/a.jpg", "a.jpg", head=b"GIF89a\\x02\\x00\\x03\\x00"))
    Sniffed(kind=<Kind.ANIMATION: 'animation'>, mime='image/gif', width=2, height=3, duration=None)
    """
    head = facts.head
    for at, signature, read in _SIGNATURES:
        if head.startswith(signature, at):
            found = read(facts)
            if found is not None:
                return found
    return _text(facts) if head and _is_text(head) else NOTHING_KNOWN


def _ending(facts: FileFacts) -> str:
    return facts.name.rpartition(".")[2].lower() if "." in facts.name else ""


def _is(kind: Kind, mime: str) -> Callable[[FileFacts], Sniffed]:
    found = Sniffed(kind, mime)
    return lambda facts: found


def _by_ending(otherwise: str, known: dict[str, str]) -> Callable[[FileFacts], Sniffed]:
    return lambda facts: Sniffed(Kind.DOCUMENT, known.get(_ending(facts), otherwise))


def _number(data: bytes, at: int, size: int) -> int:
    """Little-endian, as most of these formats have it."""
    return int.from_bytes(data[at : at + size], "little")


# --- Pictures ---------------------------------------------------------------------------------------------------------


def _picture(kind: Kind, mime: str, width: int, height: int) -> Sniffed:
    return Sniffed(kind, mime, width or None, height or None) if width and height else Sniffed(kind, mime)


def _png(facts: FileFacts) -> Sniffed:
    """https://www.w3.org/TR/png/#11IHDR"""
    head = facts.head
    return _picture(Kind.IMAGE, "image/png", int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big"))


def _gif(facts: FileFacts) -> Sniffed:
    return _picture(Kind.ANIMATION, "image/gif", _number(facts.head, 6, 2), _number(facts.head, 8, 2))


def _jpeg(facts: FileFacts) -> Sniffed:
    """From one marker to the next until the frame header (SOF), which has the size (ITU T.81, B.2.2)."""
    head, at = facts.head, 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD9 or marker == 0x01:
            at += 1 if marker == 0xFF else 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = int.from_bytes(head[at + 5 : at + 7], "big"), int.from_bytes(head[at + 7 : at + 9], "big")
            return _picture(Kind.IMAGE, "image/jpeg", width, height)
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return Sniffed(Kind.IMAGE, "image/jpeg")


def _webp(head: bytes) -> Sniffed:
    """https://developers.google.com/speed/webp/docs/riff_container"""
    width = height = 0
    match head[12:16]:
        case b"VP8X":
            width, height = _number(head, 24, 3) + 1, _number(head, 27, 3) + 1
        case b"VP8L":
            bits = _number(head, 21, 4)
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = _number(head, 26, 2) & 0x3FFF, _number(head, 28, 2) & 0x3FFF
    return _picture(Kind.IMAGE, "image/webp", width, height) if len(head) >= 30 else Sniffed(Kind.IMAGE, "image/webp")


# --- Sound and film ---------------------------------------------------------------------------------------------------


def _riff(facts: FileFacts) -> Sniffed | None:
    match facts.head[8:12]:
        case b"WEBP":
            return _webp(facts.head)
        case b"WAVE":
            rate = _number(facts.head, 28, 4)
            return Sniffed(Kind.AUDIO, "audio/wav", duration=max(0, facts.size - 44) / rate if rate else None)
        case b"AVI ":
            return Sniffed(Kind.VIDEO, "video/x-msvideo")
    return None


def _ogg(facts: FileFacts) -> Sniffed:
    """The codec's name stands in the first page (RFC 3533); the time on the last one (RFC 7845, 4; Vorbis I, A.2)."""
    first = facts.head[:256]
    opus, vorbis = first.find(b"OpusHead"), first.find(b"\x01vorbis")
    if opus >= 0:
        return Sniffed(Kind.AUDIO, "audio/ogg", duration=_ogg_time(facts, 48_000, _number(first, opus + 10, 2)))
    if vorbis >= 0:
        rate = _number(first, vorbis + 12, 4)
        return Sniffed(Kind.AUDIO, "audio/x-vorbis+ogg", duration=_ogg_time(facts, rate, 0))
    if b"\x80theora" in first:
        return Sniffed(Kind.VIDEO, "video/ogg")
    return Sniffed(Kind.AUDIO, "audio/x-flac+ogg" if b"\x7fFLAC" in first else "audio/x-speex+ogg")


def _ogg_time(facts: FileFacts, rate: int, skipped: int) -> float | None:
    last = facts.tail.rfind(b"OggS")
    samples = _number(facts.tail, last + 6, 8) - skipped
    return samples / rate if last >= 0 and rate and 0 < samples < 2**62 else None


def _flac(facts: FileFacts) -> Sniffed:
    """https://www.rfc-editor.org/rfc/rfc9639#section-8.2"""
    bits = int.from_bytes(facts.head[18:26], "big")
    rate, samples = bits >> 44, bits & 0xFFFFFFFFF
    return Sniffed(Kind.AUDIO, "audio/flac", duration=samples / rate if rate and samples else None)


_BRANDS: tuple[tuple[tuple[bytes, ...], Kind, str], ...] = (
    ((b"avif", b"avis"), Kind.DOCUMENT, "image/avif"),
    ((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), Kind.DOCUMENT, "image/heic"),
    ((b"M4A ", b"M4B ", b"M4P "), Kind.AUDIO, "audio/mp4"),
    ((b"qt  ",), Kind.VIDEO, "video/quicktime"),
    ((b"3gp4", b"3gp5", b"3gp6", b"3g2a"), Kind.VIDEO, "video/3gpp"),
)


def _iso(facts: FileFacts) -> Sniffed:
    """ISO base media (ISO/IEC 14496-12): the brand says what is in it, ``mvhd`` for how long."""
    head = facts.head
    brand, compatible = head[8:12], head[16 : max(16, min(int.from_bytes(head[:4], "big"), 256))]
    for brands, kind, mime in _BRANDS:
        if brand in brands or (brand in (b"mif1", b"msf1") and any(known in compatible for known in brands)):
            return Sniffed(kind, mime, duration=None if kind is Kind.DOCUMENT else _iso_time(facts))
    if _ending(facts) in ("m4a", "m4b"):
        return Sniffed(Kind.AUDIO, "audio/mp4", duration=_iso_time(facts))
    return Sniffed(Kind.VIDEO, "video/mp4", duration=_iso_time(facts))


def _iso_time(facts: FileFacts) -> float | None:
    for data in (facts.head, facts.tail):
        at = data.find(b"mvhd")
        if at >= 0 and at + 32 <= len(data):
            long = data[at + 4] == 1
            scale, start, size = (at + 24, at + 28, 8) if long else (at + 16, at + 20, 4)
            rate = int.from_bytes(data[scale : scale + 4], "big")
            return int.from_bytes(data[start : start + size], "big") / rate if rate else None
    return None


def _matroska(facts: FileFacts) -> Sniffed:
    head = facts.head
    if b"A_" in head and b"V_" not in head:
        return Sniffed(Kind.AUDIO, "audio/webm" if b"webm" in head[:64] else "audio/x-matroska")
    return Sniffed(Kind.VIDEO, "video/webm" if b"webm" in head[:64] else "video/x-matroska")


def _frames(facts: FileFacts) -> Sniffed | None:
    """MPEG audio begins with eleven set bits; the two for the layer tell MP3 from AAC (ADTS)."""
    second = facts.head[1] if len(facts.head) > 1 else 0
    if second & 0xF6 == 0xF0:
        return Sniffed(Kind.AUDIO, "audio/aac")
    return Sniffed(Kind.AUDIO, "audio/mpeg") if second & 0xE6 == 0xE2 else None


# --- Documents --------------------------------------------------------------------------------------------------------

_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."
_ZIPPED = {
    "docx": _OFFICE + "wordprocessingml.document",
    "xlsx": _OFFICE + "spreadsheetml.sheet",
    "pptx": _OFFICE + "presentationml.presentation",
    "odt": _OPEN + "text",
    "ods": _OPEN + "spreadsheet",
    "odp": _OPEN + "presentation",
    "epub": "application/epub+zip",
    "apk": "application/vnd.android.package-archive",
    "jar": "application/java-archive",
}
_OLE = {
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "msg": "application/vnd.ms-outlook",
}
_TEXTS = {
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "xml": "application/xml",
    "ics": "text/calendar",
    "vcf": "text/vcard",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "rtf": "application/rtf",
}
_SVG = re.compile(rb"\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<svg[\s>/]", re.DOTALL | re.IGNORECASE)
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def _text(facts: FileFacts) -> Sniffed:
    if _SVG.match(facts.head.removeprefix(codecs.BOM_UTF8)):
        return Sniffed(Kind.DOCUMENT, "image/svg+xml")
    return Sniffed(Kind.DOCUMENT, _TEXTS.get(_ending(facts), "text/plain"))


def _is_text(head: bytes) -> bool:
    """UTF-8 without control signs, the last sign perhaps cut in two; or UTF-16 that says so."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    if _CONTROLS.search(head):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


_SIGNATURES: tuple[tuple[int, bytes, Callable[[FileFacts], Sniffed | None]], ...] = (
    (0, b"\xff\xd8\xff", _jpeg),
    (0, b"\x89PNG\r\n\x1a\n", _png),
    (0, b"GIF87a", _gif),
    (0, b"GIF89a", _gif),
    (0, b"RIFF", _riff),
    (4, b"ftyp", _iso),
    (0, b"OggS", _ogg),
    (0, b"ID3", _is(Kind.AUDIO, "audio/mpeg")),
    (0, b"fLaC", _flac),
    (0, b"\x1a\x45\xdf\xa3", _matroska),
    (0, b"#!AMR", _is(Kind.AUDIO, "audio/amr")),
    (0, b"MThd", _is(Kind.AUDIO, "audio/midi")),
    (8, b"AIFF", _is(Kind.AUDIO, "audio/aiff")),
    (0, b"\x00\x00\x01\xba", _is(Kind.VIDEO, "video/mpeg")),
    (0, b"FLV\x01", _is(Kind.VIDEO, "video/x-flv")),
    (0, b"%PDF-", _is(Kind.DOCUMENT, "application/pdf")),
    (0, b"PK\x03\x04", _by_ending("application/zip", _ZIPPED)),
    (0, b"PK\x05\x06", _by_ending("application/zip", _ZIPPED)),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _by_ending("application/x-ole-storage", _OLE)),
    (0, b"\x1f\x8b", _is(Kind.DOCUMENT, "application/gzip")),
    (0, b"7z\xbc\xaf\x27\x1c", _is(Kind.DOCUMENT, "application/x-7z-compressed")),
    (0, b"Rar!\x1a\x07", _is(Kind.DOCUMENT, "application/vnd.rar")),
    (257, b"ustar", _is(Kind.DOCUMENT, "application/x-tar")),
    (0, b"II*\x00", _is(Kind.DOCUMENT, "image/tiff")),
    (0, b"MM\x00*", _is(Kind.DOCUMENT, "image/tiff")),
    (0, b"BM", lambda facts: None if _is_text(facts.head) else Sniffed(Kind.DOCUMENT, "image/bmp")),
    (0, b"\x00\x00\x01\x00", _is(Kind.DOCUMENT, "image/x-icon")),
    (0, b"SQLite format 3\x00", _is(Kind.DOCUMENT, "application/vnd.sqlite3")),
    (0, b"\xff", _frames),
)
"""Where, what, and who reads on. ``II``, ``BM`` and a set byte are weak: what they lead to looks again."""
