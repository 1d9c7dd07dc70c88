"""Model cards: description, training data, scores and weaknesses of a saved model.

The facts are in `isoglot.card.json` of a model folder, for programs; `README.md` next to it is rendered from them.
`Model.save` writes both; training adds the data, and `describe` adds facts that are known later, such as scores. The
head of README.md is what Hugging Face's hub reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from isoglot.data.files import atomic_write, digest
from isoglot.data.languages import canonical, is_language, tag
from isoglot.model import configs

FILE, README = "isoglot.card.json", "README.md"
# Identifiers of the hub: licences, and models that ours are made of.
_LICENCES = {
    "apache-2.0", "mit", "bsd-3-clause", "cc0-1.0", "cc-by-4.0", "cc-by-nc-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0",
    "cc-by-nc-sa-4.0", "gpl-3.0", "lgpl-3.0", "agpl-3.0", "mpl-2.0",
}  # fmt: skip
_BASES = dict.fromkeys(("multilingual-e5-small", "isoglot-small", "isoglot-base"), "intfloat/multilingual-e5-small")
_BASES["all-MiniLM-L6-v2"] = "sentence-transformers/all-MiniLM-L6-v2"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CHECKED = (".safetensors", ".onnx", "tokenizer.json", "tokenizer.json.xz", "tokenizer.model")


class _Facts(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Data(_Facts):
    """A source of the training data.

    `groups` and `sentences` are counted after all filters; `sentences` by language code (ISO 639-3).
    """

    name: str
    licence: str = ""
    groups: int = 0
    sentences: dict[str, int] = {}


class Score(_Facts):
    """A score in `unit`, with the number of test items."""

    task: str
    metric: str
    value: float | None
    unit: str = ""
    n: int = 0


class Card(_Facts):
    """The facts of a model.

    summary     one sentence: what the model is
    licence     licence of the weights
    base        the model that training began from; "" if none
    measure     what the scores by language are, such as "tatoeba accuracy, both directions (%)"
    languages   score by language code; None: trained on and not measured
    data        the training data
    scores      averages of evaluations
    weaknesses  what the model is bad at
    commands    shell commands that made the model
    seed        random seed of training
    """

    name: str = ""
    summary: str = ""
    licence: str = ""
    base: str = ""
    measure: str = ""
    languages: dict[str, float | None] = {}
    data: list[Data] = []
    scores: list[Score] = []
    weaknesses: list[str] = []
    commands: list[str] = []
    seed: int | None = None
    # written on saving
    kind: str = ""
    dim: int = 0
    max_length: int = 0
    parameters: int = 0
    weights: str = ""
    checksums: dict[str, str] = {}

    @field_validator("languages")
    @classmethod
    def _by_codes_of_the_data(cls, scores: dict[str, float | None]) -> dict[str, float | None]:
        """Test sets write cmn and swh where the training data are zho and swa."""
        return {canonical(code) if is_language(code) else code: score for code, score in scores.items()}

    def write(self, folder: Path, **facts: Any) -> None:
        """Write the card, with these facts, beside a model that was just written into `folder`."""
        _write(folder, self.model_copy(update={**facts, "checksums": _checksums(folder)}))

    def count_trained(self) -> dict[str, int]:
        """Sentences by language, over all data."""
        total: dict[str, int] = {}
        for data in self.data:
            for code, count in data.sentences.items():
                total[code] = total.get(code, 0) + count
        return total

    def derive(self, base: str) -> Card:
        """The card of a model derived from this one without training: keeps the data, drops all measurements."""
        return Card(base=base, licence=self.licence, data=self.data, seed=self.seed)

    def means(self) -> list[tuple[str, int, float]]:
        """Rows (group of languages, their number, mean score), for languages with and without training sentences."""
        trained, rows = self.count_trained(), []
        for which, has_data in (("with", True), ("without", False)):
            values = [v for code, v in self.languages.items() if v is not None and (code in trained) is has_data]
            if trained and values:
                rows.append((f"{which} training sentences", len(values), sum(values) / len(values)))
        return rows


def read(folder: Path) -> Card | None:
    """The card of a model folder, or of another's README.md the licence; None if it has none.

    Raises EncoderError for a damaged file of our own.
    """
    path = folder / FILE
    if path.is_file():
        return configs.read(path, Card)
    with suppress(Exception):  # written by anybody, and needed by nothing else
        if (text := (folder / README).read_text(encoding="utf-8")).startswith("---"):
            from huggingface_hub import ModelCard

            facts = ModelCard(text).data
            return Card(licence=facts.get("license_name" if facts.get("license") == "other" else "license"))
    return None


def describe(folder: str | Path, **facts: Any) -> Card:
    """Change facts of the card of a saved model, keep the others, and write both files again.

    folder   a model folder that isoglot saved
    facts    fields of `Card`; `data` as a mapping of names to licences sets these licences alone

    Raises EncoderError for a folder without a card or a fact of the wrong type.
    """
    folder = Path(folder)
    card = configs.read(folder / FILE, Card)
    if isinstance(licences := facts.get("data"), Mapping):
        facts["data"] = [{**data.model_dump(), "licence": licences.get(data.name, data.licence)} for data in card.data]
    card = configs.check_value(folder / FILE, Card, {**card.model_dump(), **facts, "checksums": _checksums(folder)})
    _write(folder, card)
    return card


@cache
def _template() -> Any:
    """Of README.md; to compile it takes longer than all else of saving a small model."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("isoglot", "model"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = lambda text: " ".join(str(text).split()).replace("|", "\\|")
    return environment.get_template("card.md.jinja")


