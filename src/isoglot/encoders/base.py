"""`Encoder`: texts to tokens, tokens to vectors, and the public methods of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from isoglot.data.batch import Tokens
from isoglot.data.vectors import as_array, unit
from isoglot.encoders.device import settle
from isoglot.errors import hinting, nearest, shown
from isoglot.progress import Progress, bar

if TYPE_CHECKING:
    from isoglot.encoders.card import Card
    from isoglot.encoders.mteb import MtebModel

# What members of sentence-transformers' models are called here.
_ELSEWHERE = {
    "fit": "isoglot.train(encoder, pairs)",
    "save_pretrained": "save(folder)",
    "save_to_hub": "save(folder), and upload the folder",
    "push_to_hub": "save(folder), and upload the folder",
    "encode_multi_process": "encode(texts, workers=4)",
    "start_multi_process_pool": "encode(texts, workers=4)",
    "evaluate": "isoglot.evaluate(encoder, ...)",
}
# What the prompts of a role may be called.
_ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}


class Encoder(nn.Module):
    """Texts to tokens to vectors. Batching, inference, caches and saving are built on these members alone.

    origin       argument with which `isoglot.load` can open it again; "" for an encoder made or changed in memory
    name         how results name the model: a packaged name, a hub id, or the name of a folder
    dim          width D of the vectors
    max_length   maximum tokens per text, special tokens included
    prompt       put before every text unless a call passes another; Towers: each tower has its own
    prompts      further prompts by name, such as query and document, for `prompt_name`
    card         training data and scores for the model card; None if unknown
    pooling      how a sentence's token states are pooled, a key of `POOLINGS`; "" if the encoder has no choice
    normalizes   whether the model was saved with a Normalize module: `encode` then gives unit vectors by default
    pads         whether forward pads its rows to the longest, so that chunks should have rows of similar length
    pad          id of the padding token; None without padding
    concurrent   whether several threads may call forward at once, each with one of torch's threads; on a CPU that is
                 faster than one call with all of them, unless forward is too small for a thread
    tokenize     texts -> ragged `Tokens`, truncated to max_length, special tokens added; `prompt`, if not None, is used
                 instead of the encoder's own. Any number of threads may call it
    forward      `Tokens` of N sentences, on the host -> (N, D) on the encoder's device, not normalised; the encoder
                 does its own padding
    fingerprint  changes when the ids of any text would change: the key of token caches
    write        writes the files of a saved model into a new folder; callers use `save`
    exports      the encoders that training may return: itself, or the parts that the dev score chooses from
    """

    name: str = ""
    origin: str = ""
    dim: int
    max_length: int
    prompt: str = ""
    prompts: Mapping[str, str] = MappingProxyType({})
    card: Card | None = None
    pooling: str = ""
    normalizes: bool = False
    pads: bool = True
    pad: int | None = None
    concurrent: bool = False

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids of each text; an empty text has a row too."""
        raise NotImplementedError

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) vectors of N tokenised sentences."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of tokenizer and truncation."""
        raise NotImplementedError

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write the encoder into `folder`, which exists and is empty, in the sentence-transformers layout."""
        raise NotImplementedError

    def save(
        self, folder: str | Path, *, name: str | None = None, weights: str = "float32", words: str | None = None
    ) -> None:
        """Write the encoder and its model card to `folder`, atomically; a model that was there before is replaced.

        name      what results call the model when it is loaded; None: the folder's own name
        weights   float32: a sentence-transformers folder. float16, int8 or int4: a packed folder, a half, a quarter or
                  an eighth of the size, which `isoglot.load` expands to float32
        words     another form for the word table, most of a small multilingual model; None: that of `weights`

        Raises ValueError for an unknown form, OutputError if the folder can't be replaced, EncoderError if the encoder
        can't be saved in this form.
        """
        from isoglot.encoders import card, layout, packed

        packed.check(weights, words)
        with layout.replacing(folder) as new:
            self.write(new, name=name)
            if not weights == (words or weights) == packed.FULL:
                packed.pack(new, weights, words)
            layout.sort_headers(new)
            forms = weights if words in (None, weights) else f"{weights}, words {words}"
            card.write(new, self, name=name, weights=forms)

    def exports(self) -> Sequence[Encoder]:
        """The encoders that training chooses from by dev score; without a dev score, the first one."""
        return (self,)

    def prepared(self, tokens: Tokens) -> Tokens:
        """The tokens with what `forward` needs of the host made now, in the calling thread; by default unchanged."""
        return tokens

    def __call__(self, tokens: Tokens) -> Tensor:
        """`forward`, for training. Raises TypeError for texts, which `encode` takes."""
        if isinstance(tokens, str | list | tuple):
            raise TypeError("an encoder is called with Tokens; to encode texts: encoder.encode(texts)")
        return cast(Tensor, super().__call__(tokens))

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            if name not in _ELSEWHERE:
                raise
            raise AttributeError(f"an Encoder has no {name}; use {_ELSEWHERE[name]}") from error

    def extra_repr(self) -> str:
        """What `repr` shows before the modules."""
        return f"{self.name or 'unnamed'}, dim={self.dim}, max_length={self.max_length}, device={self.device}"

    @property
    def device(self) -> torch.device:
        """The device of the encoder's weights; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    @property
    def max_seq_length(self) -> int:
        """The same as `max_length`."""
        return self.max_length

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        if value < 1:
            raise ValueError(f"max_length must be at least 1, got {value}")
        self.max_length = value

    def get_sentence_embedding_dimension(self) -> int:
        """The same as `dim`."""
        return self.dim

    def get_embedding_dimension(self) -> int:
        """The same as `dim`."""
        return self.dim

    @overload
    def encode(
        self, texts: str | Iterable[str], *, convert_to_tensor: Literal[False] = False, **settings: Any
    ) -> NDArray[np.floating]: ...

    @overload
    def encode(self, texts: str | Iterable[str], *, convert_to_tensor: Literal[True], **settings: Any) -> Tensor: ...

    @hinting(  # type: ignore[misc]  # the overloads name only the argument that decides the type
        convert_to_numpy="arrays are the default; leave it out",
        device="move the encoder: encoder.to(device), or isoglot.load(name, device=...)",
        sentences="pass the texts first",
        inputs="pass the texts first",
        output_value="only vectors of sentences are given; leave it out",
        pool="pass workers=4, or a list of devices",
    )
    def encode(
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool | None = None,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate_dim: int | None = None,
        precision: str | None = None,
        dtype: DTypeLike = np.float32,
        batch_tokens: int | None = None,
        workers: int | Sequence[str | torch.device] = 1,
        output: str | Path | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.floating] | Tensor:
        """Vectors (N, D) of N texts in their order, or (D,) of a single string; no texts give (0, D).

        texts                 a string, a list, or any iterable, which is read once and never stored as a whole
        batch_size            maximum texts per chunk; None: as many as `batch_tokens` allows
        batch_tokens          padded tokens per chunk; None: 512 on a CPU, tens of thousands elsewhere
        show_progress_bar     None: on a terminal or in a notebook, when the work is long
        normalize_embeddings  scale every vector to length one, after truncation (a zero vector stays zero); None: if
                              the model was saved with a Normalize module
        convert_to_tensor     return a torch tensor on the encoder's device, not an array
        prompt                put before every text instead of the encoder's own; None keeps that, "" is none
        prompt_name           a key of `prompts`, instead of `prompt`
        truncate_dim          number of leading dimensions to keep
        precision             float32, bfloat16, tf32 (on CUDA), int8 (transformers on a CPU, extra `onnx`), or auto:
                              bfloat16 where the hardware has it, else float32. None: float32 on a CPU, auto elsewhere
        dtype                 of the array: float32, float16 or float64
        workers               number of processes, each with one thread, or a list of devices, a process for each
        output                .npy file to write; the result is a read-only memory map of it. The same call resumes what
                              was stopped, from `OUTPUT.partial`
        progress              called with (distinct texts done, total or None) after every chunk

        The encoder computes in evaluation mode regardless of its current mode, and is not modified: any number of
        threads may encode with it at once, each with its own prompt and settings.

        Raises TypeError for texts of another type, ValueError for an impossible setting, EncoderError if a vector is
        not finite, the precision is not available, or a worker dies.
        """
        from isoglot.encoders import engine
        from isoglot.encoders.resumable import encode_file

        encoder = evaluating(self)
        settings: dict[str, Any] = {
            "normalize_embeddings": normalize_embeddings, "batch_size": batch_size, "batch_tokens": batch_tokens,
            "truncate_dim": truncate_dim, "dtype": dtype, "precision": precision,
        }  # fmt: skip
        if prompt is None and prompt_name is not None:
            prompt = self._named_prompt(prompt_name)
        with bar("encoding", show=show_progress_bar, progress=progress) as tick:
            if output is not None:
                given = engine.checked(texts)
                rows = encode_file(
                    encoder, given, output=output, prompt=prompt, workers=workers, progress=tick, **settings
                )
            else:
                places = engine.places(encoder, workers)
                asked = engine.plan(encoder, **settings, devices=places)
                rows = engine.encode(encoder, texts, asked, prompt=prompt, places=places, progress=tick)
        return torch.from_numpy(np.array(rows)).to(self.device) if convert_to_tensor else rows

    def encode_query(self, texts: str | Iterable[str], **settings: Any) -> Any:
        """`encode` with the prompt named query, if the model has one and no prompt is passed."""
        return self._encode_as("query", texts, settings)

    def encode_document(self, texts: str | Iterable[str], **settings: Any) -> Any:
        """`encode` with the prompt named document or passage, if the model has one and no prompt is passed."""
        return self._encode_as("document", texts, settings)

    def role_prompt(self, role: str) -> str | None:
        """The prompt for texts of a role, `query` or `document`; None if the model has none of that name."""
        return next((self.prompts[name] for name in _ROLES[role] if name in self.prompts), None)

    def similarity(self, a: Any, b: Any) -> NDArray[np.float32]:
        """(N, M) cosines of N with M texts or vectors; a single text or vector counts as one row."""
        rows, columns = (unit(self._vectors(side)) for side in (a, b))
        if rows.shape[1] != columns.shape[1]:
            raise ValueError(f"similarity needs two sides of one width, got {rows.shape} and {columns.shape}")
        return np.asarray(rows @ columns.T, np.float32)

    def similarity_pairwise(self, a: Any, b: Any) -> NDArray[np.float32]:
        """(N,) cosines of N texts or vectors with those at the same places of the other side."""
        first, second = (unit(self._vectors(side)) for side in (a, b))
        if first.shape != second.shape:
            raise ValueError(f"pairs need two sides of one shape, got {first.shape} and {second.shape}")
        return np.asarray((first * second).sum(axis=1), np.float32)

    def for_mteb(self, *, name: str = "") -> MtebModel:
        """The encoder as a model for `mteb.evaluate`; `name` (organisation/model) replaces its own in the results."""
        from isoglot.encoders.mteb import MtebModel

        return MtebModel(self, name=name)

    def _encode_as(self, role: str, texts: str | Iterable[str], settings: dict[str, Any]) -> Any:
        if settings.get("prompt") is None and settings.get("prompt_name") is None:
            settings["prompt"] = self.role_prompt(role)
        return self.encode(texts, **settings)

    def _named_prompt(self, name: str) -> str:
        if name not in self.prompts:
            hint = nearest(name, self.prompts) if self.prompts else "this model was saved without any"
            raise ValueError(f"prompt_name {name!r} is unknown; {hint}")
        return self.prompts[name]

    def _vectors(self, side: Any) -> NDArray[np.float32]:
        found = texts_or_vectors(side, "similarity")
        rows = np.asarray(self.encode(found)) if isinstance(found, list) else found
        if rows.ndim not in (1, 2):
            raise TypeError(f"similarity takes texts or vectors (N, D), got {shown(side)}")
        return np.atleast_2d(rows).astype(np.float32, copy=False)


