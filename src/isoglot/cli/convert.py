"""`isoglot convert`: a model with other weights on disk."""

from __future__ import annotations

from isoglot.cli.console import say
from isoglot.cli.options import ModelName, Output, open_encoder


def convert(model: ModelName, *, output: Output, weights: str = "int8", words: str | None = None) -> None:
    """Save a model with quantised weights, in float32 for sentence-transformers, or as ONNX.

    weights  weights on disk: float32, float16, int8, int4 or onnx
    words    weights of the word table on disk; default: those of --weights, with onnx int4
    """
    from isoglot.core.errors import EncoderError
    from isoglot.data.files import check_output
    from isoglot.encoders import packing

    try:
        packing.check(weights, words)
    except ValueError as error:
        raise EncoderError(f"convert: {error}") from error
    check_output(output, inputs=[model], folder=True, whole=True)
    open_encoder(model, device="cpu").save(output, weights=weights, words=words)
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    say(f"{size / 1e6:.1f} MB: {output}")
