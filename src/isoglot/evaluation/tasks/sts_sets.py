"""The similarity sets in several languages: which files each has, and the averages that papers report.

Subsets are named by house codes, English last, whatever the files are called: track 2 (`ar-en`) and MTEB's `en-ar` are
both `ara-eng`, and sentence 1 is always in the language named first. Special cases are data here: in STS 2017 the
English sentence stands first in tracks 2, 4b and 6 and second in 4a, and half of track 6 has no gold score.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from isoglot.data.languages import canonical, is_language
from isoglot.errors import EvaluationError
from isoglot.evaluation.exports import export
from isoglot.evaluation.files import find
from isoglot.evaluation.tasks.sts import Pairs, Read, Sts
from isoglot.evaluation.tasks.sts_files import exported, read_export, read_quoted, read_tsv, read_two_files


def _codes(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TRACKS_5 = _codes("ara-ara ara-eng spa-spa spa-eng tur-eng")
EXTENDED_10 = _codes("eng-eng ara-ara spa-spa ara-eng deu-eng tur-eng spa-eng fra-eng ita-eng nld-eng")
MTEB_11 = (*EXTENDED_10, "kor-kor")
MPCL_17 = _codes(
    "eng deu spa pol tur ara rus zho fra deu-eng spa-eng ita pol-eng zho-eng spa-ita deu-fra deu-pol"
)  # without fra-pol, whose 8 pairs rank by chance

# Track, its languages in the file's name, whether the English sentence comes first against that name.
_TRACKS = (
    ("1", "ar-ar", False),
    ("2", "ar-en", True),
    ("3", "es-es", False),
    ("4a", "es-en", False),
    ("4b", "es-en", True),
    ("5", "en-en", False),
    ("6", "tr-en", True),
)
_STS17 = _codes("ar-ar en-ar es-es es-en en-en en-tr en-de fr-en it-en nl-en ko-ko")
_STS22 = _codes("en de es pl tr ar ru zh fr de-en es-en it pl-en zh-en es-it de-fr de-pl fr-pl")
_STS22_SCALE = (1.0, 4.0)
_STSB = _codes("de en es fr it ja nl pl pt ru zh")

_STS17_PLACES = ("sts17-official/", "", "sts17/", "Sts2017/", "data/Sts2017/")
_STS17_COPIES = ("sts17-crosslingual-sts", "STS17", "sts17")
_STSB_PLACES = ("stsb-multi-mt", "", "stsb-multi-mt/data", "stsb_multi_mt", "stsb_multi_mt/data", "data")
_STSB_COPIES = ("stsb_multi_mt", "STSBenchmarkMultilingualSTS")
_STSB_NAME = re.compile(r"stsb-(?P<code>[A-Za-z_]+)-(?P<split>[a-z]+)\.csv(?:\.(?:gz|xz|bz2))?")
_TSV_NAME = re.compile(r"(?P<name>[^.]+(?:\.[^.]+)*?)(?:\.(?P<codes>[^.]+))?\.tsv(?:\.(?:gz|xz|bz2))?")


def find_sts17(data: Path) -> dict[str, Read]:
    """The tracks of SemEval 2017 from their files, and the subsets that only MTEB's copy has from that."""
    readers: dict[str, Read] = {}
    for track, languages, english_first in _TRACKS:
        stem = f"track{track}.{languages}.txt"
        text = find(data, [f"{place}STS2017.eval.v1.1" for place in _STS17_PLACES], f"STS.input.{stem}")
        if text is not None:
            # Beside the sentences, or in the folder of gold scores next to theirs.
            gold = find(text.parent, ("", "../STS2017.gs"), f"STS.gs.{stem}") or text.parent / f"STS.gs.{stem}"
            subset = f"{_subset(languages)[0]}{'-4b' if track == '4b' else ''}"
            readers[subset] = partial(read_two_files, text, gold, swap=english_first, unlabelled_tail=track == "6")
    for languages in _STS17:
        subset, swap = _subset(languages)
        if subset not in readers and (paths := export(data, _STS17_COPIES, split="test", subset=languages)):
            readers[subset] = partial(read_export, paths, swap=swap)
    return readers


def find_sts22(data: Path) -> dict[str, Read]:
    """Revision 2 of MTEB's copy, from which pairs with an empty text are gone."""
    advice = "this is revision 1 of the set: evaluate it as sts22/v1, or fetch revision 2 (STS22.v2)"
    return {
        subset: partial(read_export, paths, scale=_STS22_SCALE, swap=swap, advice=advice)
        for subset, (paths, swap) in _sts22(data, ("STS22.v2", "sts22-crosslingual-sts")).items()
    }


def find_sts22_v1(data: Path) -> dict[str, Read]:
    """Revision 1 of MTEB's copy, told by its empty texts, which stay in."""
    found = _sts22(data, ("STS22", "sts22-crosslingual-sts"))
    everything = [path for paths, _ in found.values() for path in paths]
    return {subset: partial(_read_sts22_v1, paths, everything, swap=swap) for subset, (paths, swap) in found.items()}


