"""The objectives, one file per method, and their sum. To add one, write its file and enter it in `OBJECTIVES`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, get_args, get_type_hints

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import RecipeError, naming_extras, quote
from isoglot.core.plugins import Registry

with naming_extras():
    from torch import Tensor, nn

    from isoglot.data.batch import Batch
    from isoglot.objectives.additive_margin import AdditiveMargin
    from isoglot.objectives.base import Losses, Objective
    from isoglot.objectives.contrastive_tension import ContrastiveTension
    from isoglot.objectives.distillation import Distillation
    from isoglot.objectives.dual_momentum import DualMomentum
    from isoglot.objectives.entity import EntityContrast
    from isoglot.objectives.info_nce import InfoNCE
    from isoglot.objectives.multi_positive import MultiPositive
    from isoglot.objectives.pair_softmax import PairSoftmax
    from isoglot.objectives.soft_contrastive import SoftContrastive

OBJECTIVES: Registry[type[Objective]] = Registry(
    "isoglot.objectives",
    {
        "additive_margin": AdditiveMargin,
        "contrastive_tension": ContrastiveTension,
        "distillation": Distillation,
        "dual_momentum": DualMomentum,
        "entity_contrast": EntityContrast,
        "info_nce": InfoNCE,
        "multi_positive": MultiPositive,
        "pair_softmax": PairSoftmax,
        "soft_contrastive": SoftContrastive,
    },
    kind="a subclass of Objective",
    is_valid=lambda plugin: isinstance(plugin, type) and issubclass(plugin, Objective),
    handed=("encoder", "languages", "sizes"),
)

__all__ = [
    "OBJECTIVES",
    "AdditiveMargin",
    "Distillation",
    "EntityContrast",
    "InfoNCE",
    "Losses",
    "MultiPositive",
    "Objective",
    "SoftContrastive",
    "Sum",
    "build",
]


class Sum(Objective):
    """Weighted sum of objectives over the same vectors, such as EASE's entity term plus SimCSE's."""

    def __init__(self, *terms: tuple[float, Objective]) -> None:
        super().__init__()
        self.weights = tuple(weight for weight, _ in terms)
        self.terms = nn.ModuleList(term for _, term in terms)

    @property
    def members(self) -> list[Objective]:
        """The objectives, in the order given."""
        return [term for term in self.terms if isinstance(term, Objective)]

    def annotate(self, batch: Batch) -> None:
        """Let every term annotate the batch."""
        for term in self.members:
            term.annotate(batch)

    def forward(self, vectors: Tensor, batch: Batch) -> Losses:
        """The weighted losses of all terms; those of a second term of the same name are called `name-2`, and so on."""
        losses: Losses = {}
        for weight, term in zip(self.weights, self.members, strict=True):
            parts = term(vectors, batch)
            number = next(n for n in count(1) if not any(_number_name(name, n) in losses for name in parts))
            losses |= {_number_name(name, number): weight * loss for name, loss in parts.items()}
        return losses

    def after_step(self, encoder: nn.Module, batches: Sequence[Batch]) -> None:
        """Let every term update its state."""
        for term in self.members:
            term.after_step(encoder, batches)


def _number_name(name: str, number: int) -> str:
    """The name of a loss of the n-th term of its kind: `info_nce/back` becomes `info_nce-2/back`."""
    term, slash, part = name.partition("/")
    return name if number == 1 else f"{term}-{number}{slash}{part}"


@check_arguments()
def build(
    name: str,
    options: Mapping[str, Any],
    encoder: nn.Module,
    *,
    languages: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    resolve: Callable[[str], Path] = Path,
    where: str = "objectives",
) -> Objective:
    """Make the objective `name` with its options and the following arguments, if its constructor has them.

    encoder    the encoder being trained, for objectives that copy it
    languages  the codes that `batch.lang` numbers
    sizes      one more than the greatest value of each integer column in `batch.extras`; of `teacher`, its width
    seed       the seed of the run, unless the options have another

    Options that are paths are found by `resolve`.
    """
    if not isinstance(encoder, nn.Module):
        raise TypeError(f"build: encoder: must be an encoder, got {quote(encoder)}")
    OBJECTIVES.check(name, options, where=where)
    kind = OBJECTIVES[name]
    hints, asked = get_type_hints(kind.__init__), inspect.signature(kind).parameters
    handed: dict[str, Any] = {"encoder": encoder, "languages": tuple(languages), "sizes": dict(sizes or {})}
    handed |= {} if "seed" in options else {"seed": seed}
    arguments = {key: value for key, value in handed.items() if key in asked}
    try:
        return kind(**{key: _convert(value, hints[key], resolve) for key, value in options.items()}, **arguments)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def _convert(value: Any, hint: Any, resolve: Callable[[str], Path]) -> Any:
    """Convert an option from TOML to the type of the objective's argument: lists to tuples, strings to paths."""
    if isinstance(value, list):
        return tuple(value)
    return resolve(value) if isinstance(value, str) and Path in (hint, *get_args(hint)) else value
