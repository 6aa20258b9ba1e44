"""Discord's Markdown as ``discord-markdown-parser`` reads it: another's implementation, installed by npm into a cache."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from messaging_core.markup.discord import DISCORD
from messaging_core.markup.split import render
from messaging_core.markup.tree import BOLD, CODE, ITALIC, STRIKE, Document, Prose, parse, verbatim
from tests.core.markup import readers
from tests.core.markup.readers import Seen
from tests.core.markup.samples import ANSWER, examples

pytestmark = pytest.mark.server

JUDGES = Path(__file__).parent / "judges"
MARKS = {"strong": BOLD, "em": ITALIC, "strikethrough": STRIKE, "inlineCode": CODE, "codeBlock": CODE}
FORBIDDEN = {
    "underline",
    "spoiler",
    "user",
    "channel",
    "role",
    "emoji",
    "timestamp",
    "slashCommand",
    "guildNavigation",
    "subtext",
}
"""Nothing of ours is ever one of these."""


@pytest.fixture(scope="session")
def judge(pytestconfig: pytest.Config) -> Any:
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    folder = Path(pytestconfig.cache.mkdir("markup-judges"))  # type: ignore[union-attr]
    if not (folder / "node_modules").exists():
        shutil.copy(JUDGES / "package.json", folder)
        subprocess.run(["npm", "install", "--silent", "--no-audit"], cwd=folder, check=True, timeout=120)

    def run(written: list[str]) -> list[Any]:
        command = ["node", str(JUDGES / "discord.js"), str(folder)]
        done = subprocess.run(
            command, input=json.dumps(written), capture_output=True, text=True, check=True, timeout=120
        )
        return list(json.loads(done.stdout))

    return run


def read(nodes: Any, marks: int = 0) -> Seen:
    """The signs that a syntax tree shows."""
    if isinstance(nodes, str):
        return readers.seen(nodes, marks)
    found: Seen = []
    for node in nodes:
        kind = node["type"]
        if kind in FORBIDDEN:
            raise readers.Refused(f"{kind}: {node}")
        if kind in ("everyone", "here"):
            found += readers.seen(f"@{kind}", marks)
        elif kind == "twemoji":
            found += readers.seen(node["name"], marks)
        elif kind == "heading":
            found += read(node["content"], marks)
        elif kind != "br" and kind != "newline":
            found += read(node.get("content", ""), marks | MARKS.get(kind, 0))
    return found


def wanted(document: Document) -> Seen:
    """What the tree says, with headings of the levels that Discord has as they are there."""
    found: Seen = []
    for block in DISCORD.prepare(document).blocks:
        bold = BOLD if isinstance(block, Prose) and (block.heading > 3 or block.path) else 0
        found += readers.meant(Document((block,)), heading=bold)
    return found


def check(judge: Any, documents: list[Document]) -> None:
    written = [render(document, DISCORD) for document in documents]
    for document, rendered, nodes in zip(documents, written, judge([one.text for one in written]), strict=True):
        seen = read(nodes)
        assert readers.missing(wanted(document), seen) == [], (rendered.text, nodes)
        assert [sign for sign, _ in seen] == [sign for sign, _ in readers.seen(rendered.visible)], rendered.text


def test_the_examples_of_the_specifications_show_what_they_say(judge: Any) -> None:
    check(judge, [parse(example) for example in (*examples(), ANSWER)])


HARD = [
    "http://*",
    "ahttp://(<",
    "http://{h}/<_a_",
    "<[http://a](",
    "*http://x*z*",
    "HTTP://t*a*/",
    "<code>http://a</code>",
    "http://a`\xa0p`",
    "<s>~</s>",
    "<br>~\n=",
    "[l](http://t)]()",
    "[\\[](http://q)",
    "*&\n-# $*",
    "~~> a~~",
    "> # a\n\nb\n---\n",
    "**https://h.test/*x**<i>**https://h.test/*x**</i>",
]
"""What looks like an address and is none, addresses with signs in them, and signs at the edges of runs and labels."""


def test_addresses_and_edges_show_what_they_say(judge: Any) -> None:
    check(judge, [read_as(text) for text in HARD for read_as in (parse, verbatim)])


def test_verbatim_texts_show_every_sign(judge: Any) -> None:
    check(judge, [verbatim(example) for example in (*examples(), ANSWER)])
