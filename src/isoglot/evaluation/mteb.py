"""Scores in the layout of MTEB, for its tools: `<model>/<revision>/<Task>.json` and `model_meta.json`.

Only tasks whose data and protocol are MTEB's are written, only subsets of as many items as MTEB has, and only with
MTEB's main score. Unknown facts are null: times, dates and MTEB's version, since MTEB did not run. The revision of the
data is `revision_not_applicable`, since they were read from the user's files; it also distinguishes files of an earlier
evaluation from those written by MTEB. The format is that of `TaskResult` in mteb 2 (Muennighoff et al. 2023, "MTEB:
Massive Text Embedding Benchmark").

A task is in the table `MTEB` only when its texts are MTEB's too. The numbers of items, and the lengths of the texts by
which that was verified, are those that mteb 2.26 gives in its `descriptive_stats`:

- `sts12` to `sts16`: equal; MTEB's copy is SentEval's text, in words between blanks and in lower case;
- `sts17`: equal except for about a dozen blanks around Arabic sentences; `tatoeba`: equal except for a line feed at the
  end of each of MTEB's sentences; `sts-b-multi` and `sib-200`: equal;
- `sts22`, `mtop`, `sts-b/mteb`, `sick-r/mteb` and `bucc/mteb...` read MTEB's own copy, or the files it was made of;
- not listed are `sts-b`, whose text MTEB has as it was before SentEval took it, and `sick-r`, which is the test part
  of what MTEB takes whole (4,927 of 9,927 pairs).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langcodes import Language

from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical, is_language
from isoglot.evaluation.tasks.retrieval import LASER_112
from isoglot.score import Results, Score

_SIB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
# MTEB takes SIB-200 in one script only for each language that the set has in two.
_NOT_IN_SIB = ("ace_Arab", "arb_Arab", "bjn_Arab", "kas_Arab", "knc_Arab", "min_Arab", "taq_Latn", "zho_Hans")
# Values of the data's revision and of the fields about a run of MTEB.
_NO_RUN = {"dataset_revision": "revision_not_applicable"} | dict.fromkeys(
    ("mteb_version", "evaluation_time", "kg_co2_emissions", "date")
)
# What is not known of a model, and what is the same for all.
_UNKNOWN = "loader release_date languages n_parameters memory_usage_mb embed_dim license open_weights "
_UNKNOWN += "public_training_code public_training_data use_instructions training_datasets"
_ABOUT_MODEL: dict[str, Any] = {"framework": [], "similarity_fn_name": "cosine", **dict.fromkeys(_UNKNOWN.split())}
# Languages for which MTEB's script is not the likely script of CLDR.
_SCRIPTS = {"kor": "Hang", "orv": "Cyrl", "max": "Deva", "ber": "Tfng"}
_BITEXT = {name: name for name in ("f1", "accuracy", "precision", "recall")}
_CORRELATIONS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}
_TOPICS = {"accuracy": "accuracy", "f1/macro": "f1"}


@dataclass(frozen=True, slots=True)
class MtebTask:
    """The MTEB counterpart of a task: its name, the split, and its metrics as MTEB's fields, the main one first.

    `subsets` are MTEB's, each with its languages; empty where they are named as ours are, by language and script.
    `sizes` are the items of a subset in the split, `size` those of every other subset.
    """

    name: str
    fields: Mapping[str, str]
    size: int = 0
    split: str = "test"
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def items(self, subset: str) -> int:
        """How many items MTEB's subset has."""
        return self.sizes.get(subset, self.size)

    @property
    def main(self) -> str:
        """MTEB's main field."""
        return next(iter(self.fields.values()))


def _tagged(code: str) -> str:
    """A language as MTEB writes it: a code of three letters and the script, `deu-Latn`."""
    language = Language.get(code)
    name = code if len(code) == 3 else "cmn" if code == "zh" else language.to_alpha3()
    return f"{name}-{_SCRIPTS.get(name) or language.maximize().script}"


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """Subsets such as `de-en`, with their languages; `en-en` is of one."""
    return {name: tuple(dict.fromkeys(map(_tagged, name.split("-")))) for name in text.split()}


