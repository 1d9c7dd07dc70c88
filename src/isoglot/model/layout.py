"""The saved format: a sentence-transformers folder of version 5, with key names that every version since 2 reads;
folders written by version 6 do not open in older versions. The tokenizer's class is written as
`PreTrainedTokenizerFast`, the one name that transformers 4 and 5 share. A folder is written under a temporary name and
renamed when complete, so that a reader sees the old model or the new one, never half of either. If a process is killed
between its two renames there is none, and the next writer restores the old one. A folder lists the files that it was
saved with, and one that contains any other file is never replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.core.errors import IsoglotError, OutputError
from isoglot.data.files import (
    atomic_folder,
    content_digest,
    exclusive,
    list_files,
    read_record,
    remove_temporary_folders,
)
from isoglot.model import configs, packed
from isoglot.model.configs import read_json as read_json
from isoglot.model.tokenizer import SavedTokenizer, suspend_padding

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast


GRAPH = "onnx/model_quantized.onnx"  # in a folder of `onnx_export.write_onnx`: where transformers.js looks for it
SOURCE = "isoglot.source"  # metadata of a graph: fingerprint, width and identity of the model that it was made of
LENGTH = "sentence_bert_config.json"  # where sentence-transformers has the maximum length
MARKS = ("modules.json", "config.json", "adapter_config.json")  # of which a model has one
FILES = "isoglot.files.json"  # in a saved folder: the names of the files that it was saved with

_ABOUT = (FILES, "README.md", "isoglot.card.json")  # say something about a model and change no vector

_new: set[Path] = set()  # folders that `replacing` is writing in this process

_MODELS = "sentence_transformers.models"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_FLAGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}  # of poolings, as in sentence-transformers
_FLAGS |= dict.fromkeys(("mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken"), "")
_INPUTS = ("input_ids", "token_type_ids", "attention_mask")
_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def digest_of(folder: Path) -> str:
    """Hexadecimal digest of all files of a model, configuration included, except for its card."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in _ABOUT)
    contents = [f"{path.relative_to(folder).as_posix()} {content_digest(path)}" for path in files]
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Module:
    """One line of modules.json: the class's short name, and its folder, where its settings and weights are."""

    kind: str
    folder: Path


def is_model(folder: Path) -> bool:
    """Whether a folder has what a saved model begins with."""
    return any((folder / name).is_file() for name in MARKS)


def is_onnx(folder: Path) -> bool:
    """Whether the only weights of a model folder are in an ONNX file."""
    return (folder / GRAPH).is_file() and find_weights(folder) is None and not packed.is_packed(folder)


def find_weights(folder: Path) -> Path | None:
    """The file with the weights of a model folder, or with the list of such files, as transformers writes them."""
    return next((folder / name for name in _WEIGHTS if (folder / name).is_file()), None)


@contextmanager
def replacing(folder: str | Path, *, is_model: bool = True) -> Iterator[Path]:
    """A new folder to write into, which replaces `folder` as a whole when the block ends well.

    A folder inside a model that is being written this way is simply made. Raises `OutputError`, before anything is
    written, for what `prepare` rejects and while another process writes `folder`; later, if it can't be written.
    """
    path, folder = folder, Path(os.path.realpath(folder))
    if any(folder.is_relative_to(new) for new in _new):
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with exclusive(path):
        prepare(path)
        with atomic_folder(path, replace=True) as new, _full_disk_is_oserror():
            if is_model:
                _new.add(new)
            try:
                yield new
            finally:
                _new.discard(new)
            write_json(new / FILES, {"files": list_files(new)})
            for file in new.rglob("*.safetensors"):  # which the library makes for the owner alone
                file.chmod((new / FILES).stat().st_mode)


def prepare(folder: str | Path) -> None:
    """Recover what a killed process left of `folder`, and raise `OutputError` unless a model may take its place.

    That is so if it is absent, empty, or holds only files that this library listed when it wrote them. Enter
    `exclusive` before.
    """
    path, folder = folder, Path(os.path.realpath(folder))
    remove_temporary_folders(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{path}: is a file, and a model is a folder; choose another output")
    if folder.is_mount() or folder == Path.home() or (Path.cwd().is_relative_to(folder) and any(folder.iterdir())):
        unsafe = "the current folder or contains it, the home folder or a mount point"
        raise OutputError(f"{path}: is {unsafe}, and can't be replaced; choose a folder inside it")
    present = list_files(folder)
    if not present:
        return
    listed = (read_record(folder / FILES) or {}).get("files")
    if not isinstance(listed, list):
        advice = "choose another folder, or empty it if nothing there is needed"
        raise OutputError(f"{path}: exists and has no list of files that this version wrote ({FILES}); {advice}")
    if strange := sorted({*present}.difference(map(str, listed), [FILES])):
        more = f" and {len(strange) - 1:,} more files" if len(strange) > 1 else ""
        raise OutputError(f"{path}: contains {strange[0]}{more}, which isoglot did not write; move it away")


@contextmanager
def _full_disk_is_oserror() -> Iterator[None]:
    """Errors of the system that safetensors and tokenizers report in classes of their own are `OSError`s."""
    try:
        yield
    except (OSError, IsoglotError):
        raise
    except Exception as error:
        if match := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(match[1]), os.strerror(int(match[1]))) from error
        raise


