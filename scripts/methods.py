"""Each method against its controls: the designs of methods.toml, as one table each.

    python scripts/methods.py DATA OUTPUT [--only mpcl-warmup,soft] [--seeds 3] [--jobs 2] [--length 2] [--steps 2]

The same as `isoglot sweep --arms scripts/methods.toml --entry NAME --output OUTPUT/NAME --files OUTPUT` for each, after
making the files in OUTPUT that its recipes read and that no data set holds:

    negatives/<pair>.jsonl            hard negatives, mined
    wikipedia/, wikipedia-test/       sentences with links to territories, from the sample dumps in DATA; of one page in
                                      five the test has all
    wikipedia-shuffled/               those of wikipedia/, each with the entity that another one links; in
                                      wikipedia-shuffled-within/ one in the same language
    wikipedia-more/, wikipedia-more-test/  the same with links to territories, languages, and what emoji show
    wikipedia/entity_vectors.npy      a model's vectors of the names of these territories
    wikipedia-pages/entity_vectors.npy  its vectors of the first sentences of their pages, as far as the dumps have them
    wikipedia2vec/entity_vectors.npy  vectors of Wikipedia2Vec, trained on the largest of these dumps
    joined/tatoeba.jsonl              the pairs of Tatoeba joined into groups, those of at least four languages
    joined/eight.jsonl                those of at least eight
    joined/english.jsonl              the same in the languages KEPT, those of at least four with English among them
    joined/<pair>.jsonl               of the groups that have two languages, the first sentence in each

Those of Wikipedia need `pip install "isoglot[wikipedia]"`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np

import territories
from isoglot import load
from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.core.toml import tomllib
from isoglot.data.entity_vectors import Aligned, align, write_vectors
from isoglot.data.files import BUNDLED, atomic_folder, atomic_write, read_lines
from isoglot.data.filters import select_languages
from isoglot.data.groups import Group
from isoglot.data.join import join
from isoglot.data.readers.aligned import read_folder
from isoglot.data.readers.entities import SENTENCES, TABLE, read_table
from isoglot.data.readers.jsonl import read_jsonl, write_jsonl
from isoglot.mining.negatives import add_hard_negatives, read_pairs
from isoglot.training import recipe as recipes
from isoglot.training.record import inputs_of
from isoglot.training.sweep import Design, read_design, sweep
from isoglot.wikipedia import Choice, Limits, Sources, build, entity_training
from isoglot.wikipedia.dump import open_dump, pages
from isoglot.wikipedia.entities import read_titles, title_rows
from isoglot.wikipedia.entity_training import encode_names
from isoglot.wikipedia.wikitext import Paragraph, fault, is_table, read, split

DESIGNS = Path(__file__).with_suffix(".toml")
DUMPS = (
    *(f"wiki-xml-7lang/{code}wiki-truncated-100k.xml.xz" for code in ("bn", "el", "hy", "ja", "mr", "uk", "vi")),
    "wiki-it-sample/it/small-dump.xml.gz",
    "wiki-xml-samples/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
)
TERRITORIES = "main/*/territories.json"
LARGEST = "wiki-xml-7lang/viwiki-truncated-100k.xml.xz"
LEAST = {"tatoeba": 4, "eight": 8}  # languages of a group in joined/<name>.jsonl
LEAST_LINKS = {"wikipedia": 10, "wikipedia-more": 1}  # of an entity, exclusive
SHUFFLED, SHUFFLED_WITHIN = "wikipedia-shuffled", "wikipedia-shuffled-within"  # among all, and in each language
USERS = {  # each folder of sentences with links, and the folders that cannot be made without it
    "wikipedia": ("wikipedia", "wikipedia-test", "wikipedia-pages", "wikipedia2vec", SHUFFLED, SHUFFLED_WITHIN),
    "wikipedia-more": ("wikipedia-more", "wikipedia-more-test"),
}
TATOEBA, MORE_TATOEBA = "opus-tatoeba-v2021-08-07", "tatoeba-pairs/pairs.jsonl.xz"
KEPT = ("eng", "ara", "cmn", "deu", "fin", "fra", "hin", "ind", "ita", "jpn", "nld", "pol", "rus", "spa", "swh", "tur")


def prepare(design: Design, data: Path, output: Path) -> None:
    """Make the files below `output` that the recipes of a design read and that do not exist."""
    loaded = [
        recipes.load(arm.recipe or design.recipe, [*design.set, *arm.set]) for arm in design.arms if not arm.model
    ]
    named = {output / column.data for column in design.columns if column.data}
    named |= {path for one in loaded for path in inputs_of(one.model_copy(update={"folder": output, "data": data}))}
    missing = sorted(path for path in named if path.is_relative_to(output) and not path.exists())
    wanted = [path.relative_to(output) for path in missing]
    for name, users in USERS.items():
        train, test = output / name / SENTENCES, output / f"{name}-test" / SENTENCES
        if any(path.parts[0] in users for path in wanted) and not (train.exists() and test.exists()):
            if train.exists():
                raise CorpusError("has no test sentences beside it; remove it, and it is made again", file=train)
            print("reading sentences with links from the dumps of Wikipedia", file=sys.stderr, flush=True)
            link_sentences(data, output, name)
    for path in wanted:
        make(path, data, output)


def make(path: Path, data: Path, output: Path) -> None:
    """Make output/PATH."""
    if path.parts[0] == "negatives":
        print(f"mining hard negatives of {path.stem}", file=sys.stderr, flush=True)
        mine_negatives(data, output / path)
    elif str(path) == "wikipedia/entity_vectors.npy":
        folder = output / path.parent
        write_vectors(encode_names(load("multilingual-e5-small").encode, folder), folder, source=Path("names"))
    elif path.parts[0] in (SHUFFLED, SHUFFLED_WITHIN):
        shuffle_entities(output / "wikipedia", output / path.parts[0], within=path.parts[0] == SHUFFLED_WITHIN)
    elif str(path) == "wikipedia-pages/entity_vectors.npy":
        print("reading the first sentences of pages", file=sys.stderr, flush=True)
        encode_pages(data, output / path.parent, output)
    elif str(path) == "wikipedia2vec/entity_vectors.npy":
        print("training Wikipedia2Vec", file=sys.stderr, flush=True)
        train_entities(data, output / path.parent, output)
    elif path.parts[0] == "joined" and path.stem in LEAST:
        least = LEAST[path.stem]
        write_jsonl(output / path, (group for group in join_tatoeba(data) if len(set(group.langs)) >= least))
    elif str(path) == "joined/english.jsonl":
        groups = select_languages(join_tatoeba(data), KEPT, counts=Counter())
        write_jsonl(
            output / path, (group for group in groups if len(langs := set(group.langs)) >= 4 and "eng" in langs)
        )
    elif path.parts[0] == "joined":
        write_jsonl(output / path, pair_languages(join_tatoeba(data), *path.stem.split("-")))


@cache
def join_tatoeba(data: Path) -> list[Group]:
    """The groups that the pairs of Tatoeba make where they share sentences."""
    pairs = [*read_folder(data / TATOEBA, sets="*", skip_empty=True), *read_jsonl(data / MORE_TATOEBA)]
    return [*join(pairs, largest=64, counts=Counter())]


def pair_languages(groups: Iterable[Group], first: str, second: str) -> Iterator[Group]:
    """The first sentence in each of two languages, of the groups that have both."""
    for group in groups:
        if first in group.langs and second in group.langs:
            texts = (group.texts[group.langs.index(first)], group.texts[group.langs.index(second)])
            yield Group(texts, (first, second), key=group.key)


def mine_negatives(data: Path, path: Path) -> None:
    """Mine three hard negatives for every pair of the two languages that the file is named after."""
    leakage = [data / "tatoeba-laser/v1", BUNDLED / "dev"]
    groups = read_pairs(data / TATOEBA / path.stem, languages=path.stem.split("-"), leakage=leakage)
    write_jsonl(path, add_hard_negatives("use-multilingual-v3", groups, count=3))


def link_sentences(data: Path, output: Path, name: str) -> None:
    """Write output/NAME: sentences of nine Wikipedias that link an entity which CLDR has a name of."""
    more = name == "wikipedia-more"
    for source in (*DUMPS, "cldr-names", *(["cldr-annotations"] if more else [])):
        if not (data / source).exists():
            raise CorpusError("not found; EASE's tables need it, see `isoglot data list`", file=data / source)
    rows = list(name_rows(data, more=more))
    output.mkdir(parents=True, exist_ok=True)
    titles, types = output / f"{name}-titles.tsv", output / f"{name}-types.tsv"
    with atomic_write(titles) as file:
        file.writelines("\t".join(row[:3]) + "\n" for row in rows)
    with atomic_write(types) as file:
        file.writelines(f"{code}\t{kind}\n" for code, kind in sorted({row[2:] for row in rows}))
    sources = Sources(tuple(str(data / dump) for dump in DUMPS), titles=titles, types=types)
    with tempfile.TemporaryDirectory(dir=output) as temporary:
        whole = Path(temporary) / "wikipedia"
        build(sources, whole, choice=Choice(min_links=LEAST_LINKS[name], all_pages=True), workers=os.cpu_count() or 1)
        hold_out(whole, output / name)


def name_rows(data: Path, *, more: bool) -> Iterator[tuple[str, str, str, str]]:
    """Language, name, id and kind of each territory that CLDR names, and with `more` of languages and what emoji show.

    Of two entities with the same name the first gets the links.
    """
    for row in sorted({row for path in (data / "cldr-names").glob(TERRITORIES) for row in territories.names(path)}):
        yield *row, "territory"
    if not more:
        return
    for path in sorted((data / "cldr-names").glob("main/*/languages.json")):
        locale = path.parent.name
        names = json.loads(path.read_text(encoding="utf-8"))["main"][locale]["localeDisplayNames"]["languages"]
        for key, name in names.items():
            code = key.partition("-alt-")[0]
            if name != code:
                yield locale.partition("-")[0], " ".join(name.split()), f"language-{code}", "language"
    for number, group in enumerate(read_jsonl(data / "cldr-annotations/groups.jsonl.xz", on_unknown_language="skip")):
        for text, lang in zip(group.texts, group.langs, strict=True):
            yield lang, " ".join(text.split()), f"emoji-{number}", "emoji"


def hold_out(whole: Path, output: Path) -> None:
    """Write the sentences of one page in five to `output` with -test after its name, then the others to `output`."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    for _, line in read_lines(whole / SENTENCES):
        item = json.loads(line)
        page = hashlib.blake2b(f"{item['lang']} {item['page']}".encode(), digest_size=8).digest()
        parts[page[0] % 5 == 0].append(line)
    for test, folder in ((True, output.with_name(f"{output.name}-test")), (False, output)):
        folder.mkdir(exist_ok=True)
        shutil.copy(whole / TABLE, folder)
        with atomic_write(folder / SENTENCES) as file:
            file.writelines(f"{line}\n" for line in parts[test])


