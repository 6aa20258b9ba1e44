"""The page for people says what the code does."""

import re

import pytest
from reference_of import PAGE, with_tables

from messaging_core.channels import CHANNELS
from messaging_core.config.schemas import ALIASES, RECEIVING, load

TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
ENVIRONMENT = {
    name: "https://example.test/FAKE" if name.endswith("URL") else "FAKE-0000"
    for name in re.findall(r"\$\{([A-Z_]+)", TEXT)
}


def test_the_tables_are_those_of_the_declarations():
    assert with_tables(TEXT) == TEXT, "run: python tests/core/config/reference_of.py"


@pytest.mark.parametrize(("format", "example"), re.findall(r"```(yaml|toml)\n(.*?)```", TEXT, re.DOTALL))
def test_every_example_loads(format, example):
    load(example, format, ENVIRONMENT, CHANNELS).alt(lambda faults: pytest.fail("\n".join(map(str, faults))))


@pytest.mark.parametrize("key", [*ALIASES, *RECEIVING])
def test_every_other_name_and_every_key_that_is_left_alone_is_told(key):
    assert f"`{key}`" in TEXT
