"""Whether there is anything to see."""

import regex

_INVISIBLE = regex.compile(r"[\s\p{Cc}\p{Cf}\p{Cs}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]*+", flags=regex.VERSION1)


def is_blank(text: str) -> bool:
    """True if a reader would see nothing: white space, zero-width and filler signs, the empty braille cell.

    >>> [is_blank(text) for text in ("", " \\n\\t ", "\\u200b\\u2060\\ufeff", "\\u2800", ".")]
    [True, True, True, True, False]
    """
    return _INVISIBLE.fullmatch(text) is not None
