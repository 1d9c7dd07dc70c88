"""What the contract asks of each task: small data of its own, a perfect encoder for them, and what chance gives.

A file `cases_<kind>.py` beside this one holds `CASES`, task name -> `Case`; `tests/contract/test_tasks.py` finds it.
"""

import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from isoglot.evaluation import TASKS


@cache
def random_vector(text, dim=32):
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(dim)
    vector.flags.writeable = False  # one array for all who ask
    return vector


def by_last_word(texts):
    """The same vector for all texts that end in the same word."""
    return np.array([random_vector(text.split()[-1]) for text in texts]).reshape(len(texts), 32)


def by_text(texts):
    """Unrelated vectors for different texts."""
    return np.array([random_vector(text) for text in texts]).reshape(len(texts), 32)


def noisy(texts, dim=8, noise=0.8):
    """Texts that end in the same word lie near each other; a third of them not near enough."""
    return np.array([random_vector(t.split()[-1], dim) + noise * random_vector(t, dim) for t in texts], np.float32)


def value(scores, subset, metric):
    """The value of the one score of a subset and a metric."""
    (found,) = [score.value for score in scores if (score.subset, score.metric) == (subset, metric)]
    return found


def skipping(told, *arguments, **options):
    """Scores without what is missing, which is added to `told`."""
    from isoglot.evaluation.evaluate import evaluate

    scores = evaluate(*arguments, skip_missing=True, **options)
    told += scores.missing
    return scores


@dataclass(frozen=True)
class Case:
    """One task of the contract.

    write    writes data for the languages `languages` (two or more, or none for a task of one language) into a folder
    oracle   texts -> the vectors of a perfect encoder
    perfect  metric -> the value it must give on every subset and average (within 1e-9)
    chance   metric -> (value expected of `by_text`, tolerance); every metric of the task is in it
    where    a pattern that the message of unusable vectors must match, behind the task's name
    """

    write: Callable[[Path], None]
    perfect: Mapping[str, float]
    chance: Mapping[str, tuple[float, float]]
    oracle: Callable = by_last_word
    languages: tuple[str, ...] = ()
    where: str = ""


def every_metric(task, value):
    """One value for all metrics that a task declares."""
    return dict.fromkeys((metric.name for metric in TASKS[task].metrics), value)


def all_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        found.update(importlib.import_module(path.stem).CASES)
    return found
