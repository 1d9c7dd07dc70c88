"""`isoglot negatives`: pairs in, the same pairs with mined hard negatives out, for translation ranking (mUSE)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.options import Model, Pooling, Prompt, split

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
    from isoglot.cli.counting import Counting
    from isoglot.data.files import atomic_write, check_output
    from isoglot.encoders import load
    from isoglot.encoders.device import resolve
    from isoglot.errors import CorpusError
    from isoglot.mining import add_hard_negatives

    check_output(output, inputs=[model, pairs, *map(_place, leakage or [])])
    groups = list(_read(pairs, split(languages), leakage or []))
    if not groups:
        raise CorpusError("no pairs are left", file=pairs)
    encoder = load(model, pooling=pooling, prompt=prompt, device=resolve())
    with Counting() as bar:
        found = add_hard_negatives(encoder, groups, count, progress=bar, report=bar.say)
    with atomic_write(output) as stream:
        for group in found:
            item: dict[str, Any] = {"texts": group.texts, "langs": group.langs, "key": group.key}
            item |= {"hard_negatives": group.hard_negatives, "hard_langs": group.hard_langs}
            item |= {"extras": dict(group.extras)} if group.extras else {}
            stream.write(json.dumps(item, ensure_ascii=False) + "\n")
    typer.echo(f"{len(found):,} pairs with up to {count} hard negatives each: {output}", err=True)


def _read(path: Path, languages: Sequence[str], leakage: Sequence[str]) -> Iterator[Group]:
    """The pairs as a training stream reads them: without leaks and exact duplicates."""
    from isoglot.data import filters
    from isoglot.data.files import without_compression
    from isoglot.data.readers import read

    options = {"languages": list(languages)} if languages else {}
    reader = "folder" if path.is_dir() else _READERS.get(Path(without_compression(path.name)).suffix, "tsv")
    groups = read(reader, path, **options)
    if leakage:
        groups = filters.remove_leaks(groups, filters.test_sentences(map(_place, leakage)))
    return filters.deduplicate(groups)


def _place(path: str) -> Path:
    from isoglot.settings import BUNDLED

    return BUNDLED / path.removeprefix("bundled:") if path.startswith("bundled:") else Path(path)
