"""`isoglot encode`: encode the lines of a file; an interrupted run can be resumed."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import console, options
from isoglot.cli.options import Json, Loading, Output, Settings, Shard, Workers
from isoglot.cli.signatures import Of, split
from isoglot.core.arguments import PositiveInt
from isoglot.core.errors import EncoderError
from isoglot.data.files import atomic_write, check_output, exclusive, name_beside

FORMATS = {".npy": "npy", ".parquet": "parquet", ".jsonl": "jsonl"}
FORMAT = f"Output format: {', '.join(FORMATS.values())}; default: from the suffix, jsonl on stdout."

EncodeOptions = Annotated[
    Settings,
    Of("model.base:Model.encode", "normalize_embeddings", "batch_tokens", "truncate_dim", "precision",
       normalize_embeddings=typer.Option("--normalize/--no-normalize")),
]  # fmt: skip


def encode(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] INPUT")],
    *,
    output: Output,
    form: Annotated[str | None, typer.Option("--format", help=FORMAT)] = None,
    settings: EncodeOptions,
    dtype: str = "float32",
    output_precision: str = "float32",
    calibration: Path | None = None,
    workers: PositiveInt = 1,
    devices: str = "",
    cluster: Workers,
    pieces: Annotated[Settings, Of("scale.encoding:encode_shards", "lines")],
    shard: Shard = None,
    opening: Loading,
    as_json: Json = False,
) -> None:
    """Encode the lines of a file into vectors; the same command resumes an interrupted run.

    words             model (optional) and a text file, one sentence per line, plain or compressed; .jsonl: one JSON
                      string per line; .tsv, .csv, .xlsx: the column text; .docx, .html, .md, .srt, .vtt: a vector for
                      each paragraph; - for stdin
    output            output file: .npy, .parquet or .jsonl; - for stdout
    dtype             type of the vectors in the file: float32 or float16
    output_precision  how vectors are stored: float32 (--dtype), int8, uint8, binary or ubinary; .npy only
    calibration       vectors (.npy), or their ranges, for int8 and uint8; default: those of INPUT
    workers           number of processes, each with one thread
    devices           devices, one process each, such as cuda:0,cuda:1
    lines             lines per output file, in the folder OUTPUT; requires --ray or --shard
    shard             encode only a range of the output files, for jobs that write into one folder: 3/64 for the third
                      of 64
    """
    from isoglot.model.output import check_output_precision
    from isoglot.scale import encode_shards
    from isoglot.scale.encoding import LINES

    console.on_interrupt("run the same command again to resume")
    options.check_stdout(output, as_json)
    check_output_precision(output_precision)
    if calibration is not None and output_precision not in ("int8", "uint8"):
        raise EncoderError("encode: --calibration is for --output-precision int8 or uint8; remove it")
    model, (file,) = options.model_and_files(words, most=1)
    source, settings["dtype"] = Path(file), dtype
    # Without --ray a shard is encoded by this process, with the cores and accelerators of a worker.
    remote = options.cluster_of(cluster, shard)
    split_by = "--ray" if shard is None else "--shard"
    if remote is not None:
        if workers != 1 or devices or opening.pop("device") != "auto":
            problem = f"encode: {split_by} sets the processes, on accelerators with --gpus"
            raise EncoderError(f"{problem}; remove --workers, --devices and --device")
        if form not in (None, "npy"):
            raise EncoderError(f"encode: {split_by} writes a folder of .npy files; remove --format {form}")
        if output_precision != "float32":
            raise EncoderError(f"encode: {split_by} writes floats; remove --output-precision")
        part = options.shard_of(shard, "encode")
        check_output(output, inputs=[model, source], folder=True)
        with (
            exclusive(output) if part is None else nullcontext(),  # shards are written side by side
            console.Progress(f"encoding {source.name}", unit="pieces") as progress,
        ):
            shards = encode_shards(
                model, [source], output, cluster=remote, settings=settings | opening, progress=progress, shard=part,
                **pieces,
            )  # fmt: skip
        facts: dict[str, Any] = {"lines": len(shards), "dim": shards.dim, "files": len(shards.files)}
        console.say(f"{len(shards):,} lines, {shards.dim} dimensions, {len(shards.files)} files: {output}")
    elif pieces != {"lines": LINES}:
        raise EncoderError("encode: --lines needs --ray or --shard; remove it, or add one of them")
    elif devices and workers != 1:
        raise EncoderError("encode: --devices starts one process for each device; remove --workers")
    else:
        settings["workers"] = split(devices) or workers
        facts = _encode(model, source, output, form, settings, opening, output_precision, calibration)
    if as_json:
        console.show_json({"output": str(output), **facts})


def _encode(
    model: str, source: Path, output: Path, form: str | None, settings: Settings, opening: Settings, stored: str,
    calibration: Path | None,
) -> dict[str, Any]:  # fmt: skip
    from isoglot.data.formats import read_texts
    from isoglot.data.vectors import open_table, write_vectors
    from isoglot.model.output import find_ranges, quantize_vectors
    from isoglot.model.resumable import encode_file

    ranges = None if calibration is None else open_table(calibration)
    to_stdout = str(output) == "-"
    stdout = {".jsonl": "jsonl"} if to_stdout else {}
    form = options.output_format(output, stdout | FORMATS, option=form)
    if stored != "float32" and form != "npy":
        raise EncoderError("encode: --output-precision is for .npy files; name the output so, or pass --format npy")
    with ExitStack() as stack:
        (text,) = stack.enter_context(console.from_stdin(source))
        if to_stdout:
            table = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-"))) / "vectors.npy"
        else:
            table = output if (form, stored) == ("npy", "float32") else name_beside(output, "npy")
            check_output(output, inputs=[model, source])
        encoder = options.open_encoder(model, precision=settings.get("precision"), **opening)
        if ranges is not None:
            with options.naming(calibration):
                ranges = find_ranges(ranges, dim=min(settings.get("truncate_dim") or encoder.dim, encoder.dim))
        began = time.monotonic()
        with (
            console.Progress("encoding") as progress,
            options.naming(model, ValueError, TypeError, RuntimeError),  # settings that only the encoder can check
        ):
            vectors = encode_file(encoder, text, output=table, progress=progress, report=console.say, **settings)
        seconds = time.monotonic() - began
        if stored != "float32":
            with options.naming(source):
                vectors = quantize_vectors(vectors, stored, calibration=ranges)
        if to_stdout:
            write_vectors(sys.stdout.buffer, vectors, (line for _, line in read_texts(text)), form=form)
        elif table != output:
            with atomic_write(output, binary=True) as stream:
                write_vectors(stream, vectors, (line for _, line in read_texts(text)), form=form)
            table.unlink()
        console.say(f"{len(vectors):,} lines, {vectors.shape[1]} dimensions, {seconds:.1f} s: {output}")
        return {"lines": len(vectors), "dim": vectors.shape[1], "format": form, "device": str(encoder.device)}
