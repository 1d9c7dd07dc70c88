"""`isoglot encode`: encode the lines of a file; an interrupted run can be resumed."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import console
from isoglot.cli.options import (
    Cores,
    Device,
    Gpus,
    Json,
    Pooling,
    Precision,
    Prompt,
    Ray,
    model_and_files,
    open_encoder,
    output_format,
    split,
)

FORMATS = {".npy": "npy", ".parquet": "parquet", ".jsonl": "jsonl"}
_LINES = 100_000


def encode(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] INPUT",
            help="Model (optional) and a text file, one sentence per line, plain or compressed; .jsonl: one JSON "
            "string per line; - for stdin.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file: .npy, .parquet or .jsonl; - for stdout.")
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="Output format: npy, parquet or jsonl; default: from the suffix, jsonl on stdout."
        ),
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to unit length; default: the model's setting.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum tokens per batch, including padding.")
    ] = None,
    truncate_dim: Annotated[int | None, typer.Option(min=1, help="Number of leading dimensions to keep.")] = None,
    precision: Precision = None,
    dtype: Annotated[str, typer.Option(help="Type of the vectors in the file: float32 or float16.")] = "float32",
    output_precision: Annotated[
        str, typer.Option(help="How vectors are stored: float32 (--dtype), int8, uint8, binary or ubinary; .npy only.")
    ] = "float32",
    calibration: Annotated[
        Path | None, typer.Option(help="Vectors (.npy), or their ranges, for int8 and uint8; default: those of INPUT.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, each with one thread.")] = 1,
    devices: Annotated[str, typer.Option(help="Devices, one process each, such as cuda:0,cuda:1.")] = "",
    ray: Ray = "",
    cores: Cores = 1,
    gpus: Gpus = 0,
    lines: Annotated[
        int, typer.Option(min=1, help="Lines per output file, in the folder OUTPUT; requires --ray.")
    ] = _LINES,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Encode the lines of a file into vectors; the same command resumes an interrupted run."""
    from isoglot.errors import EncoderError

    console.on_interrupt("run the same command again to resume")
    if as_json and str(output) == "-":
        raise typer.BadParameter("--json and --output - both write to stdout; choose one")
    _check_stored(output_precision, form, output, ray)
    settings = {
        "normalize_embeddings": normalize, "batch_tokens": batch_tokens, "truncate_dim": truncate_dim, "dtype": dtype,
        "precision": precision,
    }  # fmt: skip
    model, (file,) = model_and_files(words, most=1)
    source = Path(file)
    if ray:
        if workers != 1 or devices or device != "auto":
            raise EncoderError(
                "encode: --ray starts workers of its own, on accelerators with --gpus; remove --workers, --devices and "
                "--device"
            )
        if form not in (None, "npy"):
            raise EncoderError(f"encode: --ray writes a folder of .npy files; remove --format {form}")
        found = _encode_with_ray(
            model, source, output, ray, cores, gpus, lines, settings | {"pooling": pooling, "prompt": prompt}
        )
        console.say(f"{found['lines']:,} lines, {found['dim']} dimensions, {found['files']} files: {output}")
    elif cores != 1 or gpus or lines != _LINES:
        raise EncoderError("encode: --cores, --gpus and --lines need --ray; remove them, or add --ray")
    elif devices and workers != 1:
        raise EncoderError("encode: --devices starts one process for each device; remove --workers")
    else:
        found = _encode(
            model, source, output, form, settings, pooling=pooling, prompt=prompt,
            places=split(devices) or workers, device=device,
            stored=output_precision, calibration=calibration,
        )  # fmt: skip
    if as_json:
        console.show_json({"output": str(output), **found})


def _check_stored(stored: str, form: str | None, output: Path, ray: str) -> None:
    from isoglot.errors import EncoderError
    from isoglot.model.output import check_output_precision

    try:
        check_output_precision(stored)
    except ValueError as error:
        raise EncoderError(f"encode: {error}") from error
    if stored == "float32":
        return
    if ray:
        raise EncoderError("encode: --ray writes floats; remove --output-precision")
    if form not in (None, "npy") or (form is None and output.suffix != ".npy"):
        raise EncoderError("encode: --output-precision is for .npy files; name the output so, or pass --format npy")


def _encode(
    model: str,
    source: Path,
    output: Path,
    form: str | None,
    settings: dict[str, Any],
    *,
    pooling: str | None,
    prompt: str | None,
    places: int | list[str],
    device: str,
    stored: str,
    calibration: Path | None,
) -> dict[str, Any]:
    from isoglot.data.files import atomic_write, check_output, hidden, read_texts
    from isoglot.data.vectors import open_table, write_vectors
    from isoglot.errors import EncoderError
    from isoglot.model.output import quantize_vectors
    from isoglot.model.resumable import encode_file

    ranges = None if calibration is None else open_table(calibration)
    to_stdout = str(output) == "-"
    form = output_format(
        Path("stdout") if to_stdout else output, ({".jsonl": "jsonl"} if to_stdout else {}) | FORMATS, given=form
    )
    with ExitStack() as stack:
        (text,) = stack.enter_context(console.from_stdin(source))
        if to_stdout:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-")))
        table = (
            folder / "vectors.npy"
            if to_stdout
            else output
            if (form, stored) == ("npy", "float32")
            else hidden(output, "npy")
        )
        if not to_stdout:
            check_output(output, inputs=[model, source])
        encoder = open_encoder(model, device=device, precision=settings["precision"], pooling=pooling, prompt=prompt)
        began = time.monotonic()
        with console.Progress("encoding") as progress:
            try:
                vectors = encode_file(
                    encoder, text, output=table, workers=places, progress=progress, report=console.say, **settings
                )
            except (ValueError, TypeError, RuntimeError) as error:  # settings that only the encoder can check
                raise EncoderError(f"{model}: {error}") from error
        seconds = time.monotonic() - began
        if stored != "float32":
            try:
                vectors = quantize_vectors(vectors, stored, calibration=ranges)
            except ValueError as error:
                raise EncoderError(f"{calibration or source}: {error}") from error
        if to_stdout:
            write_vectors(sys.stdout.buffer, vectors, (line for _, line in read_texts(text)), form=form)
        elif table != output:
            with atomic_write(output, binary=True) as stream:
                write_vectors(stream, vectors, (line for _, line in read_texts(text)), form=form)
            table.unlink()
        console.say(f"{len(vectors):,} lines, {vectors.shape[1]} dimensions, {seconds:.1f} s: {output}")
        return {"lines": len(vectors), "dim": vectors.shape[1], "format": form, "device": str(encoder.device)}


def _encode_with_ray(
    model: str, source: Path, output: Path, ray: str, cores: int, gpus: float, lines: int, settings: dict[str, Any]
) -> dict[str, Any]:
    from isoglot.data.files import check_output, exclusive
    from isoglot.scale import Cluster, encode_shards

    check_output(output, inputs=[model, source], folder=True)
    with exclusive(output), console.Progress(f"encoding {source.name}", unit="lines") as progress:
        cluster = Cluster(ray, cpus=cores, gpus=gpus)
        pieces = encode_shards(
            model, [source], output, cluster=cluster, lines=lines, settings=settings, progress=progress
        )
    return {"lines": len(pieces), "dim": pieces.dim, "files": len(pieces.files)}
