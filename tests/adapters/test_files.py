"""Looking at real files."""

import hashlib
import os
import socket
import struct
import tempfile
import time
from pathlib import Path

import pytest

from messaging_adapters import files
from messaging_adapters.files import ground, look, real_path, with_private_files
from messaging_core.media import permitted, sniff
from messaging_core.message import FileFacts


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def seen(path: Path | str, root: Path) -> FileFacts:
    return look(str(path), (real_path(str(root)),))


def test_a_file_is_looked_at_once_and_whole(root: Path) -> None:
    file = root / "ä b.bin"
    file.write_bytes(bytes(range(256)) * 40)
    found, known = seen(file, root), file.stat()
    assert found == FileFacts(
        asked=str(file),
        path=os.path.realpath(file),
        name="ä b.bin",
        size=10240,
        device=known.st_dev,
        inode=known.st_ino,
        mtime_ns=known.st_mtime_ns,
        ctime_ns=known.st_ctime_ns,
        links=1,
        owner=os.getuid(),
        head=file.read_bytes()[:4096],
        tail=file.read_bytes()[-512:],
    )


def test_the_digest_is_of_the_whole(root: Path) -> None:
    (root / "a").write_bytes(b"x" * 3_000_000)
    assert look(str(root / "a"), (str(root),), digest=True).sha256 == hashlib.sha256(b"x" * 3_000_000).hexdigest()


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def _empty(path: Path) -> None:
    path.touch()


def _missing(path: Path) -> None:
    pass


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_folder, "it is a folder"),
        (_pipe, "it is a named pipe, not a file"),
        (_socket, "it is a socket, not a file"),
        (_empty, "it is empty (0 bytes)"),
        (_missing, "no such file"),
        (_loop, "it is a link that leads nowhere"),
    ],
)
def test_what_is_no_file_is_said_at_once(make: object, problem: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    short = Path(os.path.realpath(tmp_path_factory.mktemp("s")))
    make(short / "x")  # type: ignore[operator]
    began = time.monotonic()
    assert look(str(short / "x"), (str(short),)).problem == problem
    assert time.monotonic() - began < 0.5


def test_a_device_is_not_opened(root: Path) -> None:
    assert look("/dev/zero", ("/dev",)).problem == "it is a device, not a file"


def test_a_file_that_may_not_be_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "a").write_bytes(b"x")
        (Path(folder) / "a").chmod(0)
        child = os.fork()
        if child == 0:
            if os.getuid() == 0:
                os.setuid(65534)  # root may read everything
            os._exit(look(folder + "/a", (os.path.realpath(folder),)).problem != "it may not be read")
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("path", ["a\0b", "https://host.example/a.png", "\ud800"])
def test_what_is_no_path(path: str, root: Path) -> None:
    found = seen(path, root)
    assert (found.path, bool(found.problem)) == ("", True)


def test_a_name_that_is_too_long(root: Path) -> None:
    assert seen(root / ("x" * 5000), root).problem


def test_the_empty_path_is_the_working_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert not permitted(look("", (str(root),)), ground(None)).value_or(None)


def test_relative_paths_begin_at_the_working_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.txt").write_text("x")
    monkeypatch.chdir(root)
    here = ground(None)
    assert permitted(look("./sub/../a.txt", here.roots), here).unwrap().path == os.path.realpath(root / "a.txt")
    assert (
        permitted(look("../x", here.roots), here).failure().problem == "no such file"
    )  # the temporary folder is permitted


def test_links_are_followed_to_where_they_lead_and_judged_there(root: Path) -> None:
    outside = root.parent / "secret"
    outside.mkdir()
    (outside / "key.txt").write_text("TOP")
    (root / "link.txt").symlink_to(outside / "key.txt")
    (root / "sub").symlink_to(outside)
    (root / "real.txt").write_text("fine")
    (root / "alias.txt").symlink_to("real.txt")
    here = ground([str(root)])
    for path in ("link.txt", "sub/key.txt", "sub/missing.txt"):
        found = look(str(root / path), here.roots)
        assert (found.head, found.size) == (b"", 0)
        assert "permitted folder" in str(permitted(found, here).failure())
    assert permitted(look(str(root / "alias.txt"), here.roots), here).unwrap().name == "real.txt"


