"""What the docs show of writing a channel is run: the whole contract suite goes over it (see ``documented.py``), and here
what that suite cannot know of."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from returns.pipeline import is_successful
from returns.result import Success

from messaging_adapters import registry
from messaging_core.channels import CHANNELS
from messaging_core.channels.channel import Configured
from messaging_core.compose import compose
from messaging_core.config.schemas import load
from messaging_core.flow import Exchange, Learned, drive
from messaging_core.message import Message, Outgoing
from messaging_core.routing import Route
from messaging_core.secrecy import Secret
from messaging_core.wire.http import FileRef
from tests.documented import DOCUMENTED, blocks
from tests.material import IDS, ROOT, Environment, example, facts, png

PARCEL = DOCUMENTED["parcel"][0]


def requests(to: str, message: Message, known: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
    """What a send by ``parcel`` asks for, and what it learns."""
    (at,) = example("parcel").settings.channels
    route = Route(PARCEL, at, PARCEL.recipient(to).unwrap())
    parts = compose(route, message, facts("chart.png", png()) if message.media_path else None).unwrap()
    start = PARCEL.describe(at, Outgoing(route.recipient, parts, reply_to=message.reply_to), IDS, known).unwrap()
    seen: list[Exchange] = []
    done = drive(lambda at: Success(seen.append(at) or PARCEL.rehearse(at.request)), start).unwrap()  # type: ignore[func-returns-value]
    learned = {lesson.key: lesson.value for lesson in done.learned if isinstance(lesson, Learned)}
    return [at.request for at in seen], learned


def test_the_documented_dm_is_opened_once_and_then_known() -> None:
    first, learned = requests("user:4", Message(text="hi"), {})
    again, _ = requests("user:4", Message(text="hi"), learned)
    assert [str(one.url).rpartition("/")[2] for one in first] == ["dms", "messages"]
    assert again == first[1:]


def test_the_documented_upload_streams_the_file_and_gives_the_named_place_no_token() -> None:
    (announce, put, show), _ = requests("12", Message(media_path="chart.png", caption="June", reply_to="7"), {})
    assert isinstance(put.body, FileRef)
    assert not any(name == "Authorization" for name, _ in put.headers)
    assert all(any(name == "Authorization" for name, _ in one.headers) for one in (announce, show))
    assert show.body == b'{"room":"12","file":"1","text":"June","reply_to":"7"}'


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> Iterator[registry.Installed]:
    """The entry point of the docs, as an installed package would have it."""
    (ini,) = blocks("ini")
    name, _, value = ini.strip().splitlines()[-1].strip().partition(" = ")
    assert (name, value.partition(":")[2]) == ("pager", "CHANNEL")
    module = type(DOCUMENTED[name][0].settings(token=Secret("t"))).__module__
    point = EntryPoint(name, f"{module}:CHANNEL", registry.GROUP)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [point] if group == ini.split("]")[1].split("=")[0].strip() else []
    )
    yield registry.Installed()


def test_a_packaged_channel_is_configured_like_the_librarys_own(packaged: registry.Installed) -> None:
    loaded = load(DOCUMENTED["pager"][1], "yaml", Environment(), packaged)
    assert is_successful(loaded)
    (at,) = loaded.unwrap().settings.channels
    assert isinstance(at, Configured) and at.own.number == "0155"


PAGES = sorted(CHANNELS)


def page(platform: str) -> str:
    return (ROOT / "docs" / "channels" / f"{platform}.md").read_text()


@pytest.mark.parametrize("platform", PAGES)
def test_a_channels_page_has_the_one_order(platform: str) -> None:
    assert re.findall(r"^## (.*)$", page(platform), re.MULTILINE) == ["Settings", "Example", "Options", "Limits"]
    before_settings = page(platform).split("## Settings")[0]
    assert platform == "cli" or "https://" in before_settings, "the platform's own documentation comes first"


@pytest.mark.parametrize("platform", PAGES)
def test_a_channels_page_names_each_of_its_settings_and_no_other_and_says_its_default(platform: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) ?\| ", page(platform).split("## Example")[0], re.MULTILINE)
    declared = {}
    for one in fields(CHANNELS[platform].settings):
        default = "required" if one.default is MISSING else one.default
        shown = str(default).lower() if isinstance(default, bool) else default
        declared[one.name] = "" if shown in (None, ()) else "required" if shown == "required" else f"`{shown}`"
    assert {name: said.replace("none", "") for name, said in rows} == declared


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("no_such_package:CHANNEL", "No module named 'no_such_package'"),
        ("json:CHANNEL", "module 'json' has no attribute 'CHANNEL'"),
        ("json:dumps", "it is no Channel"),
    ],
)
def test_a_packaged_channel_that_cannot_be_had_is_named_and_disturbs_no_other(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("broken", value, group)])
    installed = registry.Installed()
    assert installed["cli"].platform == "cli"
    with pytest.raises(registry.ChannelBroken, match=f"^the channel 'broken' of another package .*{said}"):
        installed["broken"]
