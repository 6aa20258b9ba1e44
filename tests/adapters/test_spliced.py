"""A document with a file inside it: streamed, its length known before, and the file as base64 on one line."""

import base64
import json
import os
from pathlib import Path

import pytest
from returns.pipeline import is_successful

from messaging_adapters.http_body import FileChangedError, opened
from messaging_core.message import FileFacts
from messaging_core.wire.http import FileRef, Spliced


def document(path: Path) -> Spliced:
    found = path.stat()
    facts = FileFacts(
        *(str(path), str(path), path.name, found.st_size),
        *(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns),
    )
    return Spliced((b'{"file":"data:;base64,', FileRef(facts, base64=True), b'"}'))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 200_000])
def test_the_file_stands_in_its_place(tmp_path, size):
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(size))
    with opened(document(path)) as body:
        sent = b"".join(body.unwrap())
        assert body.unwrap().size == len(sent)
        assert b"".join(body.unwrap()) == sent  # again from the beginning, for another try
    assert base64.b64decode(json.loads(sent)["file"].removeprefix("data:;base64,"), validate=True) == path.read_bytes()


def test_a_file_that_changed_since_the_look_is_not_opened(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"one")
    described = document(path)
    path.write_bytes(b"two!")
    with opened(described) as body:
        assert not is_successful(body)


def test_a_file_that_changes_on_the_way_never_leaves_whole(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(200_000))
    with opened(document(path)) as body:
        sent = []
        with pytest.raises(FileChangedError):
            for block in body.unwrap():
                sent.append(block)
                os.utime(path, ns=(1, 1))
        assert len(b"".join(sent)) < body.unwrap().size


def test_people_are_shown_the_file_s_name_and_size_in_its_place(tmp_path):
    path = tmp_path / 'a"b.bin'
    path.write_bytes(b"123")
    assert document(path).shown() == {"file": 'data:;base64,(a"b.bin, 3 bytes)'}
