"""YAML to a :class:`Document`, from the parser's events: no tag is followed, no scalar resolved, no value built twice.

Lines count from 1. The parser's own error texts quote the file, which may hold a secret: only their fixed words stay.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
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

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
BARE_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float"))
PLAIN_TAGS = (None, *TEXT_TAGS, *BARE_TAGS, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

HINTS = {
    "mapping values are not allowed": "quote a value that holds ': '",
    "cannot start any token": "indent with spaces, and quote a value that begins with a special sign",
    "could not find expected ':'": "a key is followed by ': ' and its value",
    "did not find expected key": "keys of one section stand in one column; close quotes and brackets",
    "did not find expected ','": "quote ${NAME} and other signs inside braces and brackets",
}


_QUOTED = re.compile(r"""('.'|".")|\s*(['"])[^'"]*\2""")
"""A single sign in quotes, which may stay, or more of the file."""


def read_yaml(text: str, where: str) -> Result[Document, ConfigErrors]:
    """One YAML document whose root is a mapping; an empty one is an empty mapping. Anchors, aliases and ``<<`` work."""
    builder = _Builder(where)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            builder.take(event)
    except Absurd as absurd:
        return Failure((*builder.faults, ConfigError(where, absurd.line, "", absurd.problem)))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        return Failure((*builder.faults, ConfigError(where, line, "", "a control character", "only text belongs here")))
    except yaml.MarkedYAMLError as error:
        return Failure((*builder.faults, syntax_fault(error, where)))
    root = builder.root
    if root is None or (isinstance(root, Scalar) and root.nothing):
        root = Section()
    if not isinstance(root, Section):
        return Failure(
            (*builder.faults, ConfigError(where, root.line, "", "keys and values expected", "channels: ..."))
        )
    return Success(Document(root, tuple(builder.faults)))


def syntax_fault(error: yaml.MarkedYAMLError, where: str) -> ConfigError:
    """The parser's complaint without what it quotes of the file."""
    mark = error.problem_mark or error.context_mark
    words = _QUOTED.sub(lambda match: match[1] or "", error.problem or "cannot be read")
    hint = next((hint for sign, hint in HINTS.items() if sign in words), "")
    return ConfigError(where, mark.line + 1 if mark else None, "", f"not valid YAML: {words}", hint)


@dataclass(slots=True)
class _Open:
    """A list or section that is being read."""

    line: int
    anchor: str | None
    mapping: bool
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    merged: dict[str, Entry] = field(default_factory=dict)
    key: str | None = None
    key_line: int = 0
    merges: bool = False
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    size: int
    height: int


class _Builder:
    """Takes events one by one; its stack is a list, so that depth costs no recursion."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.root: Node | None = None
        self.faults: list[ConfigError] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._budget = Budget()
        self._documents = 0

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.ScalarEvent():
                self._check_tag(event.tag, line)
                node = Scalar(event.value, _form(event), line)
                self._remember(event.anchor, node, 1, 0)
                self._place(node, line, 1, 0)
            case yaml.AliasEvent():
                self._alias(event.anchor, line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._check_tag(event.tag, line)
                if len(self._stack) >= DEEPEST:
                    raise too_deep(line)
                self._stack.append(_Open(line, event.anchor, isinstance(event, yaml.MappingStartEvent)))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close()
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise Absurd("a second document begins; a configuration is one", line)
            case _:
                pass

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in PLAIN_TAGS:
            self._fault(line, "tags are not used here", "quote a value that begins with '!'")

    def _alias(self, anchor: str | None, line: int) -> None:
        known = self._anchors.get(anchor or "")
        if known is None:
            open_ = any(frame.anchor == anchor for frame in self._stack)
            problem = "an alias inside of what it stands for" if open_ else "an alias (*) without its anchor (&)"
            raise Absurd(problem + "; quote a value that begins with '*'", line)
        if len(self._stack) + known.height > DEEPEST:
            raise too_deep(line)
        self._place(known.node, line, known.size, known.height)

    def _close(self) -> None:
        frame = self._stack.pop()
        node: Node
        if frame.mapping:
            node = Section(tuple((frame.merged | frame.entries).values()), frame.line)
        else:
            node = Items(tuple(frame.items), frame.line)
        self._remember(frame.anchor, node, frame.size, frame.height)
        # What is inside was counted when it was placed there.
        self._place(node, frame.line, frame.size, frame.height, counted=frame.size - 1)

    def _remember(self, anchor: str | None, node: Node, size: int, height: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, size, height)

    def _place(self, node: Node, line: int, size: int, height: int, counted: int = 0) -> None:
        self._budget.take(size - counted, line)
        if not self._stack:
            self.root = node
            return
        frame = self._stack[-1]
        frame.size += size
        frame.height = max(frame.height, height + 1)
        if not frame.mapping:
            frame.items.append(node)
        elif frame.key is None:
            self._begin_entry(frame, node, line)
        else:
            self._end_entry(frame, frame.key, node)

    def _begin_entry(self, frame: _Open, node: Node, line: int) -> None:
        frame.key_line = line
        frame.merges = isinstance(node, Scalar) and node.form is Form.BARE and node.text == "<<"
        if isinstance(node, Scalar):
            frame.key = node.text
        else:
            frame.key = ""
            self._fault(line, "a key is a word, not a list or section")

    def _end_entry(self, frame: _Open, key: str, node: Node) -> None:
        frame.key = None
        if frame.merges:
            self._merge(frame, node)
        elif (first := frame.entries.get(key)) is not None:
            path = dotted((*self._path(), key))
            problem = f"{shown_key(key)!r} is given twice, in lines {first.line} and {frame.key_line}"
            self.faults.append(ConfigError(self.where, frame.key_line, path, problem, "keep one of them"))
        else:
            frame.entries[key] = Entry(key, node, frame.key_line)

    def _merge(self, frame: _Open, node: Node) -> None:
        """``<<``: keys of other sections that this one does not have itself; the first that has one gives it."""
        for part in node.items if isinstance(node, Items) else (node,):
            if not isinstance(part, Section):
                self._fault(frame.key_line, "<< takes a section, or a list of sections")
                continue
            for entry in part.entries:
                frame.merged.setdefault(entry.key, entry)

    def _path(self) -> Iterator[str | int]:
        return _path_of(self._stack)

    def _fault(self, line: int, problem: str, hint: str = "") -> None:
        self.faults.append(ConfigError(self.where, line, dotted(self._path()), problem, hint))


def _path_of(stack: Iterable[_Open]) -> Iterator[str | int]:
    for frame in stack:
        if not frame.mapping:
            yield len(frame.items)
        elif frame.key is not None:
            yield frame.key


def _form(event: Any) -> Form:
    if event.tag in BARE_TAGS:
        return Form.BARE
    return Form.TEXT if event.style or event.tag in TEXT_TAGS else Form.BARE
