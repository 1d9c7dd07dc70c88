"""A transformer as a graph for ONNX Runtime, on a CPU.

A folder that `isoglot export` writes holds the graph, `onnx/model_quantized.onnx`, from token ids to vectors, with
linear layers in eight bits (see `isoglot.encoders.onnx_export`). A graph without the word table takes the tokens' rows
of one in memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EncoderError
from isoglot.data.files import digest as digest_of_file
from isoglot.data.tokens import Tokens
from isoglot.model import configs, layout, pieces
from isoglot.model.backend import Plan, Rows
from isoglot.model.base import Model
from isoglot.model.tokenizer import add_prompt, prepare_tokenizer, tokenize_rows


class Graph:
    """A graph in a file or as bytes, and the session that runs it, which is made when first used in a process."""

    def __init__(self, source: Path | bytes) -> None:
        self.source = source

    @cached_property
    def session(self) -> Any:
        """The ONNX Runtime session. Raises EncoderError for a graph that can't be read."""
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # else it sends facts of the machine, and stores an id
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # `encode` computes a chunk in each thread
        options.log_severity_level = 3
        with configs.reading(self.source if isinstance(self.source, Path) else "the graph", "export the model again"):
            return onnxruntime.InferenceSession(self.source, options, providers=["CPUExecutionProvider"])

    def __getstate__(self) -> dict[str, Any]:
        return {"source": self.source}


class OnnxModel(Model):
    """A graph under a tokenizer.

    graph       its inputs are `input_ids` and `attention_mask`, its outputs the vectors (N, D), not normalised, and
                the last states (N, T, H); with a `table`, the inputs are `words`, the tokens' rows, and `mask`
    table       word embeddings (V, H) outside the graph
    longest     most tokens that the graph has positions for
    """

    concurrent = True
    precision, pooling = "int8", "mean"
    pad: int

    def __init__(
        self,
        graph: Graph,
        tokenizer: Any,
        *,
        dim: int,
        max_length: int,
        pad: int,
        table: NDArray[np.float32] | None = None,
        longest: int = 1 << 24,
    ) -> None:
        self.graph, self.table, self.longest = graph, table, longest
        _ = graph.session  # opened once, and not by each of several threads
        self._pieces = tokenizer if isinstance(tokenizer, pieces.PieceTokenizer) else None
        self._tokenizer = tokenizer
        self.dim, self.max_length, self.pad = dim, max_length, pad

    @classmethod
    def open(cls, folder: Path) -> OnnxModel:
        """The model in a folder that `isoglot export` wrote. Raises EncoderError for a damaged one."""
        config = configs.read(folder / "config.json", configs.Backbone)
        length = configs.read(folder / layout.LENGTH, configs.Length).max_seq_length
        graph = Graph(folder / layout.GRAPH)
        with ThreadPoolExecutor(1) as pool:  # tokenizer and graph take half of the time each
            opened = pool.submit(lambda: graph.session)
            rows = int((config.model_extra or {}).get("vocab_size", 1 << 24))
            tokenizer, pad = _open_tokenizer(folder, rows)
            if tokenizer is None or not length:
                raise EncoderError(f"{folder}: its tokenizer is not one that `isoglot export` writes; export it again")
            widths = [output.shape[-1] for output in opened.result().get_outputs()]
        return cls(graph, tokenizer, dim=int(widths[0]), pad=pad, max_length=length, longest=length)

    @property
    def max_length(self) -> int:
        """Maximum tokens per text, special tokens included; setting more than `longest` raises ValueError."""
        return self._length

    @max_length.setter
    def max_length(self, value: int) -> None:
        if not 2 <= value <= self.longest:
            raise ValueError(f"max_length must lie between 2 and {self.longest}, got {value}")
        self._length = value

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids with special tokens; a text without tokens becomes one padding token."""
        texts = add_prompt(texts, prompt, self.prompt)
        if self._pieces is not None:
            return self._pieces.tokenize(texts, max_length=self.max_length)
        return tokenize_rows(self.tokenizer, texts, max_length=self.max_length, special=True, filler=self.pad)

    def begin(self, tokens: Tokens, plan: Plan) -> Callable[[], Rows]:
        """The vectors, which are computed at once."""
        if not len(tokens):
            return lambda: np.zeros((0, plan.width), np.float32)
        vectors: Rows = self._run(tokens, 0)[:, : plan.width]
        return lambda: vectors

    def states(self, tokens: Tokens, precision: str) -> NDArray[np.float32]:
        """The second output of the graph."""
        del precision  # that of the graph
        return self._run(tokens, 1)

    def _run(self, tokens: Tokens, output: int) -> NDArray[np.float32]:
        ids, mask = tokens.pad(self.pad)
        mask = np.ones_like(ids) if mask is None else mask
        inputs: dict[str, NDArray[Any]] = {"input_ids": ids, "attention_mask": mask}
        if self.table is not None:
            inputs = {"words": self.table[ids], "mask": mask}
        session = self.graph.session
        values: NDArray[np.float32] = session.run([session.get_outputs()[output].name], inputs)[0]
        return values

    @property
    def tokenizer(self) -> Any:
        """The tokenizer as `tokenizers` has it; read when first asked for where sentencepiece tokenises."""
        return self._tokenizer if self._pieces is None else self._pieces.backend

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of tokenizer, truncation and prompt."""
        if self._pieces is not None:
            return self._pieces.digest(self.max_length, self.prompt)
        return super().fingerprint

    def source_identity(self) -> str:
        """That of the model that `isoglot export` read, unless settings were changed since; else its own."""
        source = self.graph.session.get_modelmeta().custom_metadata_map.get(layout.SOURCE, "")
        settings, _, identity = source.rpartition(" ")
        return identity if settings == f"{self.fingerprint} {self.dim}" else self.identity()

    @property
    def parameters_count(self) -> int:
        """Number of weights, as its card has it; 0 without a card."""
        return self.card.parameters if self.card is not None else 0

    def add_weights(self, checksum: Any) -> None:
        """Update a checksum with the graph and the table."""
        self._require_unchanged()
        source = self.graph.source
        content = hashlib.sha256(source).hexdigest() if isinstance(source, bytes) else digest_of_file(source)
        checksum.update(content.encode())
        if self.table is not None:
            checksum.update(np.ascontiguousarray(self.table))


def _open_tokenizer(folder: Path, rows: int) -> tuple[Any, int]:
    """The tokenizer of a folder whose word table has so many rows, or None, and the number of its padding token."""
    if (folder / pieces.FILE).is_file():
        tokenizer = pieces.PieceTokenizer(folder)
        if len(tokenizer) > rows:
            sizes = f"has {len(tokenizer)} pieces, and the embedding table {rows} rows"
            raise EncoderError(f"{folder}: the tokenizer {sizes}; it belongs to another model")
        named = layout.read_json(folder / "special_tokens_map.json").get("pad_token")
        return tokenizer, tokenizer.number(named) or 0
    saved = layout.read_tokenizer(folder)
    if saved is None:
        return None, 0
    prepare_tokenizer(saved.backend_tokenizer, rows, folder)
    return saved.backend_tokenizer, int(saved.pad_token_id or 0)
