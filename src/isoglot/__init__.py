"""isoglot: sentence embeddings in which every language is the same language.

Ten lines are enough for most uses; the same names are the verbs of the command line.

    import isoglot

    encoder = isoglot.load("multilingual-e5-small")
    vectors = isoglot.encode(encoder, ["Guten Morgen!", "Good morning!"])

Importing this package imports nothing heavy; each name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Group": "isoglot.data.groups",
    "IsoglotError": "isoglot.errors",
    "compare": "isoglot.report.compare",
    "encode": "isoglot.encoders",
    "evaluate": "isoglot.report.evaluate",
    "for_mteb": "isoglot.encoders.mteb",
    "load": "isoglot.encoders",
    "load_recipe": "isoglot.recipe",
    "mine": "isoglot.search.mining",
    "plot": "isoglot.report.plot",
    "train": "isoglot.training.loop",
}

__all__ = [
    "Group",
    "IsoglotError",
    "__version__",
    "compare",
    "encode",
    "evaluate",
    "for_mteb",
    "load",
    "load_recipe",
    "mine",
    "plot",
    "train",
]

if TYPE_CHECKING:
    from isoglot.data.groups import Group
    from isoglot.encoders import encode, load
    from isoglot.encoders.mteb import for_mteb
    from isoglot.errors import IsoglotError
    from isoglot.recipe import load as load_recipe
    from isoglot.report.compare import compare
    from isoglot.report.evaluate import evaluate
    from isoglot.report.plot import plot
    from isoglot.search.mining import mine
    from isoglot.training.loop import train


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'isoglot' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name.removesuffix("_recipe"))
