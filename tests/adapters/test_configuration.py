"""Which file is read: the first that is there, and none is passed over because of something that is wrong with it."""

import os
import pwd
from pathlib import Path
from typing import Any, NoReturn

import pytest

from messaging_adapters.configuration import ConfigurationInvalid, find
from messaging_adapters.messenger import Messenger
from tests.adapters.loopback import Loopback, reply

ORDER = (
    "daemon.yaml",
    "messaging.yaml",
    "messaging.toml",
    "own/messaging/messaging.yaml",
    "own/messaging/messaging.toml",
)
UNREADABLE = "/" + "x" * 5000
"""What the system refuses to look at, as it does with the folders of another user."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own/messaging").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user: no HOME, and no entry among the users of the machine."""

    def unknown(_: int) -> NoReturn:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_the_first_that_is_there_is_chosen(folder: Path) -> None:
    for name in ORDER:
        (folder / name).touch()
    environ = {"XDG_CONFIG_HOME": str(folder / "own")}
    assert find("a.yaml", {**environ, "MESSAGING_CONFIG": "b.yaml"}) == Path("a.yaml")
    assert find(None, {**environ, "MESSAGING_CONFIG": "b.yaml"}) == Path("b.yaml")
    for name in ORDER:
        found = find(None, environ)
        assert found is not None
        assert found.resolve() == folder / name
        found.unlink()
    assert find(None, environ) is None


def test_one_that_cannot_be_read_is_told_and_not_passed_over(folder: Path) -> None:
    (folder / "daemon.yaml").symlink_to("gone")
    (folder / "messaging.yaml").touch()
    with pytest.raises(ConfigurationInvalid, match=r"daemon\.yaml: cannot be read"):
        Messenger.from_file(find(None, {}))


def test_a_folder_of_that_name_is_no_configuration(folder: Path) -> None:
    (folder / "daemon.yaml").mkdir()
    assert find(None, {"XDG_CONFIG_HOME": str(folder)}) is None


def test_a_user_folder_that_may_not_be_looked_at_has_none(folder: Path) -> None:
    assert find(None, {"XDG_CONFIG_HOME": UNREADABLE}) is None


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_has_none(folder: Path) -> None:
    assert find(None, {}) is None


@pytest.mark.usefixtures("homeless")
def test_an_audit_log_in_a_home_that_is_not_there_is_a_fault_of_the_configuration() -> None:
    settings: dict[str, Any] = {"security": {"audit": {"file": {"path": "~/audit.jsonl"}}}}
    with pytest.raises(ConfigurationInvalid, match="security.audit.file.path: there is no home folder"):
        Messenger.from_config(settings)


def test_a_netrc_that_may_not_be_looked_at_gives_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NETRC", UNREADABLE)
    with Loopback(reply(204)) as server:
        messenger = Messenger.from_config({"channels": {"w": {"type": "webhook", "url": server.url}}})
        assert messenger.call_tool("message", {"channel": "w", "content": "hi"}).ok
        messenger.close()
    assert server.requests[0].header("Authorization") is None
