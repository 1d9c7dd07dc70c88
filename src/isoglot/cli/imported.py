"""A Python function that the command line names as `module:name`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any


def imported(name: str) -> Callable[..., Any]:
    """What `module:name` names, looked for in the folder one stands in too. Raises `ImportError`, whatever is wrong."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (AttributeError, ValueError) as error:
        raise ImportError(error) from error
    finally:
        sys.path.remove("")
    return found
