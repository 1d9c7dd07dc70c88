"""Text of the recipe models/base that no data set has as it is: balanced pairs, long translations, paragraphs, prompts.

    python scripts/base_texts.py DATA OUTPUT

Writes into OUTPUT, the folder of the run, the same files on every call:

    base-pairs.jsonl       Tatoeba: so many pairs of each language; where a sentence has an English translation, that
    base-groups.jsonl      tico-19-more without the rows of tico-19, and the questions of AfriQA
    base-long.jsonl        runs of verses of `bible` and pages of `storybooks`, a third as passages, with their prompt
    base-paragraphs.jsonl  paragraphs of Wikipedias, alone in their groups, half of them as passages
    base-questions.jsonl   questions of AfriQA and Tatoeba, with their prompt
    base-cloze.jsonl       a sentence of each paragraph as a query, the others as its passage

A paragraph that shares a run of letters with one of `qa-retrieval` is left out with its page. Text with a prompt is
there so that the trained model does with prompts what the untrained one does.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isoglot.core.errors import IsoglotError
from isoglot.data.files import BUNDLED, json_object, read_lines
from isoglot.data.filters import normalise, remove_leaks, test_sentences
from isoglot.data.groups import Group
from isoglot.data.readers import read
from isoglot.data.readers.jsonl import write_jsonl
from isoglot.wikipedia import wikitext
from isoglot.wikipedia.dump import open_dump, pages

QUERY, PASSAGE = "query: ", "passage: "
PAIRS = 800  # of a language, of those with English and again of those without
LINES = 5  # verses or pages that make a long text
LONG = 14  # languages of a long group, drawn from those of all its lines
WIDTHS = (200, 1600)  # letters of a paragraph
PARAGRAPHS = 450  # of a dump
OF_A_PAGE = 4
RUN, STEP = 40, 16  # letters of a shared run; every 16th begins one in the tests
QUESTIONS = 6000
ENDS = re.compile(r"(?<=[.!?।։])\s+|(?<=[。！？])")  # of sentences, about
SENTENCE = 20  # letters


def tatoeba(data: Path) -> Iterator[Group]:
    """Pairs of the two sets of Tatoeba, drawn by language; the other half of a pair becomes English where it can."""
    draw = random.Random(1)
    english: dict[tuple[str, str], str] = {}
    of_language: dict[str, list[Group]] = defaultdict(list)
    for group in read("folder", data / "opus-tatoeba-v2021-08-07", sets="*"):
        if "eng" in group.langs:
            place = group.langs.index("eng")
            english[group.langs[1 - place], group.texts[1 - place]] = group.texts[place]
            of_language[group.langs[1 - place]].append(
                keyed(group.texts[place], group.texts[1 - place], group.langs[1 - place])
            )
    bridged: dict[str, list[Group]] = defaultdict(list)
    direct: dict[str, list[Group]] = defaultdict(list)
    for group in read("jsonl", data / "tatoeba-pairs" / "pairs.jsonl.xz", on_unknown_language="skip"):
        if len(group.texts) != 2:
            continue
        sides = list(zip(group.langs, group.texts, strict=True))
        for (language, text), other in (sides, sides[::-1]):
            if (language, text) in english or language == "eng":
                continue
            meaning = other[1] if other[0] == "eng" else english.get(other)
            if meaning is None:
                direct[language].append(group)
            else:
                bridged[language].append(keyed(meaning, text, language))
    for kind, most in ((of_language, PAIRS), (bridged, PAIRS), (direct, PAIRS // 4)):
        for language in sorted(kind):
            yield from draw.sample(kind[language], min(most, len(kind[language])))


def keyed(english: str, text: str, language: str) -> Group:
    """A pair whose key is its English, so that two translations of one sentence are never negatives of each other."""
    return Group((english, text), ("eng", language), key=normalise(english))


def groups(data: Path) -> Iterator[Group]:
    """Groups of tico-19-more that share no English with tico-19, and questions with their translations."""
    known = {normalise(text) for path in sorted((data / "tico-19").rglob("*.en.xz")) for _, text in read_lines(path)}
    for group in read("jsonl", data / "tico-19-more" / "groups.jsonl.xz", on_unknown_language="skip"):
        if not known.intersection(map(normalise, group.texts)):
            yield group
    yield from afriqa(data)


def afriqa(data: Path) -> Iterator[Group]:
    for group in read("jsonl", data / "lowres-pairs" / "pairs.jsonl.xz", on_unknown_language="skip"):
        if group.key.startswith("afriqa"):
            yield Group(group.texts, group.langs)


def long_groups(data: Path) -> Iterator[Group]:
    """Neighbouring lines joined, in languages that all of them have; every third group as passages."""
    draw = random.Random(2)
    number = 0
    for name in ("bible", "storybooks"):
        lines = list(read("jsonl", data / name / "groups.jsonl.xz", on_unknown_language="skip"))
        for start in range(0, len(lines) - LINES + 1, LINES):
            run = lines[start : start + LINES]
            if name == "storybooks" and len({line.key.rpartition("/")[0] for line in run}) > 1:
                continue
            texts: dict[str, list[str]] = defaultdict(list)
            for line in run:
                for language, text in dict(zip(line.langs, line.texts, strict=True)).items():
                    texts[language].append(text)
            whole = {language: " ".join(parts) for language, parts in texts.items() if len(parts) == LINES}
            if "eng" not in whole or len(whole) < 2:
                continue
            others = sorted(set(whole) - {"eng"})
            chosen = ["eng", *draw.sample(others, min(LONG, len(others)))]
            prompt = PASSAGE if number % 3 == 0 else ""
            number += 1
            yield Group(tuple(prompt + whole[language] for language in chosen), tuple(chosen))


def paragraphs(data: Path, *, most: int = PARAGRAPHS, of_a_page: int = OF_A_PAGE) -> Iterator[Group]:
    """Paragraphs of all dumps, `most` of one, those of a page in a row; every second one as a passage."""
    tests = shared_runs(
        {
            str(json_object(text, file=path, line=line)["text"])
            for path in sorted((data / "qa-retrieval").glob("*.paragraphs.jsonl.xz"))
            for line, text in read_lines(path)
        }
    )
    print(f"{len(tests):,} runs of letters of the test paragraphs", file=sys.stderr, flush=True)
    counts: Counter[str] = Counter()
    for name in dumps(data):
        try:
            dump = open_dump(name)
            if dump.lang == "und":
                continue
            found = 0
            for page in pages(dump, lambda _message: None):
                if page.namespace or page.redirect or found >= most:
                    continue
                try:
                    read_ = wikitext.read(page.text, dump.names)[0]
                except wikitext.UnreadableError:
                    continue
                fit = [p.text for p in read_ if WIDTHS[0] <= len(p.text) and not wikitext.is_table(p) and clean(p.text)]
                if any(overlaps(text, tests) for text in fit):
                    counts["pages with a paragraph of qa-retrieval"] += 1
                    continue
                for text in fit[:of_a_page]:
                    found += 1
                    yield Group(((PASSAGE if found % 2 else "") + text[: WIDTHS[1]],), (dump.lang,))
            counts["paragraphs"] += found
            print(f"{name}: {found}", file=sys.stderr, flush=True)
        except IsoglotError as error:
            print(f"{name}: {error}", file=sys.stderr)
    print(dict(counts), file=sys.stderr)


def cloze(paragraphs: Sequence[Group]) -> Iterator[Group]:
    """A sentence of each paragraph as a query and the others as a passage (inverse cloze: Lee et al. 2019)."""
    draw = random.Random(4)
    for group in paragraphs:
        sentences = [one for one in ENDS.split(group.texts[0].removeprefix(PASSAGE)) if len(one) >= SENTENCE]
        if len(sentences) > 2:
            asked = sentences.pop(draw.randrange(len(sentences)))
            yield Group((QUERY + asked, PASSAGE + " ".join(sentences)), group.langs * 2)


def dumps(data: Path) -> list[str]:
    """The dumps, as `open_dump` takes them; of the small ones, the folder is the code of the Wikipedia."""
    small = [
        f"{path.parent.name}={path}"
        for path in sorted((data / "wiki-minidumps").glob("*/wiki.xml.bz2"))
        if path.parent.name not in ("wikidata", "wikidata.org", "commons")
    ]
    samples = data / "wiki-xml-samples"
    large = [str(path) for path in sorted((data / "wiki-xml-7lang").glob("*.xz"))]
    large += [str(data / "wiki-it-sample" / "it" / "small-dump.xml.gz")]
    large += [str(path) for path in sorted(samples.glob("enwiki-latest*")) + sorted(samples.glob("smallwiki*"))]
    return large + small


def clean(text: str) -> bool:
    """Whether a paragraph is free of leftover markup."""
    return not any(mark in text for mark in ("{{", "}}", "[[", "]]", "''", "<", "|"))


def shared_runs(texts: Iterable[str]) -> set[int]:
    """Hashes of runs of RUN letters, one at every STEP."""
    runs = set[int]()
    for text in map(normalise, texts):
        runs.update(hash(text[start : start + RUN]) for start in range(0, max(1, len(text) - RUN + 1), STEP))
    return runs


def overlaps(text: str, runs: set[int]) -> bool:
    plain = normalise(text)
    return any(hash(plain[start : start + RUN]) in runs for start in range(max(1, len(plain) - RUN + 1)))


def questions(pairs: Sequence[Group], data: Path) -> Iterator[Group]:
    """Questions as queries: of AfriQA all, of Tatoeba those of its pairs that end in a question mark, drawn."""
    known = test_sentences(
        [BUNDLED / "dev", BUNDLED / "test"]
    )  # with a prompt before them, `leakage` does not see them
    asked = [
        group
        for group in remove_leaks(pairs, known)
        if "eng" in group.langs and group.texts[group.langs.index("eng")].endswith("?")
    ]
    chosen = random.Random(3).sample(asked, min(QUESTIONS, len(asked)))
    for group in [*afriqa(data), *chosen]:
        yield Group(tuple(QUERY + text for text in group.texts), group.langs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    words = parser.parse_args()
    words.output.mkdir(parents=True, exist_ok=True)
    pairs, wikipedia = list(tatoeba(words.data)), list(paragraphs(words.data))
    for name, made in (
        ("pairs", pairs),
        ("groups", groups(words.data)),
        ("long", long_groups(words.data)),
        ("questions", questions(pairs, words.data)),
        ("paragraphs", wikipedia),
        ("cloze", cloze(wikipedia)),
    ):
        kept = list(made)
        write_jsonl(words.output / f"base-{name}.jsonl", kept)
        languages = Counter(language for group in kept for language in group.langs)
        print(f"base-{name}.jsonl: {len(kept):,} groups, {len(languages)} languages", flush=True)


if __name__ == "__main__":
    main()
