"""isoglot: multilingual sentence embeddings.

    import isoglot

    model = isoglot.load("multilingual-e5-small")
    vectors = model.encode(["Guten Morgen!", "Good morning!"])
    model.similarity("Guten Morgen!", ["Good morning!", "Good night!"])

Importing this package is fast: each name, and what it needs, is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    "Encoder": "isoglot.encoders",
    "Group": "isoglot.data.groups",
    "Index": "isoglot.index",
    "IsoglotError": "isoglot.errors",
    "Model": "isoglot.model",
    "Objective": "isoglot.objectives",
    "Score": "isoglot.score",
    "align": "isoglot.mining",
    "compare": "isoglot.evaluation.compare",
    "encode": "isoglot.model",  # not in `__all__`: `model.encode` as a function; one form is listed
    "evaluate": "isoglot.evaluation.evaluate",
    "freeze": "isoglot.training.freeze",
    "load": "isoglot.model",
    "mine": "isoglot.mining",
    "plot": "isoglot.report.plot",
    "train": "isoglot.training.train",
}

__all__ = [
    "Encoder",
    "Group",
    "Index",
    "IsoglotError",
    "Model",
    "Objective",
    "Score",
    "__version__",
    "align",
    "compare",
    "evaluate",
    "freeze",
    "load",
    "mine",
    "plot",
    "train",
]

if TYPE_CHECKING:
    from isoglot.data.groups import Group
    from isoglot.encoders import Encoder
    from isoglot.errors import IsoglotError
    from isoglot.evaluation.compare import compare
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.index import Index
    from isoglot.mining import align, mine
    from isoglot.model import Model, load
    from isoglot.objectives import Objective
    from isoglot.report.plot import plot
    from isoglot.score import Score
    from isoglot.training.freeze import freeze
    from isoglot.training.train import train


def __getattr__(name: str) -> Any:
    from isoglot.errors import naming_extras, nearest

    if name not in _HOMES:
        raise AttributeError(f"module 'isoglot' has no attribute {name!r}; {nearest(name, __all__, most=len(__all__))}")
    with naming_extras():
        value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value  # a subpackage of the same name, imported later, must not replace it
    return value


def __dir__() -> list[str]:
    return __all__
