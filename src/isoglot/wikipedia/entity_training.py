"""Initial vectors of entities: trained on a Wikipedia dump with the Wikipedia2Vec library (Yamada et al. 2020), or an
encoder's of the entities' names.

The library reads complete bz2 dumps only, so it gets the pages from our reader, which accepts any compression and
truncated dumps. Settings without an argument here keep the library's defaults, which EASE uses (section 3.3). The
library trains in several processes without locks and without a seed: two runs differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_fields
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.data.entity_vectors import Aligned, wikipedia2vec
from isoglot.data.files import temporary_folder
from isoglot.data.readers.entities import TABLE, read_table
from isoglot.data.vectors import unit
from isoglot.wikipedia.damage import find_damage
from isoglot.wikipedia.dump import Dump, open_dump, pages

MODEL = "wikipedia2vec.pkl"
_PAGES_AT_ONCE = 100


@check_fields
@dataclass(frozen=True, slots=True)
class Training:
    """Settings of the library; all others keep its defaults.

    dim         dimensions of the trained vectors. EASE: 768, that of its encoders
    iterations  number of training epochs
    min_count   minimum count of a word, and of an entity as a link, in training
    power       exponent of word frequencies in negative sampling; values other than 0 cost half a minute and 400 MB
                for the sampling table
    links       whether to train on the link graph and treat unlinked entity names as links
    workers     number of training processes
    """

    dim: PositiveInt = 768
    iterations: PositiveInt = 5
    min_count: PositiveInt = 5
    power: float = 0.75
    links: bool = True
    workers: PositiveInt = 1


def train(
    dumps: Sequence[str],
    output: Path,
    settings: Training,
    *,
    report: Callable[[str], None] = lambda _message: None,
    progress: bool = False,
) -> str:
    """Train on dumps of one Wikipedia (`FILE` or `CODE=FILE`) and save the model in the library's format.

    Returns the code of that Wikipedia; entities have its titles. Needs disk space next to `output` for the text of the
    dump. Raises `CorpusError` for files that are not dumps, dumps of several Wikipedias, and too little text;
    `EncoderError` if the library or its tokenizer for the language is not installed.
    """
    opened = [open_dump(name) for name in dumps]
    codes = sorted({dump.names.wiki for dump in opened})
    if len(codes) != 1:
        raise CorpusError(f"expected dumps of one Wikipedia, got {' and '.join(codes) or 'none'}; pass those of one")
    with temporary_folder(output) as folder:
        report(f"reading the pages of {', '.join(str(dump.path) for dump in opened)}")
        model = _train(_Pages(opened, codes[0], report), folder, settings, report, progress)
        unfinished = folder / "model"
        model.save(str(unfinished))
        unfinished.replace(output)
    return codes[0]


class _Pages:
    """The articles, with the interface of the library's own reader."""

    def __init__(self, dumps: Sequence[Dump], language: str, report: Callable[[str], None]) -> None:
        self.dumps, self.language, self.report = dumps, language, report
        self.dump_file = " ".join(str(dump.path) for dump in dumps)

    def __iter__(self) -> Iterator[Any]:
        make, normal = wikipedia2vec("utils.wiki_page").WikiPage, wikipedia2vec("utils.utils").normalize_title
        for dump in self.dumps:
            for page in pages(dump, self.report):
                if page.namespace != 0 or not page.title:
                    continue
                if damage := find_damage(page.text):  # the library's parser is that of `wikitext.read`
                    self.report(f"{dump.path}: skipped the article {page.title!r} {damage}")
                else:
                    yield make(page.title, self.language, page.text, normal(page.redirect) if page.redirect else None)


def _train(source: _Pages, folder: Path, settings: Training, report: Callable[[str], None], progress: bool) -> Any:
    """The library's four steps: pages, dictionary, links, vectors."""
    work = {"pool_size": settings.workers, "chunk_size": _PAGES_AT_ONCE}
    tokenizer = _tokenizer(source.language)
    base = wikipedia2vec("dump_db").DumpDB
    base.build(source, str(folder / "pages.db"), **work)
    pages_of = base(str(folder / "pages.db"))
    try:
        report(f"{pages_of.page_size():,} pages; counting words and entities")
        shown = {**work, "progressbar": progress}
        dictionary = wikipedia2vec("dictionary").Dictionary.build(
            pages_of, tokenizer, lowercase=True, min_word_count=settings.min_count, min_entity_count=settings.min_count,
            min_paragraph_len=5, category=False, disambi=False, **shown,
        )  # fmt: skip
        if not dictionary.entity_size or not dictionary.word_size:
            problem = f"no entity or no word occurs {settings.min_count} times; lower min-count or pass more text"
            raise CorpusError(problem, file=source.dump_file)
        report(f"{dictionary.word_size:,} words and {dictionary.entity_size:,} entities; training")
        graph, mentions = _links(pages_of, dictionary, tokenizer, shown) if settings.links else (None, None)
        model = wikipedia2vec().Wikipedia2Vec(dictionary)
        model.train(
            pages_of, graph, mentions, tokenizer, None, dim_size=settings.dim, iteration=settings.iterations,
            init_alpha=0.025, min_alpha=0.0001, window=5, negative=5, sample=1e-4, word_neg_power=settings.power,
            entity_neg_power=0.0, entities_per_page=10, **shown,
        )  # fmt: skip
    finally:
        pages_of.close()
    return model


def _links(pages_of: Any, dictionary: Any, tokenizer: Any, shown: dict[str, Any]) -> tuple[Any, Any]:
    """The link graph of the entities (None without links), and the table of names by which entities are linked."""
    mentions = wikipedia2vec("mention_db").MentionDB.build(
        pages_of, dictionary, tokenizer, min_link_prob=0.2, min_prior_prob=0.01, max_mention_len=20,
        case_sensitive=False, **shown,
    )  # fmt: skip
    graphs = wikipedia2vec("link_graph").LinkGraph
    try:
        state = graphs.build(pages_of, dictionary, **shown).serialize()
    except ValueError:  # SciPy rejects a matrix without links
        return None, mentions
    # The library (2.0) omits the entities after the last one with links, and then reads beyond the end of the array.
    ends = state["indptr"]
    state["indptr"] = np.pad(ends, (0, dictionary.entity_size + 1 - len(ends)), mode="edge")
    return graphs.load(state, dictionary), mentions


def _tokenizer(language: str) -> Any:
    """The library's tokenizer of a language; Japanese needs MeCab."""
    try:
        return wikipedia2vec("utils.tokenizer").get_default_tokenizer(language)
    except ImportError as error:
        needed = f"Wikipedia2Vec's tokenizer for {language!r} is not installed ({error})"
        raise EncoderError(f'{needed}: pip install "wikipedia2vec[mecab]"') from error


def encode_names(encode: Callable[[list[str]], NDArray[Any]], folder: str | Path) -> Aligned:
    """Unit vectors (E, D) of the labels in the entities.tsv of a folder that `isoglot wikipedia` wrote, in its order.

    `encode` makes vectors (N, D) of N texts, such as `Model.encode`.
    Deviation: the paper begins with Wikipedia2Vec's vectors; an encoder that is strong in similarity knows more of the
    names than the entities' links do. Raises `CorpusError` for a folder without a table.
    """
    rows = list(read_table(Path(folder) / TABLE))
    return Aligned(unit(encode([label for _, _, label in rows])), tuple(name for name, _, _ in rows))
