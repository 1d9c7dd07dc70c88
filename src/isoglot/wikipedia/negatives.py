"""Hard negative entities: of the same type, and not linked on the page (Nishikawa et al. 2022, EASE, section 3.2).

The rule of the paper, with the numbers of its code: one of the entity's types at random, at most ten entities of it at
random, both once for each entity; then, for each sentence, without those that its page links anywhere.

Deviation: types come with the entity itself, as titles do; the published code looks its types up by the English label,
which several entities may share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from random import Random


def members(types: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Entities of each type in ascending order, from the types of each entity."""
    found: dict[str, list[str]] = {}
    for entity in sorted(types):
        for kind in types[entity]:
            found.setdefault(kind, []).append(entity)
    return found


def candidates(
    entity: str,
    types: Mapping[str, Sequence[str]],
    *,
    of_type: Mapping[str, Sequence[str]],
    seed: int,
    size: int = 10,
) -> tuple[str, ...]:
    """At most `size` entities of one type of the entity, without itself; none if it has no type.

    A function of the seed and the entity: it does not matter in which order, or where, entities are asked for.
    """
    kinds = types.get(entity, ())
    if not kinds:
        return ()
    digest = hashlib.blake2b(f"{seed}\t{entity}".encode(), digest_size=8).digest()
    draw = Random(int.from_bytes(digest, "big"))
    same = of_type[kinds[draw.randrange(len(kinds))]]
    return tuple(one for one in draw.sample(same, min(size, len(same))) if one != entity)


def hard(chosen: Sequence[str], linked: Collection[str]) -> list[str]:
    """The candidates of an entity for a sentence whose page links these entities."""
    return [one for one in chosen if one not in linked]
