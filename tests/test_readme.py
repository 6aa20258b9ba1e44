"""Everything that the README shows is run, or is checked against what it speaks of."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from messaging_core.channels import CHANNELS
from messaging_core.config.schemas import load
from messaging_core.display import capability_table
from tests.material import ROOT, Environment

README = (ROOT / "README.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_agent_loop_runs_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (loop,) = blocks("python")
    assert loop.count("\n") <= 12, "ten lines and the imports"
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(loop, "README.md", "exec"), {})
    assert output.getvalue() == "The build is green.\nTrue Message sent to console (the terminal)\n"


def test_the_configuration_is_one() -> None:
    (shown,) = blocks("yaml")
    assert [one.name for one in load(shown, "yaml", Environment(), CHANNELS).unwrap().settings.channels] == [
        "ops",
        "alerts",
    ]


def test_the_first_command_prints_the_message(tmp_path: Path) -> None:
    """The part after the installation (which the slow test below runs whole)."""
    install, test = blocks("sh")
    command = install.strip().split(" && ")[-1]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "adapters")))
    script = f'messaging() {{ "{sys.executable}" -m messaging_adapters.cli "$@"; }}; {command}'
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "Hello from my agent\n"
    assert test.strip().endswith("&& pytest")


@pytest.mark.slow
def test_the_first_command_works_in_a_fresh_copy(tmp_path: Path) -> None:
    install, _ = blocks("sh")
    subprocess.run(["git", "clone", "-q", str(ROOT), "copy"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["bash", "-c", install], cwd=tmp_path / "copy", capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.endswith("Hello from my agent\n")


@pytest.mark.parametrize(
    "page",
    sorted(
        str(p.relative_to(ROOT))
        for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "adapters").glob("*.md")]
    ),
)
def test_every_link_leads_to_a_file(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def test_every_option_of_the_command_that_the_readme_names_exists() -> None:
    from messaging_adapters.cli import parser

    commands = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    for command in re.findall(r"`messaging (\w+)", README):
        assert command in commands  # type: ignore[operator]


def test_the_table_of_what_channels_can_do_is_the_codes_own() -> None:
    assert capability_table(CHANNELS) in (ROOT / "docs" / "channels" / "README.md").read_text()
