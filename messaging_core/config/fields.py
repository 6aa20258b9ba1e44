"""What each sort of setting accepts: one marshmallow field a :class:`Sort`.

A field reads a :class:`Given` (a node of the file, and the environment for its placeholders) to the plain value, which
``channel.check`` sees, and seals the plain value for the settings, where secrets stand by name only. No problem repeats
a value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn
from urllib.parse import urlsplit

from marshmallow import ValidationError, fields

from messaging_core.channels.channel import Key, Sort
from messaging_core.config.document import Form, Items, Node, Scalar, Section, shown_key
from messaging_core.config.environment import Filled, Gap, fill
from messaging_core.secrecy import SHORTEST_REDACTED, Secret
from messaging_core.wire.template import MARK, Slot, Template, read_template

MOST_SECONDS = 604_800
"""A week: no time-out is longer."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a value, and what would be right. ``below``: where inside the value, in which ``line``."""

    text: str
    hint: str = ""
    below: tuple[str | int, ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """A value of the file and the environment that fills its placeholders."""

    node: Node
    environment: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Given({self.node!r})"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A value for the settings, and the secrets that it names. ``exposed``: those too short to be masked."""

    value: Any
    secrets: tuple[tuple[str, str], ...] = ()
    exposed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Sealed({', '.join(name for name, _ in self.secrets)})"


def refuse(text: str, hint: str = "") -> NoReturn:
    raise ValidationError([Problem(text, hint)])


def nearest(word: str, known: tuple[str, ...], cutoff: float = 0.6) -> str:
    """``did you mean 'channels'?``, or nothing."""
    close = get_close_matches(word[:100], known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}?" if close else ""


# --- Texts ------------------------------------------------------------------------------------------------------------

_AS_WRITTEN = re.compile(r"0|-?[1-9][0-9]{0,19}")
_INVISIBLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Blanks, controls, and what comes along unseen when a value is copied: zero width, byte order and direction marks."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, 5.6.2: names of headers and methods."""


def filled(given: Given, *, numbers: bool, secret: bool = False) -> Filled:
    """The text of a scalar with its variables put in. ``numbers``: a bare number is its digits as written."""
    node = given.node
    if not isinstance(node, Scalar):
        refuse(f"text expected, not a {'list' if isinstance(node, Items) else 'section'}")
    if node.nothing:
        refuse("no value", "give one, or leave the key out")
    if node.form in (Form.TEXT, Form.BARE):
        return fill(node.text, given.environment).lash(lambda gaps: _refuse_gaps(gaps, secret)).unwrap()
    if numbers and node.form is Form.NUMBER:
        if _AS_WRITTEN.fullmatch(node.text) and -(2**63) <= int(node.text) < 2**63:
            return Filled(node.text)
        refuse("a number that may lose its form: it has to arrive as written", "quote it")
    refuse(f"text expected, not {node.form.value}", "quote it")


def _refuse_gaps(gaps: tuple[Gap, ...], secret: bool) -> NoReturn:
    """Inside a secret, what only looks like a placeholder may be a part of it, and is not repeated."""
    hide = "'${' begins no placeholder"
    raise ValidationError(
        [Problem(hide if secret and gap.malformed and gap.at > 0 else gap.problem, gap.hint) for gap in gaps]
    )


def trimmed(text: Filled) -> str:
    """Without blank ends, and not empty."""
    plain = text.text.strip()
    if not plain:
        why = f" (the environment variable {text.empty[0]} is empty)" if text.empty else ""
        refuse(f"is empty{why}")
    return plain


def whole_secret(text: Filled) -> str:
    """A trimmed text in which no variable was empty: a credential with a hole is none."""
    if text.empty:
        refuse(f"is empty: the environment variable {text.empty[0]} is empty")
    return trimmed(text)


def checked_url(text: str) -> str:
    """An absolute http(s) URL, or a refusal that does not repeat it."""
    if _INVISIBLE.search(text):
        refuse("a blank, control or invisible character inside the URL")
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        refuse("not a URL", "https://host/path")
    if parts.scheme not in ("http", "https"):
        refuse("the URL has no scheme http or https", "begin with https://")
    if not host or "\\" in text:
        refuse("the URL names no host", "https://host/path")
    return text


class Setting(fields.Field[Any]):
    """One setting. Subclasses read; those that hold a secret also seal."""

    def __init__(self, key: Key, *, required: bool) -> None:
        missing: Any = [Problem("missing", key.doc)]
        super().__init__(required=required, error_messages={"required": missing})
        self.key = key

    def _deserialize(self, value: Given, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any) -> Any:
        return self.read(value)

    def read(self, given: Given) -> Any:
        raise NotImplementedError

    def seal(self, plain: Any, given: Given, name: str) -> Sealed:
        return Sealed(plain)


class TextSetting(Setting):
    def read(self, given: Given) -> str:
        text = filled(given, numbers=False)
        trimmed(text)
        return text.text


class IdSetting(Setting):
    """As written; blank ends go only where the environment brought them (values from files end in a line end)."""

    def read(self, given: Given) -> str:
        text = filled(given, numbers=True)
        plain = trimmed(text)
        return plain if text.names else text.text


class ListSetting(Setting):
    single = False

    def read(self, given: Given) -> tuple[str, ...]:
        one = IdSetting(self.key, required=True)
        if self.single and isinstance(given.node, Scalar):
            return (one.read(given),)
        if not isinstance(given.node, Items):
            nothing = isinstance(given.node, Scalar) and given.node.nothing
            everyone = ", ['*'] for all" if str(self.name).startswith("allowed_") else ""
            refuse("no value" if nothing else "a list expected", f"a list in brackets: [] for none{everyone}")
        found, problems = [], []
        for index, node in enumerate(given.node.items):
            try:
                found.append(one.read(Given(node, given.environment)))
            except ValidationError as error:
                problems += [below(problem, index, node.line) for problem in problems_of(error)]
        if problems:
            raise ValidationError(problems)
        return tuple(found)


class IdsSetting(ListSetting):
    single = True


class MethodSetting(Setting):
    def read(self, given: Given) -> str:
        method = trimmed(filled(given, numbers=False)).upper()
        if not _TOKEN.fullmatch(method):
            refuse("not an HTTP method", "POST, PUT, PATCH, GET ...")
        return method


class ChoiceSetting(Setting):
    def read(self, given: Given) -> str:
        choice = trimmed(filled(given, numbers=False))
        if choice not in self.key.choices:
            choices = ", ".join(self.key.choices)
            refuse(f"not one of {choices}", nearest(choice, self.key.choices))
        return choice


class RateSetting(Setting):
    _FORM = re.compile(r"([1-9][0-9]{0,6}) *(?:/|per) *(second|minute|hour|day)", re.IGNORECASE)

    def read(self, given: Given) -> str:
        match = self._FORM.fullmatch(trimmed(filled(given, numbers=False)))
        if match is None:
            refuse("not a rate", '"20/minute": a number, and per second, minute, hour or day')
        return f"{match[1]}/{match[2].lower()}"


class UrlSetting(Setting):
    """A base: neither query nor credentials, since it stands in texts for people."""

    def read(self, given: Given) -> str:
        url = checked_url(trimmed(filled(given, numbers=False)))
        if "@" in urlsplit(url).netloc:
            refuse("user name and password do not belong into this URL")
        if "?" in url or "#" in url:
            refuse("a base URL ends before '?' and '#'")
        return url.rstrip("/")


# --- Truth values and numbers -----------------------------------------------------------------------------------------


def bare(given: Given, expected: str) -> str:
    """The text of a scalar that is not meant as text: without quotes, or put together from the environment."""
    node = given.node
    if not isinstance(node, Scalar):
        refuse(f"{expected} expected, not a {'list' if isinstance(node, Items) else 'section'}")
    if node.nothing:
        refuse("no value", "give one, or leave the key out")
    if node.form not in (Form.TEXT, Form.BARE):
        return node.text
    text = filled(given, numbers=False)
    if node.form is Form.TEXT and not text.names:
        refuse(f"{expected} expected, not text", "leave the quotes out")
    return trimmed(text)


class BooleanSetting(Setting):
    # The spellings of YAML 1.1 (https://yaml.org/type/bool.html), but for single letters.
    _WORDS: Mapping[str, bool] = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(
        ("false", "no", "off"), False
    )

    def read(self, given: Given) -> bool:
        truth = self._WORDS.get(bare(given, "true or false").lower())
        if truth is None:
            refuse("true or false expected")
        return truth


class NumberSetting(Setting):
    _FORM = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9]){0,17})")

    def read(self, given: Given) -> int:
        text = bare(given, "a whole number")
        if not self._FORM.fullmatch(text):
            refuse("a whole number expected, in plain digits")
        return in_bounds(int(text), self.key)


