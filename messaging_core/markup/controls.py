"""Signs that steer a terminal or hide text, and how they are taken out."""

import re

_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    # OSC, DCS, SOS, PM, APC: title, clipboard, links, device control. Without an end they stop at the end of
    # the line, so
    # that they cannot swallow the rest of the message.
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\n\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


def strip_controls(text: str) -> str:
    """``text`` without escape sequences and control signs other than line feed and tab. CRLF becomes LF, other CR go.

    >>> strip_controls("a\\x1b[31mred\\x1b[0m\\x07\\r\\nb\\x1b]0;title\\x07c")
    'ared\\nbc'
    """
    if not _CONTROLS.search(text):
        return text
    return _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def show_direction(text: str) -> str:
    """``text`` with the signs that turn the direction of writing shown by number: ``\\u202e`` keeps the evidence and
    does no harm.
    """
    return _BIDI.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def by_number(text: str) -> str:
    """``text`` with every sign that steers a terminal or turns the direction of writing shown by number, as JSON writes
    it: what stands in JSON stays the same value. Line feeds and tabs stay.

    >>> by_number("a\\x1b[2Jb")
    'a\\\\u001b[2Jb'
    """
    return show_direction(_CONTROLS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text))


def clean(text: str) -> str:
    """A text that every platform can carry: line ends are LF, no controls, no lone surrogates (U+FFFD stands for
    them).
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = strip_controls(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text
