"""`isoglot search`: find the sentences of an index that are nearest to queries, from arguments or stdin.

Output: a table per query on a terminal, with the words that the query has, too; otherwise tab-separated lines of query,
rank, score, language, id, text and translation, with white space inside a field reduced to one space; with `--json` one
object per query, with the texts unchanged.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.index import sentences_of
from isoglot.cli.options import Device, Settings, default_model, note_fewer
from isoglot.cli.signatures import Of
from isoglot.core.errors import CorpusError

if TYPE_CHECKING:
    from rich.text import Text

    from isoglot.index import Hit

_WORD = re.compile(r"\w+")
_TOGETHER = 256  # queries per batch
_HITS = 1 << 18  # maximum hits of a batch
_OBJECT = '{"query": "..."}'


def search(
    index: Path,
    queries: Annotated[list[str] | None, typer.Argument(metavar="[QUERY]...")] = None,
    *,
    settings: Annotated[
        Settings,
        Of(
            "index.index:Index.search",
            k=typer.Option("-k"),
            languages=typer.Option("--in", "--languages"),
            exclude=typer.Option("--not-in"),
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json")] = False,
    model: str | None = None,
    device: Device = "auto",
) -> None:
    """Find the sentences nearest to a query, in any language.

    index    folder of an index (`isoglot index`), or a file of sentences, which is indexed for this call; - for lines
             of stdin
    queries  queries; default: the lines of stdin
    as_json  print one JSON object per query
    model    model: of an index, if its folder was moved; of a file, default: the default model
    """
    from isoglot.index import Index

    k = settings["k"]
    given = queries not in (None, [], ["-"])
    if str(index) == "-" and not given:
        raise typer.BadParameter("stdin is either the sentences or the queries; pass the queries as arguments")
    with (
        Index.build(model or default_model(), sentences_of(str(index)), device=device)
        if index.is_file() or str(index) == "-"
        else Index.open(index, model, device=device)
    ) as found:
        say(found.model.describe())
        if found.recall is not None and settings["effort"] is None:
            say(f"{found.kind}: finds {found.recall:.0%} of the ten nearest; more with --effort")
        note_fewer("-k", k, len(found), "sentences")
        lines = (
            (_checked(query, "query", at) for at, query in enumerate(queries or [], 1)) if given else _stdin(as_json)
        )
        together = 1 if sys.stdin.isatty() else max(1, min(_TOGETHER, _HITS // min(k, len(found) + 1)))
        while some := list(islice(lines, together)):
            nearest = found.search(some, **settings)
            for query, hits in zip(some, nearest, strict=True):
                _show(query, hits, as_json=as_json)


def _stdin(as_json: bool) -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError("is not UTF-8; convert it with iconv", file="stdin", line=number) from error
        if not (as_json and text.startswith("{")):
            if text.strip():
                yield text
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"is not JSON ({error}); write {_OBJECT}", file="stdin", line=number) from error
        if set(found) != {"query"} or not isinstance(found["query"], str):
            problem = f"must be {_OBJECT}, without other keys; options apply to all queries"
            raise CorpusError(problem, file="stdin", line=number)
        yield _checked(found["query"], "stdin", number)


def _checked(query: str, where: str, number: int) -> str:
    if not query.strip():
        raise CorpusError("the query is blank; remove it", file=where, line=number)
    try:
        query.encode()
    except UnicodeEncodeError as error:  # undecodable bytes of the command line, or an escaped lone surrogate
        raise CorpusError("cannot be encoded as UTF-8; fix the characters", file=where, line=number) from error
    return query


def _show(query: str, hits: Sequence[Hit], *, as_json: bool) -> None:
    if as_json:
        found = [{"rank": rank, **asdict(hit)} for rank, hit in enumerate(hits, 1)]
        typer.echo(json.dumps({"query": query, "hits": found}, ensure_ascii=False))
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        translated = any(hit.translation is not None for hit in hits)
        known = ["translation"] if translated else []
        table = Table(Column("match", justify="right"), "language", "text", *known, Column("id", style="dim"), box=None)
        for hit in hits:
            text, translation = _marked(query, hit.text, hit.translation or "")
            several = f" ({hit.count:,} times)" if hit.count > 1 else ""
            other = [translation] if translated else []
            table.add_row(f"{hit.percent:.0f} %", hit.language, text, *other, Text(hit.id + several))
        console = Console(highlight=False)
        console.print(Text(query, style="bold"))
        console.print(table)
    else:
        for rank, hit in enumerate(hits, 1):
            cells = (query, rank, f"{hit.score:.6f}", hit.language, hit.id, hit.text, hit.translation or "")
            typer.echo("\t".join(" ".join(str(cell).split()) for cell in cells))


def _marked(query: str, *sides: str) -> list[Text]:
    """The sides of a hit. Words of the query are marked in the side with most of them, which is in its language: names
    and short words occur in others by chance.
    """
    from rich.text import Text

    words = {word.casefold() for word in _WORD.findall(query)}
    texts = [Text(side) for side in sides]
    places = [[one.span() for one in _WORD.finditer(side) if one[0].casefold() in words] for side in sides]
    for start, stop in max(places, key=len):
        texts[places.index(max(places, key=len))].stylize("bold underline", start, stop)
    return texts