def encode(model: Encoder, texts: str | Iterable[str], **settings: Any) -> NDArray[np.floating]:
    """`model.encode(texts, **settings)`: see `Encoder.encode` for the settings. Raises TypeError without an Encoder."""
    if isinstance(model, Encoder):
        return cast("NDArray[np.floating]", model.encode(texts, **settings))
    if isinstance(model, str | Path):
        raise TypeError(
            f"encode needs an Encoder, got the name {str(model)!r}: isoglot.load({str(model)!r}).encode(texts)"
        )
    raise TypeError(f"encode needs an Encoder and texts, got {type(model).__name__}: isoglot.load().encode(texts)")


def texts_or_vectors(given: Any, caller: str) -> list[str] | NDArray[Any]:
    """An argument that is either: texts, a single one too, as a list of strings, or vectors as an array of numbers.

    Texts may be all that `encode` takes; vectors an array, a tensor, a list of these, or a list of lists of numbers.
    Raises TypeError, naming the `caller`, for anything else.
    """
    from isoglot.encoders.engine import checked

    takes = f"{caller} takes texts or vectors (N, D)"
    if isinstance(given, Tensor):
        return _array(given)
    if hasattr(given, "__array__") and (table := as_array(given)).dtype.kind in "fiu":
        return table
    try:
        texts = checked(given)
    except TypeError as error:
        raise TypeError(f"{takes}: {error}") from None
    items = list(texts)
    other = next((at for at, item in enumerate(items) if not isinstance(item, str)), None)
    if other is None:
        return items
    rows: list[Any] = [_array(item) if isinstance(item, Tensor) else item for item in items]
    with suppress(ValueError):  # rows of different lengths
        if not any(isinstance(row, str) for row in rows) and (table := np.asarray(rows)).dtype.kind in "fiu":
            return table
    raise TypeError(f"{takes}, and item {other} is {shown(items[other])}")