def in_bounds(number: int, key: Key) -> int:
    if key.least is not None and number < key.least:
        refuse(f"less than {key.least}")
    if key.most is not None and number > key.most:
        refuse(f"more than {key.most}")
    return number


class SecondsSetting(Setting):
    _FORM = re.compile(r"\+?[0-9](?:_?[0-9]){0,9}(?:\.[0-9]{1,9})?")

    def read(self, given: Given) -> float:
        text = bare(given, "seconds, as a number,")
        if not self._FORM.fullmatch(text):
            refuse("seconds expected, as a number over zero")
        seconds = float(text)
        if not 0 < seconds <= MOST_SECONDS:
            refuse(f"seconds expected, over zero and up to {MOST_SECONDS} (a week)")
        return seconds


# --- Secrets ----------------------------------------------------------------------------------------------------------


def sealed(value: Any, name: str, plain: str) -> Sealed:
    return Sealed(value, ((name, plain),), (name,) if len(plain) < SHORTEST_REDACTED else ())


class SecretSetting(Setting):
    def read(self, given: Given) -> str:
        secret = whole_secret(filled(given, numbers=True, secret=True))
        if _INVISIBLE.search(secret):
            refuse("a blank or control character inside")
        if not secret.isascii():
            refuse("a character that no token has (not ASCII)")
        return secret

    def seal(self, plain: str, given: Given, name: str) -> Sealed:
        return sealed(Secret(name), name, plain)


