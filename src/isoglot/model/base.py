"""`Model`: texts to vectors, with everything that callers use. This package needs no torch.

A model tokenises texts and computes the vectors of chunks of tokens (`backend.py`); all else (windows, duplicates,
threads, worker processes, files, caches) is built on these two. What computes is one of three engines: a static table
in NumPy (`static.py`), a graph in ONNX Runtime (`onnx.py`), or torch (`isoglot.encoders`, whose encoders are models
too).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isoglot.core.arguments import PositiveInt, as_array, check_arguments
from isoglot.core.errors import EncoderError, nearest, quote
from isoglot.core.plugins import torch_half
from isoglot.core.progress import Progress, bar
from isoglot.data.vectors import unit
from isoglot.model import engine
from isoglot.model.backend import Backend
from isoglot.model.output import check_output_precision, find_ranges, quantize_vectors
from isoglot.model.resumable import encode_file
from isoglot.model.tokenizer import readable as readable

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

    from isoglot.model.card import Card
    from isoglot.model.mteb import MtebModel


OutputValue = Literal["sentence_embedding", "token_embeddings"]
Words = Literal["float32", "float16", "int8", "int4"]  # forms of weights on disk
Weights = Literal[Words, "onnx"]
# What members of other libraries' models are called here.
_ELSEWHERE = {
    "fit": "isoglot.train(model, pairs)",
    "save_pretrained": "save(folder)",
    "save_to_hub": "push_to_hub(repository)",
    "encode_multi_process": "encode(texts, workers=4)",
    "start_multi_process_pool": "encode(texts, workers=4)",
    "evaluate": "isoglot.evaluate(model, ...)",
    "encode_queries": "encode_query(texts)",
    "encode_corpus": "encode_document(texts)",
    "truncate_dim": "encode(texts, truncate_dim=256)",
    "default_prompt_name": "prompt, the text itself",
    "to": "isoglot.load(name, device='cuda')",
}
# What the prompts of a role may be called.
_ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}


class _Vectors(TypedDict, total=False):
    """For type checkers: the settings of `Model.encode` that do not decide the type of the result."""

    batch_size: int | None
    show_progress_bar: bool | None
    device: Any
    normalize_embeddings: bool | None
    prompt: str | None
    prompt_name: str | None
    truncate_dim: int | None
    precision: str | None
    dtype: DTypeLike
    output_precision: str
    calibration: Any
    batch_tokens: int | None
    workers: int | Sequence[Any]
    output: str | Path | None
    progress: Progress | None
    sentences: str | Iterable[str] | None
    inputs: str | Iterable[str] | None


class Settings(_Vectors, total=False):
    """For type checkers: all settings of `Model.encode`."""

    output_value: OutputValue
    convert_to_numpy: bool
    convert_to_tensor: bool


class Model(Backend):
    """A model, of any engine: what its callers use."""

    @cached_property
    def card(self) -> Card | None:
        """Training data and scores for the model card; None if unknown. Raises EncoderError for a damaged file."""
        from isoglot.model import card  # reads languages, which takes a tenth of a second

        return None if self.folder is None else card.read(self.folder)

    @check_arguments()
    def save(
        self, folder: str | Path, *, name: str | None = None, weights: Weights = "float32", words: Words | None = None
    ) -> None:
        """Write the model and its card to `folder`, atomically; a model that was there before is replaced.

        name      what results call the model when it is loaded; None: the folder's own name
        weights   float32: a sentence-transformers folder. float16, int8 or int4: a packed folder, a half, a quarter or
                  an eighth of the size, which `isoglot.load` expands to float32. onnx: a graph for ONNX Runtime
        words     another form for the word table, most of a small multilingual model; None: that of `weights`

        Raises ValueError for an unknown form, OutputError if the folder can't be replaced, EncoderError if the model
        can't be saved in this form.
        """
        self.trainable().write_model(folder, name=name, weights=weights, words=words)

    @check_arguments()
    def push_to_hub(
        self,
        repository: str,
        *,
        token: str | None = None,
        private: bool | None = None,
        commit_message: str = "Upload the model",
        revision: str | None = None,
        create_pr: bool = False,
        exist_ok: bool = False,
        weights: Weights = "float32",
    ) -> str:
        """Upload the model and its card to Hugging Face's hub, over the network, and return the address of the commit.

        repository   organisation/name; `name` is that of the model
        token        None: that of `hf auth login`, or $HF_TOKEN
        private      of a new repository; None: the default of the organisation
        revision     branch; None: the main one
        create_pr    as a pull request
        exist_ok     add to a repository that exists
        weights      as in `save`; sentence-transformers opens float32

        Raises EncoderError if the model can't be saved or the hub rejects it.
        """
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        with TemporaryDirectory(prefix="isoglot-") as place:
            folder = Path(place, "model")
            self.save(folder, name=repository.rpartition("/")[2], weights=weights)
            try:
                name = api.create_repo(repository, private=private, exist_ok=exist_ok or create_pr).repo_id
                if revision is not None:
                    api.create_branch(name, branch=revision, exist_ok=True)
                commit = api.upload_folder(
                    repo_id=name, folder_path=folder, commit_message=commit_message, revision=revision,
                    create_pr=create_pr,
                )  # fmt: skip
            except Exception as error:  # of the hub, of the network, and of the client's own checks
                raise EncoderError(f"{repository}: can't be uploaded: {error}") from error
        return str(commit.commit_url)

    @property
    def max_seq_length(self) -> int:
        """The same as `max_length`."""
        return self.max_length

    @max_seq_length.setter
    @check_arguments()
    def max_seq_length(self, length: PositiveInt) -> None:
        self.max_length = length

    def get_embedding_dimension(self) -> int:
        """The same as `dim`."""
        return self.dim

    get_sentence_embedding_dimension = get_embedding_dimension

    def __getattr__(self, name: str) -> Any:
        if name in _ELSEWHERE:
            raise AttributeError(f"a model has no {name}; use {_ELSEWHERE[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ELSEWHERE:  # else it would have no effect
            Model.__getattr__(self, name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary})"

    @property
    def summary(self) -> str:
        """What `repr` shows."""
        return f"{self.name or 'unnamed'}, dim={self.dim}, max_length={self.max_length}, device={self.device}"

    @property
    def similarity_fn_name(self) -> str:
        """cosine, which `similarity` computes; no other function can be set."""
        return "cosine"

    @similarity_fn_name.setter
    def similarity_fn_name(self, value: str) -> None:
        if value != "cosine":
            raise ValueError(f"similarity is the cosine, got {quote(value)}; for others, compute with the vectors")

    @overload
    def encode(
        self, texts: str | Iterable[str] = ..., *, convert_to_tensor: Literal[False] = ..., **settings: Unpack[_Vectors]
    ) -> NDArray[np.floating]: ...

    @overload
    def encode(
        self, texts: str | Iterable[str] = ..., *, convert_to_tensor: Literal[True], **settings: Unpack[_Vectors]
    ) -> Tensor: ...

    @overload
    def encode(
        self, texts: str | Iterable[str] = ..., *, output_value: OutputValue = ..., convert_to_numpy: bool = ...,
        convert_to_tensor: bool = ..., **settings: Unpack[_Vectors],
    ) -> Any: ...  # fmt: skip

    @check_arguments(pool="pass workers=4, or a list of devices")
    def encode(
        self,
        texts: str | Iterable[str] | None = None,
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: OutputValue = "sentence_embedding",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate_dim: PositiveInt | None = None,
        precision: str | None = None,
        dtype: DTypeLike = np.float32,
        output_precision: str = "float32",
        calibration: Any = None,
        batch_tokens: PositiveInt | None = None,
        workers: int | Sequence[Any] = 1,
        output: str | Path | None = None,
        progress: Progress | None = None,
        sentences: str | Iterable[str] | None = None,
        inputs: str | Iterable[str] | None = None,
    ) -> Any:
        """Vectors (N, D) of N texts in their order; of a single string (D,), or (1, D) with `output`; of none (0, D).

        texts                 a string, a list, or any iterable, which is read once and never stored as a whole
        batch_size            maximum texts per chunk; None: as many as `batch_tokens` allows
        batch_tokens          maximum tokens per batch, including padding; None: 512 on a CPU, 32,768 on an
                              accelerator
        show_progress_bar     None: on a terminal or in a notebook, when the work is long
        normalize_embeddings  scale vectors to unit length; None: if the model was saved with a Normalize module. It
                              follows truncation; a zero vector stays zero
        output_value          token_embeddings: the last states (T, H) of the T tokens of each text, special tokens
                              included, as a list; only for transformers
        convert_to_numpy      False without convert_to_tensor: a list of tensors
        convert_to_tensor     return a torch tensor on the model's device, not an array
        device                move the model there first, as sentence-transformers does; a list: the same as `workers`
        prompt                put before every text instead of the model's own; None keeps that, "" is none
        prompt_name           a key of `prompts`, instead of `prompt`
        truncate_dim          number of leading dimensions to keep
        precision             precision of the computation: float32, bfloat16, tf32 (on CUDA), int8 (on a CPU), or
                              auto; None: auto, which is bfloat16 where it is fast and (on a CPU) keeps the vectors,
                              else float32; the precision of its graph if the model has one
        dtype                 of the array: float32, float16 or float64
        output_precision      float32 (the type is `dtype`), int8, uint8, binary or ubinary: see `quantize_vectors`. It
                              says how vectors are stored, `precision` how they are computed
        calibration           texts, vectors (M, D) or their `find_ranges`, for int8 and uint8
        workers               number of processes, each with one thread, or a list of devices, a process for each
        output                .npy file to write; the result is a read-only memory map of it. The same call resumes what
                              was stopped, from `OUTPUT.partial`
        progress              called with (distinct texts done, total or None) after every chunk
        sentences, inputs     the texts, under the names that sentence-transformers has for them

        The model computes in evaluation mode regardless of its current mode, and is modified only by `device`: any
        number of threads may encode with it at once, each with its own prompt and settings.

        Raises TypeError for texts of another type, ValueError for an impossible setting, EncoderError if a vector is
        not finite, the precision is not available, or a worker dies.
        """
        settings: dict[str, Any] = {
            "normalize_embeddings": normalize_embeddings, "batch_size": batch_size, "batch_tokens": batch_tokens,
            "truncate_dim": truncate_dim, "dtype": dtype, "precision": precision,
        }  # fmt: skip
        texts = only_one(texts=texts, sentences=sentences, inputs=inputs)
        if prompt is None and prompt_name is not None:
            prompt = self._find_prompt(prompt_name)
        if device is not None:
            workers = self._workers_on(device, workers)
        check_output_precision(output_precision)
        if output_precision != "float32" and output is not None:
            raise ValueError("output is a file of floats; read it and pass it to isoglot.model.quantize_vectors")
        if output_precision.endswith("int8") and calibration is not None:
            calibration = texts_or_vectors(calibration, "calibration")
            if isinstance(calibration, list):
                calibration = self.encode(calibration, prompt=prompt, workers=workers, **settings)
            calibration = find_ranges(calibration, dim=min(truncate_dim or self.dim, self.dim))
        with bar("encoding", show=show_progress_bar, progress=progress) as tick:
            if output_value != "sentence_embedding":
                if any((truncate_dim, normalize_embeddings, output, output_precision != "float32", workers != 1)):
                    unused = "truncate_dim, normalize_embeddings, output, output_precision and workers"
                    raise ValueError(f"output_value='token_embeddings' has no {unused}; leave them out")
                plan = engine.plan(self, **settings)
                rows: Any = engine.encode_tokens(self, texts, plan, prompt=prompt, progress=tick)
            elif output is not None:
                rows = encode_file(
                    self, engine.check_texts(texts), output=output, prompt=prompt, workers=workers, progress=tick,
                    **settings,
                )  # fmt: skip
            else:
                places = self.places(workers)
                plan = engine.plan(self, **settings, devices=places)
                rows = engine.encode(self, texts, plan, prompt=prompt, places=places, progress=tick)
        if output_precision != "float32":
            rows = quantize_vectors(rows, output_precision, calibration=calibration)
        whole = convert_to_tensor or isinstance(texts, str)
        return rows if convert_to_numpy and not convert_to_tensor else self._as_tensors(rows, whole)

    def encode_query(self, texts: str | Iterable[str] | None = None, **settings: Unpack[Settings]) -> Any:
        """`encode` with the prompt named query, if the model has one and no prompt is passed."""
        return self._encode_as("query", texts, settings)

    def encode_document(self, texts: str | Iterable[str] | None = None, **settings: Unpack[Settings]) -> Any:
        """`encode` with the prompt named document or passage, if the model has one and no prompt is passed."""
        return self._encode_as("document", texts, settings)

    @check_arguments()
    def similarity(self, a: Any, b: Any) -> NDArray[np.float32]:
        """(N, M) cosines of N with M texts or vectors; a single text or vector counts as one row."""
        rows, columns = (unit(self._vectors(side)) for side in (a, b))
        if rows.shape[1] != columns.shape[1]:
            raise ValueError(f"similarity needs two sides of one width, got {rows.shape} and {columns.shape}")
        return np.asarray(rows @ columns.T, np.float32)

    @check_arguments()
    def similarity_pairwise(self, a: Any, b: Any) -> NDArray[np.float32]:
        """(N,) cosines of N texts or vectors with those at the same places of the other side."""
        first, second = (unit(self._vectors(side)) for side in (a, b))
        if first.shape != second.shape:
            raise ValueError(f"pairs need two sides of one shape, got {first.shape} and {second.shape}")
        return np.asarray((first * second).sum(axis=1), np.float32)

    @check_arguments()
    def for_mteb(self, *, name: str = "") -> MtebModel:
        """The model for `mteb.evaluate`; `name` (organisation/model) replaces its own in the results."""
        from isoglot.model.mteb import MtebModel

        return MtebModel(self, name=name)

    def role_prompt(self, role: str) -> str | None:
        """The prompt for texts of a role, `query` or `document`; None if the model has none of that name."""
        return next((self.prompts[name] for name in _ROLES.get(role, ()) if name in self.prompts), None)

    def _encode_as(self, role: str, texts: str | Iterable[str] | None, settings: Settings) -> Any:
        if settings.get("prompt") is None and settings.get("prompt_name") is None:
            settings["prompt"] = self.role_prompt(role)
        return cast(Any, self).encode(texts, **settings)  # no overload has all settings

    def _workers_on(self, device: Any, workers: int | Sequence[Any]) -> int | Sequence[Any]:
        """What `workers` is if `device` is passed: a list of devices, or as before, on the device."""
        if isinstance(device, list | tuple):
            return device
        place = self._place(device)
        if str(place) != str(self.device):
            self.to(place)  # an encoder of torch: no other engine has a second place
        return workers

    def _as_tensors(self, rows: Any, whole: bool) -> Any:
        """Arrays as tensors on the model's device; a matrix as one tensor if it is to stay `whole`."""
        if isinstance(rows, list) or (rows.ndim == 2 and not whole):
            return [self._as_tensors(row, True) for row in rows]
        return torch_half("encoders").to_tensor(rows, self.device)

    def _find_prompt(self, name: str) -> str:
        if name not in self.prompts:
            hint = nearest(name, self.prompts) if self.prompts else "this model was saved without any"
            raise ValueError(f"prompt_name {name!r} is unknown; {hint}")
        return self.prompts[name]

    def _vectors(self, side: Any) -> NDArray[Any]:
        given = texts_or_vectors(side, "similarity")
        rows = np.asarray(self.encode(given)) if isinstance(given, list) else given
        if rows.ndim not in (1, 2):
            raise TypeError(f"similarity takes texts or vectors (N, D), got {quote(side)}")
        return np.atleast_2d(rows)


