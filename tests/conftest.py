"""Toy models shared by the tests, without a network. PyTorch is imported late: the main process of xdist needs none."""

from __future__ import annotations

import gc
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer
from hypothesis import HealthCheck, settings
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from isoglot.encoders import StaticEncoder, TransformerEncoder

DATA = Path(os.environ.get("ISOGLOT_DATA") or Path(__file__).parents[2] / "shared" / "data")  # published sets
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
SENTENCES = [
    "The cat sits on the mat.",
    "A dog runs through the park, happily!",
    "Die Katze sitzt auf der Matte.",
    "El gato está sentado en la alfombra.",
    "Кошка сидит на коврике.",
    "猫がマットの上に座っている。",
    "我不喜欢吃苹果,但是他喜欢。",
    "القطة تجلس على السجادة",
    "แมวนั่งอยู่บนเสื่อ",
    "numbers 1 22 333 and signs %&/",
]


def pytest_configure() -> None:
    """Collecting makes millions of objects and no rubbish; looking for it is a quarter of the time."""
    gc.disable()
    slow = [HealthCheck.too_slow]
    for name, examples in (("fast", 25), ("full", 200)):  # `make slow` asks for the second
        settings.register_profile(name, deadline=None, suppress_health_check=slow, max_examples=examples)  # under load
    settings.load_profile("fast")
    # The command line is put together once, for collecting too; that is most of a call that ends in an error.
    typer.main.get_command = cache(typer.main.get_command)
    importlib.metadata.version = cache(importlib.metadata.version)  # a run records that of each package


def pytest_collection_finish() -> None:
    """What is there by now stays; only what tests make is looked through, and seldom."""
    gc.freeze()
    gc.set_threshold(200_000)
    gc.enable()


def published(name: str) -> Path:
    """A file or folder of the published sets; the test is skipped where there is no copy."""
    if not (DATA / name).exists():
        pytest.skip(f"{DATA} has no {name}; set ISOGLOT_DATA to a folder that has it")
    return DATA / name


