"""`isoglot average`: what it writes, and one line for wrong input."""

from __future__ import annotations

import pytest
import torch
import typer
from command_line import runner

from conftest import build_tokenizer
from isoglot.cli.average import average
from isoglot.encoders import StaticEncoder, load
from isoglot.errors import EncoderError, OutputError


@pytest.fixture
def project(tmp_path):
    for seed, name in enumerate(("one", "two")):
        StaticEncoder.create(build_tokenizer(), 8, seed=seed).save(tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    "weights, first", [((), 0.5), (("--weights", ".25, .75"), 0.25), (("--weights=1.5,-.5",), 1.5)]
)
def test_the_mean_is_written(weights, first, project):
    said = runner(average=average)(project / "one", project / "two", *weights, "-o", project / "mean")
    assert "2 models" in said
    one, two, mean = (load(project / name).table for name in ("one", "two", "mean"))
    torch.testing.assert_close(mean, first * one + (1 - first) * two)


def test_wrong_input_is_one_error_and_writes_nothing(project):
    run = runner(average=average)
    one, two = project / "one", project / "two"
    with pytest.raises(EncoderError, match=r"0\.8"):
        run(one, two, "--weights", ".9,.8", "-o", project / "mean")
    with pytest.raises(EncoderError, match="at least two"):
        run(one, "-o", project / "mean")
    with pytest.raises(OutputError, match="two"):
        run(one, two, "-o", two)
    with pytest.raises(typer.BadParameter, match="half"):
        average([str(one), str(two)], output=project / "mean", weights="half")
    assert not (project / "mean").exists()
