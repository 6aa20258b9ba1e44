"""How long a text takes from Markdown to parts, for each dialect; and how the time grows for hostile texts.

    pip install telegramify-markdown slackify-markdown
    PYTHONPATH=. python benchmarks/markup.py

The two are rendered beside ours if they are installed. Best of several runs, microseconds of processor time.
"""

import time
from collections.abc import Callable

from messaging_core.markup.length import Length, Unit
from messaging_core.markup.split import split
from messaging_core.markup.tree import parse
from tests.core.markup.samples import ANSWER, DIALECTS, TYPICAL

TEXTS = {"a typical answer": (TYPICAL * 20)[:10_000], "as dense as can be": (ANSWER * 20)[:10_000]}
LIMIT = (Length(4096, Unit.CODE_POINTS),)


def best(work: Callable[[], object], runs: int = 60) -> float:
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    for title, text in TEXTS.items():
        print(f"{title}: {len(text)} characters, from text to parts of {LIMIT[0].limit}")
        print(f"  {'parse alone':32}{best(lambda text=text: parse(text)) * 1e6:10.0f} µs")
        for dialect in DIALECTS:
            taken = best(lambda text=text, dialect=dialect: split(parse(text), dialect, LIMIT))
            print(f"  {dialect.name:32}{taken * 1e6:10.0f} µs")
        for name, work in others():
            print(f"  {name:32}{best(lambda text=text, work=work: work(text)) * 1e6:10.0f} µs")
    print("Hostile texts, seconds for each size (a straight line doubles)")
    for name, make, size in HOSTILE:
        row = [
            best(lambda n=n: [split(parse(make(n)), dialect, LIMIT) for dialect in DIALECTS[:4]], 1)
            for n in (size // 4, size // 2, size)
        ]
        print(f"  {name:32}" + "".join(f"{taken:10.3f}" for taken in row))


HOSTILE: list[tuple[str, Callable[[int], str], int]] = [
    ("words, 1 MB", lambda n: "word " * (n // 5), 1_000_000),
    ("no white space, 1 MB", lambda n: "x" * n, 1_000_000),
    ("emphasis signs, 1 MB", lambda n: "*a_ ~b` " * (n // 8), 1_000_000),
    ("styled runs, 1 MB", lambda n: "**a** _b_ `c` " * (n // 14), 1_000_000),
    ("addresses, 1 MB", lambda n: "https://h.test/_a_/b " * (n // 21), 1_000_000),
    ("quotes, 10,000 deep", lambda n: "> " * n + "x", 10_000),
    ("lists, 10,000 deep", lambda n: "- " * n + "x", 10_000),
    ("100,000 backticks", lambda n: "a " + "`" * n, 100_000),
    ("100,000 brackets", lambda n: "[" * n, 100_000),
    ("open tags", lambda n: "<b>" * n, 100_000),
    ("links that cannot be hidden", lambda n: "[a](/b) " * n, 50_000),
    ("formulas that never end", lambda n: "$$ \\( $a_1 " * n, 50_000),
]


def others() -> list[tuple[str, Callable[[str], object]]]:
    found: list[tuple[str, Callable[[str], object]]] = []
    try:
        import telegramify_markdown

        found.append(("telegramify (whole, MarkdownV2)", telegramify_markdown.markdownify))
        if hasattr(telegramify_markdown, "convert"):
            found.append(("telegramify (whole, entities)", telegramify_markdown.convert))
            found.append(
                (
                    "telegramify (parts, entities)",
                    lambda text: telegramify_markdown.split_entities(
                        *telegramify_markdown.convert(text), LIMIT[0].limit
                    ),
                )
            )
    except ImportError:
        print("telegramify-markdown is not installed")
    try:
        from slackify_markdown import slackify_markdown

        found.append(("slackify (whole)", slackify_markdown))
    except ImportError:
        print("slackify-markdown is not installed")
    return found


if __name__ == "__main__":
    main()
