"""Makes the text bundled with isoglot, which `make demo` trains on, evaluates on and mines.

    python scripts/bundle_demo.py --shared-data DATA [--output src/isoglot/bundled]

DATA holds `opus-tatoeba-v2021-08-07/<aaa>-<bbb>/<aaa>.txt.xz` (sentence pairs) and
`tatoeba-laser/v1/tatoeba.<xxx>-eng.<xxx>` (the test of LASER). Written are

    pairs/<aaa>-<bbb>.tsv.xz             training pairs; the first line names the languages
    dev/tatoeba.<xxx>-eng.<xxx>.xz       held-out pairs, to choose settings on
    test/tatoeba.<xxx>-eng.<xxx>.xz      the official test of the same languages, unchanged
    mine/<xxx>-eng.{<xxx>.xz,eng.xz,gold.tsv}  two shuffled files, and which lines of them are translations
    ATTRIBUTION.md                       where the text is from, under which licence, and what was changed

Every choice is made by the hash of a sentence, so the same DATA gives the same bytes. No
sentence of dev, in any language, is in the training pairs, and none of the test is in either, both by the rule of
`isoglot.data.filters`; the script ends with an error if one is left.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from string import Template

from isoglot.data.files import atomic_write, read_lines
from isoglot.data.filters import normalise

Pair = tuple[str, str]
Corpus = dict[tuple[str, str], list[Pair]]

_CODES = "ara bul cmn deu ell fin fra heb hin hun jpn kor rus spa tur"  # as the files of the test have them
LANGUAGES = tuple(_CODES.split())
SUPPORT: tuple[str, ...] = ()  # trained on, never tested
MINED = ("deu", "jpn", "tur")
RENAMED = {"cmn": "zho"}  # test -> training data, whose Chinese is in both scripts
DEV_SIZE, DEV_SHARE = 400, 6  # held-out pairs of a language: at most 400, and at most a sixth of what there is
GOLD, ALONE, OTHERS = 600, 400, 900  # mining: pairs, sentences without their translation, foreign distractors
ATTRIBUTION = Path(__file__).with_name("bundle_attribution.md")


def main() -> None:
    """Make the whole bundle, print what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared-data", type=Path, required=True, help="folder with the two sources")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1] / "src" / "isoglot" / "bundled")
    options = parser.parse_args()
    pairs = read_pairs(options.shared_data / "opus-tatoeba-v2021-08-07")
    test = {code: read_test(options.shared_data / "tatoeba-laser" / "v1", code) for code in LANGUAGES}
    dev = {code: choose_dev(pairs[RENAMED.get(code, code), "eng"]) for code in LANGUAGES}
    train = {key: [*without(rows, _sentences(dev, test))] for key, rows in pairs.items()}
    leaks = sum(
        len(rows) - sum(1 for _ in without(rows, _sentences(test))) for rows in [*train.values(), *dev.values()]
    )
    if leaks:
        raise SystemExit(f"{leaks} pairs of training or dev text hold a sentence of the test")
    write(options.output, train, dev, test)
    total = sum(file.stat().st_size for file in options.output.rglob("*") if file.is_file())
    print(
        f"{sum(map(len, pairs.values()))} pairs read, {sum(map(len, train.values()))} kept to train on, "
        f"{sum(map(len, dev.values()))} held out; {leaks} share a sentence with the test; {total / 1e6:.2f} MB in all"
    )


def read_pairs(folder: Path) -> Corpus:
    """The pairs of every two known languages, English second, each pair once."""
    known = {RENAMED.get(code, code) for code in (*LANGUAGES, *SUPPORT)} | {"eng"}
    corpus: Corpus = {}
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        first, second = path.name.split("-")
        if not {first, second} <= known:
            continue
        sides = (_lines(path / f"{code}.txt.xz") for code in (first, second))
        rows = [pair for pair in zip(*sides, strict=True) if not any("\t" in text or "\r" in text for text in pair)]
        if first == "eng":
            first, second, rows = second, first, [(other, english) for english, other in rows]
        corpus[first, second] = list(dict.fromkeys(rows))
    return corpus


def read_test(folder: Path, code: str) -> list[Pair]:
    """The official test pairs of a language, English second."""
    sides = (_lines(folder / f"tatoeba.{code}-eng.{side}") for side in (code, "eng"))
    return list(zip(*sides, strict=True))


