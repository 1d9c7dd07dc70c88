"""The nearest sentence of another language, and the entities of both."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate

LINE = st.tuples(st.sampled_from(["deu", "eng", "fra"]), st.integers(0, 5), st.integers(0, 3))


def write(folder, lines):
    folder.mkdir(exist_ok=True)
    (folder / "entities.tsv").write_text("".join(f"Q{row}\t1\tname {row}\n" for row in range(4)))
    objects = [{"text": f"{lang} {text}", "lang": lang, "entity": f"Q{entity}"} for lang, text, entity in lines]
    (folder / "sentences.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    return folder


def encode(texts):
    """A direction for each sentence, none of them like another."""
    angles = [7 * "defghnrau".index(text[0]) + 0.3 + int(text[-1]) for text in texts]
    return np.array([[np.cos(0.2 * angle), np.sin(0.2 * angle)] for angle in angles]).reshape(-1, 2)


@given(lines=st.lists(LINE, min_size=1, max_size=20))
def test_accuracies_are_those_of_plain_loops(tmp_path_factory, lines):
    links = {}
    for lang, text, entity in lines:
        links.setdefault(lang, {}).setdefault(f"{lang} {text}", set()).add(entity)
    expected = {}
    for source in sorted(links):
        for target in sorted(links):
            hits = []
            for query, own in links[source].items():
                if source != target and any(own & other for other in links[target].values()):
                    places = list(links[target])
                    cosines = encode(places) @ encode([query])[0]
                    hits.append(bool(own & links[target][places[int(np.argmax(cosines))]]))
            if hits:
                expected[f"{source}-{target}"] = sum(hits) / len(hits)
    folder = write(tmp_path_factory.mktemp("linked") / "wikipedia", lines)
    assert TASKS["linked"].subsets(folder) == tuple(expected)
    if not expected:
        return
    for place in (folder, folder.parent):
        scores = {score.subset: score for score in evaluate(encode, ["linked"], data=place)}
        assert {name: score.value for name, score in scores.items() if name != "mean"} == pytest.approx(expected)
        assert scores["mean"].value == pytest.approx(sum(expected.values()) / len(expected))
