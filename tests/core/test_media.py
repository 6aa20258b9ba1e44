"""What a file is, whether it may be sent, what it is called: over facts alone."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from returns.pipeline import is_successful

from messaging_core.errors import MediaForbidden, MediaUnreadable
from messaging_core.media import Ground, permitted, reach, safe_name, sniff
from messaging_core.media.ground import inside
from messaging_core.message import FileFacts, Kind


def facts(head: bytes, name: str = "file", tail: bytes = b"", size: int | None = None) -> FileFacts:
    return FileFacts(
        name, f"/data/{name}", name, head=head, tail=tail or head[-512:], size=len(head) if size is None else size
    )


# --- Kinds ------------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 640, 480, 8, 2, 0, 0, 0)
GIF = b"GIF89a" + struct.pack("<HH", 320, 200)
JPEG = (
    b"\xff\xd8"
    + b"\xff\xe0"
    + struct.pack(">H", 16)
    + b"JFIF\0\1\1\0\0\1\0\1\0\0"
    + b"\xff\xe1"
    + struct.pack(">H", 6002)
    + b"E" * 6000
    + b"\xff\xc4"
    + struct.pack(">H", 30)
    + b"H" * 28
    + b"\xff\xc0"
    + struct.pack(">HBHHB", 17, 8, 1080, 1920, 3)
    + b"\0" * 20
)
OPUS = b"OggS\0\2" + b"\0" * 20 + b"\1\x13" + b"OpusHead\1\1" + struct.pack("<HIhB", 312, 48000, 0, 0)
VORBIS = b"OggS\0\2" + b"\0" * 20 + b"\1\x1e" + b"\1vorbis" + struct.pack("<IBI", 0, 2, 44100) + b"\0" * 14


def ogg_page(granule: int) -> bytes:
    return b"noise" + b"OggS\0\4" + struct.pack("<qIII", granule, 1, 2, 3) + b"\1\5audio"


def iso(brand: bytes, *rest: bytes) -> bytes:
    kinds = brand + b"\0\0\0\0" + b"".join(rest)
    return struct.pack(">I", 8 + len(kinds)) + b"ftyp" + kinds


def mvhd(scale: int, duration: int) -> bytes:
    return b"\0\0\0\x6cmvhd" + struct.pack(">IIIII", 0, 1, 1, scale, duration) + b"\0" * 80


WAV = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16) + b"data\0\0\0\0"
FLAC = b"fLaC\x80\0\0\x22" + b"\0" * 10 + (44100 << 44 | 1 << 41 | 15 << 36 | 441000).to_bytes(8, "big")

KINDS = [
    (facts(PNG), Kind.IMAGE, "image/png", (640, 480), None),
    (facts(GIF), Kind.ANIMATION, "image/gif", (320, 200), None),
    (facts(b"GIF89a"), Kind.ANIMATION, "image/gif", (None, None), None),
    (facts(JPEG), Kind.IMAGE, "image/jpeg", (1920, 1080), None),
    (facts(JPEG[:4096]), Kind.IMAGE, "image/jpeg", (None, None), None),
    (facts(b"\xff\xd8\xff"), Kind.IMAGE, "image/jpeg", (None, None), None),
    (
        facts(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")),
        Kind.IMAGE,
        "image/webp",
        (100, 50),
        None,
    ),
    (
        facts(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (99 | 49 << 14).to_bytes(4, "little") + b"\0" * 9),
        Kind.IMAGE,
        "image/webp",
        (100, 50),
        None,
    ),
    (
        facts(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\1\x2a" + struct.pack("<HH", 100, 50)),
        Kind.IMAGE,
        "image/webp",
        (100, 50),
        None,
    ),
    (facts(bytes.fromhex("000000186674797068656963"), "p.heic"), Kind.DOCUMENT, "image/heic", (None, None), None),
    (facts(iso(b"mif1", b"heic")), Kind.DOCUMENT, "image/heic", (None, None), None),
    (facts(iso(b"mif1", b"avif")), Kind.DOCUMENT, "image/avif", (None, None), None),
    (facts(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "d.svg"), Kind.DOCUMENT, "image/svg+xml", (None, None), None),
    (facts(b'<?xml version="1.0"?>\n<!-- a -->\n<svg >'), Kind.DOCUMENT, "image/svg+xml", (None, None), None),
    (facts(b"about <svg> in a text", "a.txt"), Kind.DOCUMENT, "text/plain", (None, None), None),
    (facts(OPUS, "a.ogg", ogg_page(48_000 * 3 + 312)), Kind.AUDIO, "audio/ogg", (None, None), 3.0),
    (facts(OPUS, "a.opus", b"no page here"), Kind.AUDIO, "audio/ogg", (None, None), None),
    (facts(OPUS, "a.mp3", ogg_page(-1)), Kind.AUDIO, "audio/ogg", (None, None), None),
    (facts(VORBIS, "a.ogg", ogg_page(44_100 * 2)), Kind.AUDIO, "audio/x-vorbis+ogg", (None, None), 2.0),
    (facts(b"ID3\4\0\0\0\0\0\0", "a.ogg"), Kind.AUDIO, "audio/mpeg", (None, None), None),
    (facts(b"\xff\xfb\x90\x64\0\0"), Kind.AUDIO, "audio/mpeg", (None, None), None),
    (facts(b"\xff\xf1\x50\x80\0\0"), Kind.AUDIO, "audio/aac", (None, None), None),
    (facts(iso(b"M4A ") + mvhd(1000, 2500)), Kind.AUDIO, "audio/mp4", (None, None), 2.5),
    (facts(iso(b"isom"), "a.m4a"), Kind.AUDIO, "audio/mp4", (None, None), None),
    (facts(iso(b"isom"), "a.mp4", mvhd(600, 6000)), Kind.VIDEO, "video/mp4", (None, None), 10.0),
    (facts(iso(b"qt  ")), Kind.VIDEO, "video/quicktime", (None, None), None),
    (facts(b"\x1a\x45\xdf\xa3\x01webm....V_VP9.A_OPUS"), Kind.VIDEO, "video/webm", (None, None), None),
    (facts(b"\x1a\x45\xdf\xa3\x01webm....A_OPUS"), Kind.AUDIO, "audio/webm", (None, None), None),
    (facts(WAV, size=44 + 32000), Kind.AUDIO, "audio/wav", (None, None), 2.0),
    (facts(FLAC), Kind.AUDIO, "audio/flac", (None, None), 10.0),
    (facts(b"%PDF-1.4 x", "a.jpg"), Kind.DOCUMENT, "application/pdf", (None, None), None),
    (facts(b"PK\3\4...", "a.zip"), Kind.DOCUMENT, "application/zip", (None, None), None),
    (
        facts(b"PK\3\4...", "a.XLSX"),
        Kind.DOCUMENT,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        (None, None),
        None,
    ),
    (facts("grün\n".encode(), "a.csv"), Kind.DOCUMENT, "text/csv", (None, None), None),
    (facts("ü".encode()[:1] + b"", "a.txt"), Kind.DOCUMENT, "text/plain", (None, None), None),
    (facts(b"\xff\xfeh\0i\0", "a.txt"), Kind.DOCUMENT, "text/plain", (None, None), None),
    (facts(b"BMW drives", "a.txt"), Kind.DOCUMENT, "text/plain", (None, None), None),
    (facts(b"no picture", "a.jpg"), Kind.DOCUMENT, "text/plain", (None, None), None),
    (facts(b"\0\1\2\3", "a.png"), Kind.DOCUMENT, "application/octet-stream", (None, None), None),
    (facts(b"", "a.png"), Kind.DOCUMENT, "application/octet-stream", (None, None), None),
]


@pytest.mark.parametrize(
    ("file", "kind", "mime", "size", "seconds"), KINDS, ids=lambda value: getattr(value, "name", None)
)
def test_a_file_is_what_its_first_bytes_say(
    file: FileFacts, kind: Kind, mime: str, size: tuple[int | None, int | None], seconds: float | None
) -> None:
    found = sniff(file)
    assert (found.kind, found.mime, (found.width, found.height), found.duration) == (kind, mime, size, seconds)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([head.head for head, *_ in KINDS]),
    st.integers(0, 200),
    st.binary(max_size=80),
    st.binary(max_size=40),
)
def test_no_file_however_broken_is_too_much(head: bytes, cut: int, more: bytes, tail: bytes) -> None:
    found = sniff(facts(head[:cut] + more, "a.bin", tail))
    assert found.mime
    assert found.duration is None or found.duration >= 0
    assert (found.width is None) == (found.height is None)


def test_a_jpeg_and_an_ogg_are_looked_at_further() -> None:
    assert reach(JPEG[:10])[0] > len(JPEG)
    assert reach(OPUS)[1] > 65_307  # the longest page (RFC 3533, 6)
    assert reach(PNG) == reach(b"") == (4096, 512)


# --- Ground -----------------------------------------------------------------------------------------------------------

GROUND = Ground(
    ("/srv/out", "/tmp"), user=1000, temporary=("/tmp",), private=("/srv/out/daemon.yaml", "/srv/out/state")
)
THERE = FileFacts("a.pdf", "/srv/out/a.pdf", "a.pdf", size=9, owner=1000, inode=5, device=1, head=b"%PDF-")


def why(file: FileFacts, ground: Ground = GROUND) -> str:
    outcome = permitted(file, ground)
    if is_successful(outcome):
        assert outcome.unwrap() is file
        return ""
    refusal = outcome.failure()
    return refusal.why if isinstance(refusal, MediaForbidden) else f"unreadable: {refusal.problem}"


def at(path: str, **more: object) -> FileFacts:
    return replace(THERE, path=path, name=path.rpartition("/")[2], **more)  # type: ignore[arg-type]


OUTSIDE = "it is not in a permitted folder"


@pytest.mark.parametrize(
    "path", ["/srv/out/a.pdf", "/srv/out/deep/er/ü.pdf", "/tmp/a.pdf", "/srv/out/id_rsa.pub", "/srv/out/a..b"]
)
def test_files_under_the_roots_may_be_sent(path: str) -> None:
    assert why(at(path)) == ""


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/srv/out", "/srv/out2/a.pdf", "/srv/outa.pdf", "/srv", "/", "/srv/out\\a", "/SRV/OUT/a.pdf"],
)
def test_outside_the_roots_nothing_may_whether_it_exists_or_not(path: str) -> None:
    there, missing = at(path), FileFacts("x", path, "x", problem="no such file")
    assert (
        permitted(there, GROUND).failure()
        == replace(permitted(missing, GROUND).failure(), path="a.pdf")
        == MediaForbidden("a.pdf", GROUND.roots, OUTSIDE)
    )


@pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/sda", "/sys/kernel/x", "/proc/1/fd/3"])
def test_the_systems_own_folders_are_outside_even_of_the_root_folder(path: str) -> None:
    everything = replace(GROUND, roots=("/",))
    assert why(at(path), everything) == OUTSIDE
    assert why(at("/home/a.pdf"), everything) == ""


@pytest.mark.parametrize(
    "path",
    [
        "/srv/out/.env",
        "/srv/out/.ssh/config",
        "/srv/out/.git/config",
        "/srv/out/deep/id_ed25519",
        "/srv/out/server.PEM",
    ]
    + ["/srv/out/prod.env", "/srv/out/credentials.json", "/srv/out/secrets.yaml", "/srv/out/client_secret_12.json"],
)
def test_hidden_files_and_well_known_secrets_need_the_setting(path: str) -> None:
    assert "allow_hidden_media" in why(at(path))
    assert why(at(path), replace(GROUND, allow_hidden=True)) == ""


def test_a_root_may_itself_be_hidden() -> None:
    assert why(at("/home/u/.agent/out/a.pdf"), replace(GROUND, roots=("/home/u", "/home/u/.agent/out"))) == ""


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"Bag Attributes\n", b"-----END CERTIFICATE-----\r\n", b"\n\n  "])
def test_a_key_is_known_behind_what_stands_before_it(before: bytes) -> None:
    assert "private key" in why(at("/srv/out/notes.txt", head=before + b"-----BEGIN PRIVATE KEY-----\n"))


def test_a_key_is_known_by_its_first_line() -> None:
    key = at("/srv/out/notes.txt", head=b"\n-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert "private key" in why(key)
    assert why(key, replace(GROUND, allow_hidden=True)) == ""
    assert why(at("/srv/out/notes.txt", head=b"how to read -----BEGIN OPENSSH PRIVATE KEY-----")) == ""


@pytest.mark.parametrize(
    "path", ["/srv/out/daemon.yaml", "/srv/out/state/audit.jsonl", "/srv/out/state", "/srv/out/daemon.yaml.1"]
)
def test_configuration_and_records_are_never_sent(path: str) -> None:
    assert "configuration" in why(at(path), replace(GROUND, allow_hidden=True))


def test_nor_under_another_name() -> None:
    assert "configuration" in why(at("/srv/out/a.pdf", links=2), replace(GROUND, private_files=((1, 5),)))


def test_in_a_temporary_folder_only_ones_own() -> None:
    assert "your own" in why(at("/tmp/a.pdf", owner=0))
    assert why(at("/srv/out/a.pdf", owner=0)) == ""
    assert why(at("/tmp/project/a.pdf", owner=0), replace(GROUND, roots=("/tmp", "/tmp/project"))) == ""


def test_a_hard_link_to_somebody_elses_file_is_refused() -> None:
    assert "hard link" in why(at("/srv/out/a.pdf", owner=0, links=2))
    assert why(at("/srv/out/a.pdf", owner=1000, links=2)) == ""


def test_what_cannot_be_sent_is_told_only_inside_the_roots() -> None:
    assert why(at("/srv/out/a", problem="it is a folder")) == "unreadable: it is a folder"
    assert permitted(FileFacts("\0", "", "file", problem="that is no path"), GROUND).failure() == MediaUnreadable(
        "\0", "that is no path"
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(["a", "out", "out2", "srv", "..", ".", "a.b"]), max_size=5))
def test_inside_is_by_whole_segments(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    expected = segments[:2] == ["srv", "out"] and len(segments) > 2
    assert (inside(path, "/srv/out") is not None) == expected


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/../a/Übersicht 結果.pdf", "Übersicht 結果.pdf"),
        ('re"port\r\nX-Evil: 1\\end.pdf', "end.pdf"),
        ('a"b.pdf', "a'b.pdf"),
        ("a\r\nb\0c\x9b.pdf", "abc.pdf"),
        ("gpj.\u202eexe", "gpj.exe"),
        ("..", "file"),
        ("", "file"),
        ("a/", "file"),
        ("\udcff.txt", "?.txt"),
    ],
)
def test_a_name_is_fit_for_a_header(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@settings(deadline=None, max_examples=200)
@given(st.text(st.characters()))
def test_every_name_is_fit_for_a_header(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert not set(safe) & set('/\\"\r\n\0')
    assert safe == safe_name(safe)
    safe.encode()
