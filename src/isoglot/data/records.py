"""The record every reader yields: sentences that mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences that mean the same thing: one is monolingual text, two a pair, sixty a news line in sixty languages.

    `langs` holds one code per text (ISO 639-3, `zho_Hans` where a script matters, `und` when unknown). Groups whose
    `key` is equal mean the same and are never negatives of each other; an empty key means "like no other group".
    `hard_negatives` are sentences that must be told apart from this group, with `hard_langs` alike. `extras` holds
    one number, or one fixed-length tuple of numbers, per name: an entity's row, a label.
    """

    texts: tuple[str, ...]
    langs: tuple[str, ...]
    key: str = ""
    hard_negatives: tuple[str, ...] = ()
    hard_langs: tuple[str, ...] = ()
    extras: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.langs) or len(self.hard_negatives) != len(self.hard_langs):
            raise ValueError(
                f"every sentence needs its language: {len(self.texts)} texts with {len(self.langs)} langs, "
                f"{len(self.hard_negatives)} hard negatives with {len(self.hard_langs)} hard_langs"
            )
