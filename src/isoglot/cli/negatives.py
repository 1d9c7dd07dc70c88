"""`isoglot negatives`: pairs in, the same pairs with mined hard negatives out, for translation ranking (mUSE)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.console import Progress, say
from isoglot.cli.options import Device, Model, Pooling, Prompt, open_encoder, split

if TYPE_CHECKING:
    from isoglot.data.groups import Group

_READERS = {".jsonl": "jsonl", ".tmx": "tmx"}


def command(
    model: Model,
    pairs: Annotated[
        Path, typer.Argument(help="Pairs: a .tsv, .jsonl or .tmx file, or a folder of two line-aligned files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file of JSON lines, one pair each.")],
    count: Annotated[int, typer.Option(min=1, help="Number of hard negatives per pair.")] = 3,
    languages: Annotated[
        str, typer.Option(help="The two languages, separated by a comma; default: from the file or folder.")
    ] = "",
    leakage: Annotated[
        list[str] | None, typer.Option(help="Test file or folder whose sentences are excluded; repeatable.")
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Mine hard negatives for pairs: the nearest targets that are not translations."""
    from isoglot.data.files import atomic_write, check_output
    from isoglot.errors import CorpusError
    from isoglot.mining import add_hard_negatives

    check_output(output, inputs=[model, pairs, *map(_place, leakage or [])])
    groups = list(_read(pairs, split(languages), leakage or []))
    if not groups:
        raise CorpusError("no pairs are left", file=pairs)
    encoder = open_encoder(model, device=device, pooling=pooling, prompt=prompt)
    with Progress("encoding") as progress:
        found = add_hard_negatives(encoder, groups, count, progress=progress, report=say)
    with atomic_write(output) as stream:
        for group in found:
            item: dict[str, Any] = {"texts": group.texts, "langs": group.langs, "key": group.key}
            item |= {"hard_negatives": group.hard_negatives, "hard_langs": group.hard_langs}
            item |= {"extras": dict(group.extras)} if group.extras else {}
            stream.write(json.dumps(item, ensure_ascii=False) + "\n")
    say(f"{len(found):,} pairs with up to {count} hard negatives each: {output}")


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
