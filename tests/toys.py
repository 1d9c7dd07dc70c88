"""Small things the tests train and batch: a character encoder with dropout, random batches, random groups."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from isoglot.data.batch import Batch, send
from isoglot.data.groups import Group
from isoglot.data.tokens import Tokens
from isoglot.encoders.base import Encoder
from isoglot.objectives import Objective, build

DIM = 12
TOY_LANGUAGES = ("aaa", "aab", "aac")
TOY_SIZES = {"label": 3, "entity": 6, "hard_entities": 6}


class ToyEncoder(Encoder):
    """Mean of character vectors through dropout and a layer, in float64, so that equality can be asked for."""

    def __init__(self, dropout: float = 0.0, seed: int = 0, sparse: bool = False) -> None:
        super().__init__()
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` also formats the stack, for each kind of device
        self.dim, self.max_length = DIM, 64
        self.embedding = nn.Embedding(128, DIM, sparse=sparse, dtype=torch.float64)
        self.dropout = nn.Dropout(dropout)
        self.layer = nn.Linear(DIM, DIM, dtype=torch.float64)

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        ids = [[ord(c) % 127 + 1 for c in text][: self.max_length] for text in texts]
        return Tokens(
            np.array([i for row in ids for i in row], np.int64), np.array([len(row) for row in ids], np.int64)
        )

    def forward(self, tokens: Tokens) -> Tensor:
        table, filled = tokens.pad(0)
        ids = send(torch.from_numpy(table), self.device)
        mask = torch.ones_like(ids) if filled is None else send(torch.from_numpy(filled), self.device)
        weights = mask[..., None].to(self.layer.weight.dtype)
        x = (self.dropout(self.embedding(ids)) * weights).sum(1) / weights.sum(1).clamp(min=1)
        return torch.tanh(self.layer(x))

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(b"toy").hexdigest()

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.state_dict(), folder / "toy.pt")


def take(batch: Batch, rows: Tensor) -> Batch:
    """The rows of a batch at `rows`, in that order."""
    columns = (column[rows] for column in (batch.group, batch.key, batch.slot, batch.lang))
    return Batch(batch.tokens.select(rows), *columns, {name: values[rows] for name, values in batch.extras.items()})


def toy_batch(
    sizes: Sequence[int], *, hard: Sequence[int] | None = None, keys: Sequence[int] | None = None, seed: int = 0
) -> Batch:
    """A batch of groups of the given sizes with random short texts; `hard` negatives per group, equal `keys` alike."""
    rng = np.random.default_rng(seed)
    hard = hard or [0] * len(sizes)
    keys = keys or list(range(100, 100 + len(sizes)))
    group, key, slot = [], [], []
    for number, (size, extra) in enumerate(zip(sizes, hard, strict=True)):
        slots = [*range(size), *range(-1, -1 - extra, -1)]
        group += [number] * len(slots)
        key += [keys[number]] * len(slots)
        slot += slots
    lengths = rng.integers(1, 9, len(group))
    tokens = Tokens(rng.integers(1, 127, int(lengths.sum())), lengths)
    lang = torch.from_numpy(rng.integers(0, 3, len(group)))
    return Batch(tokens, torch.tensor(group), torch.tensor(key), torch.tensor(slot), lang, toy_extras(group, rng))


def example() -> Batch:
    """Groups of one to four sentences, with hard negatives and without, two of them with equal keys."""
    return toy_batch([2, 2, 3, 1, 2, 2, 4], hard=[1, 0, 1, 1, 0, 2, 0], keys=[1, 2, 3, 4, 2, 6, 7])


def toy_extras(group: Sequence[int], rng: np.random.Generator) -> dict[str, Tensor]:
    """What objectives may read beside the columns: a teacher's vectors by row; label and entities by group."""
    groups = max(group, default=-1) + 1
    of_group = {
        "label": rng.integers(0, TOY_SIZES["label"], groups),
        "entity": rng.integers(0, TOY_SIZES["entity"], groups),
        "hard_entities": rng.integers(-1, TOY_SIZES["hard_entities"], (groups, 2)),  # -1: none
    }
    return {
        "teacher": torch.from_numpy(rng.standard_normal((len(group), DIM))),
        **{name: torch.from_numpy(values[list(group)]) for name, values in of_group.items()},
    }


def toy_objective(name: str, encoder: Encoder, **options: object) -> Objective:
    """A registered objective as a run builds it, for toy batches."""
    return build(name, options, encoder, languages=TOY_LANGUAGES, sizes=TOY_SIZES)


def toy_groups(sizes: Sequence[int], *, hard: int = 0, seed: int = 0, key: str = "") -> list[Group]:
    """Groups of random words in languages aaa, aab, ...; sentence texts tell group and slot."""
    rng = np.random.default_rng(seed)

    def word() -> str:
        return "".join(chr(97 + i) for i in rng.integers(0, 26, rng.integers(2, 10)))

    return [
        Group(
            tuple(f"g{number} s{slot} {word()}" for slot in range(size)),
            tuple(f"aa{chr(97 + slot)}" for slot in range(size)),
            key,
            tuple(f"g{number} h{slot} {word()}" for slot in range(hard)),
            tuple("aaa" for _ in range(hard)),
        )
        for number, size in enumerate(sizes)
    ]
