"""TOML to a :class:`Document`: ``tomllib`` decides what the text means, a scan of it says where each key stands.

The scan also keeps how a number was written, which the parser does not: ``1_000`` as an id is not ``1000``.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from returns.result import Failure, Result, Success

from messaging_core.config.document import (
    DEEPEST,
    Absurd,
    Budget,
    Document,
    Entry,
    Form,
    Items,
    Node,
    Scalar,
    Section,
    dotted,
    shown_key,
    too_deep,
)
from messaging_core.errors import ConfigError, ConfigErrors

Path: TypeAlias = tuple[str | int, ...]

_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_KEY_PART = re.compile(_PART)
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{DEEPEST}}}", re.MULTILINE)
"""Where a key can begin: what is inside of a line's text or comment is none."""
_BLANK = re.compile(r"[ \t]*+")
_BLANK_LINES = re.compile(r"(?:[ \t\n]++|#[^\n]*+)*+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}' r"|'''(?:[^']|'(?!''))*+'{3,5}" r'|"(?:[^"\\\n]|\\.)*+"' r"|'[^'\n]*+'",
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}\n#]++")
_PLACE = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)$")

PROBLEMS = {
    "Invalid value": "a value that is none: text stands in quotes",
    "Expected '='": "a key without '=' and a value",
    "Expected newline": "something follows the value in its line",
    "Unclosed array": "a list without its ']'",
    "Unclosed inline table": "a table without its '}'",
    "Unterminated string": "text without its closing quote",
    "Unescaped": "a backslash that stands for nothing: double it, or use single quotes",
    "Invalid statement": "neither a key, nor a section, nor a comment",
    "Cannot mutate immutable namespace": "a section that was closed before is added to",
    "Cannot redefine namespace": "a section that was closed before is added to",
    "Cannot declare": "a section that stands there already, perhaps in another form",
    "Cannot overwrite a value": "a key that has a value already",
    "Expected ']'": "a section's name without its ']'",
    "Escaped character": "a backslash that stands for no character",
    "Exceeds the limit": "a number of thousands of digits: quote it",
    "Invalid initial character": "a key that does not begin like one",
    "Illegal character '\\n'": "text without its closing quote in the same line",
    "Illegal character": "a control character",
    "Found invalid character": "a control character",
}


def read_toml(text: str, where: str) -> Result[Document, ConfigErrors]:
    """A TOML document."""
    long = _LONG_KEY.search(text)
    if long:  # The parser's time grows with the square of a key's parts.
        line = text.count("\n", 0, long.start()) + 1
        return Failure((ConfigError(where, line, "", f"a key of more than {DEEPEST} parts"),))
    scan = _Scan(text)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        return Failure((ConfigError(where, None, "", too_deep(None).problem),))
    except ValueError as error:
        scan.run()
        return Failure(tuple(scan.twice(where)) or (_syntax(str(error), text, where),))
    try:
        scan.run()
        return Success(Document(_section(values, (), scan, Budget(), 1)))
    except Absurd as absurd:
        return Failure((ConfigError(where, absurd.line, "", absurd.problem),))


def _syntax(words: str, text: str, where: str) -> ConfigError:
    """The parser's own text may quote the file: only what is known to be fixed is kept."""
    place = _PLACE.search(words)
    line = None if place is None else int(place[1]) if place[1] else text.rstrip("\n").count("\n") + 1
    problem = next((problem for sign, problem in PROBLEMS.items() if words.startswith(sign)), "")
    return ConfigError(where, line, "", "not valid TOML" + (f": {problem}" if problem else ""))


# --- Values with their places -----------------------------------------------------------------------------------------


def _section(values: dict[str, Any], path: Path, scan: "_Scan", budget: Budget, depth: int) -> Section:
    line = scan.lines.get(path)
    if depth > DEEPEST:
        raise too_deep(line)
    entries = []
    for key, value in values.items():
        here = (*path, key)
        entries.append(Entry(key, _node(value, here, scan, budget, depth), scan.lines.get(here)))
    return Section(tuple(entries), line)


def _node(value: Any, path: Path, scan: "_Scan", budget: Budget, depth: int) -> Node:
    line = scan.lines.get(path)
    budget.take(1, line)
    match value:
        case dict():
            return _section(value, path, scan, budget, depth + 1)
        case list():
            if depth > DEEPEST:
                raise too_deep(line)
            return Items(tuple(_node(v, (*path, i), scan, budget, depth + 1) for i, v in enumerate(value)), line)
        case str():
            return Scalar(value, Form.TEXT, line)
        case bool():
            return Scalar("true" if value else "false", Form.BOOLEAN, line)
        case int() | float():
            return Scalar(scan.written.get(path, ""), Form.NUMBER, line)
        case _:
            return Scalar(scan.written.get(path, ""), Form.OTHER, line)


# --- Where the keys stand ---------------------------------------------------------------------------------------------


class _Lost(Exception):
    """The text is not TOML from here on."""


class _Scan:
    """One pass over the text. ``lines``: path -> line. ``written``: path -> how a value without quotes was written.

    Of a text that is not TOML it finds what comes before the fault.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: dict[Path, int] = {}
        self.written: dict[Path, str] = {}
        self._twice: list[tuple[Path, int]] = []
        self._values: set[Path] = set()
        self._tables: set[Path] = set()
        self._last: dict[Path, int] = {}
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._at = 0

    def run(self) -> None:
        with suppress(_Lost):
            self._document()

    def twice(self, where: str) -> Iterator[ConfigError]:
        """Keys and sections that are given twice."""
        for path, line in self._twice:
            problem = f"{shown_key(str(path[-1]))!r} is given twice, in lines {self.lines[path]} and {line}"
            yield ConfigError(where, line, dotted(path), problem, "keep one of them")

    def _document(self) -> None:
        path: Path = ()
        while True:
            self._skip(_BLANK_LINES)
            if self._at >= len(self.text):
                return
            if self._peek("["):
                path = self._header()
            else:
                self._assignment(path, 1)

    def _header(self) -> Path:
        line = self._line()
        array = self._peek("[[")
        self._at += 2 if array else 1
        *parents, name = self._key()
        self._take("]]" if array else "]")
        path: Path = ()
        for part in parents:
            path = self._inside((*path, part))
            self.lines.setdefault(path, line)
        path = (*path, name)
        if array:
            self.lines.setdefault(path, line)
            self._last[path] = self._last.get(path, -1) + 1
            path = (*path, self._last[path])
        elif path in self._tables or path in self._values:
            self._twice.append((path, line))
        else:
            self._tables.add(path)
            self.lines[path] = line
        self.lines.setdefault(path, line)
        return path

    def _inside(self, path: Path) -> Path:
        return (*path, self._last[path]) if path in self._last else path

    def _assignment(self, base: Path, depth: int) -> None:
        line = self._line()
        parts = self._key()
        self._take("=")
        self._skip(_BLANK)
        path = base
        for part in parts:
            path = (*path, part)
            if path not in self.lines:
                self.lines[path] = line
        if path in self._values or path in self._tables:
            self._twice.append((path, line))
        self._values.add(path)
        self._value(path, depth)

    def _value(self, path: Path, depth: int) -> None:
        if depth > DEEPEST:
            raise _Lost
        if self._peek("["):
            self._at += 1
            self._array(path, depth)
        elif self._peek("{"):
            self._at += 1
            self._inline(path, depth)
        elif string := _STRING.match(self.text, self._at):
            self._at = string.end()
        elif bare := _BARE.match(self.text, self._at):
            self.written[path] = bare.group().strip()
            self._at = bare.end()
        else:
            raise _Lost

    def _array(self, path: Path, depth: int) -> None:
        index = 0
        while True:
            self._skip(_BLANK_LINES)
            if self._peek("]"):
                self._at += 1
                return
            self.lines[(*path, index)] = self._line()
            self._value((*path, index), depth + 1)
            index += 1
            self._skip(_BLANK_LINES)
            if not self._peek("]"):
                self._take(",")

    def _inline(self, path: Path, depth: int) -> None:
        while True:
            self._skip(_BLANK_LINES)
            if self._peek("}"):
                self._at += 1
                return
            self._assignment(path, depth + 1)
            self._skip(_BLANK_LINES)
            if not self._peek("}"):
                self._take(",")

    def _key(self) -> list[str]:
        parts = [self._part()]
        while self._peek("."):
            self._at += 1
            parts.append(self._part())
        return parts

    def _part(self) -> str:
        self._skip(_BLANK)
        match = _KEY_PART.match(self.text, self._at)
        if match is None:
            raise _Lost
        self._at = match.end()
        self._skip(_BLANK)
        raw = match.group()
        if raw[0] not in "\"'":
            return raw
        if raw[0] == "'" or "\\" not in raw:
            return raw[1:-1]
        try:
            return str(tomllib.loads(f"key = {raw}")["key"])
        except ValueError:
            raise _Lost from None

    def _peek(self, sign: str) -> bool:
        return self.text.startswith(sign, self._at)

    def _take(self, sign: str) -> None:
        if not self._peek(sign):
            raise _Lost
        self._at += len(sign)

    def _skip(self, blank: re.Pattern[str]) -> None:
        match = blank.match(self.text, self._at)
        self._at = match.end() if match else self._at

    def _line(self) -> int:
        return bisect_right(self._starts, self._at)
