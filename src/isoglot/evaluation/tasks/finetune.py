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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isoglot.core.errors import EvaluationError
from isoglot.core.plugins import torch_half
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Encode, Metric, Score, item_set_of
from isoglot.evaluation.sets import Source
from isoglot.evaluation.tasks.classification import ACCURACY, PAWS_X, Labelled, Outcome, accuracy, number_labels
from isoglot.evaluation.vectors import find_transformer
from isoglot.search.best import Ids

if TYPE_CHECKING:
    from torch import Tensor, nn

DROPOUT = 0.1
_UNKNOWN = np.zeros((0, 2), np.float32)  # no probabilities


@dataclass(frozen=True, slots=True)
class PawsXFinetune(Labelled):
    """The task `paws-x/finetune`. It needs the encoder itself (`encode.model`), and does not modify it.

    `seed` is the random seed of the classifier, the order and the dropout; the other fields are the protocol's.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    needs_model: ClassVar[bool] = True  # vectors are not enough
    name: str = "paws-x/finetune"
    reads: tuple[str, ...] = PAWS_X.reads
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: PAWS_X.lists)
    learns: tuple[tuple[str, str], ...] = (("train", "en"), ("dev", "en"))
    seed: int = 0
    epochs: int = 5
    rate: float = 2e-5
    batch: int = 32
    length: int = 128

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """Accuracy of each language. Raises `EvaluationError` when `encode` has no transformer behind it."""
        if (model := find_transformer(encode)) is None:
            raise EvaluationError(f"{self.name}: needs a transformer to fine-tune; use one, or leave the task out")
        tests = {code: self.read(parts[-1]) for code, parts in subsets.items()}
        train, dev = (self.read(source)[0] for source in next(iter(subsets.values()))[:2])
        classifier = self._learn(model, train, dev)
        for code, (test, where) in tests.items():
            gold = number_labels(test, PAWS_X.classes, where=where)
            outcome = Outcome(PAWS_X.classes, gold, predict(classifier, test)[None], _UNKNOWN)
            # Rows are translations, see `PairProbe`.
            yield accuracy(self.name, code, outcome, item_set=item_set_of(range(len(test))))

    def _learn(self, model: Any, train: Rows, dev: Rows) -> PairClassifier:
        """The classifier of the epoch that is best on the dev split, of equals the first."""
        import torch
        from torch.nn import functional
        from torch.nn.utils import clip_grad_norm_

        device = next(model.backbone.parameters()).device
        gold, expected = (number_labels(rows, PAWS_X.classes, where=self.name) for rows in (train, dev))
        labels = torch.from_numpy(gold).to(device)
        with torch_half("encoders.device").same_randomness_after(device):
            torch.manual_seed(self.seed)  # of the classifier, the order and the dropout
            classifier = build(model, length=self.length)
            layers, total = classifier.layers, self.epochs * -(-len(train) // self.batch)
            optimizer = torch.optim.AdamW(layers.parameters(), lr=self.rate, eps=1e-8, weight_decay=0.0)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
            best, weights = -1.0, layers.state_dict()
            for _ in range(self.epochs):
                layers.train()
                for rows in torch.split(torch.randperm(len(gold)), self.batch):
                    logits = classifier.logits(train, rows.tolist())
                    optimizer.zero_grad()
                    functional.cross_entropy(logits, labels[rows]).backward()  # type: ignore[no-untyped-call]
                    clip_grad_norm_(layers.parameters(), 1.0)
                    optimizer.step()
                    schedule.step()
                score = float((predict(classifier, dev) == expected).mean())
                if score > best:
                    best, weights = score, copy.deepcopy(layers.state_dict())
        layers.load_state_dict(weights)
        return classifier


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

        from isoglot.model.tokenizer import suspend_padding

        backbone: Any = self.layers["backbone"]
        device = next(backbone.parameters()).device
        with suspend_padding(self.tokenizer.backend_tokenizer, self.length):
            encodings = self.tokenizer.backend_tokenizer.encode_batch([tuple(pairs[row].texts) for row in rows])
        columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        inputs = {}
        for name in columns.keys() & self.tokenizer.model_input_names:
            ids = [torch.tensor(getattr(row, columns[name])) for row in encodings]
            fill = int(self.tokenizer.pad_token_id or 0) if name == "input_ids" else 0
            inputs[name] = pad_sequence(ids, batch_first=True, padding_value=fill).to(device)
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
    blocks = [range(start, min(start + batch, len(pairs))) for start in range(0, len(pairs), batch)]
    with torch.inference_mode():
        answers = [classifier.logits(pairs, rows).argmax(dim=1).cpu().numpy() for rows in blocks]
    return np.concatenate(answers).astype(np.int64)