def _sizes(text: str, ending: str = "") -> dict[str, int]:
    """Subsets and their items, one after the other."""
    words = text.split()
    return {name + ending: int(size) for name, size in zip(words[::2], words[1::2], strict=True)}


_TATOEBA = _pairs(" ".join(f"{code}-eng" for code in LASER_112))
_TATOEBA_SIZES = _sizes(
    "amh 168 ang 134 arq 911 arz 477 ast 127 awa 231 bos 354 ceb 600 cha 137 csb 253 cym 575 dsb 479 fao 262 fry "
    "173 gla 829 gsw 117 hsb 483 hye 742 jav 205 kat 746 kaz 575 khm 722 kur 410 mal 687 max 284 mon 440 nov 257 "
    "orv 835 pms 525 slv 823 swg 112 swh 390 tam 307 tel 234 tha 548 tuk 203 tzl 104 uzb 428 xho 142 yid 848",
    "-eng",
)
_STS17 = _pairs("ko-ko ar-ar en-ar en-de en-en en-tr es-en es-es fr-en it-en nl-en")
_STS22_V2_SIZES = _sizes(
    "ar 193 de 514 de-en 158 de-fr 74 de-pl 28 en 197 es 200 es-en 365 es-it 212 fr 101 fr-pl 8 it 407 pl 182 "
    "pl-en 48 ru 265 tr 208 zh 637 zh-en 161"
)
_STS22_SIZES = _sizes(
    "ar 195 de 514 de-en 160 de-fr 75 de-pl 28 en 197 es 205 es-en 374 es-it 218 fr 104 fr-pl 8 it 408 pl 187 "
    "pl-en 49 ru 271 tr 211 zh 656 zh-en 168"
)
_STS22 = _pairs(" ".join(_STS22_SIZES))
_STSB = _pairs("en de es fr it nl pl pt ru zh")
_MTOP_SIZES = _sizes("de 3549 en 4386 es 2998 fr 3193 hi 2789 th 2765")
_BUCC_SIZES = _sizes("de-en 9580 fr-en 9086 ru-en 14435 zh-en 1899")
_BUCC = _pairs(" ".join(_BUCC_SIZES))
_ENGLISH = {"default": ("eng-Latn",)}
_ENGLISH_SIZES = {12: 3108, 13: 1500, 14: 3750, 15: 3000, 16: 1186}
_ALL = {f"{kind}/all": name for kind, name in _CORRELATIONS.items()}
_XX_EN = {f"{name}/xx-en": name for name in ("f1", "accuracy")}
_MULTI = "STSBenchmarkMultilingualSTS"

MTEB: dict[str, MtebTask] = {
    "tatoeba": MtebTask("Tatoeba", _XX_EN, 1000, subsets=_TATOEBA, sizes=_TATOEBA_SIZES),
    "bucc/mteb": MtebTask("BUCC", _BITEXT, subsets=_BUCC, sizes=_BUCC_SIZES),
    "bucc/mteb-v2": MtebTask("BUCC.v2", _BITEXT, subsets=_BUCC, sizes=_BUCC_SIZES),
    **{f"sts{year}": MtebTask(f"STS{year}", _ALL, size, subsets=_ENGLISH) for year, size in _ENGLISH_SIZES.items()},
    "sts-b/mteb": MtebTask("STSBenchmark", _ALL, 1379, subsets=_ENGLISH),
    "sick-r/mteb": MtebTask("SICK-R", _ALL, 9927, subsets=_ENGLISH),
    "sts17": MtebTask("STS17", _CORRELATIONS, 250, subsets=_STS17, sizes={"ko-ko": 2846}),
    "sts22": MtebTask("STS22.v2", _CORRELATIONS, subsets=_STS22, sizes=_STS22_V2_SIZES),
    "sts22/v1": MtebTask("STS22", _CORRELATIONS, subsets=_STS22, sizes=_STS22_SIZES),
    "sts-b-multi": MtebTask(_MULTI, _CORRELATIONS, 1379, subsets=_STSB),
    "sts-b-multi/dev": MtebTask(_MULTI, _CORRELATIONS, 1500, "dev", _STSB),
    "mtop": MtebTask("MTOPDomainClassification", _TOPICS, subsets=_pairs(" ".join(_MTOP_SIZES)), sizes=_MTOP_SIZES),
    "sib-200": MtebTask("SIB200Classification", _TOPICS, 204),
}


