"""Numbers in text files: finite, and small enough for the arrays that store them.

`float` and `int` accept too much: "nan", "1e999", digits of other scripts, "1_000", and numbers of
thousands of digits, on which `int` fails.
"""

from __future__ import annotations

import math
import re

from isoglot.core.errors import quote

_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
LARGEST_WHOLE = (1 << 63) - 1  # int64
LARGEST = 3.4e38  # float32, in which tables keep numbers


def finite(text: str) -> float:
    """Parse a number that is finite in float32; white space around it is allowed. Raises `ValueError`."""
    value = float(text) if _FLOAT.fullmatch(text.strip()) else math.nan
    if not fits(value):
        raise ValueError(f"{quote(text, most=40)} is not a number that is finite in float32")
    return value


def whole(text: str) -> int:
    """Parse a whole number of at most 18 digits; white space around it is allowed. Raises `ValueError`."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"{quote(text, most=40)} is not a whole number of at most 18 digits")
    return int(text)


def fits(value: float) -> bool:
    """Whether a number is finite in float32 or, if it is an `int`, within 64 bits."""
    return abs(value) <= (LARGEST_WHOLE if isinstance(value, int) else LARGEST)