def choose_dev(rows: Sequence[Pair]) -> list[Pair]:
    """Held-out pairs, no sentence of which occurs twice in either language."""
    return _distinct(sorted(rows, key=_draw("dev")))[: min(DEV_SIZE, len(rows) // DEV_SHARE)]


def without(rows: Iterable[Pair], sentences: frozenset[str]) -> Iterator[Pair]:
    """The pairs neither side of which is, normalised, among the sentences."""
    return (pair for pair in rows if sentences.isdisjoint(map(normalise, pair)))


def write(folder: Path, train: Corpus, dev: dict[str, list[Pair]], test: dict[str, list[Pair]]) -> None:
    """Every file of the bundle."""
    for (first, second), rows in train.items():
        # Sorted by the side that most files share, neighbours are alike and compress well.
        rows = sorted(rows, key=lambda pair: (pair[1], pair[0]))
        _write(folder / "pairs" / f"{first}-{second}.tsv.xz", ["\t".join(row) for row in [(first, second), *rows]])
    for name, sets in (("dev", dev), ("test", test)):
        for code, rows in sets.items():
            for side, column in ((code, 0), ("eng", 1)):
                _write(folder / name / f"tatoeba.{code}-eng.{side}.xz", [row[column] for row in rows])
    for code in MINED:
        others = [pair[1] for other, rows in test.items() if other != code for pair in rows]
        write_mining(folder / "mine", code, test[code], others)
    counts = {f"{first}-{second}": len(rows) for (first, second), rows in train.items()}
    table = "\n".join(f"| {name} | {count:,} |" for name, count in sorted(counts.items()))
    text = Template(ATTRIBUTION.read_text("utf-8")).substitute(
        table=table,
        total=f"{sum(counts.values()):,}",
        languages=", ".join(LANGUAGES),
        mined=", ".join(MINED),
        dev=f"{sum(map(len, dev.values())):,}",
        test=f"{sum(map(len, test.values())):,}",
        gold=GOLD,
        alone=ALONE,
        others=OTHERS,
    )
    with atomic_write(folder / "ATTRIBUTION.md") as stream:
        stream.write(text)


def write_mining(folder: Path, code: str, rows: Sequence[Pair], others: Sequence[str]) -> None:
    """Two files in no order, and the numbers from 1 of the lines that are translations of each other.

    The foreign file holds the foreign side of GOLD + ALONE test pairs; the English one the English of the GOLD only,
    and OTHERS, English sentences from the tests of the other languages.
    """
    rows = _distinct(sorted(rows, key=_draw("mine")))
    taken = {normalise(english) for _, english in rows}
    spare = [text for text in dict.fromkeys(sorted(others, key=_draw("mine"))) if normalise(text) not in taken]
    foreign = sorted((pair[0] for pair in rows[: GOLD + ALONE]), key=_draw("order"))
    english = sorted([*(pair[1] for pair in rows[:GOLD]), *spare[:OTHERS]], key=_draw("order"))
    gold = sorted((foreign.index(pair[0]) + 1, english.index(pair[1]) + 1) for pair in rows[:GOLD])
    _write(folder / f"{code}-eng.{code}.xz", foreign)
    _write(folder / f"{code}-eng.eng.xz", english)
    with atomic_write(folder / f"{code}-eng.gold.tsv") as stream:
        stream.writelines(f"{first}\t{second}\n" for first, second in [(code, "eng"), *gold])


def _distinct(rows: Iterable[Pair]) -> list[Pair]:
    """The pairs that share no sentence with one before them, as normalised."""
    seen: set[str] = set()
    kept = []
    for pair in rows:
        keys = {normalise(text) for text in pair}
        if keys.isdisjoint(seen):
            seen |= keys
            kept.append(pair)
    return kept


def _draw(purpose: str) -> Callable[[str | Pair], bytes]:
    """A sort key that puts sentences or pairs in an order as good as random, another one for every purpose."""
    return lambda item: blake2b(f"{purpose}\0{item}".encode(), digest_size=16).digest()


def _sentences(*sets: dict[str, list[Pair]]) -> frozenset[str]:
    return frozenset(normalise(text) for rows in sets for pairs in rows.values() for pair in pairs for text in pair)


def _lines(path: Path) -> Iterator[str]:
    return (text for _, text in read_lines(path))


def _write(path: Path, lines: Iterable[str]) -> None:
    text = "".join(f"{line}\n" for line in lines).encode()
    with atomic_write(path, binary=True) as stream:
        stream.write(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
