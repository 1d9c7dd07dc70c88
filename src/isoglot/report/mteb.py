"""Results in the layout of MTEB, so that its tools read them: `<model>/<revision>/<Task>.json` and `model_meta.json`.

Only tasks whose data and protocol are MTEB's are written (`mteb_tasks.py`), only subsets of as many items as MTEB has,
and only with MTEB's main score. What is special here: nothing is claimed that is not known. Times and dates are null,
MTEB's own version is null since none of it ran, and the revision of the data is `revision_not_applicable`, as they were
read from the user's files; by this, files of an earlier evaluation are told from those that MTEB itself wrote. The
format is that of `TaskResult` in mteb 2 (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical, is_language
from isoglot.evaluation.base import Score
from isoglot.report.mteb_tasks import MTEB, MtebTask
from isoglot.report.scores import Results

_SIB = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
# MTEB takes SIB-200 in one script only for each language that the set has in two.
_NOT_IN_SIB = ("ace_Arab", "arb_Arab", "bjn_Arab", "kas_Arab", "knc_Arab", "min_Arab", "taq_Latn", "zho_Hans")
# What is said in place of the data's revision and of a run of MTEB.
_NO_RUN = {"dataset_revision": "revision_not_applicable"} | dict.fromkeys(
    ("mteb_version", "evaluation_time", "kg_co2_emissions", "date")
)


def write_mteb(folder: Path, results: Results) -> list[Path]:
    """Write a file for each task of MTEB that the scores are of, and one about the model; the files written.

    Left out are subsets that MTEB does not have or that have another number of items there, those without its main
    score, and averages; without any other, nothing is written. What an earlier call wrote below `folder`, of whatever
    model, is removed first; any other file stays. The model is called `isoglot/` and the last part of its name, since
    MTEB requires two parts; its revision is its fingerprint, or that of its vectors. The same results give the same
    bytes.
    """
    tables: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for task, at in MTEB.items():
        if entries := _entries(at, [score for score in results.scores if score.task == task and not score.over]):
            tables.setdefault(at.name, {})[at.split] = entries
    _remove_earlier(folder)
    if not tables:
        return []
    fingerprint = str(results.settings.get("encoder") or results.settings.get("vectors") or "")
    name, revision = f"isoglot/{Path(results.model).name}", fingerprint[:16] or "no_revision_available"
    inner = folder / name.replace("/", "__") / revision
    files = {f"{task}.json": _task(task, splits) for task, splits in tables.items()}
    files["model_meta.json"] = _model(name, revision, results)
    for file, content in files.items():
        with atomic_write(inner / file) as stream:
            stream.write(json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return [inner / file for file in files]


def _remove_earlier(folder: Path) -> None:
    """Remove what `write_mteb` wrote before, and the folders that this leaves empty."""
    for path in sorted(folder.glob("isoglot__*/*/*.json")):
        if _is_ours(path):
            path.unlink()
            with suppress(OSError):  # others' files are in the folder
                path.parent.rmdir()
                path.parent.parent.rmdir()


def _is_ours(path: Path) -> bool:
    """Whether `write_mteb` wrote it: MTEB itself names its version, and more about a model."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if path.name == "model_meta.json":
        return isinstance(content, dict) and content.keys() == _model("", "", Results("", {}, ())).keys()
    return isinstance(content, dict) and content.items() >= _NO_RUN.items()


def _entries(at: MtebTask, scores: Sequence[Score]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, float]] = {}
    for score in scores:
        subset = _subset(at, score.subset)
        if subset is not None and score.metric in at.fields and score.n == at.items(subset):
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
    return {"task_name": name, "scores": dict(splits), **_NO_RUN}


def _model(name: str, revision: str, results: Results) -> dict[str, Any]:
    unknown = (
        "loader release_date languages n_parameters memory_usage_mb embed_dim license open_weights "
        "public_training_code public_training_data use_instructions training_datasets"
    )
    length = results.settings.get("max_length")
    known = {"name": name, "revision": revision, "max_tokens": length if isinstance(length, int) else None}
    return known | {"framework": [], "similarity_fn_name": "cosine"} | dict.fromkeys(unknown.split())
