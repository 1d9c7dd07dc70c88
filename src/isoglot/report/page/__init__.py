"""One self-contained HTML page of results: nothing is fetched, everything is in the file.

Read in this order: `markup.py` (how nothing of the data becomes markup), `facts.py` (what is found in the scores),
`averages.py`, `tables.py`, `bars.py`, `plots.py` and `sentences.py` (the sections), `figures.py`, `maps.py` and
`svg.py` (the drawing).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.resources import files
from pathlib import Path

from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical_list
from isoglot.errors import EvaluationError
from isoglot.report.page import bars, plots, tables
from isoglot.report.page.facts import clean, labels, plain
from isoglot.report.page.markup import Html, document, element, join, text
from isoglot.report.page.sentences import sentences
from isoglot.report.scores import Results

__all__ = ["page", "write_page"]

_KINDS = ("mistakes", "similarity", "map", "hits")  # of details, that have sections of their own


def page(
    results: Sequence[Results], *, seen: Collection[str] = (), title: str = "Sentence embeddings by language"
) -> str:
    """The page, an HTML document. The same results give the same bytes.

    One model gives a report card; of several, the first is the base the others are compared with. `seen` are the
    languages of training, in any code system: a subset is seen when all its languages are, English counting as seen.
    Sections without data are left out. Raises `EvaluationError` when there is nothing to show or when matplotlib is
    missing, and `CorpusError` for a language that does not exist.
    """
    if not any(result.scores for result in results):
        raise EvaluationError("there are no scores to show; name results that `isoglot evaluate` wrote")
    wanted, results, title = canonical_list(seen), clean(results), plain(title)
    sections = [(name, heading, words, body) for name, heading, words, body in _sections(results, wanted) if body]
    links = [element("a", text(heading), href=f"#{name}") for name, heading, _, _ in sections]
    bodies = [
        element("section", element("h2", text(heading)), element("p", text(words), class_="quiet"), body, id=name)
        for name, heading, words, body in sections
    ]
    search = element(
        "label",
        text("In tables, show only the languages "),
        element("input", type="search", placeholder="deu, kor", size="12"),
    )
    parts = [
        element("header", element("h1", text(title)), _models(results), element("nav", *links)),
        element("div", search, class_="filter", hidden=""),
        element("main", join(bodies)),
        element("script", _packaged("script.js")),
    ]
    return document(title, parts, style=_packaged("style.css"), images=True)


def write_page(
    path: Path,
    results: Sequence[Results],
    *,
    seen: Collection[str] = (),
    title: str = "Sentence embeddings by language",
) -> None:
    """Write `page` to a file, atomically."""
    content = page(results, seen=seen, title=title)
    with atomic_write(path) as stream:
        stream.write(content)


def _sections(results: Sequence[Results], seen: Collection[str]) -> list[tuple[str, str, str, Html]]:
    """Identifier, heading, words on how to read it, and body of each section."""
    several = len(results) > 1
    kinds = {detail.kind: None for result in results for score in result.scores for detail in score.details}
    others = [kind for kind in kinds if kind not in _KINDS]
    configured = any(result.settings for result in results)
    change = "Small numbers are changes against the first model; the best of a row is bold. " if several else ""
    sizes = "n: subsets of an average, items of a subset. ↓: lower is better. "
    averages = "What averages are of is listed below the summary."
    values = "Shares and correlations times 100; distances as they are. "
    about = "Each bar is a change against the first model." if several else "Each bar is a value."
    closer = "Alignment: how far sentences of equal meaning are apart. Uniformity: how unevenly all of them are spread."
    return [
        ("summary", "Summary", values + change + sizes, tables.summary(results)),
        ("languages", "Change by language" if several else "By language", about, bars.languages(results, seen=seen)),
        ("alignment", "Alignment and uniformity", closer, plots.alignment(results)),
        (
            "similarity",
            "Similarity",
            "Brighter is greater; several models share a scale. In large maps, rows that are alike stand together.",
            plots.similarity(results),
        ),
        (
            "maps",
            "Maps of sentences",
            "Lines join the sentences that mean the same. The planes are made by t-SNE, which keeps neighbours and not "
            "distances: read which points lie together, not how far apart they are. Where a colour comes "
            "again, the codes are bold.",
            plots.maps(results),
        ),
        ("mistakes", "Worst mistakes", "Worst first.", sentences(results, "mistakes")),
        ("hits", "What was found", "Queries and their nearest sentences.", sentences(results, "hits")),
        ("tables", "More tables", "What else the tasks keep beside their scores.", sentences(results, *others)),
        ("scores", "All scores", values + sizes + averages, tables.all_scores(results)),
        ("settings", "Settings", "As the results give them.", tables.settings(results) if configured else Html("")),
    ]


def _models(results: Sequence[Results]) -> Html:
    names = labels(results)
    lines = [text(result.model) for result in results]
    if len(results) > 1:
        items = [
            element("li", element("b", text(name)), text("" if name == result.model else f" · {result.model}"))
            for name, result in zip(names, results, strict=True)
        ]
        return element("ul", *items)
    return element("p", *lines)


def _packaged(name: str) -> Html:
    return Html(files(__package__).joinpath(name).read_text(encoding="utf-8"))
