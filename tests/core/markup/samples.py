"""Texts to try every dialect with, and the limits to try them under."""

import json
from pathlib import Path

from hypothesis import strategies as st

from messaging_core.markup.dialect import Dialect
from messaging_core.markup.discord import DISCORD
from messaging_core.markup.email_html import EMAIL_HTML
from messaging_core.markup.length import Length, Of, Unit
from messaging_core.markup.matrix_html import MATRIX_HTML
from messaging_core.markup.plain import PLAIN
from messaging_core.markup.signal import SIGNAL, SIGNAL_STYLED
from messaging_core.markup.slack_mrkdwn import SLACK_MRKDWN
from messaging_core.markup.telegram_html import TELEGRAM_HTML
from messaging_core.markup.terminal import TERMINAL
from messaging_core.markup.whatsapp import WHATSAPP

DIALECTS: tuple[Dialect, ...] = (
    TELEGRAM_HTML,
    DISCORD,
    SLACK_MRKDWN,
    WHATSAPP,
    SIGNAL,
    SIGNAL_STYLED,
    MATRIX_HTML,
    EMAIL_HTML,
    PLAIN,
    TERMINAL,
)

TIGHT: dict[str, tuple[Length, ...]] = {
    dialect.name: (Length(300, Unit.CODE_POINTS, Of.RAW), Length(400, Unit.BYTES, Of.RAW)) for dialect in DIALECTS
}
TIGHT["telegram-html"] = (
    Length(160, Unit.CODE_POINTS),
    Length(1500, Unit.BYTES, Of.RAW),
    Length(14, Unit.STRETCHES, Of.RAW),
)
TIGHT["signal"] = (Length(200, Unit.BYTES),)
TIGHT["matrix-html"] = (Length(2500, Unit.BYTES, Of.JSON),)


def examples() -> list[str]:
    """The Markdown of the specifications' examples: CommonMark's 652, then what GFM adds."""
    found = json.loads((Path(__file__).parent / "spec" / "examples.json").read_text("utf-8"))
    assert len(found["commonmark"]) == 652
    return [*found["commonmark"], *found["gfm"]]


ANSWER = """\
# Deploying `pump_a` *safely*

Valve **pump_a_inlet** opened; `battery_low` is ~~true~~ *false*. R&D says 3 < 5 > 2 && it holds.
See [ring_road (north)](https://maps.example/wiki/Ring_(road)_3?x=1&y=2), https://h.test/_a_/b_c and <https://x.test/q>.

1. First step
   - nested **bold** item
   - another with `code`
     1. deeper

2. Second step, which is loose

   ```python
   def f(x: int) -> "str":
       return f"<{x}>" + '``' * 3
   ```
3. Third

> Quoted *text* with a list:
> - one
> - two
>
> > nested

- [ ] todo
- [x] done

| Name | Qty | 備考 |
| --- | ---: | :-: |
| nuts_m4 | 12 | 在庫 |
| `bolts` | 7 | **few** |

---

#### Notes on **emphasis**

***both*** **bold*both*** intra**word**bold and _it_**bo**, foo_bar_baz, \\*not bold\\*, @everyone <@123456789012345678>.
Line one
line two\\
line three<br>line four ![diagram](https://img.example/d.png)
"""

TYPICAL = """\
## Why the nightly import fails

The import of **orders** stops because the *connection pool* runs dry: every worker opens its own session, and none of
them gives it back when a row is refused. You can see it in the log of last night:

```
2024-05-01 02:13:07 ERROR pool: timed out after 30 s, 20 of 20 connections in use
2024-05-01 02:13:07 WARN  import: batch 118 postponed
```

Here's what I'd do, in this order:

1. **Close sessions in any case.** Use a context manager instead of calling `session.close()` by hand.
2. **Bound the batches.** 500 rows are plenty; at the moment `BATCH_SIZE` is unset, so the whole file is one batch.
3. **Watch the pool.** Export `pool.checkedout()` as a metric and alert at 80 %.

### The change

```python
from contextlib import contextmanager

@contextmanager
def session_scope(factory):
    session = factory()
    try:
        yield session
        session.commit()
    except Exception:
        session.rollback()
        raise
    finally:
        session.close()
```

Every place that calls `factory()` today becomes `with session_scope(factory) as session:`. There are four of them, all in
`importer/jobs.py`, and none depends on the session outliving the call. The tests keep passing, and the time for the whole
file goes down a little, since fewer transactions wait for each other:

| File | Rows | Before | After |
| --- | ---: | ---: | ---: |
| orders.csv | 120,000 | 41 s | 35 s |
| customers.csv | 18,500 | 6 s | 6 s |

Some things to keep in mind:

- The pool's size is a limit of *each process*. Four workers with 20 connections each are 80 on the server.
- A refused row used to be skipped without a word. It now ends the batch, and the log says which row it was.
- If you use a proxy such as PgBouncer, prepared statements may have to be switched off; see
  [its documentation](https://www.pgbouncer.org/config.html) for details.

> The number of connections is not what makes an import fast. Fewer, longer transactions usually win.

Let me know how tonight's run goes, and whether I should open a pull request for it.

"""
"""What an assistant's answer looks like on a usual day; ``ANSWER`` has all there is in a few lines."""

_PIECES = [
    "**", "*", "_", "__", "~~", "~", "`", "``", "```", "[", "](", "]", ")", "(", "<", ">", "|", "||", "\\", "$", "$$", "\\(", "\\)", "\\[", "\\]", "$a_1*b$", "「x」", "# ", "#", "-# ",
    "> ", ">>> ", "- ", "* ", "+ ", "1. ", "7) ", "- [ ] ", "- [x] ", " ", "  ", "    ", "\n", "\n\n", "\t", "&", "&amp;", "&lt;", ";",
    ":", "/", "!", "@", "@everyone", "<@123456789012345678>", "<!channel>", "<b>", "</b>", "<br>", "<!-- x -->", "<div>", "a", "b c",
    "word", "x1", "é", "漢字", "🎯", "👨‍👩‍👧", "e\u0301", "\u200b", "\u2060", "\xa0", "https://h.test/_a_/b", "https://x.test/(y)*z*", "[l](https://t.test/p_q)",
    "[https://bank.test](https://evil.test)", "![i](u)", "|a|b|\n|-|-|\n|c|`d`|\n", "---\n", "```py\nx\n```\n", "===\n", ".", ",", "'", '"', "\r\n", "\x1b[31m", "\u202e", "\ud800",
]  # fmt: skip

texts = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)
"""Texts made of everything that means something to some platform."""

long_texts = st.lists(
    st.sampled_from([*_PIECES, "lorem ipsum dolor sit amet ", "wordwordword " * 9, "x" * 90]), min_size=20, max_size=120
).map("".join)