def shuffle_entities(whole: Path, output: Path, *, within: bool) -> None:
    """Write the sentences of `whole` to `output`, each with the entity and hard entities of another one, at random.

    within   the other sentence is in the same language, so that entities say as much of it as before
    """
    items = [json.loads(line) for _, line in read_lines(whole / SENTENCES)]
    generator, others = np.random.default_rng(0), list(range(len(items)))
    for language in sorted({item["lang"] for item in items}) if within else [None]:
        places = [place for place, item in enumerate(items) if language in (None, item["lang"])]
        for place, other in zip(places, generator.permutation(places), strict=True):
            others[place] = other
    with atomic_folder(output) as folder, atomic_write(folder / SENTENCES) as file:
        shutil.copy(whole / TABLE, folder)
        for item, other in zip(items, others, strict=True):
            linked = {key: items[other][key] for key in ("entity", "hard")}
            file.write(json.dumps(item | linked, ensure_ascii=False) + "\n")


def encode_pages(data: Path, folder: Path, output: Path) -> None:
    """Write vectors of the first sentence of each entity's page: the mean over the Wikipedias that have the page."""
    folder.mkdir(exist_ok=True)
    shutil.copy(output / "wikipedia" / TABLE, folder / TABLE)
    ids = tuple(name for name, _, _ in read_table(folder / TABLE))
    found: dict[str, list[str]] = {name: [] for name in ids}
    for dump in (open_dump(str(data / name)) for name in DUMPS):
        rows = title_rows(output / "wikipedia-titles.tsv", {dump.names.wiki: dump.names})
        entities = {title: row.id for row in rows if row.id in found for title in row.titles.values()}
        for page in pages(dump, lambda _: None):
            if page.title in entities and page.redirect is None and page.namespace == 0:
                paragraphs, _ = read(page.text, dump.names)
                found[entities[page.title]] += first_sentence(paragraphs, dump.names.wiki)
    encode = load("multilingual-e5-small").encode
    vectors = [np.mean(encode(found[name]), axis=0) if found[name] else None for name in ids]
    width = next(len(vector) for vector in vectors if vector is not None)
    table = np.array([np.full(width, np.nan) if vector is None else vector for vector in vectors], np.float32)
    aligned = Aligned(table, ids)
    print(f"{len(aligned.missing)} of {len(ids)} entities have no page", file=sys.stderr)
    write_vectors(aligned, folder, source=Path("pages"))