def _array(tensor: Tensor) -> NDArray[Any]:
    return np.asarray(tensor.detach().float().cpu().numpy())


def readable(text: str) -> str:
    """The text as encoders read it and as UTF-8 can represent it: with U+FFFD instead of lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def evaluating(encoder: Encoder, *, always_copy: bool = False) -> Encoder:
    """The encoder in evaluation mode: itself if all of it is, else a copy that shares everything but the mode.

    The mode of the encoder itself is never changed, since another thread may be training it or encoding with it.
    """
    if not always_copy and not any(module.training for module in encoder.modules()):
        return encoder
    copies: dict[nn.Module, nn.Module] = {}

    def copied(module: nn.Module) -> nn.Module:
        if module not in copies:
            new = copies[module] = module.__new__(type(module))
            new.__dict__ = {**module.__dict__, "training": False}
            new.__dict__["_modules"] = {
                name: child if child is None else copied(child) for name, child in module._modules.items()
            }
        return copies[module]

    return cast(Encoder, copied(encoder))


def identity(encoder: Encoder) -> str:
    """Hexadecimal digest of weights, tokenizer, truncation, prompt and pooling; takes a second per gigabyte of weights.

    Two encoders of one identity give the same vectors up to rounding; device and batch size are not part of it.
    """
    known = [f"{type(encoder).__qualname__} {encoder.fingerprint}", f"dim={encoder.dim}", f"pads={encoder.pads}"]
    known += [f"pooling={encoder.pooling}"] if encoder.pooling else []
    known += [f"normalizes={encoder.normalizes}"]
    known += [] if encoder.pad is None else [f"pad={encoder.pad}"]
    checksum = hashlib.sha256("\n".join(known).encode())
    for name, weight in sorted(encoder.state_dict().items()):
        checksum.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        checksum.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return checksum.hexdigest()


def cache_key(encoder: Encoder, precision: str | None = None) -> str:
    """Name for cached vectors: the identity and, if it isn't float32, the precision, by default that of `encode`.

    An accelerator encodes in bfloat16, so its vectors are kept apart from those of a CPU.
    """
    precision = settle(precision, encoder.device)
    return identity(encoder) if precision == "float32" else f"{identity(encoder)}-{precision}"
