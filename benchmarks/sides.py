"""The two sides of the training benchmark: one run of either library, its measurements, and the evaluation.

Each library is used in its usual way: isoglot by a recipe, sentence-transformers by its trainer. training.py lists what
is equal and what differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import material
from measure import Moment, memory, now

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """One run of one side. `None` leaves a setting of isoglot at its default."""

    side: str
    work: str
    folder: str
    seed: int
    batch: int
    lr: float
    threads: int
    freeze_embeddings: bool
    pool: int | None
    chunk_tokens: int | None
    graph_tokens: int | None
    precision: str


class Probe:
    """The measurements of one run, from its first line to its last step."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.real, self.computed = setting, 0, 0
        self.values: Values = {}

    def loaded(self, backbone: Any) -> None:
        """The model is in memory: from here on, count the positions that pass through it, at its word table."""
        self.values["loaded"] = memory()
        backbone.get_input_embeddings().register_forward_pre_hook(self._count)
        self.began = self.latest = now()

    def stepped(self) -> None:
        """A step is done."""
        self.latest = now()
        self.values["steps"] = self.values.get("steps", 0) + 1

    def trained(self, model: Path) -> Values:
        """The model is saved: returns all measurements and the scores of the model."""
        spent: Moment = self.latest.since(self.began)
        self.values |= {"wall": spent.wall, "cpu": spent.cpu, "peak": memory(peak=True)}
        self.values |= {"computed": self.computed, "padding": 1 - self.real / self.computed}
        return self.values | judge(model, Path(self.setting.work) / "held-out.jsonl")

    def _count(self, words: Any, given: Any) -> None:
        self.real, self.computed = (
            self.real + int((given[0] != words.padding_idx).sum()),
            self.computed + given[0].numel(),
        )


def with_isoglot(setting: Setting, probe: Probe) -> Path:
    """Train by a recipe; gives the folder of the model."""
    import transformers  # noqa: F401  loaded later otherwise; imports belong before the clock

    from isoglot.training import loop, plan, recipe

    probe.values["imported"] = memory()
    opened = recipe.parse(isoglot_recipe(setting))

    def encoder(*args: Any, make: Any = plan.make_encoder, **given: Any) -> Any:
        made = make(*args, **given)
        probe.loaded(made.backbone)
        return made

    with patch.object(loop, "make_encoder", encoder):
        folder = Path(setting.folder)
        return loop.run(opened, folder, device=cpu(), seed=setting.seed, update=lambda _: probe.stepped()).model


def isoglot_recipe(setting: Setting) -> Values:
    """The recipe of a run, with only those settings that the comparison is about."""
    work = Path(setting.work)
    memory_settings = {"chunk_tokens": setting.chunk_tokens, "graph_tokens": setting.graph_tokens}
    batching = {"size": setting.batch, "anchor": "first", "pool": setting.pool}
    return {
        "name": "benchmark",
        "encoder": {
            "kind": "transformer",
            "model": str(work / "model"),
            "freeze_embeddings": setting.freeze_embeddings,
        },
        "streams": [
            {
                "sources": [{"reader": "jsonl", "path": str(work / "train.jsonl")}],
                "batching": given(batching),
                "objectives": [{"name": "info_nce", "temperature": 0.05, "direction": "one-way"}],
            }
        ],
        "optimizer": {"lr": setting.lr, "schedule": "linear", "clip": 1.0, "precision": setting.precision},
        "memory": given(memory_settings),
        "epochs": 1,
    }


def given(settings: Values) -> Values:
    """The settings that are not left at their default."""
    return {name: value for name, value in settings.items() if value is not None}


def with_sentence_transformers(setting: Setting, probe: Probe) -> Path:
    """Train by the trainer; gives the folder of the model."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, losses
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from transformers import PreTrainedModel, TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_arguments: Any, **_named: Any) -> None:
            probe.stepped()

    probe.values["imported"] = memory()
    model = SentenceTransformer(str(Path(setting.work) / "model"), device="cpu")
    backbone = next(module for module in model.modules() if isinstance(module, PreTrainedModel))
    backbone.get_input_embeddings().requires_grad_(not setting.freeze_embeddings)
    english, other = material.texts_of(Path(setting.work) / "train.jsonl")
    arguments = Arguments(
        output_dir=setting.folder, num_train_epochs=1, per_device_train_batch_size=setting.batch,
        learning_rate=setting.lr, lr_scheduler_type="linear", max_grad_norm=1.0, use_cpu=True, seed=setting.seed,
        save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_dict({"anchor": english, "positive": other}),
        loss=losses.MultipleNegativesRankingLoss(model, scale=20.0), callbacks=[Watch()],
    )  # fmt: skip
    probe.loaded(backbone)
    trainer.train()
    folder = Path(setting.folder) / "model"
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


SIDES: dict[str, Callable[[Setting, Probe], Path]] = {
    "isoglot": with_isoglot,
    "sentence-transformers": with_sentence_transformers,
}


def judge(model: Path, held_out: Path) -> Values:
    """InfoNCE (temperature .05, English to translation) and accuracy (mean of both directions) on pairs held out."""
    import numpy as np

    from isoglot.encoders import load
    from isoglot.model import encode

    encoder = load(model)
    english, other = (encode(encoder, texts, normalize_embeddings=True) for texts in material.texts_of(held_out))
    logits = (english @ other.T).astype(np.float64) / 0.05
    top = logits.max(axis=1)
    totals = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    own = np.arange(len(logits))
    found = np.stack([logits.argmax(axis=1) == own, logits.argmax(axis=0) == own])
    return {"loss": float((totals - logits[own, own]).mean()), "accuracy": float(found.mean())}


def cpu() -> Any:
    """The device of the comparison."""
    import torch

    return torch.device("cpu")


def run(setting: Setting) -> None:
    """One run, in this process; writes `result.json` into the run's folder."""
    import torch

    torch.set_num_threads(setting.threads)
    probe = Probe(setting)
    values = probe.trained(SIDES[setting.side](setting, probe))
    (Path(setting.folder) / "result.json").write_text(json.dumps(values), encoding="utf-8")