def find_stsb(data: Path, split: str) -> dict[str, Read]:
    """The translations of the STS benchmark: `stsb-<xx>-<split>.csv`, or MTEB's copy of them."""
    for place in _STSB_PLACES:
        names = {path: _STSB_NAME.fullmatch(path.name) for path in sorted((data / place).glob("stsb-*"), reverse=True)}
        found = {canonical(name["code"]): path for path, name in names.items() if name and name["split"] == split}
        if found:
            return {code: partial(read_quoted, found[code]) for code in sorted(found)}
    copies = {canonical(code): export(data, _STSB_COPIES, split=split, subset=code) for code in _STSB}
    return {
        code: partial(read_export, copies[code], gold="similarity_score") for code in sorted(copies) if copies[code]
    }


def find_tsv(data: Path) -> dict[str, Read]:
    """Tables of one's own: `sts.tsv` or `sts.<lang>[-<lang>].tsv` in the folder, and any in its folder `sts`."""
    inside = sorted([*data.glob("sts.*"), *data.glob("sts/*")])
    named = {path: _TSV_NAME.fullmatch(path.name) for path in ([data] if data.is_file() else inside)}
    found: dict[str, tuple[Path, bool]] = {}
    for path, name in named.items():
        if name is not None:
            subset, swap = _subset(_known(name["codes"] or "und", path))
            if subset in found:
                raise EvaluationError(f"sts {subset}: both {found[subset][0]} and {path} are of it; keep one there")
            found[subset] = (path, swap)
    return {subset: partial(read_tsv, path, swap=swap) for subset, (path, swap) in sorted(found.items())}


def _subset(languages: str) -> tuple[str, bool]:
    """The name of a subset in house codes, and whether its sentences stand the other way round in the file."""
    codes = [canonical(code) for code in languages.split("-")]
    swap = codes[0] == "eng" != codes[-1]
    return "-".join(reversed(codes) if swap else codes), swap


def _known(languages: str, path: Path) -> str:
    codes = languages.split("-")
    if len(codes) > 2 or not all(map(is_language, codes)):
        raise EvaluationError(
            f"sts: {path}: {languages!r} names no languages; call the file <name>.<lang>.tsv, or "
            "<name>.<lang>-<lang>.tsv for pairs across languages, or sts.tsv"
        )
    return languages


def _sts22(data: Path, names: Sequence[str]) -> dict[str, tuple[list[Path], bool]]:
    found: dict[str, tuple[list[Path], bool]] = {}
    for languages in _STS22:
        subset, swap = _subset(languages)
        if paths := export(data, names, split="test", subset=languages):
            found[subset] = (paths, swap)
    return found


def _read_sts22_v1(paths: Sequence[Path], everything: Sequence[Path], *, where: str, swap: bool) -> Pairs:
    texts = (text for _, one, other, _ in exported(everything, where=where) for text in (one, other))
    if not any(isinstance(text, str) and not text.strip() for text in texts):
        raise EvaluationError(
            f"{where}: no text of {everything[0]} and the other subsets is empty, so this is not revision 1 of the "
            "set; evaluate it as sts22"
        )
    return read_export(paths, where=where, scale=_STS22_SCALE, swap=swap, empty=True)


_EXPORT = "https://huggingface.co/datasets/mteb"
_STS17_LISTS: Mapping[str, tuple[str, ...]] = {
    "tracks-5": TRACKS_5,
    "extended-10": EXTENDED_10,
    "mteb-11": MTEB_11,
}
STS17_NEEDS = (
    "folders STS2017.eval.v1.1 and STS2017.gs of SemEval 2017 task 1, or "
    f"{_EXPORT}/sts17-crosslingual-sts in a folder sts17-crosslingual-sts"
)
_STS22_NEEDS = f"{_EXPORT}/sts22-crosslingual-sts in a folder sts22-crosslingual-sts or"
_STSB_NEEDS = (
    "files stsb-<xx>-{}.csv (plain or .xz), as in data of https://github.com/PhilipMay/stsb-multi-mt, or "
    f"{_EXPORT}/stsb_multi_mt in a folder stsb_multi_mt"
)

MULTILINGUAL: dict[str, Sts] = {
    task.name: task
    for task in (
        Sts("sts17", STS17_NEEDS, find_sts17, _STS17_LISTS),
        Sts("sts22", f"{_STS22_NEEDS} STS22.v2 (revision 2)", find_sts22, {"mpcl-17": MPCL_17}),
        Sts("sts22/v1", f"{_STS22_NEEDS} STS22 (revision 1)", find_sts22_v1, {"mpcl-17": MPCL_17}),
        Sts("sts-b-multi", _STSB_NEEDS.format("test"), partial(find_stsb, split="test")),
        Sts("sts-b-multi/dev", _STSB_NEEDS.format("dev"), partial(find_stsb, split="dev")),
        Sts(
            "sts",
            "a table sts.tsv, sts.<lang>[-<lang>].tsv or sts/<name>.<lang>[-<lang>].tsv with the columns sentence1, "
            "sentence2, score",
            find_tsv,
        ),
    )
}
