"""The benchmark of an accelerator runs on a CPU, and its figures are those of its definitions."""

import importlib.util
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from isoglot.data.tokens import pack

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("gpu_benchmark", BENCHMARKS / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_what_was_computed(benchmark, toy_transformer, tmp_path, capsys, monkeypatch):
    encoder = toy_transformer()
    encoder.save(tmp_path / "model")
    texts = [f"the cat and dog number {row}" + " again" * (row % 5) for row in range(40)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    figures = (0.5, 1.25, "–")
    monkeypatch.setattr(benchmark, "measure", lambda works, device, rounds: [(work(), figures)[1] for work in works])
    words = [str(tmp_path / "model"), str(tmp_path / "texts.txt"), "--device", "cpu", "--batch", "8", "--peak", "1e-6"]
    words += ["--search", "300", "--search-peak", "2e-5"]
    benchmark.main(words)
    inference, training, search = (
        re.split(r" *\| *", line)[1:-1] for line in capsys.readouterr().out.splitlines()[-3:]
    )
    lengths = encoder.tokenize(texts).lengths
    matrices = {name: weight for name, weight in encoder.backbone.named_parameters() if weight.ndim == 2}
    layers = [weight.numel() for name, weight in matrices.items() if not re.search("embeddings|pooler", name)]
    assert benchmark.work_of_token(encoder) == 2 * sum(layers) > 0
    chunks = pack(lengths[:16], 512)
    positions = sum(len(chunk) * lengths[chunk].max() for chunk in chunks)
    assert inference[:3] == ["inference, 40 sentences", "80", f"{2 * lengths.sum():,}"]
    assert training[:3] == [f"training, 8 pairs in {len(chunks)} chunks", "32", f"{2 * lengths[:16].sum():,}"]
    rate = 3 * benchmark.work_of_token(encoder) * lengths[:16].sum() / 0.5 / 1e12
    assert training[3:5] == [f"{rate:.3g}", f"{rate / 1e-6:.1%}"]
    rate = 2 * 300 * 300 * encoder.dim / 0.5 / 1e12
    figures = ["600", "–", f"{rate:.3g}", f"{rate / 2e-5:.1%}", "–", "1.25", "–"]
    assert search == [f"search, 300 among 300 of {encoder.dim}", *figures]
    assert training[5:] == [f"{positions / lengths[:16].sum():.2f}", "1.25", "–"]


def test_it_measures(benchmark):
    calls = []
    works = [partial(calls.append, name) for name in "ab"]
    measured = benchmark.measure(works, benchmark.torch.device("cpu"), 3)
    assert calls == ["a", "b"] * 4  # in turns; the first of each is not timed
    for seconds, gigabytes, waits in measured:
        assert seconds > 0
        assert gigabytes > 0.01
        assert waits == "–"
