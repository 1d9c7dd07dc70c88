"""GloVe word vectors as a static encoder: a sentence is the average of its known words.

Words are split as the vectors' own corpus was, after the Penn treebank (`do n't`, `cat 's`), in lower case. Words
without a vector share a row of zeros: they shorten the average and do not turn it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.tokenizer import UNKNOWN
from isoglot.errors import EncoderError

_WORDS = r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|\w+|[^\w\s]"


def convert(words: Path, vectors: Path, folder: Path) -> None:
    """Write the model folder from the list of words (Parquet, column `index`) and their vectors (NumPy)."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    try:
        from pyarrow import parquet
    except ImportError as error:
        raise EncoderError("the words of GloVe come as a Parquet file, read once: pip install pyarrow") from error
    listed = parquet.read_table(words).column("index").to_pylist()
    table = np.vstack([np.zeros((1, 50), np.float32), np.load(vectors)])
    vocabulary = {UNKNOWN: 0, **{word: row for row, word in enumerate(listed, start=1)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True)
    StaticEncoder(torch.from_numpy(table), tokenizer).save(folder)