def write_json(path: Path, value: object) -> None:
    """One JSON file, indented, in UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_modules(
    folder: Path,
    kinds: Sequence[tuple[str, str]],
    *,
    prompt: str = "",
    prompts: Mapping[str, str] | None = None,
    name: str | None = None,
) -> None:
    """modules.json for (class, sub-folder) pairs in order of use, and the settings file next to it.

    A class of sentence-transformers goes by its name alone, any other by its whole path.
    """
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": kind if "." in kind else f"{_MODELS}.{kind}"}
        for index, (kind, path) in enumerate(kinds)
    ]
    for _, path in kinds:
        (folder / path).mkdir(exist_ok=True)
    write_json(folder / "modules.json", modules)
    named = dict(prompts or {})
    if "document" not in named and (other := next((key for key in ("passage", "corpus") if key in named), None)):
        named["document"] = named[other]  # sentence-transformers looks for others only where this has no entry
    default = next((name for name, text in named.items() if text == prompt), "default") if prompt else None
    if default is not None:
        named[default] = prompt
    settings = {
        "__version__": {"sentence_transformers": "5.0.0"},
        "model_type": "SentenceTransformer",
        "prompts": named,
        "default_prompt_name": default,
        "similarity_fn_name": "cosine",
        **({"name": name} if name else {}),
    }
    write_json(folder / "config_sentence_transformers.json", settings)


def write_pooling(folder: Path, mode: str, dim: int) -> None:
    """The Pooling module's settings; `dim` is the width of the token states.

    sentence-transformers reads the modes cls, mean and max, each as a flag; any other is a name for `isoglot.load`.
    """
    flags = {f"pooling_mode_{flag}": name == mode for flag, name in _FLAGS.items()}
    setting = {**flags, "include_prompt": True} if any(flags.values()) else {"pooling_mode": mode}
    write_json(folder / "config.json", {"word_embedding_dimension": dim, **setting})


def write_backend(folder: Path, tokenizer: Tokenizer, max_length: int) -> None:
    """tokenizer.json with truncation at `max_length` and without padding."""
    with suspend_padding(tokenizer, max_length):
        tokenizer.save(str(folder / "tokenizer.json"))


def write_tokenizer(
    folder: Path, tokenizer: PreTrainedTokenizerFast | SavedTokenizer, max_length: int, *, has_pooler: bool = True
) -> None:
    """Write tokenizer.json, which is complete, and the settings files that others require next to it.

    has_pooler   False: sentence-transformers is to leave out the backbone's pooler, which has no weights in the folder
    """
    write_backend(folder, tokenizer.backend_tokenizer, max_length)
    named = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if name in _TOKENS}
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
    arguments = {} if has_pooler else {"model_args": {"add_pooling_layer": False}}
    write_json(folder / LENGTH, {"max_seq_length": max_length, "do_lower_case": False, **arguments})


def read_tokenizer(folder: Path) -> SavedTokenizer | None:
    """The tokenizer of a folder that has exactly what `write_tokenizer` writes; None for any other folder.

    It is not read by transformers, which takes long to import and reads every tokenizer.json three times.
    """
    files = [folder / name for name in ("tokenizer_config.json", "special_tokens_map.json")]
    if not all(file.is_file() for file in files) or (folder / "added_tokens.json").exists():
        return None
    if not any((folder / name).is_file() for name in ("tokenizer.json", packed.TOKENIZER)):
        return None
    settings, special = (read_json(file) for file in files)
    named = {name: settings[name] for name in _TOKENS if name in settings}
    keys = {"tokenizer_class", "model_max_length", "model_input_names", "clean_up_tokenization_spaces"}
    keys |= {"padding_side", "truncation_side", *_TOKENS}
    if settings.get("tokenizer_class") != "PreTrainedTokenizerFast" or special != named or settings.keys() - keys:
        return None
    backend = packed.read_tokenizer(folder)
    length, inputs = settings.get("model_max_length", int(1e30)), settings.get("model_input_names", _INPUTS)
    return SavedTokenizer(backend, int(length), tuple(inputs), named)


def read_modules(folder: Path) -> list[Module]:
    """The modules of a saved folder in order of use; class paths of versions 2 to 6 are all understood."""
    entries = sorted(configs.read(folder / "modules.json", list[configs.Entry]), key=lambda entry: entry.idx)
    return [Module(entry.type.rsplit(".", 1)[-1], folder / entry.path) for entry in entries]


def read_settings(folder: Path) -> configs.Settings:
    """The name of a model, its prompts by name, and which of them is put before every text by default."""
    return configs.read_if_there(folder / "config_sentence_transformers.json", configs.Settings)
