"""Finds the paragraph that answers a question: `retrieval/questions`.

Questions and paragraphs are encoded with the prompts that the model has for them (`query`, and `document` or
`passage`), and each question searches all paragraphs of its language exactly, by cosine. In the subset `bem-eng`
questions are in Bemba and paragraphs in English.

The definitions are those of trec_eval and MTEB: a paragraph counts by its relevance, divided by log2 of its place plus
one (nDCG), or as found if its relevance is above 0 (recall, and the inverse place of the first, MRR). Questions without
a relevant paragraph are left out.

The set `qa-retrieval` is cut by language: `retrieval/questions-dev` has French, Indonesian, Marathi and Portuguese, to
choose models, prompts and lengths with, and `retrieval/questions` the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Encode, Metric, Score, averages, item_set_of
from isoglot.evaluation.sets import SetTask, Source, sources
from isoglot.evaluation.tasks.retrieval import cosine_mistakes
from isoglot.evaluation.vectors import embed_rows, in_role
from isoglot.search.best import Floats, Ids
from isoglot.search.exact import neighbours
from isoglot.search.pairs import Doubles

DEPTH = 10  # places that are judged
# Of each question the relevance of its paragraphs, by their number.
Relevance = Sequence[Mapping[int, float]]


def _dcg(gains: Doubles) -> float:
    return float(gains @ (1 / np.log2(np.arange(2, len(gains) + 2))))


# Metric -> its value for a question, from the relevance (k,) of the paragraphs that it found, best first, and that of
# its relevant ones, the greatest first.
MEASURES: dict[Metric, Callable[[Doubles, Doubles], float]] = {
    Metric(f"ndcg@{DEPTH}", main=True): lambda answers, gains: _dcg(answers) / _dcg(gains[:DEPTH]),
    Metric("recall@1"): lambda answers, gains: float(answers[0] > 0) / len(gains),
    Metric(f"recall@{DEPTH}"): lambda answers, gains: int((answers > 0).sum()) / len(gains),
    Metric(f"mrr@{DEPTH}"): lambda answers, _: max((answers > 0) / np.arange(1, len(answers) + 1)),
}


class Questions(SetTask):
    """Retrieval of paragraphs for questions, in one language (`fra`) and across two (`bem-eng`)."""

    metrics: ClassVar[tuple[Metric, ...]] = (*MEASURES,)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """The questions, paragraphs and judgements of each language, or of that of the questions and the paragraphs."""
        subsets: dict[str, dict[str, Source]] = {}
        for (split, name), source in sources(self.name, self.reads, data).items():
            subset, _, kind = name.rpartition(".")
            if self.wants(split, subset.split("-"), languages):
                subsets.setdefault(subset, {})[kind] = source
        return subsets

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """The metrics of each subset, and the means of one language and of two, if there are both."""
        scores: list[Score] = []
        for subset, parts in subsets.items():
            where = f"{self.name} {subset}"
            questions, paragraphs = (parts[kind].read(f"{where}, {kind}") for kind in ("questions", "paragraphs"))
            questions, relevance = _judge(questions, paragraphs, parts["gold"].read(where), where=where)
            queries = embed_rows(in_role(encode, "query"), questions, where=f"{where}, query")
            documents = embed_rows(in_role(encode, "document"), paragraphs, where=f"{where}, document")
            nearest = neighbours(queries, documents, DEPTH, metric="cosine").forward_ids
            items = judge(nearest, relevance)
            first, relevant = nearest[:, 0], np.array([min(gains) for gains in relevance])
            wrong = np.flatnonzero([place not in gains for place, gains in zip(first, relevance, strict=True)])
            texts = questions.texts(), paragraphs.texts()
            details = cosine_mistakes(texts, (queries, documents), wrong, relevant[wrong], first[wrong])
            item_set = item_set_of(questions.texts())
            for metric, values in zip(MEASURES, items.T, strict=True):
                shown = details if metric.main else ()
                scores.append(metric.mean_of(self.name, subset, values, item_set=item_set, details=shown))
        yield from scores
        across = [subset for subset in subsets if "-" in subset]
        alone = [subset for subset in subsets if subset not in across]
        for name, over in (("monolingual", alone), ("crosslingual", across)) if alone and across else ():
            yield from averages(scores, name, over=over)

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """All languages and pairs of languages, and not their averages."""
        return subsets


def judge(answers: Ids, relevance: Relevance) -> Floats:
    """Each of `MEASURES` (N, 4) of N questions, from the numbers (N, k) of what each found in order."""
    rows = []
    for ids, gains in zip(answers.tolist(), relevance, strict=True):
        relevance_of_answers = np.array([gains.get(number, 0.0) for number in ids])
        descending = np.sort(list(gains.values()))[::-1]
        rows.append([measure(relevance_of_answers, descending) for measure in MEASURES.values()])
    return np.array(rows, np.float32)


def _judge(questions: Rows, paragraphs: Rows, gold: Rows, *, where: str) -> tuple[Rows, Relevance]:
    """The questions that have a relevant paragraph, and the relevance of theirs."""
    numbers = {row.id: number for number, row in enumerate(paragraphs)}
    gains: dict[str, dict[int, float]] = {row.id: {} for row in questions}
    for row in gold:
        question, paragraph = row.texts
        if question not in gains or paragraph not in numbers:
            missing = f"question {question!r}" if question not in gains else f"paragraph {paragraph!r}"
            raise EvaluationError(f"{where}: {row.places[0]}: there is no {missing}; get the files again")
        if float(row.label or 0) > 0:
            gains[question][numbers[paragraph]] = float(row.label or 0)
    judged = Rows(row for row in questions if gains[row.id])
    if not judged:
        raise EvaluationError(f"{where}: no question has a relevant paragraph; get the files again")
    return judged, [gains[row.id] for row in judged]


QUESTIONS: tuple[Questions, ...] = (
    Questions("retrieval/questions", ("qa-retrieval",)),
    Questions("retrieval/questions-dev", ("qa-retrieval",), split="dev"),
    Questions("retrieval/questions-own", ("own/questions",)),
)