class PasswordSetting(SecretSetting):
    def read(self, given: Given) -> str:
        secret = whole_secret(filled(given, numbers=True, secret=True))
        if _CONTROL.search(secret):
            refuse("a control character inside")
        return secret


class SecretUrlSetting(SecretSetting):
    def read(self, given: Given) -> str:
        return checked_url(whole_secret(filled(given, numbers=False)))


class HeadersSetting(Setting):
    _OPEN = ("content-type", "accept", "user-agent")

    def read(self, given: Given) -> dict[str, str]:
        if not isinstance(given.node, Section):
            refuse("header names with their values expected", "Authorization: Bearer ...")
        headers: dict[str, str] = {}
        problems: list[Problem] = []
        for entry in given.node.entries:
            try:
                if entry.key.lower() in map(str.lower, headers):
                    refuse("the header is given twice, in other letters")
                headers[_header_name(entry.key)] = _header_value(Given(entry.value, given.environment))
            except ValidationError as error:
                problems += [below(problem, entry.key, entry.line) for problem in problems_of(error)]
        if problems:
            raise ValidationError(problems)
        return headers

    def seal(self, plain: dict[str, str], given: Given, name: str) -> Sealed:
        assert isinstance(given.node, Section)
        closed = {header: value for header, value in plain.items() if header.lower() not in self._OPEN}
        secret = {header: f"{name}.{header}" for header in closed}
        # A short value in the file ("X-Priority: 1") is hardly a secret; one from the environment is meant as one.
        meant = {entry.key for entry in given.node.entries if from_environment(Given(entry.value, given.environment))}
        return Sealed(
            tuple(
                (header, (Secret(secret[header]),) if header in secret else value) for header, value in plain.items()
            ),
            tuple((secret[header], value) for header, value in closed.items()),
            tuple(secret[h] for h, value in closed.items() if h in meant and len(value) < SHORTEST_REDACTED),
        )


