"""Towers: several encoders with separate tokenizers and weights and one vector space; each text is encoded by one of
them.

Dual momentum contrast (Wang, Zhao and Liu 2021) trains an English and a Chinese BERT towards each other. The tower is
chosen by the script of the text, not by its language, so that a text of unknown language can be encoded too. The
tokenizer makes the choice: ids of the second tower begin at STRIDE, so tokens stay one ragged table and identify their
tower.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isoglot.data.batch import send
from isoglot.data.tokens import Tokens, concatenate
from isoglot.encoders.base import Encoder
from isoglot.model import configs, layout

STRIDE = 1 << 24  # more than any vocabulary; 255 towers fit into the 32 bits in which tokens are kept
FILE = "towers.json"
TYPE = "isoglot.encoders.towers.Towers"


class Towers(Encoder):
    """Encoders of equal width by name, and the scripts whose letters each reads; one without scripts takes the rest.

    A script is the first word of Unicode's names of its letters: LATIN, CJK, HANGUL. A text goes to the tower that
    reads most of its letters, and to the first of several; so does a text without letters. A text of no tokens has the
    zero vector. Each tower has a prompt of its own, so that `prompt` here is empty; `prompts` are those of all towers.

    Raises ValueError for towers that do not fit together: fewer than two, of unequal width, with a name that cannot be
    a folder, with a script that is unknown or another tower's, two that take the rest, or towers within towers.
    """

    def __init__(self, towers: Mapping[str, Encoder], scripts: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        _check(towers, scripts)
        self.scripts = {name: tuple(scripts.get(name, ())) for name in towers}
        self.towers = nn.ModuleDict(towers)
        members = self.members
        self.dim = members[0].dim
        self.pads = any(tower.pads for tower in members)
        self.concurrent = all(tower.concurrent for tower in members)
        self.normalizes = all(tower.normalizes for tower in members)
        shared = [set(tower.prompts.items()) for tower in members]
        self.prompts = dict(sorted(set.intersection(*shared)))
        self.pooling = " ".join(tower.pooling or "mean" for tower in members)  # for the identity
        self._route = _routes(self.scripts)
        self.train(members[0].training)

    @property
    def keeps_bfloat16(self) -> bool:
        """Whether that holds for each tower."""
        return all(tower.keeps_bfloat16 for tower in self.members)

    @property
    def members(self) -> list[Encoder]:
        """The towers in their order."""
        return [cast(Encoder, tower) for tower in self.towers.values()]

    def routes(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """(N,) the number of each text's tower."""
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        width = len(self.towers) + 1  # the last column counts letters of other scripts
        cells = np.repeat(np.arange(len(texts)) * width, lengths) + self._route[points]
        letters = np.bincount(cells, minlength=len(texts) * width).reshape(len(texts), width)
        numbers: NDArray[np.int64] = letters[:, :-1].argmax(axis=1)
        return numbers

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids by each text's tower, moved up by the tower's number times STRIDE."""
        numbers = self.routes(texts)
        rows = [np.flatnonzero(numbers == number) for number in range(len(self.members))]
        parts = []
        for number, tower in enumerate(self.members):
            tokens = tower.tokenize([texts[row] for row in rows[number].tolist()], prompt=prompt)
            parts.append(Tokens(tokens.ids + number * STRIDE, tokens.lengths))
        return concatenate(parts).select(np.concatenate(rows).argsort())

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D): each row by its tower; a row without tokens is zero."""
        filled = tokens.lengths > 0
        numbers = np.full(len(tokens), len(self.towers))
        numbers[filled] = tokens.ids[tokens.starts[filled]] // STRIDE
        order = np.argsort(numbers, kind="stable")
        parts = []
        for number, tower in enumerate(self.members):
            piece = tokens.select(order[numbers[order] == number])
            if len(piece):
                parts.append(tower(Tokens(piece.ids % STRIDE, piece.lengths)))
        parts.append(torch.zeros(int((~filled).sum()), self.dim, device=self.device))
        return torch.cat(parts).index_select(0, send(torch.from_numpy(order.argsort()), self.device))

    @property
    def max_length(self) -> int:
        """The longest of the towers' maximum lengths; setting it sets that of each."""
        return max(tower.max_length for tower in self.members)

    @max_length.setter
    def max_length(self, value: int) -> None:
        for tower in self.members:
            tower.max_length = value

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of the towers' names, scripts and fingerprints."""
        facts = [f"{name} {','.join(self.scripts[name])}" for name in self.towers]
        facts += [tower.fingerprint for tower in self.members]
        return hashlib.sha256("\n".join(facts).encode()).hexdigest()

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write each tower into a folder of its name, which opens alone too, and what makes them one."""
        for tower_name, tower in zip(self.towers, self.members, strict=True):
            (folder / tower_name).mkdir()
            tower.write(folder / tower_name)
        layout.write_json(folder / FILE, [{"name": tower, "scripts": self.scripts[tower]} for tower in self.towers])
        layout.write_modules(folder, [(TYPE, "")], name=name)


def open_towers(folder: Path, read: Callable[[Path], Encoder]) -> Towers:
    """The towers saved in a folder, each opened by `read`; EncoderError if they do not fit together."""
    lines = [(line.name, tuple(line.scripts)) for line in configs.read(folder / FILE, list[configs.Tower])]
    with configs.reading(folder / FILE):
        return Towers({name: read(folder / name) for name, _ in lines}, dict(lines))


def _check(towers: Mapping[str, Encoder], scripts: Mapping[str, Sequence[str]]) -> None:
    if not 2 <= len(towers) < 256:
        raise ValueError(f"between 2 and 255 towers of different names are needed, got {', '.join(towers) or 'none'}")
    for name in (*towers, *scripts):
        if name not in towers or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"a tower's name is letters, digits, - and _, and scripts are of a tower; got {name!r}")
    if any(isinstance(tower, Towers) for tower in towers.values()):
        raise ValueError("a tower cannot be towers itself; name all of them side by side")
    if len(widths := {tower.dim for tower in towers.values()}) > 1:
        raise ValueError(f"towers must have vectors of equal width, got {', '.join(map(str, sorted(widths)))}")
    readers: dict[str, str] = {}
    for name in towers:
        for script in scripts.get(name, ()) or ("",):
            if script and script not in _letters()[0]:
                raise ValueError(f"{name}: no Unicode letter name begins with {script!r}; use LATIN, CJK or the like")
            if script in readers:
                what = f"both read {script}" if script else "both read all remaining scripts; set the scripts of one"
                raise ValueError(f"{readers[script]} and {name} {what}")
            readers[script] = name


@cache
def _letters() -> tuple[dict[str, int], NDArray[np.int16]]:
    """Each script's number from 1, and (0x110000,) the script of every code point, 0 if it is not a letter."""
    numbers: dict[str, int] = {}
    script = np.zeros(0x110000, dtype=np.int16)
    for point in range(len(script)):
        character = chr(point)
        if character.isalpha():
            word = unicodedata.name(character, "").partition(" ")[0]
            script[point] = numbers.setdefault(word, len(numbers) + 1)
    return numbers, script


def _routes(scripts: Mapping[str, Iterable[str]]) -> NDArray[np.uint8]:
    """(0x110000,) the number of the tower that reads a code point; one more than the last for what none does."""
    numbers, script = _letters()
    rest = next((place for place, names in enumerate(scripts.values()) if not names), len(scripts))
    tower = np.full(len(numbers) + 1, rest, dtype=np.uint8)
    tower[0] = len(scripts)
    for place, names in enumerate(scripts.values()):
        tower[[numbers[name] for name in names]] = place
    return tower[script]
