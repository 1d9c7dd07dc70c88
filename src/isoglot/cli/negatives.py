"""`isoglot negatives`: pairs in, the same pairs with mined hard negatives out, for translation ranking (mUSE)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.options import Model, Pooling, Prompt, note_fewer, split

if TYPE_CHECKING:
    from isoglot.data.groups import Group

_READERS = {".jsonl": "jsonl", ".tmx": "tmx"}


def command(
    model: Model,
    pairs: Annotated[Path, typer.Argument(help="Pairs: .tsv, .jsonl, .tmx, or a folder of two line-aligned files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines to write, one pair each.")],
    count: Annotated[int, typer.Option(min=1, help="Hard negatives of a pair.")] = 3,
    languages: Annotated[str, typer.Option(help="The two languages, where the file or folder does not tell.")] = "",
    leakage: Annotated[
        list[str] | None, typer.Option(help="Test file or folder none of whose sentences is written; repeatable.")
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
) -> None:
    """Give each pair the targets that a model finds nearest to its source and that do not translate it."""
    asked = Asked(model, pairs, split(languages), leakage or [], pooling, prompt)
    written = run(asked, output, count=count)
    typer.echo(f"{written:,} pairs with up to {count} hard negatives each: {output}", err=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """The pairs, what is left out of them, and the model to mine with."""

    model: str
    pairs: Path
    languages: Sequence[str] = ()
    leakage: Sequence[str] = ()
    pooling: str | None = None
    prompt: str | None = None


def run(asked: Asked, output: Path, *, count: int) -> int:
    """Write the pairs, each with at most `count` hard negatives in the target's language; how many pairs there are.

    Pairs are read as a training stream reads them: without leaks and exact repetitions. Every target that stands
    beside the same source text counts as its translation, and equal targets are one. Held in memory: the texts; their
    vectors lie in a temporary folder. Raises CorpusError for pairs that are none.
    """
    from isoglot.data.files import atomic_write, check_output
    from isoglot.search.hard_negatives import hard_negatives

    check_output(output, inputs=[asked.model, asked.pairs, *map(_place, asked.leakage)])
    groups = list(_pairs(asked))
    sources = list(dict.fromkeys(group.texts[0] for group in groups))
    targets = {group.texts[1]: group.langs[1] for group in groups}
    texts = list(targets)
    rows, columns = ({text: row for row, text in enumerate(side)} for side in (sources, texts))
    note_fewer("--count", count, len(texts) - 1, "other targets")
    count = min(count, len(texts))
    gold = [rows[group.texts[0]] for group in groups], [columns[group.texts[1]] for group in groups]
    with tempfile.TemporaryDirectory(prefix="isoglot-") as folder:
        x, y = _vectors(asked, (sources, texts), Path(folder))
        found = hard_negatives(x, y, gold, count)
    with atomic_write(output) as stream:
        for group, row in zip(groups, gold[0], strict=True):
            hard = [texts[place] for place in found[row] if place >= 0]
            stream.write(_line(group, hard, [targets[text] for text in hard]))
    return len(groups)


def _pairs(asked: Asked) -> Iterator[Group]:
    from isoglot.data import filters
    from isoglot.data.files import without_compression
    from isoglot.data.readers import read
    from isoglot.errors import CorpusError

    path, options = asked.pairs, {"languages": list(asked.languages)} if asked.languages else {}
    reader = "folder" if path.is_dir() else _READERS.get(Path(without_compression(path.name)).suffix, "tsv")
    groups = read(reader, path, **options)
    if asked.leakage:
        groups = filters.remove_leaks(groups, filters.test_sentences(map(_place, asked.leakage)))
    number = 0
    for number, group in enumerate(filters.deduplicate(groups), 1):
        if len(group.texts) != 2:
            raise CorpusError(
                f"group {number} has {len(group.texts)} sentences ({', '.join(group.langs)}), but hard negatives are "
                "mined for pairs; give the two languages, source first",
                file=path,
            )
        yield group
    if not number:
        raise CorpusError("no pairs are left", file=path)


def _place(path: str) -> Path:
    from isoglot.settings import BUNDLED

    return BUNDLED / path.removeprefix("bundled:") if path.startswith("bundled:") else Path(path)


def _vectors(asked: Asked, sides: tuple[list[str], list[str]], folder: Path) -> Iterator[Any]:
    """Unit vectors of the distinct texts of each side, mapped from the folder."""
    from isoglot.cli.counting import Counting
    from isoglot.encoders import encode, load
    from isoglot.encoders.device import resolve

    encoder = load(asked.model, pooling=asked.pooling, prompt=asked.prompt, device=resolve())
    with Counting() as counting:
        for number, side in enumerate(sides):
            yield encode(encoder, side, normalize_embeddings=True, output=folder / f"{number}.npy", progress=counting)


def _line(group: Group, hard: list[str], hard_langs: list[str]) -> str:
    item: dict[str, Any] = {"texts": group.texts, "langs": group.langs, "key": group.key}
    item |= {"hard_negatives": hard, "hard_langs": hard_langs}
    item |= {"extras": dict(group.extras)} if group.extras else {}
    return json.dumps(item, ensure_ascii=False) + "\n"
