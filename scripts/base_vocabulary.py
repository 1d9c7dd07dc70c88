"""A model whose vocabulary has the pieces that some text uses, those that are worth most first.

    python scripts/base_vocabulary.py MODEL DATA OUTPUT [--report LANGUAGES.tsv]

The worth of a piece is its greatest share of the pieces of any language in the text of DATA (training text, also of
sets whose terms do not allow shipping weights: it is only counted), plus its share in the text that the tokenizer was
trained on, as its scores have it. Pieces of scripts that few languages share, or whose languages have little text, are
worth more, since nothing replaces them. Pieces of one letter are kept and come first, so nothing becomes unknown.
Pieces of five scripts are kept, too: their languages have little text, and much Burmese is written in Zawgyi, another
order of its letters, which no text of DATA is in. Where the model is packed, the first rows of its word table get more
bits than the others (scripts/models.py).

The report has the pieces per word of each language before and after.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import isoglot
from isoglot.data.groups import Group
from isoglot.data.readers import read
from isoglot.data.sets.catalogue import find
from isoglot.encoders.vocabulary import cut_to

SETS = (
    *("hornmt", "storybooks", "lowres-pairs", "tico-19-more", "oldi-seed", "nusax", "nusa-kalimat", "indian-parallel"),
    *("korean-bitext", "ud-pud", "aosp-strings", "mozilla-www", "wiki-apps-osm", "bible", "xcopa", "gatitos"),
    *("cldr-annotations", "opus-tatoeba-v2021-08-07", "tatoeba-pairs"),
)
OWN = ("base-long.jsonl", "base-paragraphs.jsonl")  # of scripts/base_texts.py, beside OUTPUT
PER_SET = 20_000  # sentences of a language that are counted of a set
COMMON = {"LATIN", "CYRILLIC", "CJK", "HANGUL", "HIRAGANA", "KATAKANA", ""}
WIDE = {"GREEK", "HEBREW", "THAI", "ARABIC", "DEVANAGARI"}
WORTH = {**dict.fromkeys(COMMON, 1.0), **dict.fromkeys(WIDE, 1.5)}  # of a script; 3 of any other
PRIOR = 30.0  # the tokenizer's share of a piece counts as that in one language of so many
KEPT = ("MYANMAR", "KHMER", "LAO", "TIBETAN", "ETHIOPIC")  # scripts whose pieces are kept
LITTLE = 20_000  # pieces of a language below which a piece that is there once tells little
SAMPLE = 2_000  # sentences of a language in the report

Samples = dict[str, list[str]]


def texts(data: Path, beside: Path) -> Iterator[tuple[str, str]]:
    """Language and text of all sentences that are counted."""
    sources = [find(name).source_in(data) for name in SETS]
    sources += [("jsonl", beside / name, {}) for name in OWN]
    for reader, path, options in sources:
        unknown = {"on_unknown_language": "skip"} if reader == "jsonl" else {}
        met: dict[str, int] = defaultdict(int)
        group: Group
        for group in read(reader, path, **options, **unknown):
            for language, text in zip(group.langs, group.texts, strict=True):
                met[language] += 1
                if met[language] <= PER_SET:
                    yield language, text


def script(piece: str) -> str:
    """The first word of the Unicode name of its first letter, such as LATIN; empty without letters."""
    letter = next((letter for letter in piece if letter.isalpha() and letter != "▁"), None)
    return unicodedata.name(letter, "?").split()[0] if letter else ""


def worths(counts: dict[str, NDArray[np.int64]], vocabulary: list[tuple[str, float]]) -> NDArray[np.float64]:
    """The worth (V,) of each piece, from its counts (V,) in each language."""
    worth = np.zeros(len(vocabulary))
    for counted in counts.values():
        worth = np.maximum(worth, np.maximum(counted - 0.5, 0) / max(int(counted.sum()), LITTLE))
    prior = np.exp([min(score, 0.0) if score else -np.inf for _, score in vocabulary])
    worth += PRIOR * prior / prior.sum()
    worth *= [WORTH.get(script(piece), 3.0) for piece, _ in vocabulary]
    return worth


def order(encoder: isoglot.Encoder, data: Path, beside: Path) -> tuple[list[int], Samples]:
    """The ids of the pieces that are kept, those worth most first, and the first sentences of each language."""
    tokenizer = encoder.tokenizer.backend_tokenizer
    vocabulary: list[tuple[str, float]] = json.loads(tokenizer.to_str())["model"]["vocab"]
    counts: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros(len(vocabulary), np.int64))
    waiting: Samples = defaultdict(list)
    samples: Samples = defaultdict(list)

    def count(language: str) -> None:
        encodings = tokenizer.encode_batch_fast(waiting.pop(language), add_special_tokens=False)
        ids = np.concatenate([np.array(encoding.ids, np.int64) for encoding in encodings])
        counts[language] += np.bincount(ids, minlength=len(vocabulary))

    for language, text in texts(data, beside):
        waiting[language].append(text)
        samples[language] += [text] if len(samples[language]) < SAMPLE else []
        if len(waiting[language]) == 4096:
            count(language)
    for language in [*waiting]:
        count(language)
    worth = worths(counts, vocabulary)
    single = np.array([len(piece.replace("▁", "")) <= 1 for piece, _ in vocabulary])
    worth[single] = np.inf
    kept = np.array([any(unicodedata.name(letter, "").startswith(KEPT) for letter in piece) for piece, _ in vocabulary])
    occurs = single | kept | (np.sum([*counts.values()], axis=0) > 0)
    return [piece for piece in np.argsort(-worth, kind="stable").tolist() if occurs[piece]], samples


def report(before: isoglot.Encoder, after: isoglot.Encoder, samples: Samples) -> Iterator[str]:
    """A line for each language: sentences, and pieces per word before and after."""
    yield "language\tsentences\tbefore\tafter\n"
    for language, sentences in sorted(samples.items()):
        count = max(1, sum(len(text.split()) for text in sentences))
        lengths = [one.tokenize(sentences, prompt="").lengths.sum() for one in (before, after)]
        shares = [(int(length) - 2 * len(sentences)) / count for length in lengths]
        yield f"{language}\t{len(sentences)}\t{shares[0]:.3f}\t{shares[1]:.3f}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--report", type=Path, help="a table of all languages")
    words = parser.parse_args()
    encoder = isoglot.load(words.model).trainable()
    pieces, samples = order(encoder, words.data, words.output.parent)
    smaller, rows = cut_to(encoder, set(pieces), first=pieces)
    smaller.save(words.output)
    print(f"{len(rows):,} pieces: {words.output}")
    if words.report:
        words.report.write_text("".join(report(encoder, smaller, samples)), encoding="utf-8")


if __name__ == "__main__":
    main()
