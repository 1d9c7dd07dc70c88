"""Six layers that give what the twelve of a teacher give, state by state: where isoglot-small begins.

    python scripts/small_states.py DATA OUTPUT TEACHER START STUDENT [--steps 1300] [--rate 1e-3] [--device cpu]

Reads base-long, base-questions, base-pairs and base-groups.jsonl in OUTPUT, which scripts/base_texts.py writes, and
writes there the model STUDENT: layers 1, 2, 4, 6, 10 and 12 of START, which is TEACHER in eight bits, with its word
table, which stays as it is. They are trained so that the states of every token after the last four of them are those
of the teacher's layers 5, 8, 10 and 12 (the hidden states of TinyBERT, Jiao et al. 2020, eq. 8, without a projection,
since both are as wide), and the mean of the last states that of the teacher. A text needs no translation and no other
text, and every token is a target of 384 numbers, where a distilled vector is one for a whole text: this learns from far
less text.

Deviation: squares are divided by the mean square of the teacher's states, so that all layers count the same, and the
layers of attention are not compared.

With RANK and WORLD_SIZE in the environment, several processes train together, each on its part of a step's text. The
rate falls to zero over the steps. A run that was stopped goes on from STUDENT.pt, which is written every 20 steps; one
whose errors rise again ends with an error. On an accelerator a step has ten times the text.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.distributed
from torch import Tensor
from torch.nn import functional as F

import base_texts
from isoglot.data.readers import read
from isoglot.data.tokens import Ids, Tokens, pack, padding_on
from isoglot.encoders import load
from isoglot.encoders.bert import Bert
from isoglot.encoders.device import resolve
from isoglot.encoders.rounding import for_inference
from isoglot.encoders.transformer import TransformerEncoder

LAYERS = (1, 2, 4, 6, 10, 12)  # of the teacher, with which the student begins
MATCHED = ((3, 5), (4, 8), (5, 10), (6, 12))  # layers of the student, and of the teacher, whose states are compared
POOLED = 5.0  # weight of the squared error of the vectors
WARMUP = 40  # steps
TOKENS, CHUNK = 6144, 1024  # of a step on CPUs; of those that one process computes together
WINDOW = 20  # steps between checkpoints, whose mean errors are printed and compared
DIVERGED = 1.3  # times the lowest mean error
ACCELERATED = 10  # times as many of both on an accelerator
BLOCK = 256  # texts that are tokenized together
PARAGRAPHS, OF_A_PAGE = 2500, 6
BIBLE = 0.3  # of its verses
SHARES = {"paragraphs": 0.3, "long": 0.2, "questions": 0.08, "pairs": 0.22, "groups": 0.2}  # of the tokens
GROUPS = ("mozilla-www", "storybooks", "hornmt", "xcopa")
PROMPTS, SHARES_OF_PROMPTS = ("", base_texts.QUERY, base_texts.PASSAGE), (0.8, 0.1, 0.1)  # of sentences


def texts(data: Path, beside: Path) -> dict[str, list[str]]:
    """Texts of each kind in SHARES."""

    def lines(path: Path) -> list[str]:
        return [text for group in read("jsonl", path, on_unknown_language="skip") for text in group.texts]

    draw = random.Random(0)
    paragraphs = base_texts.paragraphs(data, most=PARAGRAPHS, of_a_page=OF_A_PAGE)
    verses = [text for text in lines(data / "bible" / "groups.jsonl.xz") if draw.random() < BIBLE]
    sets = chain.from_iterable(lines(data / name / "groups.jsonl.xz") for name in GROUPS)
    return {
        "paragraphs": [text for group in paragraphs for text in group.texts],
        "groups": [*sets, *lines(beside / "base-groups.jsonl"), *verses],
    } | {name: lines(beside / f"base-{name}.jsonl") for name in ("long", "questions", "pairs")}


def rows(kind: str, texts: list[str], student: TransformerEncoder, draw: random.Random) -> Iterator[Ids]:
    """The tokens of one text after another without end, in a new order each time; some sentences have a prompt."""
    while True:
        draw.shuffle(texts)
        for start in range(0, len(texts), BLOCK):
            block = texts[start : start + BLOCK]
            if kind in ("pairs", "groups"):
                block = [draw.choices(PROMPTS, SHARES_OF_PROMPTS)[0] + text for text in block]
            tokens = student.tokenize(block, prompt="")
            yield from np.split(tokens.ids, tokens.lengths.cumsum()[:-1])


def batches(
    kinds: dict[str, list[str]], student: TransformerEncoder, draw: random.Random, size: int
) -> Iterator[Tokens]:
    """Tokens of about `size` of text, each kind with its share."""
    endless = {kind: rows(kind, texts, student, draw) for kind, texts in kinds.items()}
    while True:
        batch: list[Ids] = []
        for kind, share in SHARES.items():
            left = share * size
            while left > 0:
                batch.append(next(endless[kind]))
                left -= len(batch[-1])
        yield Tokens(np.concatenate(batch), np.array([len(row) for row in batch]))


def loss(students: Sequence[Tensor], teachers: Sequence[Tensor], mask: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """The errors of a chunk's states, one of each pair in MATCHED, times its `share` of all tokens; of its vectors.

    students, teachers  (N, T, D) the states behind the embeddings and behind every layer
    mask                (N, T) 1 for tokens
    """
    errors = []
    for one, other in MATCHED:
        target = teachers[other].float()
        square = (students[one].float() - target).square().sum(-1)
        errors.append((square * mask).sum() / (target.square().sum(-1) * mask).sum() * share)
    ours, theirs = (
        F.normalize((states[-1].float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=1)
        for states in (students, teachers)
    )
    return torch.stack(errors), (ours - theirs).square().sum()


def step(student: TransformerEncoder, teacher: TransformerEncoder, tokens: Tokens, chunk: int) -> Tensor:
    """Add the gradients of a batch; the errors of its states and of its vectors."""
    total, device = int(tokens.lengths.sum()), student.device
    errors = torch.zeros(len(MATCHED) + 1, device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        for rows in pack(tokens.lengths, chunk, padding=padding_on(device)):
            ids, padding = student.prepared(tokens.select(rows)).table
            ids = ids.to(device, non_blocking=True)
            padding = None if padding is None else padding.to(device, non_blocking=True)
            mask = torch.ones(ids.shape, device=device) if padding is None else padding.float()
            inputs = {"input_ids": ids, "attention_mask": padding, "output_hidden_states": True}
            with torch.no_grad():
                targets = teacher.backbone(**inputs).hidden_states
            of_states, of_vectors = loss(student.backbone(**inputs).hidden_states, targets, mask, mask.sum() / total)
            of_vectors = of_vectors / len(tokens)
            (of_states.sum() + POOLED * of_vectors).backward()  # type: ignore[no-untyped-call]
            errors += torch.cat([of_states, of_vectors[None]]).detach()
    return errors


def train(
    student: TransformerEncoder,
    teacher: TransformerEncoder,
    feed: Iterator[Tokens],
    *,
    steps: int,
    rate: float,
    checkpoint: Path,
) -> None:
    """Train the student's layers, from the checkpoint if there is one.

    Raises SystemExit where the errors rise again, as they do when the rate is too high.
    """
    assert isinstance(student.backbone, Bert)
    layers = student.backbone.get_submodule("encoder.layer")
    weights = [weight for weight in layers.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    begin, lowest = resume(checkpoint, weights, optimizer)
    for _ in range(begin):
        next(feed)
    errors, ahead = torch.zeros(len(MATCHED) + 1), ThreadPoolExecutor(1)
    following = ahead.submit(next, feed)
    for number in range(begin + 1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, number / WARMUP) * (1 - number / steps)
        optimizer.zero_grad(set_to_none=True)
        batch, following = following.result(), ahead.submit(next, feed)
        errors += step(student, teacher, batch, CHUNK * scale(student.device)).cpu() / WINDOW
        average_gradients(weights)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if number % WINDOW == 0:
            print(f"step {number} of {steps}: {' '.join(f'{mean:.4f}' for mean in errors.tolist())}", flush=True)
            total = float(errors.sum())
            if total > DIVERGED * lowest:
                raise SystemExit(f"step {number}: errors rose from {lowest:.3f} to {total:.3f}, the rate is too high")
            lowest = min(lowest, total)
            errors.zero_()
            keep(checkpoint, weights, optimizer, number, lowest)
    ahead.shutdown()


def resume(checkpoint: Path, weights: Sequence[Tensor], optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Take weights and the optimizer's state from a checkpoint; its step, 0 without one, and the lowest errors."""
    if not checkpoint.exists():
        return 0, float("inf")
    state = torch.load(checkpoint, map_location=weights[0].device)
    for weight, value in zip(weights, state["weights"], strict=True):
        weight.data.copy_(value)
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["lowest"]