def write_mteb(folder: Path, results: Results) -> list[Path]:
    """Write a file for each task of MTEB with scores, and one about the model; return the files written.

    Left out are subsets that MTEB does not have or that have another number of items there, those without its main
    score, and averages; without any other, nothing is written. The output of earlier calls below `folder`, for any
    model, is removed first; all other files stay. The model is called `isoglot/` and the last part of its name (of
    RUN/model, RUN), since MTEB requires two parts; its revision is its fingerprint, or that of its vectors. The same
    results give the same bytes.
    """
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task, at in MTEB.items():
        if entries := _entries(at, [score for score in results if score.task == task and not score.over]):
            tables.setdefault(at.name, {})[at.split] = entries
    _remove_earlier(folder)
    if not tables:
        return []
    path = Path(results.model)
    name = f"isoglot/{path.parent.name if path.name == 'model' and path.parent.name else path.name}"
    fingerprint = str(results.settings.get("encoder") or results.settings.get("vectors") or "")
    revision, length = fingerprint[:16] or "no_revision_available", results.settings.get("max_length")
    model = {"name": name, "revision": revision, "max_tokens": length if isinstance(length, int) else None}
    inner = folder / name.replace("/", "__") / revision
    files = {f"{task}.json": {"task_name": task, "scores": splits, **_NO_RUN} for task, splits in tables.items()}
    files["model_meta.json"] = model | _ABOUT_MODEL
    for file, content in files.items():
        with atomic_write(inner / file) as stream:
            stream.write(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return [inner / file for file in files]


def _remove_earlier(folder: Path) -> None:
    """Remove what `write_mteb` wrote before, and the folders that this leaves empty.

    MTEB itself names its version, and more about a model.
    """
    for path in sorted(folder.glob("isoglot__*/*/*.json")):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        ours = isinstance(content, dict) and content.items() >= _NO_RUN.items()
        if path.name == "model_meta.json":
            ours = isinstance(content, dict) and content.keys() == {"name", "revision", "max_tokens", *_ABOUT_MODEL}
        if ours:
            path.unlink()
            with suppress(OSError):  # the folder contains other files
                path.parent.rmdir()
                path.parent.parent.rmdir()


def _entries(at: MtebTask, scores: Sequence[Score]) -> list[dict[str, Any]]:
    values: dict[str, dict[str, float]] = {}
    for score in scores:
        subset = _subset(at, score.subset)
        if subset is not None and score.metric in at.fields and score.n == at.items(subset):
            values.setdefault(subset, {})[at.fields[score.metric]] = score.value
    return [
        {
            **metrics,
            "main_score": metrics[at.main],
            "hf_subset": subset,
            "languages": list(at.subsets[subset]) if at.subsets else [subset.replace("_", "-")],
        }
        for subset, metrics in values.items()
        if at.main in metrics
    ]


def _subset(at: MtebTask, ours: str) -> str | None:
    """MTEB's subset of the same languages; ours may be in another order and another system of codes."""
    if not at.subsets:
        return ours if _SIB.fullmatch(ours) and ours not in _NOT_IN_SIB else None
    if ours in at.subsets:
        return ours
    languages = _without_scripts(ours.split("-"))
    same = [name for name, codes in at.subsets.items() if _without_scripts([code[:3] for code in codes]) == languages]
    return same[0] if languages and len(same) == 1 else None


def _without_scripts(codes: Sequence[str]) -> frozenset[str]:
    """Languages without scripts, none if one of the codes is not a language (`4b`)."""
    if not all(map(is_language, codes)):
        return frozenset()
    return frozenset(canonical(code).partition("_")[0] for code in codes)
