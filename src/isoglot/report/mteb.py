"""Results in the layout of MTEB, so that its tools read them: `<model>/<revision>/<Task>.json` and `model_meta.json`.

Only tasks whose protocol is MTEB's are written, under MTEB's names, and only those with MTEB's main score. What is
special here: nothing is claimed that is not known. Times and dates are null, MTEB's own version is null since none of
it ran, and the revision of the data is `revision_not_applicable`, as they were read from the user's files. The format
is that of `TaskResult` in mteb 2 (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical, is_language
from isoglot.evaluation.base import Score
from isoglot.report.scores import Results

# Languages as MTEB writes them: a code of three letters and the script.
_TWO_LETTERS = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "hi": "hin-Deva",
    "it": "ita-Latn",
    "ko": "kor-Hang",
    "nl": "nld-Latn",
    "pl": "pol-Latn",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "th": "tha-Thai",
    "tr": "tur-Latn",
    "zh": "cmn-Hans",
}
_TATOEBA_SCRIPTS = {
    "Arab": "ara arq arz pes uig urd",
    "Armn": "hye",
    "Beng": "ben",
    "Cyrl": "bel bul kaz mhr mkd mon orv rus srp tat ukr",
    "Deva": "awa hin mar max",
    "Ethi": "amh",
    "Geor": "kat",
    "Grek": "ell",
    "Hang": "kor",
    "Hans": "cmn wuu",
    "Hant": "yue",
    "Hebr": "heb yid",
    "Jpan": "jpn",
    "Khmr": "khm",
    "Mlym": "mal",
    "Taml": "tam",
    "Telu": "tel",
    "Tfng": "ber",
    "Thai": "tha",
    "Latn": "afr ang ast aze bos bre cat cbk ceb ces cha cor csb cym dan deu dsb dtp epo est eus fao fin fra fry gla "
    "gle glg gsw hrv hsb hun ido ile ina ind isl ita jav kab kur kzj lat lfn lit lvs nds nld nno nob nov oci pam pms "
    "pol por ron slk slv spa sqi swe swg swh tgl tuk tur tzl uzb vie war xho zsm",
}
_SIB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
# MTEB takes SIB-200 in one script only for each language that the set has in two.
_NOT_IN_SIB = ("ace_Arab", "arb_Arab", "bjn_Arab", "kas_Arab", "knc_Arab", "min_Arab", "taq_Latn", "zho_Hans")

_BITEXT = {"accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "f1"}
_CORRELATIONS = {"spearman": "cosine_spearman", "pearson": "cosine_pearson"}
_TOPICS = {"accuracy": "accuracy", "f1/macro": "f1"}


@dataclass(frozen=True, slots=True)
class MtebTask:
    """Where a task of ours stands with MTEB: its name, the split, its metrics as MTEB's fields, which is the main one.

    `subsets` are MTEB's, each with its languages; empty where they are named as ours are, by language and script.
    """

    name: str
    fields: Mapping[str, str]
    main: str
    split: str = "test"
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _pairs(text: str) -> dict[str, tuple[str, ...]]:
    """Subsets such as `de-en`, with their languages; `en-en` is of one."""
    return {name: tuple(dict.fromkeys(_TWO_LETTERS[code] for code in name.split("-"))) for name in text.split()}


_TATOEBA = {
    f"{code}-eng": (f"{code}-{script}", "eng-Latn")
    for script, codes in _TATOEBA_SCRIPTS.items()
    for code in codes.split()
}
_STS17 = _pairs("ko-ko ar-ar en-ar en-de en-en en-tr es-en es-es fr-en it-en nl-en")
_STS22 = _pairs("en de es pl tr ar ru zh fr de-en es-en it pl-en zh-en es-it de-fr de-pl fr-pl")
_STSB = _pairs("en de es fr it nl pl pt ru zh")
_BUCC = _pairs("de-en fr-en ru-en zh-en")
_ENGLISH = {"default": ("eng-Latn",)}
_ALL = {f"{kind}/all": name for kind, name in _CORRELATIONS.items()}

MTEB: dict[str, MtebTask] = {
    "tatoeba": MtebTask("Tatoeba", {f"{ours}/xx-en": name for ours, name in _BITEXT.items()}, "f1", subsets=_TATOEBA),
    "bucc/mteb": MtebTask("BUCC", _BITEXT, "f1", subsets=_BUCC),
    "bucc/mteb-v2": MtebTask("BUCC.v2", _BITEXT, "f1", subsets=_BUCC),
    **{f"sts{year}": MtebTask(f"STS{year}", _ALL, "cosine_spearman", subsets=_ENGLISH) for year in range(12, 17)},
    "sts-b": MtebTask("STSBenchmark", _ALL, "cosine_spearman", subsets=_ENGLISH),
    "sick-r": MtebTask("SICK-R", _ALL, "cosine_spearman", subsets=_ENGLISH),
    "sts17": MtebTask("STS17", _CORRELATIONS, "cosine_spearman", subsets=_STS17),
    "sts22": MtebTask("STS22.v2", _CORRELATIONS, "cosine_spearman", subsets=_STS22),
    "sts22/v1": MtebTask("STS22", _CORRELATIONS, "cosine_spearman", subsets=_STS22),
    "sts-b-multi": MtebTask("STSBenchmarkMultilingualSTS", _CORRELATIONS, "cosine_spearman", subsets=_STSB),
    "sts-b-multi/dev": MtebTask("STSBenchmarkMultilingualSTS", _CORRELATIONS, "cosine_spearman", "dev", _STSB),
    "mtop": MtebTask("MTOPDomainClassification", _TOPICS, "accuracy", subsets=_pairs("en de es fr hi th")),
    "sib-200": MtebTask("SIB200Classification", _TOPICS, "accuracy"),
}


def write_mteb(folder: Path, results: Results) -> list[Path]:
    """Write a file for each task of MTEB that the scores are of, and one about the model; the files written.

    Subsets that MTEB does not have, those without its main score, and averages are left out; without any other,
    nothing is written. The model is called `isoglot/` and the last part of its name, since MTEB requires two parts.
    The same results give the same bytes.
    """
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task, at in MTEB.items():
        if entries := _entries(at, [score for score in results.scores if score.task == task and not score.over]):
            tables.setdefault(at.name, {})[at.split] = entries
    if not tables:
        return []
    name, revision = f"isoglot/{Path(results.model).name}", str(results.settings.get("encoder", ""))[:16]
    inner = folder / name.replace("/", "__") / (revision or "no_revision_available")
    files = {f"{task}.json": _task(task, splits) for task, splits in tables.items()}
    files["model_meta.json"] = _model(name, revision or "no_revision_available", results)
    for file, content in files.items():
        with atomic_write(inner / file) as stream:
            stream.write(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return [inner / file for file in files]


def _entries(at: MtebTask, scores: Sequence[Score]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, float]] = {}
    for score in scores:
        if score.metric in at.fields and (subset := _subset(at, score.subset)):
            found.setdefault(subset, {})[at.fields[score.metric]] = score.value
    return [
        {**values, "main_score": values[at.main], "hf_subset": subset, "languages": _languages(at, subset)}
        for subset, values in found.items()
        if at.main in values
    ]


def _subset(at: MtebTask, ours: str) -> str | None:
    """MTEB's subset of the same languages; ours may be in another order and another system of codes."""
    if not at.subsets:
        return ours if _SIB.fullmatch(ours) and ours not in _NOT_IN_SIB else None
    if ours in at.subsets:
        return ours
    wanted = _plain(ours.split("-"))
    same = [name for name, codes in at.subsets.items() if _plain([code[:3] for code in codes]) == wanted]
    return same[0] if wanted and len(same) == 1 else None


def _plain(codes: Sequence[str]) -> frozenset[str]:
    """Languages without scripts, none if one of the codes is no language (`4b`)."""
    known = all(is_language(code) for code in codes)
    return frozenset(canonical(code).partition("_")[0] for code in codes) if known else frozenset()


def _languages(at: MtebTask, subset: str) -> list[str]:
    return list(at.subsets[subset]) if at.subsets else [subset.replace("_", "-")]


def _task(name: str, splits: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    unknown = dict.fromkeys(("mteb_version", "evaluation_time", "kg_co2_emissions", "date"))
    return {"dataset_revision": "revision_not_applicable", "task_name": name, "scores": dict(splits)} | unknown


def _model(name: str, revision: str, results: Results) -> dict[str, Any]:
    unknown = (
        "loader release_date languages n_parameters memory_usage_mb embed_dim license open_weights "
        "public_training_code public_training_data use_instructions training_datasets"
    )
    length = results.settings.get("max_length")
    known = {"name": name, "revision": revision, "max_tokens": length if isinstance(length, int) else None}
    return known | {"framework": [], "similarity_fn_name": "cosine"} | dict.fromkeys(unknown.split())
