"""The texts of `xsim`, the same line by line in many languages: finding and reading the public sets and one's own.

What is special here: a language may have more than one text, each for certain partners. TICO-19 corrected its English
for some languages, so `en` there is another file with each of them. Everywhere else one text serves all partners.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isoglot.data.readers.aligned import split_name
from isoglot.errors import EvaluationError
from isoglot.evaluation.codes import among
from isoglot.evaluation.files import lines
from isoglot.evaluation.tasks import sib

# code -> the partner that a text is for ("" for all others) -> part of the text -> file
Found = dict[str, dict[str, dict[str, Path]]]

ENGLISH = {"en", "eng", "eng_Latn"}
_FLORES = r"[a-z]{3}_[A-Z][a-z]{3}"
_COMPRESSED = r"(?:\.(?:gz|xz|bz2))?"


@dataclass(frozen=True, slots=True)
class Texts:
    """One set: where its files are met below the data folder, and how they are read.

    The first of the `places` that has files of the set is the only one read. `patterns` are matched against paths
    relative to a place; their groups are `code` and, where the set has them, `partner` and `part`. Without patterns any
    file `<name>.<code>[.txt]` or `<code>[.txt]` counts. All `parts` of a text must be there and are read in their
    order. With `numbered`, files are SIB-200's quoted tables, and sentences meet by their `index_id` instead of their
    line.
    """

    name: str
    needs: str
    places: tuple[str, ...]
    glob: str
    patterns: tuple[str, ...] = ()
    parts: tuple[str, ...] = ("",)
    numbered: bool = False
    carriage_returns: bool = False

    def find(self, data: Path, *, where: str, languages: Sequence[str] = ()) -> Found:
        """The files of the wanted languages and of English, in the order of their codes; none of a missing set.

        A code is the file's, with `_` for `-` (`zho_CN`). Raises `EvaluationError`, opened by `where`, for two names of
        files in a folder of one's own, `CorpusError` for a language that does not exist.
        """
        for place in self.places:
            found: Found = {}
            names: dict[str, Path] = {}
            # Reversed, so that of one text stored both ways the plain file, which sorts first, is the one kept.
            for path in sorted((data / place).glob(self.glob), reverse=True):
                if groups := self._match(path, data / place):
                    code, partner = (groups.get(name, "").replace("-", "_") for name in ("code", "partner"))
                    found.setdefault(code, {}).setdefault(partner, {})[groups.get("part", "")] = path
                    names[groups.get("name", "")] = path
            if found:
                _one_name(list(names.values()), where)
                return {code: found[code] for code in sorted(found) if code in ENGLISH or among(code, languages)}
        return {}

    def files(self, found: Found, code: str, *, partner: str, where: str) -> tuple[Path, ...]:
        """The files of a language's text, for pairs with `partner`.

        Raises `EvaluationError`, opened by `where`, when one is not there.
        """
        versions = found[code]
        parts = versions.get(partner, versions.get("", {}))
        missing = [part for part in self.parts if part not in parts]
        if missing:
            there = next(iter(parts.values()), next(iter(next(iter(versions.values())).values())))
            lacks = f"its {missing[0]}" if missing[0] else f"its text for {partner}"
            raise EvaluationError(f"{where}, language {code}: beside {there}, {lacks} is missing; add it")
        return tuple(parts[part] for part in self.parts)

    def read(self, files: Sequence[Path], *, where: str) -> dict[int, str]:
        """The sentences of a text by their line or `index_id`, ascending.

        Raises `EvaluationError`, opened by `where`, for an unreadable or empty line, a carriage return (but in sets
        that are published with them), and in tables for a bad header, row or id.
        """
        if not self.numbered:
            texts = (
                text for file in files for text in lines(file, where=where, carriage_returns=self.carriage_returns)
            )
            return dict(enumerate(texts, 1))
        sentences: dict[int, str] = {}
        for file in files:
            for row in sib.read_table(file, where=where):
                if row.number in sentences:
                    raise EvaluationError(
                        f"{where}: {file}:{row.line}: index_id {row.number} is of another split too; fetch both again"
                    )
                sentences[row.number] = row.text
        return dict(sorted(sentences.items()))

    def origins(self, files: Sequence[Path], numbers: Iterable[int]) -> dict[int, str]:
        """Where (`file:line`) stands what `read` has under these numbers. Tables are read once more for it."""
        if not self.numbered:
            return {number: f"{files[0]}:{number}" for number in numbers}
        return {row.number: f"{file}:{row.line}" for file in files for row in sib.read_table(file, where="")}

    def align(
        self,
        texts: tuple[Mapping[int, str], Mapping[int, str]],
        *,
        files: tuple[Sequence[Path], Sequence[Path]],
        where: str,
    ) -> None:
        """Raise `EvaluationError`, opened by `where`, unless both texts have the same lines, or the same ids."""
        if texts[0].keys() == texts[1].keys():
            return
        first = min(texts[0].keys() ^ texts[1].keys())
        file, _, line = self.origins(files[first in texts[1]], [first])[first].rpartition(":")
        unit = f"index_id {first} in line {line}" if self.numbered else f"line {line}"
        names = [part[0].parent if len(part) > 1 else part[0] for part in files]
        raise EvaluationError(
            f"{where}: {names[0]} has {len(texts[0])} sentences and {names[1]} has {len(texts[1])}; the first without "
            f"a partner is {unit} of {file}; fetch both again"
        )

    def _match(self, path: Path, folder: Path) -> Mapping[str, str]:
        if not self.patterns:
            stem, code = split_name(path.name)
            return {"name": stem, "code": code} if code is not None else {}
        name = path.relative_to(folder).as_posix()
        match = next(filter(None, (re.fullmatch(pattern, name) for pattern in self.patterns)), None)
        return match.groupdict() if match else {}


def _one_name(files: Sequence[Path], where: str) -> None:
    """Files that differ in more than their language are no one set; `files` has one of each name."""
    if len(files) > 1:
        raise EvaluationError(
            f"{where}: {files[0].parent} holds more than one set, such as {files[0].name} and {files[1].name}; keep "
            "the files of one set there"
        )


def _flores(part: str) -> Texts:
    return Texts(
        f"flores-{part}",
        f"files {part}/<xxx_Xxxx>.{part} of FLORES-200 (https://github.com/facebookresearch/flores), in the folder or "
        "in flores200_dataset/",
        places=("flores-200", "", "flores200_dataset", "flores200", "flores-200/flores200_dataset"),
        glob=f"{part}/*.{part}*",
        patterns=(rf"{part}/(?P<code>{_FLORES})\.{part}{_COMPRESSED}",),
    )


SETS: tuple[Texts, ...] = (
    _flores("devtest"),
    _flores("dev"),
    Texts(
        "ntrex",
        "files newstest2019-src.eng.txt and newstest2019-ref.<code>.txt of NTREX-128 "
        "(https://github.com/MicrosoftTranslator/NTREX), in the folder or in NTREX-128/",
        places=("ntrex-128/NTREX-128", "", "NTREX-128", "NTREX/NTREX-128"),
        glob="newstest2019-*.txt*",
        patterns=(rf"newstest2019-(?:src|ref)\.(?P<code>[^./]+)\.txt{_COMPRESSED}",),
        carriage_returns=True,
    ),
    Texts(
        "sib",
        "files <xxx_Xxxx>/train.tsv, dev.tsv and test.tsv of SIB-200 (https://github.com/dadelani/sib-200), in the "
        "folder or in annotated/, data/annotated/, sib-200/ or sib-200/annotated/",
        places=sib.PLACES,
        glob="*_*/*.tsv*",
        patterns=(rf"(?P<code>{_FLORES})/(?P<part>train|dev|test)\.tsv{_COMPRESSED}",),
        parts=("train", "dev", "test"),
        numbered=True,
    ),
    Texts(
        "tico",
        "files en-<xx>/tico19-test.en and en-<xx>/tico19-test.<xx> of TICO-19 "
        "(https://github.com/Helsinki-NLP/OPUS-MT-testsets), in the folder or in tico-19/ or tico19/testsets/",
        places=("tico-19", "", "tico19", "tico19/testsets", "datasets/tico19/testsets"),
        glob="en-*/tico19-test.*",
        patterns=(
            rf"en-(?P<code>[^/.]+)/tico19-test\.(?P=code){_COMPRESSED}",
            rf"en-(?P<partner>[^/.]+)/tico19-test\.(?P<code>en){_COMPRESSED}",
        ),
    ),
    Texts(
        "own",
        "a folder xsim/ of line-aligned files <code>.txt or <name>.<code>, one for each language",
        places=("xsim",),
        glob="*",
    ),
)
