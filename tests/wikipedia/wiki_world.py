"""A small world in two languages: 24 towns and beasts, pages that link them at random, redirects, their Wikidata."""

import json
from random import Random

from wiki_dumps import page, write

from isoglot.wikipedia import Choice, Sources, build

TOWNS, BEASTS = [f"Town {i}" for i in range(12)], [f"Beast {i}" for i in range(12)]
NAMES = TOWNS + BEASTS
JAPANESE = {name: name.replace("Town", "町").replace("Beast", "獣") for name in NAMES}
FOREIGN = {"en": {name: name for name in NAMES}, "ja": JAPANESE}
ENGLISH_LINE = "Near [[{0}]] there lives the [[{1}|{2}]], they say. '''Then''' came [[r {3}]] {{{{t}}}} too."
JAPANESE_LINE = "[[{0}]]の近くに[[{1}|その名前]]が住んでいるという話です。そして[[R {3}]]も来たのであった。"
IDS = {name: f"Q{i}" for i, name in enumerate(NAMES)}
KINDS = {f"Q{i}": ["Q100"] if i < 12 else ["Q200", "Q300"][: 1 + i % 2] for i in range(24)}


def article(draw, wiki):
    named, line = FOREIGN[wiki], ENGLISH_LINE if wiki == "en" else JAPANESE_LINE
    lines = []
    for _ in range(draw.randint(1, 4)):
        one, two, three = (named[name] for name in draw.choices(NAMES, k=3))
        lines.append(line.format(one, two, two[0].lower() + two[1:], three))
    return "\n\n".join(lines)


def pages_of(wiki, seed):
    draw, named = Random(seed), FOREIGN[wiki]
    articles = [page(named[name], article(draw, wiki)) for name in NAMES]
    others = [page(f"Other {i}", article(draw, wiki)) for i in range(16)]
    redirects = [page(f"R {named[name]}", redirect=named[name]) for name in NAMES]
    talk, last = page("Talk:x", "[[Town 1]]", ns=1), page("No links", "Nothing here.")
    return [*articles, *redirects, talk, *others, page("Empty"), last]


def world(folder):
    """Two dumps, their Wikidata, and the same as tables; gives the sources."""
    dumps = [write(folder / f"{wiki}.xml", *pages_of(wiki, seed), wiki=wiki) for seed, wiki in enumerate(FOREIGN)]
    items = [
        {
            "id": IDS[name],
            "sitelinks": {f"{wiki}wiki": {"title": named[name]} for wiki, named in FOREIGN.items()},
            "claims": {"P31": [{"mainsnak": {"datavalue": {"value": {"id": kind}}}} for kind in KINDS[IDS[name]]]},
        }
        for name in NAMES
    ]
    (folder / "wikidata.json").write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n")
    rows = [f"{wiki}\t{named[name]}\t{IDS[name]}\n" for name in NAMES for wiki, named in FOREIGN.items()]
    (folder / "titles.tsv").write_text("".join(rows))
    (folder / "types.tsv").write_text("".join(f"{name}\t{' '.join(kinds)}\n" for name, kinds in KINDS.items()))
    return Sources(tuple(map(str, dumps)), wikidata=folder / "wikidata.json")


def make(sources, output, *, choice=Choice(min_links=3), **more):  # noqa: B008, a frozen value
    """The rows of the sentences, the entities and the report."""
    report = build(sources, output, work=output.parent / "work", choice=choice, **more)
    rows = [json.loads(line) for line in (output / "sentences.jsonl").read_text(encoding="utf-8").split("\n") if line]
    entities = [line.split("\t") for line in (output / "entities.tsv").read_text(encoding="utf-8").split("\n") if line]
    return rows, entities, report
