"""`isoglot index`, `search`, `serve` and `export`.

Output of `search`: a table per query on a terminal, with the words that the query has, too; otherwise tab-separated
lines of query, rank, score, language, id, text and translation, with white space inside a field reduced to one space;
with `--json` one object per query, with the texts unchanged.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli import options
from isoglot.cli.console import Progress, from_stdin, on_interrupt, say, to_stdout
from isoglot.cli.options import Columns, Device, Output, Settings, Shard, Workers
from isoglot.cli.signatures import Flags, Of
from isoglot.core import environment
from isoglot.core.arguments import NonNegativeInt
from isoglot.core.errors import CorpusError, OutputError, SearchError
from isoglot.data.files import Again, check_output, read_lines

if TYPE_CHECKING:
    from rich.text import Text

    from isoglot.index import Hit, Sentence


def index(
    words: Annotated[list[str] | None, typer.Argument(metavar="[MODEL] FILE...")] = None,
    *,
    output: Output,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="ID")] = None,
    remove_file: Path | None = None,
    reading: Annotated[Settings, Of("index.reading:read_sentences", "content_ids", "language")],
    columns: Columns = "",
    settings: Annotated[Settings, Of("index.index:Index.build", "kind", "prompt", "query_prompt", "pooling")],
    workers: Workers,
    shard: Shard = None,
    merge: bool = False,
    device: Device = "auto",
    flags: Flags,
) -> None:
    """Build a search index of sentences, update one, or remove entries from it.

    words        model (optional) and text, .tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po, .xliff, .docx, .html, .md,
                 .srt or .vtt files, or - for lines of stdin; CODE=FILE sets the language, deu,eng=FILE the languages of
                 pairs
    output       folder of the index; an existing one is updated
    remove       id of an entry to remove; repeatable
    remove_file  file with ids to remove, one per line; - for stdin
    content_ids  identify entries by their content, even if the file has ids
    language     language of files that do not specify one
    shard        index only a range of the sentences, in OUTPUT.shards, for jobs side by side: 3/64 for the third of 64
    merge        make the index of all its shards, without FILE
    """
    from isoglot.index import Index
    from isoglot.scale import index_shards, merge_shards

    if merge:
        reason = "index: --merge takes a --kind and, if its folder has moved, the model, and no files"
        flags.reject(reason, "merge", "output", "kind", *["words"] * (len(words or []) == 1))
        on_interrupt("run the same command again to add the rest")
        with Progress("merging", unit="sentences") as bar:
            merge_shards(output, *(words or []), kind=settings.get("kind"), progress=bar, report=say).close()
        typer.echo(output)
        return
    if remove or remove_file is not None:
        flags.reject("index: entries are removed by their ids alone", "remove", "remove_file", "output")
        with from_stdin(*([] if remove_file is None else [remove_file])) as lists, Index.open(output) as opened_index:
            read = (line for path in lists for _, line in read_lines(path) if line.strip())
            count = opened_index.delete([*(remove or []), *read])
            say(f"{count:,} sentences removed; {len(opened_index):,} in the index ({opened_index.kind})")
        typer.echo(output)
        return
    if not words:
        raise typer.BadParameter("pass files to index, or --remove")
    on_interrupt("run the same command again to add the rest")
    check_output(output, folder=True)  # before it is opened; inputs are known below
    default = ""
    if Index.exists(output):  # which can be updated with its own model only
        with Index.open(output) as present:
            default = present.origin.name
    model, sources = options.model_and_files(words, default=default)
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    part = options.shard_of(shard, "index")
    cluster = options.cluster_of(workers, shard)
    if cluster is not None and device != "auto":
        raise SearchError("index: --ray and --shard choose the device, an accelerator with --gpus; remove --device")
    if part is not None and "-" in files:
        raise SearchError("index: --shard reads the sentences twice; pass files instead of -")
    sentences = Again(lambda: chain.from_iterable(sentences_of(one, columns=columns, **reading) for one in sources))
    with Progress("indexing", unit="sentences") as bar:
        if cluster is not None:
            hooks: Settings = {"cluster": cluster, "shard": part, "progress": bar, "report": say}
            result = index_shards(model, sentences, output, **hooks, **settings)
        else:
            result = Index.build(model, sentences, folder=output, device=device, progress=bar, report=say, **settings)
            say(result.model.describe())
        result.close()
    typer.echo(result.folder)


def sentences_of(source: str, *, columns: str = "", **reading: Any) -> Iterator[Sentence]:
    """The sentences of FILE or CODE=FILE; of `-` the lines of stdin."""
    from isoglot.data.formats import columns_of
    from isoglot.index import read_sentences

    code, mark, path = source.rpartition("=")
    with from_stdin(*[Path("-")] * (path == "-")) as texts:
        place = f"{code}{mark}{texts[0]}" if texts else source
        yield from read_sentences(place, columns=columns_of(columns), **reading)


_WORD = re.compile(r"\w+")
_TOGETHER = 256  # queries per batch
_HITS = 1 << 18  # maximum hits of a batch
_OBJECT = '{"query": "..."}'

SearchOptions = Annotated[
    Settings,
    Of("index.index:Index.search", k=typer.Option("-k"), languages=typer.Option("--in", "--languages"),
       exclude=typer.Option("--not-in")),
]  # fmt: skip


def search(
    index: Path,
    queries: Annotated[list[str] | None, typer.Argument(metavar="[QUERY]...")] = None,
    *,
    settings: SearchOptions,
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
    from isoglot.model.finding import default_name

    k = settings["k"]
    has_queries = queries not in (None, [], ["-"])
    if str(index) == "-" and not has_queries:
        raise typer.BadParameter("stdin is either the sentences or the queries; pass the queries as arguments")
    with (
        Index.build(model or default_name(), sentences_of(str(index)), device=device)
        if index.is_file() or str(index) == "-"
        else Index.open(index, model, device=device)
    ) as opened_index:
        say(opened_index.model.describe())
        if opened_index.recall is not None and "effort" not in settings:
            say(f"{opened_index.kind}: finds {opened_index.recall:.0%} of the ten nearest; more with --effort")
        if k > len(opened_index):
            say(f"-k {k}: only {len(opened_index):,} sentences exist; using all of them")
        words = (_check_query(query, "query", at) for at, query in enumerate(queries or [], 1))
        lines = words if has_queries else _read_queries(as_json)
        together = 1 if sys.stdin.isatty() else max(1, min(_TOGETHER, _HITS // min(k, len(opened_index) + 1)))
        while batch := list(islice(lines, together)):
            nearest = opened_index.search(batch, **settings)
            for query, hits in zip(batch, nearest, strict=True):
                _show(query, hits, as_json=as_json)


def _read_queries(as_json: bool) -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise CorpusError("is not UTF-8; convert it with iconv", file="stdin", line=number) from error
        if not (as_json and text.startswith("{")):
            if text.strip():
                yield text
            continue
        try:
            request = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"is not JSON ({error}); write {_OBJECT}", file="stdin", line=number) from error
        if set(request) != {"query"} or not isinstance(request["query"], str):
            problem = f"must be {_OBJECT}, without other keys; options apply to all queries"
            raise CorpusError(problem, file="stdin", line=number)
        yield _check_query(request["query"], "stdin", number)


def _check_query(query: str, where: str, number: int) -> str:
    if not query.strip():
        raise CorpusError("the query is blank; remove it", file=where, line=number)
    try:
        query.encode()
    except UnicodeEncodeError as error:  # undecodable bytes of the command line, or an escaped lone surrogate
        raise CorpusError("cannot be encoded as UTF-8; fix the characters", file=where, line=number) from error
    return query


def _show(query: str, hits: Sequence[Hit], *, as_json: bool) -> None:
    if as_json:
        ranked_hits = [{"rank": rank, **asdict(hit)} for rank, hit in enumerate(hits, 1)]
        typer.echo(json.dumps({"query": query, "hits": ranked_hits}, ensure_ascii=False))
    elif not hits:
        say(f"no hits for {query!r}")  # not on stdout, whose lines are hits
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        sides = 2 if any(hit.translation is not None for hit in hits) else 1
        names = ["language", *["text", "translation"][:sides]]
        table = Table(Column("match", justify="right"), *names, Column("id", style="dim"), box=None)
        for hit in hits:
            texts = _mark_words(query, hit.text, hit.translation or "")[:sides]
            several = f" ({hit.count:,} times)" if hit.count > 1 else ""
            table.add_row(f"{hit.percent:.0f} %", hit.language, *texts, Text(hit.id + several))
        console = Console(highlight=False)
        console.print(Text(query, style="bold"))
        console.print(table)
    else:
        for rank, hit in enumerate(hits, 1):
            cells = (query, rank, f"{hit.score:.6f}", hit.language, hit.id, hit.text, hit.translation or "")
            typer.echo("\t".join(" ".join(str(cell).split()) for cell in cells))


def _mark_words(query: str, *sides: str) -> list[Text]:
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


ServeLimits = Annotated[
    Settings,
    Of("serve.limits:Limits", "work", "grace", grace=typer.Option(min=0, envvar="ISOGLOT_SERVE_GRACE"),
       work=typer.Option("--timeout", min=0.1, envvar="ISOGLOT_SERVE_TIMEOUT")),
]  # fmt: skip


def serve(
    subject: Annotated[str | None, typer.Argument(metavar="[MODEL|INDEX]")] = None,
    *,
    host: Annotated[str, typer.Option(envvar="ISOGLOT_SERVE_HOST")] = "127.0.0.1",
    port: Annotated[NonNegativeInt, typer.Option(max=65535, envvar="ISOGLOT_SERVE_PORT")] = 8765,
    model: Annotated[str | None, typer.Option(envvar="ISOGLOT_SERVE_MODEL")] = None,
    effort: Annotated[
        int | None, Of("index.index:Index.search", effort=typer.Option(envvar="ISOGLOT_SERVE_EFFORT")).option("effort")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(envvar="ISOGLOT_SERVE_HOSTS")] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(envvar="ISOGLOT_SERVE_ORIGINS")] = None,
    bounds: ServeLimits,
    access_log: Annotated[bool, typer.Option("--access-log/--no-access-log", envvar="ISOGLOT_SERVE_LOG")] = True,
    device: Device = "auto",
) -> None:
    """Serve a model or an index: an OpenAI-compatible API, and a web page to search an index.

    If $ISOGLOT_SERVE_TOKEN is set, requests must send it as a bearer token.

    subject       model or folder of an index to serve; default: the default model
    host          address to listen on; the default serves this machine only
    port          port to listen on; 0 chooses a free one
    model         model of the index, if its folder was moved
    allow_host    host name that requests may use, or '*' for any; repeatable
    allow_origin  origin of pages that may send requests, such as https://example.org, or '*' for any; repeatable
    work          maximum time of a request in seconds, waiting included
    grace         seconds allowed for open requests to finish after SIGTERM
    access_log    log every request
    """
    from isoglot.index import Index
    from isoglot.model import load
    from isoglot.serve import Limits, create_app
    from isoglot.serve import serve as run
    from isoglot.serve.observe import LOG

    LOG.disabled = not access_log
    limits = Limits(**bounds)
    with ExitStack() as stack:
        opened_index = None
        if subject is not None and Index.exists(subject):
            opened_index = stack.enter_context(Index.open(subject, model, device=device))
            encoder = opened_index.model
        elif model is not None or effort is not None:
            raise SearchError(f"{subject}: not an index; --model and --effort need the folder of an index")
        else:
            encoder = load(subject, device=device)
        say(encoder.describe())
        with options.naming("serve", error=SearchError):
            app = create_app(
                opened_index, encoder, effort=effort, allow_hosts=[host, *(allow_host or [])],
                allow_origins=allow_origin or [], token=environment.serve_token(), limits=limits,
            )  # fmt: skip

        def announce(url: str) -> None:
            typer.echo(url if opened_index is not None else f"{url}v1")  # a model has no page
            what = f"model {encoder.name}" if opened_index is None else f"{len(opened_index):,} sentences"
            say(f"{what}; stop with Ctrl-C")

        run(app, host=host, port=port, limits=limits, started=announce)
        say("stopped")


def export(
    source: Annotated[str, typer.Argument(metavar="INDEX|MODEL")],
    *,
    output: Output,
    form: Annotated[str | None, typer.Option("--format")] = None,
    words: str | None = None,
) -> None:
    """Export an index: Parquet for any vector database, TMX for a translation memory; or a model for ONNX Runtime.

    source  folder of an index; with --format onnx, a model
    output  output file, with the format as its suffix; - for stdout. Of a model: a folder
    form    output format: `FORMATS` (parquet with vectors); default: by the name, jsonl for stdout. Of a model: onnx
    words   word table in ONNX: int4, int8 or float32; default: int4
    """
    if form == "onnx":
        from isoglot.cli.models import convert

        convert(source, output=output, weights="onnx", words=words)
        return
    from isoglot.data.formats import SUFFIXES
    from isoglot.index import Index
    from isoglot.model.layout import is_model

    if is_model(Path(source)):
        raise OutputError(f"{source}: is a model; to export it, pass --format onnx")
    if words is not None:
        raise OutputError(f"{source}: --words {words} is for a model in ONNX; remove it, or pass --format onnx")
    stdout = {".jsonl": "jsonl"} if str(output) == "-" else {}
    form = options.output_format(output, stdout | SUFFIXES, option=form)
    with (
        Index.open(source) as opened_index,
        to_stdout(output, form) as target,
        Progress("exporting", unit="sentences") as progress,
    ):
        rows = opened_index.export(target, format=form, progress=progress)
    say(f"{rows:,} {'translation units' if form == 'tmx' else 'sentences'}: {output}")
