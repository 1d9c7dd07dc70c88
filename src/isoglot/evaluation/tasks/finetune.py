"""PAWS-X with the whole model fine-tuned, as XTREME and mSimCSE do: it measures a starting point, not vectors.

English training pairs, both sentences in one input, learning rate 2e-5, five epochs, batches of 32, 128 tokens, the
linear schedule without warm-up, gradients clipped to norm 1; after each epoch the English dev accuracy, and the best
epoch's weights are tested on every language. The classifier is that of XLM-R: dropout, a dense layer with tanh, dropout
and a linear layer on the first token.

Deviation: XTREME looks at the dev split every few hundred steps, here it is every epoch. BERT's own pre-trained pooler
is not used; its dense layer is randomly initialised, as XLM-R's is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages, item_set_of
from isoglot.evaluation.sets import Source, needs
from isoglot.evaluation.tasks.classification import ACCURACY, PAWS_X, Outcome, accuracy, pair_classes, tested
from isoglot.evaluation.tasks.linear import Ids
from isoglot.model.torch_half import torch_half

if TYPE_CHECKING:
    from torch import Tensor, nn

DROPOUT = 0.1
_UNKNOWN = np.zeros((0, 2), np.float32)  # no probabilities


@dataclass(frozen=True, slots=True)
class PawsXFinetune:
    """The task `paws-x/finetune`. It needs the encoder itself (`encode.model`), and does not modify it.

    `seed` is the random seed of the classifier, the order and the dropout; the other fields are the protocol's.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    name: str = "paws-x/finetune"
    seed: int = 0
    epochs: int = 5
    rate: float = 2e-5
    batch: int = 32
    length: int = 128

    sets: ClassVar[tuple[str, ...]] = PAWS_X.sets
    needs: ClassVar[str] = needs(*sets)

    @property
    def needs_model(self) -> bool:
        """Whether vectors are not enough."""
        return True

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a labelled test split; none where English cannot be learnt from."""
        return tuple(self._tests(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy of each language, the `xtreme-7` average if all are there, and `mean`.

        Raises `EvaluationError` when `encode` has no transformer behind it.
        """
        model, tests = _transformer(encode, self.name), self._tests(data, languages)
        if not tests:
            return []
        found = PAWS_X.find(self.name, data)
        parts = {code: source.read(f"{self.name} {code}, split test") for code, source in tests.items()}
        train, dev = (found[split, "en"].read(f"{self.name} en, split {split}") for split in ("train", "dev"))
        classifier = self._learn(model, train, dev)
        scores: list[Score] = []
        for code, test in parts.items():
            outcome = Outcome(("0", "1"), pair_classes(test, PAWS_X), predict(classifier, test)[None], _UNKNOWN)
            score = accuracy(self.name, code, outcome)
            scores.append(
                replace(score, item_set=item_set_of(range(score.n)))
            )  # rows are translations, see `PairProbe`
        return [*scores, *PAWS_X.means(scores), *averages(scores, "mean")]

    def _learn(self, model: Any, train: Rows, dev: Rows) -> PairClassifier:
        """The classifier of the epoch that is best on the dev split, of equals the first."""
        import torch

        device = next(model.backbone.parameters()).device
        with torch_half("encoders.device").same_randomness_after(device):
            torch.manual_seed(self.seed)
            classifier = build(model, length=self.length)
            steps = _schedule(classifier, self.rate, total=self.epochs * -(-len(train) // self.batch))
            best, kept = -1.0, classifier.layers.state_dict()
            for _ in range(self.epochs):
                _epoch(classifier, steps, train, batch=self.batch)
                right = float((predict(classifier, dev) == pair_classes(dev, PAWS_X)).mean())
                if right > best:
                    best, kept = right, copy.deepcopy(classifier.layers.state_dict())
        classifier.layers.load_state_dict(kept)
        return classifier

    def _tests(self, data: Path, languages: Sequence[str]) -> dict[str, Source]:
        found = PAWS_X.find(self.name, data)
        codes = tested(found, "test", languages, learnt=[("train", "en"), ("dev", "en")])
        return {code: found["test", code] for code in codes}


@dataclass(frozen=True, slots=True, eq=False)
class PairClassifier:
    """Layers `backbone` and `head` of a pair classifier, what cuts its input into tokens, and how many it takes."""

    layers: nn.ModuleDict
    tokenizer: Any
    length: int

    def logits(self, pairs: Rows, rows: Sequence[int]) -> Tensor:
        """(rows, 2) from both sentences of each pair in one input, padded to the longest of them."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from isoglot.model.tokenizer import unpadded

        backbone: Any = self.layers["backbone"]
        device = next(backbone.parameters()).device
        with unpadded(self.tokenizer.backend_tokenizer, self.length):
            found = self.tokenizer.backend_tokenizer.encode_batch([tuple(pairs[row].texts) for row in rows])
        columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        fill = {"input_ids": int(self.tokenizer.pad_token_id or 0)}
        inputs = {
            name: pad_sequence(
                [torch.tensor(getattr(row, column)) for row in found], batch_first=True, padding_value=fill.get(name, 0)
            ).to(device)
            for name, column in columns.items()
            if name in self.tokenizer.model_input_names
        }
        logits: Tensor = self.layers["head"](backbone(**inputs).last_hidden_state[:, 0])
        return logits


def build(model: Any, *, length: int) -> PairClassifier:
    """A copy of the encoder's backbone in float32 with XLM-R's classifier of two classes, on the same device."""
    from torch import nn

    backbone = copy.deepcopy(model.backbone).float().requires_grad_(True)
    backbone.get_input_embeddings().sparse = False
    width = int(backbone.config.hidden_size)
    hidden, last = nn.Linear(width, width), nn.Linear(width, 2)
    for linear in (hidden, last):
        nn.init.normal_(linear.weight, std=0.02)
        nn.init.zeros_(linear.bias)
    head = nn.Sequential(nn.Dropout(DROPOUT), hidden, nn.Tanh(), nn.Dropout(DROPOUT), last)
    positions = int(getattr(backbone.config, "max_position_embeddings", 0) or 10**9) - 2  # RoBERTa starts at 2
    layers = nn.ModuleDict({"backbone": backbone, "head": head.to(next(backbone.parameters()).device)})
    return PairClassifier(layers, model.tokenizer, min(length, positions, int(model.tokenizer.model_max_length)))


def predict(classifier: PairClassifier, pairs: Rows, *, batch: int = 64) -> Ids:
    """The class (N,) of each pair, with dropout off."""
    import torch

    classifier.layers.eval()
    found: list[Ids] = []
    with torch.inference_mode():
        for start in range(0, len(pairs), batch):
            rows = range(start, min(start + batch, len(pairs)))
            found.append(classifier.logits(pairs, rows).argmax(dim=1).cpu().numpy())
    return np.concatenate(found).astype(np.int64)


def _epoch(classifier: PairClassifier, steps: Iterator[Any], pairs: Rows, *, batch: int) -> None:
    """One pass in random order; dropout and order come from torch's generator, which the caller has seeded."""
    import torch
    from torch.nn import functional
    from torch.nn.utils import clip_grad_norm_

    classifier.layers.train()
    gold = torch.from_numpy(pair_classes(pairs, PAWS_X))
    for rows in torch.split(torch.randperm(len(gold)), batch):
        optimizer = next(steps)
        logits = classifier.logits(pairs, rows.tolist())
        optimizer.zero_grad()
        functional.cross_entropy(logits, gold[rows].to(logits.device)).backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(classifier.layers.parameters(), 1.0)
        optimizer.step()


def _schedule(classifier: PairClassifier, rate: float, *, total: int) -> Iterator[Any]:
    """The optimizer before each of `total` steps, its rate falling linearly to zero."""
    import torch

    optimizer = torch.optim.AdamW(classifier.layers.parameters(), lr=rate, eps=1e-8, weight_decay=0.0)
    for step in range(total):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / total)
        yield optimizer


def _transformer(encode: Encode, name: str) -> Any:
    model = getattr(encode, "model", None)
    model = model.trainable() if model is not None and model.origin else model
    if not hasattr(model, "backbone") or not hasattr(model, "tokenizer"):
        what = "vectors without a model" if model is None else f"a {type(model).__name__}"
        raise EvaluationError(f"{name}: {what} cannot be fine-tuned; use a transformer encoder, or leave this task out")
    return model
