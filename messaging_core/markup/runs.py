"""Spans as marked runs, for dialects whose markup is signs around words: ``*bold*``.

Each run of one look gets its own signs on each line, with white space outside of them; where two marked runs touch,
an invisible U+200B (zero width space) keeps their signs apart. Where a dialect has no way to escape a sign
(``Hand.guarded``), the same U+200B goes beside those that would otherwise begin or end a run, and nowhere else: an
unpaired sign stays as it is.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from messaging_core.markup.dialect import Piece
from messaging_core.markup.layout import RULE, Look, bold, heading_line, place
from messaging_core.markup.tree import CODE, Block, Code, Link, Prose, Span, with_addresses

ZERO_WIDTH = "\u200b"
_BLANKS = "".join(sign for sign in map(chr, range(0x3001)) if sign.isspace()) + ZERO_WIDTH


@dataclass(frozen=True, slots=True)
class Hand:
    """How a dialect writes runs.

    ``signs``: mark and sign, the outermost first. ``escape``: text that must show as it is; told whether a line
    begins with it and whether mentions may ring. ``code``: a stretch of code, None if it cannot be shown as such.
    ``link``: what is shown (written already), the link, and whether white space or the end follows. ``block``: a code
    block. ``guarded``: signs that have no escape. ``words``: a run is one only at the edges of words. ``heading``:
    what begins each line of a heading of that level; "" if it is bold instead.
    """

    look: Look
    signs: tuple[tuple[int, str], ...]
    escape: Callable[[str, bool, bool], str]
    code: Callable[[str], str | None]
    link: Callable[[str, Link, bool], str | None]
    block: Callable[[Code], str]
    guarded: str = ""
    words: bool = False
    heading: Callable[[int], str | None] = lambda _level: None


_LITERAL, _RAW, _OPEN, _CLOSE = range(4)
"""Kinds of tokens: text that must show as it is; what is written already; the signs that begin and end a run. (Members
of an enumeration take longer to look up than all else that is done with them.)
"""

_Token = tuple[int, str]


def write(hand: Hand, block: Block, before: Block | None, mentions: bool) -> Piece:
    at = place(hand.look, block, before)
    if isinstance(block, Code):
        text = heading_line(at.first) + hand.block(block)
        return Piece(block, at.gap, at.shown_gap, text, heading_line(at.shown_first) + block.text)
    if not isinstance(block, Prose):
        return Piece(block, at.gap, at.shown_gap, at.first + RULE, at.shown_first + RULE)
    sign = hand.heading(block.heading) if block.heading else None
    if sign and block.path:
        sign = None  # such a sign means something at the start of a line only
    lines = _lines(bold(block.spans) if block.heading and sign is None else block.spans)
    raw = [_line(hand, line, mentions) for line in lines]
    visible = ["".join([span.text for span in line]) for line in lines]
    if sign:
        raw = [sign + line if shown.strip(_BLANKS) else line for line, shown in zip(raw, visible, strict=True)]
    return Piece(
        block,
        at.gap,
        at.shown_gap,
        at.first + f"\n{at.rest}".join(raw),
        at.shown_first + f"\n{at.shown_rest}".join(visible),
    )


_LOOK_OF = itemgetter(1, 2)


def without_escape(block: Block) -> Block:
    """``block`` for a dialect that has no escape: code with a backtick in it and code that is a link cannot be shown as
    code, so they are text. Its addresses are links like all others, and so are those that join neighbours of one look:
    whatever the platform takes for an address has to be known as one.
    """
    if not isinstance(block, Prose):
        return block
    before = -1  # the marks of what is no link
    for text, marks, link in block.spans:
        if marks & CODE:
            if link is not None or "`" in text:
                break
        elif link is None and (marks == before or "://" in text):
            break
        before = marks if link is None else -1
    else:
        return block
    spans: list[Span] = []
    texts = [span._replace(marks=span.marks & ~CODE) if _no_code(*span) else span for span in block.spans]
    for (marks, link), same in groupby(texts, _LOOK_OF):
        if link is None and not marks & CODE:
            spans += with_addresses("".join([span.text for span in same]), marks)
        else:
            spans += same
    return block._replace(spans=tuple(spans))


def _no_code(text: str, marks: int, link: Link | None) -> bool:
    return marks & CODE > 0 and (link is not None or "`" in text)


def _lines(spans: Sequence[Span]) -> list[list[Span]]:
    """``spans`` line by line, neighbours of one look made one."""
    before: Span | None = None
    for span in spans:
        if "\n" in span.text or (before is not None and _LOOK_OF(span) == _LOOK_OF(before)):
            break
        before = span
    else:
        return [list(spans)]
    lines: list[list[Span]] = [[]]
    for (marks, link), same in groupby(spans, _LOOK_OF):
        text = "".join([span.text for span in same])
        for count, part in enumerate(text.split("\n")):
            if count:
                lines.append([])
            if part:
                lines[-1].append(Span(part, marks, link))
    return lines


def _line(hand: Hand, spans: list[Span], mentions: bool) -> str:
    if len(spans) == 1 and not spans[0].marks and spans[0].link is None and not _any_of(hand.guarded, spans[0].text):
        return hand.escape(spans[0].text, True, mentions)
    tokens: list[_Token] = []
    for place_, span in enumerate(spans):
        if not span.marks and span.link is None:
            tokens.append((_LITERAL, span.text))
        else:
            tokens += _tokens(hand, span, span.link is not None and _ends(spans, place_ + 1), mentions)
    if hand.guarded:
        tokens = _guarded(hand.guarded, tokens)
    out: list[str] = []
    last = _RAW
    for place_, (kind, text) in enumerate(tokens):
        if kind is _CLOSE and text and out[-1][-1] == text[0]:
            apart = True  # even where the first is escaped: not every reader of closing signs looks for that
        elif last is _CLOSE:
            apart = kind is _OPEN or (hand.words and kind is not _CLOSE and _in_word(text[0]))
        elif not hand.words or not out or kind is _LITERAL:
            apart = False
        elif kind is _OPEN:
            apart = _in_word(out[-1][-1])
        else:  # only an address begins so among what is written already, and it is none as the rest of a word
            apart = kind is _RAW and text[0].isalnum() and out[-1][-1].isalnum()
        if apart:
            out.append(ZERO_WIDTH)
        if text:
            begins = place_ == 0 or (last is _OPEN and not hand.words)  # Discord reads what is in a run like a line
            out.append(hand.escape(text, begins, mentions) if kind is _LITERAL else text)
        last = kind
    return "".join(out)


_SENTENCE_ENDS = re.compile(r"[.,:;!?)\]\"']*(?:\s|(?P<all>$))")


def _ends(spans: Sequence[Span], after: int) -> bool:
    """True if an address before ``spans[after]`` is seen to end there: by white space or what no address ends with."""
    if after == len(spans):
        return True
    if spans[after].marks & CODE or (spans[after].marks and not spans[after].text[0].isspace()):
        return False
    found = _SENTENCE_ENDS.match(spans[after].text)
    return found is not None and (found["all"] is None or after + 1 == len(spans))


def _any_of(signs: str, text: str) -> bool:
    return any(sign in text for sign in signs)


def _in_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _tokens(hand: Hand, span: Span, ends: bool, mentions: bool) -> list[_Token]:
    """A marked or linked span: white space, signs, what is marked, signs, white space.

    Signs without an escape at its edges stand outside too: between other signs nobody could tell which is which.
    """
    core = span.text
    if not span.marks & CODE:
        core = core.strip(_BLANKS + hand.guarded)
    elif hand.words:
        core = core.strip(_BLANKS)
    if not core.strip():
        return [(_LITERAL, span.text)]
    start = span.text.index(core)
    # A bracket in a label that is code could not be escaped.
    linkable = span.link is None or ("[" not in core and "]" not in core)
    code = hand.code(core) if span.marks & CODE and linkable else None
    body: _Token = (_LITERAL, core) if code is None else (_RAW, code)
    if span.link is not None:
        text = hand.escape(core, False, mentions) if code is None else code
        linked = hand.link(core if span.link.bare else text, span.link, ends and span.text.endswith(core))
        body = body if linked is None else (_RAW, linked)
    signs = [sign for mark, sign in hand.signs if span.marks & mark]
    if span.marks & CODE and any(sign in core for sign in (*hand.guarded, *(sign[0] for _, sign in hand.signs))):
        signs = []  # one in the code could end the run
    inner = [body]
    if signs or code is not None:
        inner = [(_OPEN, "".join(signs)), body, (_CLOSE, "".join(reversed(signs)))]
    before, after = span.text[:start], span.text[start + len(core) :]
    return [
        *([(_LITERAL, before)] if before else []),
        *inner,
        *([(_LITERAL, after)] if after else []),
    ]


# --- Signs without an escape ------------------------------------------------------------------------------------------


def _guarded(signs: str, tokens: list[_Token]) -> list[_Token]:
    """``tokens`` with U+200B where a literal sign would begin or end a run that is not meant.

    White space, which U+200B counts as here, ends no run if it stands before the closing sign, and begins none behind
    the opening one.
    """
    if not any(kind is _LITERAL and _any_of(signs, text) for kind, text in tokens):
        return tokens
    meant = {sign for kind, text in tokens if kind is _OPEN for sign in text}
    meant |= {sign for kind, text in tokens if kind is _RAW and text[0] in signs for sign in text if sign in signs}
    # Nothing may be put right behind an address: it would become part of it. The opening sign is guarded instead.
    after_address = {place_ + 1 for place_, (kind, _) in enumerate(tokens) if kind is _RAW and place_ + 1 < len(tokens)}
    meant |= {tokens[place_][1][0] for place_ in after_address if tokens[place_][0] is _LITERAL}
    opened: set[str] = set()
    guarded: list[_Token] = []
    previous = ""
    for place_, (kind, text) in enumerate(tokens):
        if kind is not _LITERAL:
            guarded.append((kind, text))
            previous = text[-1:] or previous
            continue
        after = next((other[0] for _, other in tokens[place_ + 1 : place_ + 4] if other), "")
        out: list[str] = []
        for index, sign in enumerate(text):
            following = text[index + 1] if index + 1 < len(text) else after
            previous_sign, previous = previous, sign
            if sign not in signs:
                out.append(sign)
                continue
            solid, beside_address = _solid(previous_sign), index == 0 and place_ in after_address
            risky = solid and not beside_address and (sign in opened or sign in meant)
            fence = sign == previous_sign == "`"
            closes = fence or (risky and not following.isalnum())
            opens = _solid(following) and (closes or not previous_sign.isalnum())
            guard_behind = opens and sign in meant
            if closes or (guard_behind and risky):
                out.append(ZERO_WIDTH)
            out.append(sign)
            if guard_behind:
                out.append(ZERO_WIDTH)
                previous = ZERO_WIDTH
            elif opens:
                opened.add(sign)
        guarded.append((kind, "".join(out)))
    return guarded


def _solid(sign: str) -> bool:
    return sign not in ("", ZERO_WIDTH) and not sign.isspace()
