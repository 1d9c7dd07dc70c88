"""The input of both sides of a benchmark: the same pairs, tokenizer and untrained transformer.

All of it is made from one folder of translated text and written into one working folder: `train.jsonl`,
`held-out.jsonl` (a pair per line: texts and languages, English first) and `model/` (a sentence-transformers folder,
which either library opens). No sentence is in two pairs, so there are no false negatives, which the libraries would
treat differently, and no held-out sentence is trained on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.data.readers import read

if TYPE_CHECKING:
    from isoglot.data.groups import Group

ENGLISH = "eng"
TABLES = ("*.tsv", "*.tsv.gz", "*.tsv.xz", "*.tsv.bz2")
SPECIAL = {"pad_token": "[PAD]", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}

Pair = dict[str, list[str]]  # {"texts": [English, translation], "langs": ["eng", ...]}


def prepare(data: Path, work: Path, *, pairs: int, held_out: int, vocabulary: int, seed: int) -> None:
    """Write the material of a run into the folder `work`; raises ValueError if `data` holds too few pairs."""
    chosen = list(distinct(groups(data)))
    if len(chosen) < pairs + held_out:
        raise ValueError(f"{data}: contains {len(chosen)} distinct pairs with English; {pairs + held_out} are needed")
    texts = (text for pair in chosen for text in pair["texts"])
    make_model(texts, work / "model", vocabulary=vocabulary, seed=seed)
    drawn = random.Random(seed).sample(chosen, pairs + held_out)
    write(work / "train.jsonl", drawn[:pairs])
    write(work / "held-out.jsonl", drawn[pairs:])


def groups(data: Path) -> Iterator[Group]:
    """Every group under a folder: of its TSV tables if it has any, else of its line-aligned files."""
    tables = sorted(path for pattern in TABLES for path in data.rglob(pattern))
    for table in tables:
        yield from read("tsv", table)
    if not tables:
        yield from read("folder", data, sets="*")


def distinct(found: Iterable[Group]) -> Iterator[Pair]:
    """The pairs with English, English first, none of whose two sentences has been met before."""
    met: set[str] = set()
    for group in found:
        if len(group.texts) == 2 and ENGLISH in group.langs and met.isdisjoint(group.texts):
            met.update(group.texts)
            order = sorted(range(2), key=lambda place: group.langs[place] != ENGLISH)
            yield {"texts": [group.texts[i] for i in order], "langs": [group.langs[i] for i in order]}


def write(path: Path, pairs: Iterable[Pair]) -> None:
    """One pair per line, as the reader `jsonl` has it."""
    path.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs), encoding="utf-8")


def texts_of(path: Path) -> tuple[list[str], list[str]]:
    """The English sentences of a file that `write` wrote, and their translations."""
    pairs = [json.loads(line)["texts"] for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def make_model(texts: Iterable[str], folder: Path, *, vocabulary: int, seed: int, length: int = 128) -> None:
    """A BERT of 6 layers of width 384 with random weights, mean pooling, and a tokenizer trained on the texts."""
    import torch
    from transformers import BertConfig, BertModel

    from isoglot.encoders.transformer import TransformerEncoder

    tokenizer = make_tokenizer(texts, vocabulary, length=length)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, max_position_embeddings=length, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    TransformerEncoder(BertModel(config), tokenizer, pooling="mean", max_length=length).save(folder)


def make_tokenizer(texts: Iterable[str], vocabulary: int, *, length: int) -> Any:
    """A BPE tokenizer that puts a sentence between [CLS] and [SEP]."""
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    from isoglot.model.tokenizer import train_tokenizer

    backend = train_tokenizer(texts, vocabulary - len(SPECIAL) + 1)  # which has <unk>
    backend.add_special_tokens(list(SPECIAL.values()))
    ends = [(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=length, **SPECIAL)