def replace_unseen(path: Path, content: bytes) -> None:
    """Replace a file by one of the same size and modification time, as `rsync -a`, `cp -p` and `tar` may do."""
    facts, new = path.stat(), path.with_name("new")
    assert len(content) == facts.st_size
    assert content != path.read_bytes()
    new.write_bytes(content)
    new.replace(path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def permute(path: Path) -> None:
    """Move the last line of a file to its beginning, unseen; where there are three or more, behind the first."""
    first, *lines = path.read_bytes().splitlines(keepends=True)
    replace_unseen(path, b"".join([first, lines[-1], *lines[:-1]] if len(lines) > 1 else [*lines, first]))


def load_script(name: str) -> Any:
    """A module of the folder `scripts`, loaded anew."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_tokenizer(kind: str = "bpe") -> Tokenizer:
    """A small tokenizer with special tokens around a sentence: `bpe`, `unigram` or `wordpiece`."""
    return Tokenizer.from_str(_trained(kind))


@cache
def _trained(kind: str) -> str:
    kinds = {
        "bpe": (models.BPE(unk_token="<unk>"), trainers.BpeTrainer, {}),
        "unigram": (models.Unigram(), trainers.UnigramTrainer, {"unk_token": "<unk>"}),
        "wordpiece": (models.WordPiece(unk_token="<unk>"), trainers.WordPieceTrainer, {}),
    }
    model, trainer, settings = kinds[kind]
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace() if kind == "wordpiece" else pre_tokenizers.Metaspace()
    training = trainer(vocab_size=200, special_tokens=SPECIALS, show_progress=False, **settings)
    tokenizer.train_from_iterator(SENTENCES, training)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    )
    return tokenizer.to_str()


def build_transformer(
    kind: str = "bpe", *, family: str = "bert", seed: int = 0, **settings: object
) -> TransformerEncoder:
    """Two random layers of 16 dims (`bert`, `xlm-roberta`, `distilbert` or `mpnet`) under a toy tokenizer."""
    import torch
    import transformers

    from isoglot.encoders import TransformerEncoder

    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=build_tokenizer(kind),
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=48,
        model_input_names=["input_ids", "attention_mask"],
    )
    common = {"vocab_size": 220, "max_position_embeddings": 64, "pad_token_id": 0}
    widths = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.default_generator.manual_seed(seed)
    if family == "distilbert":
        config = transformers.DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=32, **common)
        return TransformerEncoder(transformers.DistilBertModel(config), tokenizer, **settings)
    if family == "xlm-roberta":
        config = transformers.XLMRobertaConfig(type_vocab_size=1, **common, **widths)
        return TransformerEncoder(transformers.XLMRobertaModel(config), tokenizer, **settings)
    if family == "mpnet":
        config = transformers.MPNetConfig(**{**common, "pad_token_id": 1}, **widths)
        return TransformerEncoder(transformers.MPNetModel(config), tokenizer, **settings)
    config = transformers.BertConfig(**common, **widths)
    return TransformerEncoder(transformers.BertModel(config), tokenizer, **settings)


def save_and_open(encoder: Any, folder: Path, texts: list[str] = SENTENCES, *, atol: float = 1e-6) -> Any:
    """What an encoder that is saved in `folder` is opened as there; it has the same vectors."""
    from isoglot.encoders import load

    encoder.save(folder)
    opened = load(folder)
    np.testing.assert_allclose(opened.encode(texts), encoder.encode(texts), atol=atol)
    return opened


def save_and_open_elsewhere(
    encoder: Any, folder: Path, texts: list[str] = SENTENCES, *, atol: float = 1e-6, **settings: object
) -> Any:
    """The same in sentence-transformers; the test is skipped where that is not installed."""
    peer = pytest.importorskip("sentence_transformers")
    encoder.save(folder)
    opened = peer.SentenceTransformer(str(folder), device="cpu", local_files_only=True, **settings)
    np.testing.assert_allclose(opened.encode(texts), encoder.encode(texts), atol=atol)
    return opened


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def toy_tokenizer() -> Tokenizer:
    """A fresh byte-pair tokenizer of 200 pieces."""
    return build_tokenizer()


@pytest.fixture
def toy_transformer() -> Callable[..., TransformerEncoder]:
    """`build_transformer`: call it with the settings the test is about."""
    return build_transformer


@pytest.fixture
def toy_static(toy_tokenizer: Tokenizer) -> StaticEncoder:
    """A static encoder of 8 dims whose token weights are not all one."""
    import torch

    from isoglot.encoders import StaticEncoder

    encoder = StaticEncoder.create(toy_tokenizer, 8, seed=1)
    assert encoder.token_weights is not None
    with torch.no_grad():
        encoder.token_weights.copy_(torch.linspace(0.5, 1.5, len(encoder.table))[:, None])
    return encoder


@pytest.fixture(autouse=True, scope="session")
def one_thread_and_exact() -> None:
    """Toy matrices gain nothing from threads; vectors are compared to the last digits, where bfloat16 is kept too."""
    import torch

    from isoglot.encoders import TransformerEncoder

    torch.set_num_threads(1)
    TransformerEncoder.keeps_bfloat16 = False


@pytest.fixture
def browser(tmp_path: Path) -> Callable[[str], str]:
    """Opens an address in headless Chromium and gives the page as its script has left it; errors there are failures."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium to look at the page with")
    options = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    options += (
        "--disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=10000 --dump-dom"
    )

    def look(address: str) -> str:
        words = [program, *options.split(), f"--user-data-dir={tmp_path / 'profile'}", address]
        result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        assert "CONSOLE" not in result.stderr
        return result.stdout

    return look


@pytest.fixture(scope="session")
def mteb() -> Any:
    """The package; the test is skipped where it is not installed."""
    return pytest.importorskip("mteb")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """One cluster of two workers for the tests of a file."""
    module = pytest.importorskip("ray", reason="Ray is not installed")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield module
    module.shutdown()


@pytest.fixture
def run_main(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """A function that runs the command line on words: its exit code, stdout and stderr."""
    from isoglot.cli.main import main

    def call(*words: object) -> tuple:
        monkeypatch.setattr(sys, "argv", ["isoglot", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    return call