def test_a_folder_swapped_for_a_link_after_the_path_was_resolved_leads_nowhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process of the agent may swap it at any moment; here it does so at the worst one."""
    for folder, text in ((root / "folder", "ours"), (tmp_path / "outside", "not ours")):
        folder.mkdir()
        (folder / "file.txt").write_text(text)

    def resolved_and_swapped(path: str) -> str:
        real = real_path(path)
        (root / "folder").rename(root / "away")
        (root / "folder").symlink_to(tmp_path / "outside")
        return real

    monkeypatch.setattr(files, "real_path", resolved_and_swapped)
    found = look(str(root / "folder" / "file.txt"), (os.path.realpath(root),))
    assert (found.problem, found.head, found.inode) == ("no such file", b"", 0)


def test_roots_are_resolved_too(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    (root / "a.txt").write_text("fine")
    here = ground([str(root.parent / "alias")])
    for folder in ("alias", "root"):
        assert permitted(look(str(root.parent / folder / "a.txt"), here.roots), here).unwrap().size == 4


def test_outside_nothing_is_told_of_what_is_there(root: Path) -> None:
    (root.parent / "there").write_text("x")
    here = ground([str(root)])
    there, missing = (look(str(root.parent / name), here.roots) for name in ("there", "gone"))
    assert (there.problem, there.size, there.inode) == (missing.problem, missing.size, missing.inode)


def test_the_configuration_is_never_sent_under_any_name(root: Path) -> None:
    (root / "daemon.yaml").write_text("token: x")
    os.link(root / "daemon.yaml", root / "innocent.txt")
    (root / "alias.txt").symlink_to("daemon.yaml")
    here = ground([str(root)], [str(root / "daemon.yaml"), str(root / "audit.jsonl")])
    (root / "audit.jsonl.1").write_text("{}")
    for name in ("daemon.yaml", "innocent.txt", "alias.txt", "audit.jsonl", "audit.jsonl.1"):
        assert "own configuration or records" in str(permitted(look(str(root / name), here.roots), here).failure())


def test_a_log_that_was_begun_later_is_not_sent_under_another_name(root: Path) -> None:
    before = ground([str(root)], [str(root / "audit.jsonl")])
    (root / "audit.jsonl").write_text("{}")
    os.link(root / "audit.jsonl", root / "innocent.txt")
    found = look(str(root / "innocent.txt"), before.roots)
    assert "own configuration or records" in str(permitted(found, with_private_files(before)).failure())


def test_the_default_ground_is_the_working_folder_and_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ground(None).roots[0] == os.path.realpath(tmp_path)
    assert os.path.realpath("/tmp") in ground(None).roots
    monkeypatch.chdir("/")
    assert "/" not in ground(None).roots
    assert ground(["/"]).roots == ("/",)


def test_a_camera_picture_has_its_size_behind_long_notes(root: Path) -> None:
    notes = b"\xff\xe1" + struct.pack(">H", 60_002) + b"E" * 60_000
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, 1080, 1920, 3) + b"\0" * 20
    (root / "a.jpg").write_bytes(b"\xff\xd8" + notes + frame)
    found = sniff(seen(root / "a.jpg", root))
    assert (found.width, found.height) == (1920, 1080)


def test_a_voice_message_has_its_length_on_a_long_last_page(root: Path) -> None:
    first = b"OggS\0\2" + b"\0" * 20 + b"\1\x13" + b"OpusHead\1\1" + struct.pack("<HIhB", 312, 48000, 0, 0)
    last = b"OggS\0\4" + struct.pack("<qIIIB", 48_000 * 7 + 312, 1, 2, 3, 255) + b"\xff" * 255 + b"\0" * 65_025
    (root / "a.ogg").write_bytes(first + b"\0" * 70_000 + last)
    assert sniff(seen(root / "a.ogg", root)).duration == 7.0
