"""Dual momentum contrast: negatives from queues of a slow copy's vectors (Wang, Zhao and Liu 2021, eq. 1 to 3).

    L(x, y) = -log  exp(h_x . k_y / T)  /  [ exp(h_x . k_y / T) + sum_{q in Q_y} exp(h_x . q / T) ]
    loss    = L(x, y) + L(y, x)          theta_key <- m theta_key + (1 - m) theta_base

k_y is the vector of the translation by the key encoder, the moving average of the trained one; Q_y holds the keys of
the latest batches. No gradient reaches either, which makes hundreds of thousands of negatives affordable.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, cast

import torch
from torch import Tensor, nn

from isoglot.core.arguments import LARGEST
from isoglot.core.machine import check_memory
from isoglot.data.batch import Batch, send
from isoglot.data.tokens import pack, padding_on
from isoglot.objectives.base import Losses, Objective, Range, Seed, Temperature
from isoglot.objectives.kernel import Pairs, log_sum_exp, matches, pick, same_meaning, slot_pairs, unit

KEY = "momentum_key"  # the column of the batch that contains the keys
NOTHING = torch.iinfo(torch.int64).min  # key of a vector that belongs to no sentence
CPU_TOKENS, DEVICE_TOKENS = 512, 32_768  # maximum padded tokens of a batch of the key encoder


class DualMomentum(Objective):
    """Slots 0 and 1 of each group are each other's translation; each is a query against the other's key and queue.

    queue          how many keys of each slot are kept; two times 409,600 keys of 384 dimensions are 1.3 GB
    momentum       m of the moving average; 0: the key encoder has the weights of the trained one
    in_batch_keys  `on`: the keys of the batch's other pairs are candidates too; `off` as in MoCo's code
    key_dropout    `on`: the key encoder drops out as the trained one does, as in MoCo's code; the paper does not
                   specify it
    seed           random seed of the unit vectors that fill the queues at first

    The two queues share their places: a pair's keys enter and leave together. Rows of other slots and hard negatives
    play no part, and groups of one give nothing. For a queue to be of one language, let slots be languages (`anchor =
    "first"`). A stream may have only one such objective, because the keys are a column of the batch.

    Deviation: a key in the queue, or in the batch, that means the same as the query's pair is left out, where the paper
    counts it as a negative. It happens when the queue is longer than an epoch.

    Raises ValueError for a number out of its range, an unknown switch, or queues that do not fit into memory.
    """

    follows, reads = True, ()
    queues: Tensor  # (2, queue, D) unit keys of slots 0 and 1
    meanings: Tensor  # (queue,) `key` of the pairs in them, NOTHING for the random vectors of the beginning
    pointer: Tensor  # () the next place

    def __init__(
        self,
        *,
        encoder: nn.Module,
        temperature: Temperature = 0.04,
        momentum: Annotated[float, Range(0, 1)] = 0.999,
        queue: Annotated[int, Range(1, LARGEST)] = 4096,
        in_batch_keys: Literal["off", "on"] = "off",
        key_dropout: Literal["off", "on"] = "on",
        seed: Seed = 0,
    ) -> None:
        super().__init__()
        self.temperature, self.momentum = temperature, momentum
        self.in_batch_keys, self.key_dropout = in_batch_keys == "on", key_dropout == "on"
        self.register_buffer("queues", draw_queues(encoder, queue, seed))
        self.register_buffer("meanings", torch.full((queue,), NOTHING))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))
        # Frozen weights and the tokenizer are shared, not copied.
        shared: list[object] = [weight for weight in encoder.parameters() if not weight.requires_grad]
        shared += [vars(module)["tokenizer"] for module in encoder.modules() if "tokenizer" in vars(module)]
        self.key_encoder = copy.deepcopy(encoder, {id(part): part for part in shared}).requires_grad_(False)

    def annotate(self, batch: Batch) -> None:
        """Add the unit keys (N, D) of the rows of slots 0 and 1; other rows are zero."""
        for module in self.key_encoder.modules():
            # Without dropout, an encoder's own flag stays: it switches the head that exists in training only.
            module.training = self.key_dropout or hasattr(module, "tokenize")
        keys = self.queues.new_zeros(len(batch), self.queues.shape[2])
        for rows in self._chunks(batch):
            chunk = unit(self.key_encoder(batch.tokens.select(rows))).to(keys.dtype)
            keys.index_copy_(0, send(rows, keys.device), chunk)
        batch.extras[KEY] = keys

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The losses of both directions, `dual_momentum` with slot 0 as the query and `dual_momentum/back`."""
        first, second = slot_pairs(batch.group, batch.slot)
        z, keys = unit(vectors), batch.extras[KEY]
        stored, met = matches(self.meanings, batch.key[first])
        group, key = batch.group[first], batch.key[first]
        alike = same_meaning(group, key, group, key, batch.slot[first])
        return {
            "dual_momentum": self._loss(pick(z, first), pick(keys, second), self.queues[1], (met, stored), alike),
            "dual_momentum/back": self._loss(pick(z, second), pick(keys, first), self.queues[0], (met, stored), alike),
        }

    def after_step(self, encoder: nn.Module, batches: Sequence[Batch]) -> None:
        """Update the key encoder (equation 1), then replace the oldest keys by those of the batches.

        MoCo's code moves it between a step's queries and keys. The queries do not change the weights, so this is
        equivalent to the update here, right after the preceding step.
        """
        both = zip(self.key_encoder.parameters(), encoder.parameters(), strict=True)
        # Frozen weights are shared; trained ones are float32, also under autocast.
        moved = [(average, new) for average, new in both if average is not new]
        if moved:
            averages: list[Tensor] = [average for average, _ in moved]
            torch._foreach_lerp_(averages, [new for _, new in moved], 1 - self.momentum)
            torch.autograd.graph.increment_version(averages)  # or on CUDA they do not count as changed (rounding.py)
        for average, current in zip(self.key_encoder.buffers(), encoder.buffers(), strict=True):
            average.lerp_(current, 1 - self.momentum) if average.is_floating_point() else average.copy_(current)
        for batch in batches:
            self._enqueue(batch)

    def _enqueue(self, batch: Batch) -> None:
        first, second = slot_pairs(batch.group, batch.slot)
        length = len(self.meanings)
        last = slice(max(0, len(first) - length), len(first))  # of a batch longer than the queue, the last keys
        places = (self.pointer + torch.arange(len(first))[last]) % length
        for queue, rows in zip(self.queues, (first, second), strict=True):
            queue.index_copy_(0, send(places, queue.device), pick(batch.extras[KEY], rows[last]))
        self.meanings[places] = batch.key[first[last]]
        self.pointer.add_(len(first)).remainder_(length)

    def _loss(self, queries: Tensor, keys: Tensor, queue: Tensor, stored: Pairs, alike: Pairs) -> Tensor:
        """Mean over the pairs (P, D) of equation 2, with the queue as it was before this batch."""
        positive = (queries * keys).sum(dim=1) / self.temperature
        in_batch = positive
        if self.in_batch_keys:
            in_batch = log_sum_exp(queries, keys, temperature=self.temperature, dropped=alike)
        others = log_sum_exp(queries, queue, temperature=self.temperature, dropped=stored)
        return (torch.logaddexp(in_batch, others) - positive).sum() / max(1, len(positive))

    def _chunks(self, batch: Batch) -> Iterator[Tensor]:
        """Rows of slots 0 and 1, those of like length together, within a budget of tokens, padding included."""
        rows = ((batch.slot == 0) | (batch.slot == 1)).nonzero()[:, 0]
        if not getattr(self.key_encoder, "pads", True):
            yield rows
            return
        budget = CPU_TOKENS if self.queues.device.type == "cpu" else DEVICE_TOKENS
        for chunk in pack(batch.tokens.lengths[rows.numpy()], budget, padding=padding_on(self.queues.device)):
            yield rows[torch.from_numpy(chunk)]


def draw_queues(encoder: nn.Module, length: int, seed: int) -> Tensor:
    """Two tables (2, length, D) of random unit rows, D that of the encoder; ValueError if memory is insufficient."""
    weight = next(encoder.parameters())
    kind, width = torch.promote_types(weight.dtype, torch.float32), cast(int, encoder.dim)
    check_memory(
        2 * width * kind.itemsize * length, weight.device, f"queue: two queues of {length:,} x {width} numbers"
    )
    queues = torch.empty(2, length, width, dtype=kind).normal_(generator=torch.Generator().manual_seed(seed))
    return queues.div_(torch.linalg.vector_norm(queues, dim=2, keepdim=True))
