# ruff: noqa: E501 (a row of a table stands in one line)
"""The tables of the configuration reference, made from the declarations. Run as a program, it writes them into the page."""

import dataclasses
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- made from the declarations in the code: {} -->\n", "<!-- end -->"


def keys_table(settings):
    from messaging_core.config.schemas import keys_of

    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    rows = ["| key | holds | default | |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {_sort(key)} | {_default(defaults[name])} | {_cell(key.doc)} |"
        for name, key in keys_of(settings).items()
    ]
    return "\n".join(rows) + "\n"


def _sort(key):
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    bounds = {(True, True): f" {key.least} to {key.most}", (True, False): f" from {key.least}"}
    return key.sort.value + bounds.get((key.least is not None, key.most is not None), "")


def _default(value):
    if value is dataclasses.MISSING:
        return "required"
    if value is None or value == ():
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text):
    return text.replace("|", "\\|")


def platforms_table():
    from messaging_core.channels import CHANNELS
    from messaging_core.config.schemas import is_required, keys_of

    rows = ["| type | has to have | may have |", "|---|---|---|"]
    for platform, channel in CHANNELS.items():
        keys = list(keys_of(channel.settings))
        needed = ", ".join(f"`{name}`" for name in keys if is_required(channel.settings, name))
        free = ", ".join(f"`{name}`" for name in keys if not is_required(channel.settings, name))
        rows.append(f"| [{platform}](channels/{platform}.md) | {needed} | {free} |")
    return "\n".join(rows) + "\n"


def tables():
    from messaging_core.channels.channel import Rules
    from messaging_core.config import settings

    yield "channels", platforms_table()
    for name, owner in (
        ("every channel", Rules),
        ("top level", settings.Settings),
        ("gateway", settings.Gateway),
        ("http", settings.Http),
        ("security.audit", settings.Audit),
        ("security.audit.file", settings.AuditFile),
        ("security.approval", settings.Approval),
    ):
        yield name, keys_table(owner)


def with_tables(page):
    """The page with each of its tables as the code has it."""
    for name, table in tables():
        head, begin, rest = page.partition(BEGIN.format(name))
        _, end, tail = rest.partition(END)
        assert begin and end, f"the page has no place for the table {name!r}"
        page = head + begin + "\n" + table + "\n" + end + tail
    return page


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
