"""Pairs by their relation: softmax over (u, v, |u - v|). SBERT (Reimers and Gurevych 2019, section 3), MoCo-BERT's NLI.

    loss = -log softmax(head(u, v, |u - v|))_label

The papers differ in two options. SBERT has one layer over the pooled vectors: `layers = 0, vectors = "raw"`.
MoCo-BERT (Wang et al. 2021, appendix B) has an MLP over representations "computed as stated in the paper", which are
of length one: `layers = 2, vectors = "unit"`, and weight 0.1 relative to its contrastive loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isoglot.core.machine import check_memory
from isoglot.data.batch import Batch, send
from isoglot.objectives.base import Losses, Objective, Range, Seed
from isoglot.objectives.kernel import filter_pairs, pick, slot_pairs, unit


class PairSoftmax(Objective):
    """Classify each group's slots 0 and 1, premise and hypothesis, by the group's `label`; the batch needs both.

    layers   hidden layers, of width `hidden`, with ReLU and `dropout`; behind them one layer gives the `classes`. The
             paper's "two-layer MLP with 256 hidden units and a 3-way classification head" is read as 2; 1 is the other
             reading
    vectors  `unit`: u and v are scaled to length one first; `raw`: as pooled
    seed     random seed of the weights and, with the number of steps, of the dropout masks: equal on all ranks

    Labels are 0 to classes - 1; a group without a slot 1 or with a label below 0 counts for nothing. Which sentence is
    the premise must not be drawn: write `anchor = "first"` in the stream's batching.

    Raises ValueError for a switch or number out of range, and for data without labels or with too many of them.
    """

    ordered, reads = True, ("label",)
    steps: Tensor

    def __init__(
        self,
        *,
        encoder: nn.Module,
        sizes: Mapping[str, int],
        layers: Annotated[int, Range(0, 64)] = 2,
        hidden: Annotated[int, Range(1, 65536)] = 256,
        dropout: Annotated[float, Range(0, 0.99)] = 0.1,
        classes: Annotated[int, Range(2, 65536)] = 3,
        vectors: Literal["unit", "raw"] = "unit",
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        if "label" not in sizes:
            raise ValueError(
                'its groups need a whole number called "label"; read data that have one, such as labelled NLI'
            )
        if sizes["label"] > classes:
            raise ValueError(f"classes is {classes}, but the data have the label {sizes['label'] - 1}; raise classes")
        widths = [3 * cast("int", encoder.dim), *[hidden] * layers, classes]
        weights = sum(above * below for above, below in pairwise(widths))  # with gradients and two moments of Adam
        trained = next(encoder.parameters())
        check_memory(4 * 4 * weights, trained.device, f"layers, hidden: {weights:,} weights")
        dtype = torch.promote_types(trained.dtype, torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # those of accelerators are not restored, and not used
            self.layers = nn.ModuleList(nn.Linear(*sides, dtype=dtype) for sides in pairwise(widths))
        self.dropout, self.vectors, self.seed = dropout, vectors, seed
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The loss, under `pair_softmax`."""
        pairs = slot_pairs(batch.group, batch.slot)
        premise, hypothesis = filter_pairs(pairs, batch.extras["label"][pairs[0]] >= 0)  # below 0: not labelled
        if not len(premise):
            return {"pair_softmax": vectors.sum() * 0}
        states = unit(vectors) if self.vectors == "unit" else vectors
        scores = self.scores(pick(states, premise), pick(states, hypothesis))
        return {"pair_softmax": F.cross_entropy(scores, send(batch.extras["label"][premise].long(), scores.device))}

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        """Logits (P, classes) of P pairs, u and v (P, D)."""
        state = torch.cat([u, v, (u - v).abs()], dim=1).to(next(self.parameters()).dtype)
        draw = torch.Generator().manual_seed(1_000_003 * self.seed + int(self.steps))
        for layer in self.layers[:-1]:
            state = layer(state).relu()
            if self.training and self.dropout:
                # Sampled on the CPU from the step alone: all ranks need the same mask, and their generators differ.
                mask = torch.rand(state.shape, generator=draw) >= self.dropout
                state = state * send(mask, state.device) / (1 - self.dropout)
        scores: Tensor = self.layers[-1](state)
        return scores

    def after_step(self, encoder: nn.Module, batches: Sequence[Batch]) -> None:  # noqa: ARG002
        """Count the step."""
        self.steps += 1