def only_one(**given: Any) -> Any:
    """The only argument that is not None. Raises TypeError for none or several, with their names."""
    passed = {name: value for name, value in given.items() if value is not None}
    if len(passed) != 1:
        raise TypeError(f"pass one of {', '.join(given)}; got {' and '.join(passed) or None}")
    return next(iter(passed.values()))


def encode(model: Model, texts: str | Iterable[str], **settings: Unpack[Settings]) -> NDArray[np.floating]:
    """`model.encode(texts, **settings)`: see `Model.encode` for the settings. Raises TypeError without a model."""
    if isinstance(model, Model):
        return cast("NDArray[np.floating]", cast(Any, model).encode(texts, **settings))
    is_name = isinstance(model, str | Path)
    given = f"a model, got the name {str(model)!r}" if is_name else f"a model and texts, got {type(model).__name__}"
    raise TypeError(f"encode needs {given}: isoglot.load({repr(str(model)) if is_name else ''}).encode(texts)")


def texts_or_vectors(given: Any, caller: str) -> list[str] | NDArray[Any]:
    """An argument that is either: texts, a single one too, as a list of strings, or vectors as an array of numbers.

    Texts may be all that `encode` takes; vectors an array, a tensor, a list of these, or a list of lists of numbers.
    Raises ValueError for vectors of bytes, and TypeError, naming the `caller`, for anything else.
    """
    takes = f"{caller} takes texts or vectors (N, D)"
    if hasattr(given, "__array__") and (array := as_array(given)).dtype.kind in "fiu":
        return _check_steps(array)
    try:
        texts = engine.check_texts(given)
    except TypeError as error:
        raise TypeError(f"{takes}: {error}") from None
    items = list(texts)
    other = next((at for at, item in enumerate(items) if not isinstance(item, str)), None)
    if other is None:
        return items
    rows: list[Any] = [as_array(item) if hasattr(item, "__array__") else item for item in items]
    table = None
    with suppress(ValueError):  # rows of different lengths
        table = None if any(isinstance(row, str) for row in rows) else np.asarray(rows)
    if table is None or table.dtype.kind not in "fiu":
        raise TypeError(f"{takes}, and item {other} is {quote(items[other])}")
    return _check_steps(table)


def _check_steps(array: Any) -> NDArray[Any]:
    """The array. Raises ValueError for one of bytes."""
    if array.dtype.itemsize == 1:
        raise ValueError(f"vectors of {array.dtype} are steps or bits, which have no cosines; pass those of floats")
    return np.asarray(array)


def cache_key(model: Model, precision: str | None = None) -> str:
    """Name for cached vectors: the identity and, if it isn't float32, the precision, by default that of `encode`.

    An accelerator encodes in bfloat16, so its vectors are kept apart from those of a CPU.
    """
    precision = model.settle(precision)
    return model.identity() if precision == "float32" else f"{model.identity()}-{precision}"
