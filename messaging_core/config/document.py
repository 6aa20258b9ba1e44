"""The text of a configuration, or a mapping from a program, as a tree that knows where everything stood.

Nothing is understood here: a scalar keeps its text as written, and whether ``0123`` is an id or a number, ``off`` a
name or a truth value, is for the field that wants it (:mod:`messaging_core.config.fields`). What no configuration
needs is refused before it costs anything: more than a megabyte, depth, expansion of aliases.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias

from returns.result import Failure, Result, Success

from messaging_core.errors import ConfigError, ConfigErrors

LARGEST = 1_000_000
"""Bytes of a configuration, as UTF-8."""
DEEPEST = 64
"""Nested lists and sections; also the parts of one dotted key in TOML."""
MOST_NODES = 100_000
"""Values in one configuration, aliases counted as often as they are used."""

Format: TypeAlias = Literal["yaml", "toml"]


class Form(Enum):
    """How a scalar was written."""

    TEXT = "text"
    """Text and nothing else: quoted, or a string of the program."""
    BARE = "bare"
    """YAML without quotes: what it is depends on who reads it."""
    NULL = "nothing"
    BOOLEAN = "true or false"
    NUMBER = "a number"
    OTHER = "a value of another kind"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: its text as written (quotes and escapes resolved). The repr shows no text: it may be a secret."""

    text: str
    form: Form
    line: int | None = None

    def __repr__(self) -> str:
        return f"Scalar({self.form.name}, line={self.line})"

    @property
    def nothing(self) -> bool:
        return self.form is Form.NULL or (self.form is Form.BARE and self.text in ("", "~", "null", "Null", "NULL"))


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple["Node", ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a section: its text, the line it stands in, its value."""

    key: str
    value: "Node"
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """Keys and values in the order of the file; each key once."""

    entries: tuple[Entry, ...] = ()
    line: int | None = None


Node: TypeAlias = Scalar | Items | Section


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration that could be read, and its faults that did not keep it from being read (keys given twice)."""

    root: Section
    faults: ConfigErrors = ()


def read_text(text: str | bytes, format: Format, where: str) -> Result[Document, ConfigErrors]:
    """YAML or TOML, with or without a byte order mark, any line ends. No error repeats a value of the file."""
    return _decode(text, where).bind(lambda known: _parse(known, format, where))


def _parse(text: str, format: Format, where: str) -> Result[Document, ConfigErrors]:
    # Each parser is imported with the first file that needs it.
    if format == "toml":
        from messaging_core.config.toml_document import read_toml

        return read_toml(text, where)
    from messaging_core.config.yaml_document import read_yaml

    return read_yaml(text, where)


def _decode(text: str | bytes, where: str) -> Result[str, ConfigErrors]:
    if len(text) > LARGEST * 2:
        return Failure((_too_large(where),))
    try:
        if isinstance(text, bytes):
            encoding = "utf-16" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            text = text.decode(encoding)
        size = len(text.encode())
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1 if isinstance(text, bytes) else None
        return Failure((ConfigError(where, line, "", "the file is not UTF-8 text"),))
    except UnicodeEncodeError as error:
        line = error.object.count("\n", 0, error.start) + 1
        return Failure((ConfigError(where, line, "", "half of a surrogate pair is no character"),))
    if size > LARGEST:
        return Failure((_too_large(where),))
    return Success(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def _too_large(where: str) -> ConfigError:
    return ConfigError(where, None, "", f"larger than {LARGEST} bytes, which no configuration is")


# --- From a program ---------------------------------------------------------------------------------------------------


class Absurd(Exception):
    """The configuration is too deep or too large, which showed in ``line``. Raised inside a reader, never out of it."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class Budget:
    """Counts the values of one configuration."""

    def __init__(self) -> None:
        self._left = MOST_NODES

    def take(self, count: int, line: int | None) -> None:
        self._left -= count
        if self._left < 0:
            raise Absurd(f"more than {MOST_NODES} values, which no configuration has", line)


def too_deep(line: int | None) -> Absurd:
    return Absurd(f"nested more than {DEEPEST} deep, which no configuration is", line)


def read_mapping(mapping: Mapping[Any, Any], where: str) -> Result[Document, ConfigErrors]:
    """A configuration that a program has read or made: text, numbers, truth values, lists and mappings."""
    try:
        root = from_python(mapping, Budget())
    except Absurd as absurd:
        return Failure((ConfigError(where, None, "", absurd.problem),))
    assert isinstance(root, Section)
    return Success(Document(root))


def from_python(value: Any, budget: Budget, depth: int = 0) -> Node:
    """One value of a program. A whole number is exact, so that its digits are what was meant."""
    budget.take(1, None)
    if depth > DEEPEST:
        raise too_deep(None)
    if isinstance(value, Mapping):
        return Section(tuple(Entry(str(k), from_python(v, budget, depth + 1)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return Items(tuple(from_python(item, budget, depth + 1) for item in value))
    return Scalar(*_scalar(value))


def _scalar(value: Any) -> tuple[str, Form]:
    match value:
        case None:
            return "", Form.NULL
        case bool():
            return str(value).lower(), Form.BOOLEAN
        case int() if value.bit_length() > 4096:  # Python itself refuses to write it out.
            return "", Form.OTHER
        case int() | float():
            return repr(value), Form.NUMBER
        case str():
            return value, Form.TEXT
        case _:
            return "", Form.OTHER


# --- Keys in error texts ----------------------------------------------------------------------------------------------


def dotted(path: Iterable[str | int]) -> str:
    """A path as people write it: ``channels.ops.allowed_users[2]``.

    A key with other signs than names have may hold a value that lost its place (``{token:abc}``), which is not shown.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + shown_key(part)
    return text


def shown_key(key: str) -> str:
    """A key for people, without what may be a value in it.

    >>> shown_key("bot_token:123:ABC"), shown_key("X-Title")
    ('bot_token…', 'X-Title')
    """
    head = next((index for index, sign in enumerate(key) if not (sign.isalnum() or sign in "_-. ")), len(key))
    return key if head == len(key) and len(key) <= 64 else key[: min(head, 40)] + "…"