def _header_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        refuse("not the name of a header", "letters, digits and hyphens")
    return name


def _header_value(given: Given) -> str:
    value = whole_secret(filled(given, numbers=True))
    if _CONTROL.search(value):
        refuse("a line end or control character inside")
    if any(ord(sign) > 0xFF for sign in value):
        refuse("a character that no header can carry (beyond Latin-1)")
    return value


class TemplateSetting(Setting):
    def read(self, given: Given) -> str:
        text = filled(given, numbers=False)
        trimmed(text)
        return text.text

    def seal(self, plain: str, given: Given, name: str) -> Sealed:
        template = read_template(plain)
        return _sealed_template(template, name) if from_environment(given) else Sealed(template)


class UrlTemplateSetting(Setting):
    def read(self, given: Given) -> str:
        text = whole_secret(filled(given, numbers=False))
        authority = re.split(r"[/?#\\]", text.partition("://")[2], maxsplit=1)[0]
        if MARK in authority:
            refuse("the content would name the host", f"put {MARK} into the path or the query")
        checked_url(text.replace(MARK, "x"))
        return text

    def seal(self, plain: str, given: Given, name: str) -> Sealed:
        return _sealed_template(read_template(plain), name)


def _sealed_template(template: Template, name: str) -> Sealed:
    """Every literal piece as a secret: ``name``, or with its number where there are several."""
    literals = [piece for piece in template.pieces if isinstance(piece, str)]
    names = [name] if len(literals) == 1 else [f"{name}[{index}]" for index in range(len(literals))]
    left = iter(names)
    pieces = tuple(piece if isinstance(piece, Slot | Secret) else Secret(next(left)) for piece in template.pieces)
    return Sealed(Template(pieces), tuple(zip(names, literals, strict=True)))


def from_environment(given: Given) -> bool:
    """Whether a variable was put into the text."""
    node = given.node
    if not isinstance(node, Scalar) or node.form not in (Form.TEXT, Form.BARE):
        return False
    return fill(node.text, given.environment).map(lambda text: bool(text.names)).value_or(False)


# --- Problems ---------------------------------------------------------------------------------------------------------


def below(problem: Problem, part: str | int, line: int | None) -> Problem:
    """The problem of a value inside a list or map."""
    shown = shown_key(part) if isinstance(part, str) else part
    return Problem(problem.text, problem.hint, (shown, *problem.below), problem.line or line)


def problems_of(error: ValidationError) -> list[Problem]:
    messages = error.messages
    return [message if isinstance(message, Problem) else Problem(str(message)) for message in messages]


FIELDS: Mapping[Sort, Callable[..., Setting]] = {
    Sort.TEXT: TextSetting,
    Sort.ID: IdSetting,
    Sort.IDS: IdsSetting,
    Sort.LIST: ListSetting,
    Sort.SECRET: SecretSetting,
    Sort.PASSWORD: PasswordSetting,
    Sort.SECRET_URL: SecretUrlSetting,
    Sort.URL: UrlSetting,
    Sort.HEADERS: HeadersSetting,
    Sort.METHOD: MethodSetting,
    Sort.TEMPLATE: TemplateSetting,
    Sort.URL_TEMPLATE: UrlTemplateSetting,
    Sort.BOOLEAN: BooleanSetting,
    Sort.NUMBER: NumberSetting,
    Sort.SECONDS: SecondsSetting,
    Sort.RATE: RateSetting,
    Sort.CHOICE: ChoiceSetting,
}
