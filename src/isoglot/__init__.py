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

from isoglot.core import __version__

_HOMES = {
    "Encoder": "isoglot.encoders",
    "Group": "isoglot.data.groups",
    "Index": "isoglot.index",
    "IsoglotError": "isoglot.core.errors",
    "Model": "isoglot.model",
    "Objective": "isoglot.objectives",
    "Score": "isoglot.core.score",
    "align": "isoglot.mining",
    "compare": "isoglot.evaluation.compare",
    "encode": "isoglot.model",  # not in `__all__`: `model.encode` as a function; one form is listed
    "evaluate": "isoglot.evaluation.evaluate",
    "freeze": "isoglot.training.freeze",
    "load": "isoglot.model",
    "mine": "isoglot.mining",
    "plot": "isoglot.evaluation.plot",
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
    from isoglot.core.errors import IsoglotError
    from isoglot.core.score import Score
    from isoglot.data.groups import Group
    from isoglot.encoders import Encoder
    from isoglot.evaluation.compare import compare
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.evaluation.plot import plot
    from isoglot.index import Index
    from isoglot.mining import align, mine
    from isoglot.model import Model, load
    from isoglot.objectives import Objective
    from isoglot.training.freeze import freeze
    from isoglot.training.train import train


def __getattr__(name: str) -> Any:
    from isoglot.core.errors import naming_extras, nearest

    if name not in _HOMES:
        raise AttributeError(f"module 'isoglot' has no attribute {name!r}; {nearest(name, __all__, most=len(__all__))}")
    with naming_extras():
        value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value  # a subpackage of the same name, imported later, must not replace it
    return value


def __dir__() -> list[str]:
    return __all__
