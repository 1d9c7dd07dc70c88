"""Makes a clustering set like MewsC-16 from dumps of Wikinews (EASE, appendix E and table 13).

    python scripts/mewsc.py DUMP... --categories TABLE --output FOLDER [--least 10]

A page that has exactly one of the topic categories of its language gives its first sentence; topics with fewer than
`least` pages are left out. The files are those of the published set, so the task `mewsc-16` reads them.

Deviation: sentences are split by sentencex instead of polyglot, and wikitext is read by mwparserfromhell instead of
Wikiextractor.

TABLE has lines of language, tab, title of a topic category; the folder of the published set does too (its labels are
such titles). FOLDER can be evaluated: isoglot evaluate MODEL --tasks mewsc-16 --data FOLDER
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.data.files import atomic_write, check_output, read_lines
from isoglot.data.languages import canonical
from isoglot.wikipedia.dump import Dump, Page, open_dump, pages
from isoglot.wikipedia.titles import normal
from isoglot.wikipedia.wikitext import UnreadableError, is_table, read, split

CATEGORY = 14  # the number of the namespace
SHORTEST = 5  # characters of a text


def build_news(
    dumps: Sequence[str],
    categories: Mapping[str, Iterable[str]],
    output: str | Path,
    *,
    least: int = 10,
    report: Callable[[str], None] = lambda _message: None,
) -> dict[str, Counter[str]]:
    """Write `<xx>_sentences.txt` and `<xx>_categories.txt`, line by line, and return the pages of each topic.

    dumps       MediaWiki XML dumps of Wikinews, `FILE` or `CODE=FILE`
    categories  language -> titles of its topic categories, without their namespace (`read_categories`)
    least       pages that a topic must have

    Raises `CorpusError` for a file that is not a dump of Wikinews, and for a language without categories or texts.
    """
    folder = Path(output)
    check_output(folder, inputs=[name.partition("=")[2] or name for name in dumps], folder=True)
    topics = {canonical(code): set(names) for code, names in categories.items()}
    made: dict[str, Counter[str]] = {}
    for dump in [open_dump(name, project="wikinews") for name in dumps]:
        if dump.lang not in topics:
            raise CorpusError(f"no categories of {dump.lang}; add them to the table", file=dump.path)
        found = list(_texts(dump, topics[dump.lang], report))
        count = Counter(topic for _, topic in found)
        kept = [(text, topic) for text, topic in found if count[topic] >= least]
        if not kept:
            raise CorpusError(f"no topic has {least} pages with one of the categories; check the table", file=dump.path)
        folder.mkdir(parents=True, exist_ok=True)
        for column, name in enumerate(("sentences", "categories")):
            with atomic_write(folder / f"{dump.names.wiki}_{name}.txt") as file:
                file.writelines(f"{row[column]}\n" for row in kept)
        made[dump.lang] = Counter(topic for _, topic in kept)
    return made


def read_categories(path: str | Path) -> dict[str, set[str]]:
    """Language -> its topic categories: lines of language, tab, title, or a folder of the published set (its labels).

    Raises `CorpusError` for another line and a folder without labels.
    """
    path = Path(path)
    found: dict[str, set[str]] = {}
    if path.is_dir():
        for file in sorted(path.glob("*_categories.txt*")):
            found[file.name.partition("_")[0]] = {label.strip() for _, label in read_lines(file) if label.strip()}
        if not found:
            raise CorpusError("contains no <xx>_categories.txt; pass a table or the published set", file=path)
        return found
    for number, line in read_lines(path):
        cells = line.split("\t")
        if len(cells) != 2 or not all(cell.strip() for cell in cells):
            raise CorpusError("a line must be: language, tab, title of a category", file=path, line=number)
        found.setdefault(cells[0].strip(), set()).add(cells[1].strip())
    return found


def _texts(dump: Dump, topics: set[str], report: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """The first sentence and the topic of each page that has one topic."""
    names = {"category", *(name for name, number in dump.names.namespaces.items() if number == CATEGORY)}
    spelled = "|".join(re.escape(name).replace("_", "[ _]") for name in sorted(names))
    category = re.compile(rf"\[\[\s*(?:{spelled})\s*:\s*([^\]|#\n]+)", re.IGNORECASE)
    wanted = {normal(topic, dump.names): topic for topic in topics}
    for page in pages(dump, report):
        if page.namespace != 0 or page.redirect is not None:
            continue
        own = {normal(title, dump.names) for title in category.findall(page.text)} & wanted.keys()
        if len(own) == 1 and (text := _first_sentence(page, dump)):
            yield text, wanted[own.pop()]


def _first_sentence(page: Page, dump: Dump) -> str:
    """The first sentence of the first paragraph that is not a table; empty: of a text of fewer than five characters."""
    try:
        paragraphs, _ = read(page.text, dump.names)
    except UnreadableError:
        return ""
    shown = [paragraph for paragraph in paragraphs if not is_table(paragraph)]
    if sum(len(paragraph.text) for paragraph in shown) < SHORTEST:
        return ""
    return next((text for paragraph in shown for text, _ in split(paragraph, dump.names.wiki) if text), "")


def main() -> None:
    """Write the set and print the table of texts and topics."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="+", help="MediaWiki XML dump of a Wikinews, FILE or CODE=FILE")
    parser.add_argument("--categories", type=Path, required=True, help="table of topic categories, or a published set")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--least", type=int, default=10, help="pages that a topic must have")
    words = parser.parse_args()
    try:
        made = build_news(
            words.dumps, read_categories(words.categories), words.output, least=words.least,
            report=lambda message: print(message, file=sys.stderr),
        )  # fmt: skip
    except IsoglotError as error:
        sys.exit(f"error: {error}")
    for language, topics in made.items():
        print(f"{language}: {topics.total():,} texts, {len(topics)} topics")


if __name__ == "__main__":
    main()
