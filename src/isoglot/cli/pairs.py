"""`isoglot mine`, `align`, `filter` and `negatives`: verbs of parallel text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import options
from isoglot.cli.console import Progress, from_stdin, on_interrupt, say, show_json, to_stdout
from isoglot.cli.options import Columns, Device, Json, Loading, Output, Settings, Workers
from isoglot.cli.signatures import Of, split
from isoglot.core.errors import IsoglotError, OutputError
from isoglot.data.files import BUNDLED, check_output, check_outputs


def mine(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] A [B]")],
    *,
    output: Output = Path("-"),
    settings: Annotated[Settings, Of("mining.pipeline:mine", k=options.NEIGHBOURS)],
    estimate: bool = False,
    keep_all: Annotated[bool, typer.Option("--all")] = False,
    columns: Columns = "",
    filters: Annotated[Settings, Of("mining.pipeline:Filters")],
    check_language: str | None = None,
    vectors: list[Path] | None = None,
    computation: Annotated[Settings, Of("mining.pipeline:Computation")],
    workers: Workers,
    destination: Annotated[Settings, Of("mining.pipeline:Output", "format", "write_ids", "work", "every")],
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Mine translation pairs from two files, or paraphrases from one.

    words           model (optional) and two files (text, .tsv, .csv, .xlsx, .jsonl, .docx, .html, .md, .srt, .vtt), or
                    one to mine paraphrases; - for stdin
    threshold       minimum score; default: estimated, or none where that is not reliable
    gold            file of known pairs (ids or line numbers) to tune the threshold on
    ids             read lines of id, tab, sentence
    output          output file, with the format as its suffix, or x.de-en for Moses; - for stdout
    estimate        use the estimated threshold even where it is not reliable
    keep_all        keep all pairs
    check_language  drop lines in other languages, judged by script or by a Python function module:name
    vectors         NumPy file of vectors, instead of MODEL, one per text file; repeatable
    """
    from isoglot import mining
    from isoglot.data.formats import columns_of

    if str(output) != "-":
        on_interrupt("run the same command again to resume")
    options.check_stdout(output, as_json)
    if vectors and len(words) > 2:
        raise IsoglotError(f"mine: --vectors needs no model and takes at most 2 files, got {', '.join(words)}")
    model, files = (None, words) if vectors else options.model_and_files(words, most=2)
    if estimate + keep_all + ("threshold" in settings) > 1:
        raise typer.BadParameter("--threshold, --estimate and --all exclude each other; choose one")
    settings |= {"threshold": "estimate"} if estimate else {"threshold": "all"} if keep_all else {}
    judge: Any = check_language
    if check_language not in (None, "script"):
        expected = "script, or module:name of a function from text to code"
        judge = options.import_function("--check-language", check_language, expected)
    with (
        Progress("mining", unit="sentences") as bar,
        from_stdin(*map(Path, files)) as texts,
        to_stdout(output, destination.get("format", "tsv")) as target,
    ):
        pairs = mining.mine(
            model, *texts, columns=columns_of(columns), vectors=vectors or None, device=device, progress=bar,
            report=say, filters=mining.Filters(**filters, check_language=judge),
            output=mining.Output(target, **destination),
            computation=mining.Computation(**computation, cluster=options.cluster_of(workers)), **settings,
        )  # fmt: skip
    say(f"{len(pairs):,} pairs" + (f": {output}" if str(output) != "-" else ""))
    if as_json:
        show_json({"output": str(output), "pairs": len(pairs)})