def keep(
    checkpoint: Path, weights: Sequence[Tensor], optimizer: torch.optim.Optimizer, number: int, lowest: float
) -> None:
    """Write a checkpoint, in the first process."""
    if process()[0] == 0:
        writing = checkpoint.with_suffix(".part")
        state = {"weights": weights, "optimizer": optimizer.state_dict(), "step": number, "lowest": lowest}
        torch.save(state, writing)
        writing.replace(checkpoint)


def average_gradients(weights: Sequence[Tensor]) -> None:
    """Give all processes the mean of their gradients."""
    processes = process()[1]
    if processes > 1:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        mean = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(mean)
        mean /= processes
        parts = torch.split(mean, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            # Into its place: a fused optimizer takes the strides of a gradient for those of its weight.
            gradient.copy_(part.view_as(gradient))


def process() -> tuple[int, int]:
    """The rank of this process, and how many there are."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def scale(device: torch.device) -> int:
    """How many times the text of a step on a CPU."""
    return 1 if device.type == "cpu" else ACCELERATED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("teacher")
    parser.add_argument("start")
    parser.add_argument("student")
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--rate", type=float, default=1e-3, help="the highest; warms up, then falls to 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    words = parser.parse_args()
    torch.manual_seed(words.seed)
    torch.set_num_threads(1)
    device = resolve(words.device)
    teacher = for_inference(load(words.output / words.teacher).to(device).eval(), "bfloat16")
    student = load(words.output / words.start, layers=LAYERS, dropout=0.0, freeze_embeddings=True).to(device)
    assert isinstance(teacher, TransformerEncoder)
    assert isinstance(student, TransformerEncoder)
    student.backbone.embeddings.requires_grad_(False)
    rank, processes = process()
    if processes > 1:
        torch.distributed.init_process_group("gloo")
    draw = random.Random(100 * words.seed + rank)
    feed = batches(texts(words.data, words.output), student, draw, TOKENS * scale(device) // processes)
    checkpoint = words.output / f"{words.student}.pt"
    train(student.train(), teacher, feed, steps=words.steps, rate=words.rate, checkpoint=checkpoint)
    if rank == 0:
        student.cpu().eval().save(words.output / words.student)


if __name__ == "__main__":
    main()