def first_sentence(paragraphs: Iterable[Paragraph], wiki: str) -> list[str]:
    """The first sentence of a page that has nothing wrong with it, or none."""
    for paragraph in paragraphs:
        if not is_table(paragraph):
            for text, links in split(paragraph, wiki):
                if fault(text, links, Limits()) is None:
                    return [text]
    return []


def train_entities(data: Path, folder: Path, output: Path) -> None:
    """Write the vectors of a Wikipedia2Vec that is trained on one Wikipedia.

    Deviation: the paper's are trained on the whole English Wikipedia, 768 dimensions; here the titles are Vietnamese.
    """
    folder.mkdir(exist_ok=True)
    model = folder / entity_training.MODEL
    code = entity_training.train([str(data / LARGEST)], model, entity_training.Training(dim=256))
    shutil.copy(output / "wikipedia" / TABLE, folder / TABLE)  # the rows that the vectors belong to
    aligned = align(model, folder, titles=read_titles(output / "wikipedia-titles.tsv", code), allow_pickle=True)
    print(f"{len(aligned.missing)} of {len(aligned.ids)} entities have no vector", file=sys.stderr)
    write_vectors(aligned, folder, source=model)


def main() -> None:
    names = list(tomllib.loads(DESIGNS.read_text(encoding="utf-8")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--only", default=",".join(names), help=f"some of {', '.join(names)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="Number of parallel runs.")
    parser.add_argument("--seed", type=int, default=1, help="The first seed.")
    parser.add_argument("--length", type=float, default=1.0, help="Factor for the length of training of every arm.")
    parser.add_argument("--steps", type=int, default=0, help="Steps of every stage, for a trial run.")
    parser.add_argument("--languages", default="", help="Languages of every task, for a trial run.")
    parser.add_argument("--precision", help="Of the evaluation; bf16 takes less time on processors that have it.")
    parser.add_argument("--keep", action="store_true", help="Keep models and checkpoints.")
    options = parser.parse_args()
    data, output = options.data.resolve(), options.output.resolve()
    languages = [code for code in options.languages.split(",") if code]
    try:
        designs = {name: read_design(DESIGNS, name) for name in options.only.split(",")}
        for name, design in designs.items():
            prepare(design, data, output)
            result = sweep(
                design, output / (name if options.length == 1 else f"{name}-times-{options.length:g}"),
                seeds=range(options.seed, options.seed + options.seeds), languages=languages, data=data, files=output,
                jobs=options.jobs, length=options.length, steps=options.steps, keep=options.keep,
                precision=options.precision,
            )  # fmt: skip
            print(result.to_markdown())
    except IsoglotError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
