"""The saved format: a sentence-transformers folder of version 5, with the key names every version since 2 reads.

Version 6 reads them too, while what it writes itself does not open in older ones. The tokenizer's class is written as
`PreTrainedTokenizerFast`, the one name that transformers 4 and 5 share. A folder is written beside its place and moved
there when complete, so that a reader, or a crash, meets the old model or the new one and never half of either.
"""

from __future__ import annotations

import json
import shutil
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoglot.encoders import configs
from isoglot.encoders.configs import read_json as read_json
from isoglot.encoders.tokenizer import unpadded
from isoglot.errors import EncoderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

_MODELS = "sentence_transformers.models"
_quiet = threading.RLock()
_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class Module:
    """One line of modules.json: the class's short name, its folder, and the config.json there ({} if none).

    The config is unchecked: `settings_of` checks it.
    """

    kind: str
    folder: Path
    config: Any


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` as a whole when the block ends well.

    Raises EncoderError, before anything is written, if `folder` exists and holds something that is not a model.
    """
    folder = Path(folder).absolute()
    if folder.exists() and not _replaceable(folder):
        raise EncoderError(f"{folder}: exists and holds no model; give another folder, or empty this one")
    mark = uuid.uuid4().hex[:8]
    new, old = (folder.with_name(f".{folder.name}.{mark}.{state}") for state in ("new", "old"))
    from safetensors import SafetensorError  # what it raises when a disk is full

    try:
        new.mkdir(parents=True)
        yield new
        _swap(new, folder, old)
    except (OSError, SafetensorError) as error:
        raise EncoderError(f"{folder}: the model could not be written: {error}") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)


def _swap(new: Path, folder: Path, old: Path) -> None:
    existed = folder.exists()
    if existed:
        folder.replace(old)
    try:
        new.replace(folder)
    except OSError:
        if existed:
            old.replace(folder)
        raise


def _replaceable(folder: Path) -> bool:
    """An empty folder, or one with a model at its root."""
    if not folder.is_dir():
        return False
    names = {entry.name for entry in folder.iterdir()}
    return not names or bool(names & {"modules.json", "config.json"})


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no reports from transformers: what matters of them is raised as an error instead.

    One thread at a time, since these settings are of the whole process.
    """
    from transformers.utils import logging

    with _quiet:
        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()


def write_json(path: Path, value: object) -> None:
    """One JSON file, indented, in UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_modules(folder: Path, kinds: Sequence[tuple[str, str]], *, prompt: str = "") -> None:
    """modules.json for (class, sub-folder) pairs in order of use, and the settings file beside it.

    A class of sentence-transformers goes by its name alone, any other by its whole path.
    """
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": kind if "." in kind else f"{_MODELS}.{kind}"}
        for index, (kind, path) in enumerate(kinds)
    ]
    for _, path in kinds:
        (folder / path).mkdir(exist_ok=True)
    write_json(folder / "modules.json", modules)
    settings = {
        "__version__": {"sentence_transformers": "5.0.0"},
        "model_type": "SentenceTransformer",
        "prompts": {"default": prompt} if prompt else {},
        "default_prompt_name": "default" if prompt else None,
        "similarity_fn_name": "cosine",
    }
    write_json(folder / "config_sentence_transformers.json", settings)


def write_pooling(folder: Path, mode: str, dim: int) -> None:
    """The Pooling module's settings: `mode` is cls, mean or max, `dim` the width of the token states."""
    flags = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    rest = ("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
    chosen = {f"pooling_mode_{flag}": name == mode for name, flag in flags.items()}
    others = {f"pooling_mode_{flag}": False for flag in rest}
    write_json(folder / "config.json", {"word_embedding_dimension": dim, **chosen, **others, "include_prompt": True})


def write_backend(folder: Path, tokenizer: Tokenizer, max_length: int) -> None:
    """tokenizer.json, cutting at `max_length` and padding nothing."""
    with unpadded(tokenizer, max_length):
        tokenizer.save(str(folder / "tokenizer.json"))


def write_tokenizer(folder: Path, tokenizer: PreTrainedTokenizerFast, max_length: int) -> None:
    """tokenizer.json, which says everything, and the two settings files that transformers wants beside it."""
    write_backend(folder, tokenizer.backend_tokenizer, max_length)
    named = {name: str(token) for name in _TOKENS if (token := getattr(tokenizer, name, None)) is not None}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": list(tokenizer.model_input_names),
        "clean_up_tokenization_spaces": False,
        "padding_side": "right",
        "truncation_side": "right",
        **named,
    }
    write_json(folder / "tokenizer_config.json", settings)
    write_json(folder / "special_tokens_map.json", named)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_length, "do_lower_case": False})


def read_modules(folder: Path) -> list[Module]:
    """The modules of a saved folder in order of use; class paths of versions 2 to 6 are all understood."""
    modules = []
    for entry in sorted(configs.read(folder / "modules.json", configs.Modules).root, key=lambda entry: entry.idx):
        place = folder / entry.path
        config = read_json(place / "config.json") if (place / "config.json").is_file() else {}
        modules.append(Module(entry.type.rsplit(".", 1)[-1], place, config))
    return modules


def settings_of(module: Module, kind: type[configs.Setting]) -> configs.Setting:
    """The settings of a module, checked."""
    return configs.checked(module.folder / "config.json", kind, module.config)


def read_prompt(folder: Path) -> str:
    """The prompt put before every text by default; "" if there is none."""
    return configs.read_if_there(folder / "config_sentence_transformers.json", configs.Prompts).default
