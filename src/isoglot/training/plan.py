"""Checks and opens what a recipe names: encoder, text, objectives, teachers and dev scores."""

from __future__ import annotations

import copy
import fnmatch
import logging
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from isoglot.core.environment import cache_folder
from isoglot.core.errors import CorpusError, EncoderError, RecipeError, nearest, quote
from isoglot.core.machine import check_memory
from isoglot.core.progress import Report, report_time
from isoglot.data.corpus import Corpus, FileSource, Leak, Source, composition, text_table
from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical
from isoglot.data.readers import READERS
from isoglot.data.sets import catalogue, command
from isoglot.data.sets import find as find_set
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.settings import BackboneSettings, StaticSettings, TowersSettings, TwinsSettings
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.towers import Towers
from isoglot.encoders.twins import Twins
from isoglot.evaluation import TASKS
from isoglot.evaluation.run import data_digest, texts_of
from isoglot.evaluation.run import plan as planned_tasks
from isoglot.evaluation.suites import SUITES
from isoglot.evaluation.tasks.retrieval import AVERAGES
from isoglot.model.configs import reading
from isoglot.model.tokenizer import train_tokenizer
from isoglot.objectives import OBJECTIVES, Objective, Sum
from isoglot.objectives import build as build_objective
from isoglot.objectives.dual_momentum import DualMomentum
from isoglot.training import ranks
from isoglot.training.best import Choice, choices_of
from isoglot.training.recipe import PACKAGED
from isoglot.training.settings import ObjectiveSettings, Recipe, StreamSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNREAD = {  # what follows from a column that no objective reads
    "label": "so every row counts as translations; train with pair_softmax, or leave out rows of another meaning",
    "is_duplicate": "so every row counts as translations; leave out rows of another meaning",
    "teacher": "so it changes nothing; train with distillation or soft labels (soft_contrastive), or leave it out",
    "hard_negatives": "so they change nothing; train with info_nce or multi_positive, or leave them out",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A recipe in which everything has been checked, and what is opened of it before the first step.

    corpora  for each stage the text of its streams, not read yet
    choices  the dev scores that choose encoders
    """

    recipe: Recipe
    corpora: list[list[Corpus]]
    choices: list[Choice]

    @property
    def text(self) -> list[Corpus]:
        """The text of all streams."""
        return [*chain(*self.corpora)]

    def check_data(self) -> None:
        """Open the text and the dev data. Raises an `IsoglotError` for mistakes that can be found in seconds."""
        for corpus in self.text:
            corpus.check()
        for dev in chain.from_iterable(choice.devs for choice in self.choices):
            dev.check_data()


def make_plan(recipe: Recipe, name: str | Path = "") -> Plan:
    """Check everything that a recipe names.

    Raises RecipeError for the first invalid value. `name` is what the user calls the recipe, for errors.
    """
    copies = 2 if isinstance(recipe.encoder, TwinsSettings) else 1
    corpora = []
    for stage in recipe.stages:
        corpora.append([corpus_of(recipe, stream) for stream in stage.streams])
        for stream in stage.streams:
            for place, objective in enumerate(stream.objectives):
                where = f"streams.{stream.name}.objectives.{place}"
                if objective.held is None:
                    OBJECTIVES.check(objective.name, objective.options, where=where)
                kind = kind_of(objective)
                if kind.copies != copies:
                    raise RecipeError(f'{where}: {objective.name} does not fit encoder.kind = "{recipe.encoder.kind}"')
                if recipe.memory.shard_weights and kind.follows:
                    raise RecipeError(
                        f"{where}: {objective.name} needs all weights of the encoder on each rank; write "
                        "memory.shard_weights = false"
                    )
                is_random = stream.batching.anchor == "random" and not (stream.teacher and "teacher" in kind.reads)
                if kind.ordered and is_random:
                    raise RecipeError(
                        f'{where}: {objective.name} has roles for the sentences; write batching.anchor = "first"'
                    )
            try:
                canonical(stream.teacher.pivot if stream.teacher and stream.teacher.pivot else "und")
            except CorpusError as error:
                raise RecipeError(f"streams.{stream.name}.teacher.pivot: {error}") from None
    check_files(recipe, str(name) or recipe.name)
    return Plan(recipe, corpora, choices_of(recipe))


def kind_of(objective: ObjectiveSettings) -> Objective | type[Objective]:
    """What has the class variables of an objective."""
    return OBJECTIVES[objective.name] if objective.held is None else cast(Objective, objective.held)


def check_files(recipe: Recipe, name: str) -> None:
    """Raise RecipeError, with the remedy, for placeholders of files and for missing data sets."""
    paths = [source.place for stream in recipe.streams for source in stream.sources]
    relative = [path for path in paths if not (path.startswith(("bundled:", "data:")) or Path(path).is_absolute())]
    if relative and recipe.folder.is_relative_to(PACKAGED):
        raise RecipeError(
            f"{name}: {relative[0]} is a placeholder for your own file; save the recipe with `isoglot recipe show "
            f"{name} > mine.toml`, set your files in it, then train mine.toml"
        )
    paths += [path for stream in recipe.streams for path in stream.leakage if path not in _tests()]
    folder = recipe.data.expanduser()
    entries = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    for path in [*paths, *(evaluation.data for evaluation in recipe.evaluation)]:
        sets = Path(path.removeprefix("data:")).parts[:1]  # a name, the beginning of one or a pattern
        if path.startswith("data:") and sets and not fnmatch.filter(entries, f"{sets[0]}*"):
            remedy = f"get it: {command(sets[0], data=folder)}" if sets[0] in catalogue() else "see `isoglot data list`"
            raise RecipeError(
                f"{name}: {path}: there is no {sets[0]} in {folder}, which `data:` stands for; set ISOGLOT_DATA to the "
                f"folder of your data sets, or {remedy}"
            )


def compositions(plan: Plan, *, report: Report) -> dict[str, dict[str, dict[str, Any]]]:
    """What each stream of a recipe contains, by source, after all filters (see `isoglot.data.corpus.composition`).

    The text is read, not tokenised. A run keeps the same in `data.json`. `report` is called with messages.
    """
    contents, stages = {}, plan.recipe.stages
    for stage, corpora in zip(stages, plan.corpora, strict=True):
        for corpus in corpora:
            corpus.check()
            table = text_table(corpus, report=report)
            corpus.release()
            label = f"{stage.name}/{corpus.name}" if len(stages) > 1 else corpus.name
            contents[label] = composition(corpus, table)
    return contents


def corpus_of(recipe: Recipe, stream: StreamSettings) -> Corpus:
    """The text of a stream, without the sentences of the tasks that `leakage` names."""
    sources = [_source(recipe, stream, number) for number in range(len(stream.sources))]
    leakage: list[Leak] = []
    for name in stream.leakage:
        path, data = recipe.resolve(name), recipe.data.expanduser()
        if name in _tests():
            test, languages = _tests()[name]
            tasks = planned_tasks([test], languages=languages)
            digest = " ".join(data_digest(task, data, languages=codes) for task, codes in tasks)
            leakage.append(partial(_sentences, name, data, digest))
        elif not path.exists() and re.fullmatch(r"[\w-]+", name):
            raise RecipeError(
                f"streams.{stream.name}.leakage: {quote(name)} is not a file or task; {nearest(name, _tests())}"
            )
        else:
            leakage.append(path)
    same = {name: getattr(stream, name) for name in ("name", "languages", "join", "largest", "deduplicate")}
    return Corpus(sources, leakage=leakage, **same)


def _source(recipe: Recipe, stream: StreamSettings, number: int) -> Source:
    """One source of a stream: what it holds, or files and how they are read."""
    source, where = stream.sources[number], f"streams.{stream.name}.sources.{number}"
    if source.held is not None:
        return cast(Source, source.held)
    reader, path, options = source.reader, recipe.resolve(source.path), source.options
    if source.set:
        try:
            reader, path, training = find_set(source.set).source_in(recipe.data.expanduser())
        except CorpusError as error:
            raise RecipeError(f"{where}.set: {error}") from None
        options = training | options
    READERS.check(reader, options, where=where)
    names = READERS.options_of(reader)
    if "on_unknown_language" in names:
        options.setdefault("on_unknown_language", stream.on_unknown_language)
    if "seed" in names and "seed" in source.model_fields_set:
        options["seed"] = source.seed
    if isinstance(other := options.get("other"), str):  # the second file of a Moses pair
        file = recipe.resolve(other)
        options["other"] = str(file if file.exists() else path.parent / other)
    name = source.name or source.set or source.path
    licence = catalogue()[name].licence if name in catalogue() else ""
    return FileSource(reader, path, options, name, source.mixing, where, licence)


@cache
def _tests() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The test sets of a name: a task or a suite, and its languages (none: all)."""
    means = {name.rpartition("-")[2]: codes for name, codes in AVERAGES.items()}
    tatoeba = {f"tatoeba-{size}": ("tatoeba", (*codes, "eng")) for size, codes in means.items()}
    return {name: (name, ()) for name in [*TASKS, *SUITES]} | tatoeba


@lru_cache(8)
def _sentences(name: str, data: Path, digest: str) -> frozenset[str]:
    """The sentences of a test, read on first use, and again in a process only if the digest of the data differs."""
    del digest
    task, languages = _tests()[name]

    def reject(problem: str) -> None:
        raise RecipeError(f"leakage, {name}: {problem}")

    return frozenset(texts_of([task], data=data, languages=languages, on_missing=reject))


def make_encoder(plan: Plan, report: Report, *, seed: int) -> Encoder:
    """The encoder of a recipe: loaded, or made from scratch with a tokenizer trained on the first stage's text."""
    recipe, settings = plan.recipe, plan.recipe.encoder
    if isinstance(settings.held, Encoder):
        return copy.deepcopy(settings.held)
    if isinstance(settings, StaticSettings):
        return _static(recipe, settings, plan.corpora[0], seed=seed, report=report)
    several = settings.towers if isinstance(settings, TowersSettings) else [settings]
    parts = [_backbone(recipe, one, seed=seed) for one in [*several] * (2 if settings.kind == "twins" else 1)]
    try:
        if isinstance(settings, TowersSettings):
            names = [tower.name for tower in settings.towers]
            return Towers(
                dict(zip(names, parts, strict=True)), {tower.name: tower.scripts for tower in settings.towers}
            )
        return Twins(*parts) if len(parts) == 2 else parts[0]
    except ValueError as error:
        raise RecipeError(f"encoder{'.towers' if settings.kind == 'towers' else ''}: {error}") from error


def open_objectives(
    recipe: Recipe,
    settings: StreamSettings,
    encoder: Encoder,
    languages: Sequence[str],
    sizes: Mapping[str, int],
    *,
    seed: int,
) -> Sum:
    """The objectives of a stream, summed.

    languages  codes of the languages of its text, as the batches number them
    sizes      one more than the greatest value of each integer column of the batches; of `teacher`, the width
    """
    build = partial(build_objective, languages=languages, sizes=sizes, seed=seed, resolve=recipe.resolve)
    terms: list[tuple[float, Objective]] = []
    for place, one in enumerate(settings.objectives):
        where = f"streams.{settings.name}.objectives.{place}"
        objective = build(one.name, one.options, encoder, where=where) if one.held is None else copy.deepcopy(one.held)
        terms.append((one.weight, objective))
    if sum(isinstance(term, DualMomentum) for _, term in terms) > 1:  # the keys are one column of the batch
        raise RecipeError(f"streams.{settings.name}.objectives: dual_momentum is there twice; use another stream")
    return Sum(*terms)


def warn_of_unread(stream: str, columns: Container[str], objectives: Sequence[Objective]) -> None:
    """Log a warning for labels, as those of NLI, teachers' vectors and hard negatives that no objective reads."""
    if not all(type(one).__module__.startswith("isoglot.") for one in objectives):
        return  # one of a plug-in or a notebook may read any column
    for column, advice in _UNREAD.items():
        if column in columns and not any(column in one.reads for one in objectives):
            where = f"warning: stream {stream}: no objective reads the column {column}"
            logging.getLogger("isoglot").warning("%s, %s", where, advice)


def _backbone(recipe: Recipe, settings: BackboneSettings, *, seed: int) -> Encoder:
    """A transformer, ready to be trained."""
    try:
        return load(recipe.local(settings.model), **settings.options(BackboneSettings), seed=seed, device="cpu")
    except (TypeError, ValueError) as error:  # of another kind, or settings that contradict each other
        raise EncoderError(
            f"{settings.model}: cannot be trained as a transformer with these settings: {error}"
        ) from error


def _static(
    recipe: Recipe, settings: StaticSettings, corpora: Sequence[Corpus], *, seed: int, report: Report
) -> StaticEncoder:
    """A static encoder, continued or new."""
    model, file = recipe.local(settings.model), settings.tokenizer and recipe.resolve(settings.tokenizer)
    if settings.model:
        weights = settings.token_weights or None
        encoder = load(model, max_length=settings.max_length, device="cpu", token_weights=weights)
        if not isinstance(encoder, StaticEncoder):
            raise EncoderError(f'{settings.model}: not a static encoder; write kind = "transformer" in [encoder]')
        return encoder
    tokenizer = _tokenizer(file, settings, corpora, report)
    numbers = tokenizer.get_vocab_size() * settings.dim
    try:  # the table and the two moments of Adam
        check_memory(
            3 * 4 * numbers, torch.device("cpu"), f"{tokenizer.get_vocab_size():,} tokens x {settings.dim:,} numbers"
        )
    except ValueError as error:
        raise RecipeError(f"encoder.dim, encoder.vocabulary: {error}") from error
    return StaticEncoder.create(
        tokenizer, settings.dim, seed=seed, std=settings.scale,
        token_weights=settings.token_weights, max_length=settings.max_length or 256,
    )  # fmt: skip


def _tokenizer(file: Path | str, settings: StaticSettings, streams: Sequence[Corpus], report: Report) -> Tokenizer:
    """A tokenizer from a file, or without one trained on the text of the first stage and kept in the cache."""
    from tokenizers import Tokenizer

    if file:
        unused = sorted(settings.model_fields_set & {"algorithm", "lowercase", "sentences", "vocabulary"})
        if unused and ranks.is_first():
            problem = f"encoder.tokenizer is used as it is, and {', '.join(unused)} of [encoder] change nothing"
            logging.getLogger("isoglot").warning("warning: %s", problem)
        with reading(file, "set a tokenizer.json"):
            return Tokenizer.from_file(str(file))
    settings_of_tokenizer = [settings.algorithm, settings.vocabulary, settings.lowercase, settings.sentences]
    digest = streams[0].text_digest(*settings_of_tokenizer, *(stream.text_digest() for stream in streams[1:]))
    path = cache_folder() / "tokenizers" / f"{digest}.json"
    if path.exists():
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare exceptions
            report(f"{path}: damaged ({error}); training the tokenizer again")
    report(f"training a tokenizer of {settings.vocabulary:,} tokens")
    with ExitStack() as merging:
        texts = _texts(streams, report, merging)
        if (first := next(texts, None)) is None:
            names = ", ".join(stream.name for stream in streams)
            raise CorpusError(f"stream {names}: no text is left to train a tokenizer on; check languages and leakage")
        tokenizer = train_tokenizer(
            chain([first], texts), settings.vocabulary,
            model=settings.algorithm, lowercase=settings.lowercase, sentences=settings.sentences,
        )  # fmt: skip
    with atomic_write(path) as stream:
        stream.write(tokenizer.to_str())
    return Tokenizer.from_file(str(path))


def _texts(streams: Sequence[Corpus], report: Report, merging: ExitStack) -> Iterator[str]:
    """All sentences. After the last one, the training of the tokenizer reports its time until `merging` ends."""
    for stream in streams:
        with stream.reading("reading text for the tokenizer", report, once=True):
            yield from stream.texts()
    report("merging subwords")
    merging.enter_context(report_time("merging subwords", report))
