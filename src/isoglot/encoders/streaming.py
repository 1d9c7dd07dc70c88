"""Any iterable of texts, window after window: cut, freed of repetitions, and tokenised in a thread ahead.

At most three windows are held, however long the stream: one being computed, one being tokenised, one being read. Where
windows end depends on the texts alone, so that the same stream is always cut alike; that is what makes an encoding
that was interrupted and resumed equal, byte for byte, to one that was not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from isoglot.data.batch import Tokens

CHARACTERS = 16_777_216  # a window of very long texts ends here, whatever their number
_STEP = 64  # texts between two looks at their length


@dataclass(frozen=True, slots=True)
class Window:
    """Some texts in their order, the distinct ones among them, which of these each is (None: all differ), tokens."""

    texts: list[str]
    distinct: list[str]
    rows: NDArray[np.int64] | None
    tokens: Tokens


def windows(texts: Iterable[str], size: int, tokenize: Callable[[list[str]], Tokens]) -> Iterator[Window]:
    """Windows of at most `size` texts, tokenised one ahead of the caller. Raises ValueError for what is no string."""
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
        waiting: deque[Future[Window]] = deque()
        for first, part in _cut(texts, size):
            waiting.append(pool.submit(_window, part, first, tokenize))
            if len(waiting) > 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def distinct(texts: Sequence[str], first: int = 0) -> tuple[list[str], NDArray[np.int64] | None]:
    """The distinct texts in order of first appearance, and which of them each text is; None if all differ.

    `first` is the number of the first text, for the message of the ValueError that is raised if one is no string.
    """
    if not set(map(type, texts)) <= {str}:  # the loop below is slow, and seldom needed
        for row, text in enumerate(texts, first):
            if not isinstance(text, str):
                raise ValueError(f"text {row} is {text!r}, of type {type(text).__name__}; every text must be a string")
    place = dict.fromkeys(texts, 0)
    if len(place) == len(texts):
        return list(texts), None
    found = list(place)
    place.update(zip(found, range(len(found)), strict=True))
    return found, np.fromiter(map(place.__getitem__, texts), dtype=np.int64, count=len(texts))


def _window(texts: list[str], first: int, tokenize: Callable[[list[str]], Tokens]) -> Window:
    found, rows = distinct(texts, first)
    return Window(texts, found, rows, tokenize(found))


def _cut(texts: Iterable[str], size: int) -> Iterator[tuple[int, list[str]]]:
    """(number of the first text, texts), ended by `size` or, looked at every 64 texts, by CHARACTERS."""
    source, first = iter(texts), 0
    part: list[str] = []
    length = 0
    while step := list(islice(source, min(_STEP, size - len(part)))):
        part += step
        length += sum(len(text) for text in step if isinstance(text, str))
        if len(part) == size or length >= CHARACTERS:
            yield first, part
            first, part, length = first + len(part), [], 0
    if part:
        yield first, part
