"""Scores as evaluations give them, made up: many languages, several tasks and every kind of detail."""

import re
from functools import cache
from xml.etree import ElementTree

import numpy as np

from isoglot.evaluation import TASKS, base
from isoglot.evaluation.base import Detail
from isoglot.evaluation.scores import Scores
from isoglot.evaluation.tasks.retrieval import LASER_112

TATOEBA = " ".join(LASER_112)
FIFTEEN = ["ara", "bul", "deu", "ell", "eng", "fra", "hin", "rus", "spa", "swa", "tha", "tur", "urd", "vie", "zho"]
SIX = {
    "eng": ["The cat sleeps in the garden.", "Where is the railway station?"],
    "deu": ["Die Katze schläft im Garten.", "Wo ist der Bahnhof?"],
    "ara": ["تنام القطة في الحديقة.", "أين محطة القطار؟"],
    "zho": ["猫在花园里睡觉。", "火车站在哪里？"],
    "tha": ["แมวนอนหลับอยู่ในสวน", "สถานีรถไฟอยู่ที่ไหน"],
    "tur": ["Kedi bahçede uyuyor.", "Tren istasyonu nerede?"],
}


@cache
def declare(task):
    """Metrics by name of a task, or of those whose name begins alike."""
    names = [*TASKS]
    alike = [task] if task in names else [name for name in names if name[:4] == task[:4]]
    return {metric.name: metric for name in alike for metric in TASKS[name].metrics}


def Score(task, subset, metric, *values, **fields):  # noqa: N802
    """A score as its task makes it: with the declared unit, direction and place."""
    declared = declare(task).get(metric, base.Metric(metric))
    return declared.describe(base.Score(task, subset, metric, *values, **fields))


def accuracies(random, lift, codes=TATOEBA, rows=3):
    """Tatoeba for some languages in three metrics, with items, mistakes and averages."""
    scores = []
    for place, code in enumerate(codes.split()):
        share = np.clip(0.97 - 0.006 * (place * 37 % 112) + lift * (0.2 + 0.8 * (place % 5 == 0)), 0.05, 1)
        ways = [(random.random(400) < share).astype(np.float32) for _ in range(2)]
        for metric, items in zip(("xx-en", "en-xx", "mean"), [*ways, sum(ways) / 2], strict=True):
            details = (mistakes(code, rows),) if metric != "mean" else ()
            values = float(items.mean(dtype=np.float64)), len(items)
            scores.append(Score("tatoeba", f"{code}-eng", f"accuracy/{metric}", *values, items=items, details=details))
    for metric in ("xx-en", "en-xx", "mean"):
        over = {score.subset: score.value for score in scores if score.metric == f"accuracy/{metric}"}
        mean = sum(over.values()) / len(over)
        scores.append(Score("tatoeba", "mean", f"accuracy/{metric}", mean, len(over), tuple(over)))
    return scores


def mistakes(code, rows):
    texts = SIX.get(code, SIX["ara" if code in ("heb", "pes", "urd", "arz") else "deu"])
    row = (texts[0], SIX["eng"][0], SIX["eng"][1], 0.61235, 0.7, -0.0874)
    columns = ("sentence", "expected", "found", "cosine expected", "cosine found", "margin")
    return Detail("mistakes", columns, (row,) * rows)


def similarity(random, lift, codes=tuple(FIFTEEN)):
    table = np.clip(random.normal(0.7 + lift, 0.08, (len(codes), len(codes))), -1, 1)
    table = (table + table.T) / 2
    np.fill_diagonal(table, 1)
    rows = tuple((code, *map(float, row)) for code, row in zip(codes, table, strict=True))
    detail = Detail("similarity", ("language", *codes), rows)
    return Score("similarity", "mean", "cosine", float(table.mean()), 105, ("ara-bul",), details=(detail,))


def plane(random, spread):
    rows = []
    for group in range(15):
        middle = random.normal(0, 10, 2)
        for language, texts in SIX.items():
            x, y = middle + random.normal(0, spread, 2)
            rows.append((str(group + 1), language, float(x), float(y), texts[group % 2]))
    detail = Detail("map", ("group", "language", "x", "y", "text"), tuple(rows))
    return Score("map", "mean", "language", 0.08, 90, details=(detail,))


def one(model="runs/first/model", seed=0, lift=0.0, codes=TATOEBA, rows=3):
    """Everything that a page can show, for one model."""
    random = np.random.default_rng(seed)
    scores = accuracies(random, lift, codes, rows)
    pairs = ["ara-ara", "ara-eng", "deu-eng", "eng-eng", "fra-eng", "kor-kor", "spa-eng-4b", "tur-eng"]
    values = {pair: 0.55 + 0.04 * place + lift * random.normal(0.5, 0.6) for place, pair in enumerate(pairs)}
    scores += [Score("sts17", pair, "spearman", value, 250) for pair, value in values.items()]
    scores.append(Score("sts17", "mean", "spearman", sum(values.values()) / len(values), len(values), tuple(values)))
    sets = {name: random.uniform(0.3, 0.8) + lift for name in ("agnews", "biomedical", "tweet")}
    scores += [Score("stc", name, "accuracy", value, 20_000) for name, value in sets.items()]
    scores.append(Score("stc", "mean", "accuracy", sum(sets.values()) / 3, 3, tuple(sets)))
    errors = {f"deu-{code}": 0.02 + 0.3 * random.random() * (1 - lift) for code in FIFTEEN if code != "deu"}
    scores += [Score("xsim", pair, "error/ratio", value, 1012) for pair, value in errors.items()]
    plane_of = {"alignment": 0.3 - lift, "uniformity": -2.1 - lift}
    scores += [Score("alignment", "eng", metric, value, 338) for metric, value in plane_of.items()]
    rows = (SIX["tha"][0], 1, SIX["eng"][0], 0.9), (SIX["tha"][0], 2, SIX["eng"][1], 0.3)
    hits = Detail("hits", ("query", "rank", "found", "cosine"), rows)
    scores.append(Score("nearest", "tha-eng", "cosine/1", 0.9, 1, details=(hits,)))
    settings = {"prompt": "query: ", "pooling": "mean", "max_length": 128}
    return Scores((*scores, similarity(random, lift), plane(random, 2 - 8 * lift)), model, settings)


def errors_into(codes, *, task="xsim/x", metric="error/ratio"):
    """Every pair of languages, the mean into each of them, and the mean of those."""
    pairs = [Score(task, f"{a}-{b}", metric, 0.5, 9) for a in codes for b in codes if a != b]
    into = []
    for place, code in enumerate(codes):
        over = tuple(score.subset for score in pairs if score.subset.endswith(f"-{code}"))
        into.append(Score(task, f"xx-{code}", metric, place / 100, len(over), over))
    over = tuple(score.subset for score in into)
    return [*pairs, *into, Score(task, "mean", metric, 0.25, len(over), over)]


def small(model="m", *scores):
    return Scores(scores or (Score("tatoeba", "deu-eng", "accuracy/mean", 0.5, 10),), model)


def words(svg):
    """The texts of a picture."""
    return [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def cells(document, section):
    """Texts of the cells of a section's tables, row by row, without the names of languages beside their codes."""
    document = re.sub('<small class="named">.*?</small>', "", document)
    body = document.split(f'id="{section}"')[1].split("</section>")[0] if f'id="{section}"' in document else ""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    return [
        [re.sub("<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]
