"""`isoglot average`: a model with the weighted mean of the weights of several."""

from __future__ import annotations

import typer

from isoglot.cli.console import say
from isoglot.cli.options import Output
from isoglot.cli.signatures import split


def average(models: list[str], *, output: Output, weights: str = "") -> None:
    """Average the weights of models of one architecture and tokenizer.

    models   two or more models: folders, packaged names, or hub ids in the local cache
    weights  weight of each model, separated by commas; they must sum to 1; default: equal weights
    """
    from isoglot import encoders
    from isoglot.core.errors import EncoderError
    from isoglot.data.files import check_output, exclusive
    from isoglot.model import layout

    try:
        shares = [float(part) for part in split(weights)] or None
    except ValueError as error:
        raise typer.BadParameter(f"--weights {weights}: expected numbers separated by commas") from error
    check_output(output, inputs=models, folder=True, whole=True)
    with exclusive(output):
        layout.prepare(output)
        try:
            mean = encoders.average(models, shares)
        except ValueError as error:
            raise EncoderError(str(error)) from error
        mean.save(output)
    say(f"mean of {len(models)} models: {output}")
