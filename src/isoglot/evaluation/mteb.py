"""Scores in the layout of MTEB, for its tools: `<model>/<revision>/<Task>.json` and `model_meta.json`.

Only tasks whose data and protocol are MTEB's are written, only subsets of as many items as MTEB has, and only with
MTEB's main score. Unknown facts are null: times, dates and MTEB's version, since MTEB did not run. The revision of the
data is `revision_not_applicable`, since they were read from the user's files; it also distinguishes files of an earlier
evaluation from those written by MTEB. The format is that of `TaskResult` in mteb 2 (Muennighoff et al. 2023, "MTEB:
Massive Text Embedding Benchmark").

A task is in the table `MTEB` (mteb.toml) only when its texts are MTEB's too. The numbers of items, and the lengths of
the texts by which that was verified, are those that mteb 2.26 gives in its `descriptive_stats`:

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
from functools import cached_property
from pathlib import Path
from typing import Any

from langcodes import Language

from isoglot.core.score import Results, Score
from isoglot.core.toml import tomllib
from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical, is_language

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


@dataclass(frozen=True)
class MtebTask:
    """The MTEB counterpart of a task: its name, the split, and its metrics as MTEB's fields, the main one first.

    `sizes` are MTEB's subsets, each with its number of items; empty where they are named as ours are, by language and
    script, all of `size` items.
    """

    name: str
    fields: Mapping[str, str]
    split: str = "test"
    sizes: Mapping[str, int] = field(default_factory=dict)
    size: int = 0

    @cached_property
    def subsets(self) -> dict[str, tuple[str, ...]]:
        """MTEB's subsets, each with its languages; `en-en` is of one."""
        names = {name: ["eng"] if name == "default" else name.split("-") for name in self.sizes}
        return {name: tuple(dict.fromkeys(map(_tag, codes))) for name, codes in names.items()}


def _tag(code: str) -> str:
    """A language as MTEB writes it: a code of three letters and the script, `deu-Latn`."""
    language = Language.get(code)
    name = code if len(code) == 3 else "cmn" if code == "zh" else language.to_alpha3()
    return f"{name}-{_SCRIPTS.get(name) or language.maximize().script}"


MTEB: dict[str, MtebTask] = {}
for task, table in tomllib.loads((Path(__file__).parent / "mteb.toml").read_text(encoding="utf-8")).items():
    parts = table.pop("sizes", "").split()
    MTEB[task] = MtebTask(**table, sizes=dict(zip(parts[::2], map(int, parts[1::2]), strict=True)))


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
    values, main = dict[str, dict[str, float]](), next(iter(at.fields.values()))
    for score in scores:
        subset = _subset(at, score.subset)
        if subset is not None and score.metric in at.fields and score.n == at.sizes.get(subset, at.size):
            values.setdefault(subset, {})[at.fields[score.metric]] = score.value
    entries = []
    for subset, metrics in values.items():
        if main in metrics:
            languages = list(at.subsets[subset]) if at.subsets else [subset.replace("_", "-")]
            entries.append({**metrics, "main_score": metrics[main], "hf_subset": subset, "languages": languages})
    return entries


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