def render(card: Card, *, size: int = 0) -> str:
    """The card as Markdown with its head; `size` is that of the folder in bytes, 0 if unknown."""
    return f"---\n{head(card)}---\n\n{_template().render(card=card, trained=card.count_trained(), size=size)}"


def head(card: Card) -> str:
    """What the hub reads: YAML with licence, languages, base, data of the catalogue, and scores."""
    from huggingface_hub import EvalResult, ModelCardData

    from isoglot.data.sets.catalogue import catalogue

    licence = re.sub(r"[^a-z0-9.]+", "-", card.licence.partition(",")[0].lower())
    is_listed = licence in _LICENCES
    tags = {str(tag(code)).partition("-")[0] for code in (*card.count_trained(), *card.languages) if is_language(code)}
    base = _BASES.get(card.base, card.base)
    opens = card.weights == "float32" and card.kind in ("TransformerEncoder", "StaticEncoder")
    scores = [score for score in card.scores if score.value is not None]
    data = ModelCardData(
        model_name=card.name or "Sentence encoder",
        license=licence if is_listed else "other" if licence else None,
        license_name=None if is_listed or not licence else licence,
        language=sorted(tags) or None,
        library_name="sentence-transformers" if opens else "isoglot",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "isoglot"][0 if opens else 1 :],
        base_model=base if _HUB_ID.fullmatch(base) else None,
        datasets=[data.name for data in card.data if data.name in catalogue()] or None,
        eval_results=[
            EvalResult(score.task.partition("/")[0], score.task, score.task, score.metric, score.value)
            for score in scores
        ] or None,
    )  # fmt: skip
    return str(data.to_yaml()) + "\n"


def _write(folder: Path, card: Card) -> None:
    with atomic_write(folder / FILE) as stream:
        stream.write(card.model_dump_json(indent=2, exclude_defaults=True) + "\n")
    size = sum(os.path.getsize(path) for path in folder.rglob("*") if path.is_file())  # noqa: PTH202
    with atomic_write(folder / README) as stream:
        stream.write(render(card, size=size))


def _checksums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(_CHECKED) and path.is_file())
    return {path.relative_to(folder).as_posix(): digest(path) for path in files}
