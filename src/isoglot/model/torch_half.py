"""The half of this package that needs torch, imported by name: nothing in the other half depends on it."""

from __future__ import annotations

import importlib
from typing import Any

from isoglot.errors import EncoderError

_NEEDED = ("torch", "transformers")


def torch_half(module: str) -> Any:
    """The module `isoglot.MODULE`, such as encoders. Raises EncoderError if torch or transformers is not installed."""
    try:
        return importlib.import_module(f"isoglot.{module}")
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise EncoderError(f'this needs {error.name}: pip install "isoglot[torch]"') from error
