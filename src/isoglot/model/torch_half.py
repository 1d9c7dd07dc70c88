"""The half of this package that needs torch, imported by name: nothing in the other half depends on it."""

from __future__ import annotations

import importlib
from typing import Any

from isoglot.core.errors import naming_extras


def torch_half(module: str) -> Any:
    """The module `isoglot.MODULE`, such as encoders. Raises MissingExtraError if torch or transformers is missing."""
    with naming_extras():
        return importlib.import_module(f"isoglot.{module}")