def align(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] A B")],
    *,
    output: Output = Path("-"),
    settings: Annotated[Settings, Of("mining.alignment:align", model=None)],
    columns: Columns = "",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Align the sentences of two versions of one document, in order.

    words   model (optional) and two files (text, .tsv, .csv, .xlsx, .jsonl, .docx, .html, .md, .srt, .vtt); - for stdin
    output  output file, with the format as its suffix, or x.de-en for Moses; - for stdout
    """
    from isoglot import mining
    from isoglot.data.formats import columns_of

    options.check_stdout(output, as_json)
    model, files = options.model_and_files(words, most=2)
    if len(files) < 2:
        explanation = f", since {model} is not one" if words[0] == model else ""
        raise IsoglotError(f"align: {files[0]} is the only file{explanation}; pass both versions of the document")
    with (
        Progress("encoding", unit="texts") as bar,
        from_stdin(*map(Path, files)) as texts,
        to_stdout(output, settings.get("format", "tsv")) as target,
    ):
        alignments = mining.align(
            *texts, model=model, columns=columns_of(columns), device=device, output=target, progress=bar, report=say,
            **settings,
        )  # fmt: skip
    say(f"{len(alignments):,} alignments" + (f": {output}" if str(output) != "-" else ""))
    if as_json:
        counts = dict(sorted(alignments.counts.items()))
        show_json({"output": str(output), "alignments": len(alignments), "counts": counts})


def filter(
    pairs: Path,
    *,
    output: Output,
    model: str | None = None,
    settings: Annotated[Settings, Of("mining.filtering:judge", k=options.NEIGHBOURS)],
    dropped: Path | None = None,
    languages: str = "",
    columns: Columns = "",
    loading: Loading,
    as_json: Json = False,
) -> None:
    """Drop noisy translations from parallel text, by the margin of a model's vectors.

    pairs      pairs or larger groups: a .tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po or .xliff file, or a
               folder of aligned files; - for JSON lines on stdin
    output     output file: JSON lines, or TMX by its suffix; - for stdout
    model      model: a folder, a packaged name, or a hub id; default: the default model
    dropped    output file for the dropped groups
    languages  languages of the columns, separated by commas; default: from the file
    """
    from isoglot.data.formats import columns_of
    from isoglot.mining.filtering import filter_file

    options.check_stdout(output, as_json)
    if str(dropped) == "-":
        raise OutputError("-: only --output can be stdout; pass a file as --dropped")
    for path in (output, dropped):
        _check_suffix(path, {".jsonl": "JSON lines", ".tmx": "TMX"})
    with from_stdin(pairs, suffix=".jsonl") as (source,), to_stdout(output, "jsonl") as target:
        check_outputs(target, dropped, inputs=[source, model])
        encoder = options.open_encoder(model, **loading)
        with Progress("encoding") as progress:
            counts = filter_file(
                encoder, source, target, dropped=dropped, languages=languages, columns=columns_of(columns),
                progress=progress, **settings,
            )  # fmt: skip
    if as_json:
        show_json({"output": str(output), "dropped": dropped and str(dropped), "counts": counts})
    for name, kinds in counts.items():
        say(f"{name}: {', '.join(f'{count:,} {what}' for what, count in sorted(kinds.items()))}")


def negatives(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] PAIRS")],
    *,
    output: Output,
    settings: Annotated[Settings, Of("mining.negatives:add_hard_negatives", "count")],
    languages: str = "",
    leakage: list[str] | None = None,
    loading: Loading,
) -> None:
    """Mine hard negatives for pairs: the nearest targets that are not translations.

    words      model (optional) and pairs: a table, .jsonl, .parquet, .tmx, .po or .xliff file, a folder of two
               line-aligned files, or - for JSON lines from stdin
    output     output file of JSON lines, one pair per line; - for stdout
    languages  the two languages, separated by a comma; default: from the file or folder
    leakage    test file or folder whose sentences are excluded; repeatable
    """
    from isoglot.data.readers.jsonl import write_jsonl
    from isoglot.mining.negatives import add_hard_negatives, read_pairs

    _check_suffix(output, {".jsonl": "JSON lines"})
    model, (file,) = options.model_and_files(words, most=1)
    tests = [BUNDLED / one[8:] if one.startswith("bundled:") else Path(one) for one in leakage or []]
    with from_stdin(Path(file), suffix=".jsonl") as (pairs,), to_stdout(output, "jsonl") as target:
        check_output(target, inputs=[model, pairs, *tests])
        groups = read_pairs(pairs, languages=split(languages), leakage=tests)
        encoder = options.open_encoder(model, **loading)
        with Progress("encoding") as progress:
            mined = add_hard_negatives(encoder, groups, **settings, progress=progress, report=say)
        write_jsonl(target, mined)
    say(f"{len(mined):,} pairs with up to {settings['count']} hard negatives each: {output}")


def _check_suffix(path: Path | None, formats: Mapping[str, str]) -> None:
    """Raise OutputError for a file whose name promises another format than these."""
    if path is not None and str(path) != "-" and path.suffix.lower() not in ("", *formats):
        written, suffixes = " and ".join(formats.values()), " or ".join(formats)
        raise OutputError(f"{path}: is written as {written}; choose a name that ends in {suffixes}")
