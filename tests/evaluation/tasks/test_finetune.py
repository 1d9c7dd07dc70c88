"""Fine-tuning on PAWS-X: it learns, leaves the model alone, repeats itself, and says when it has no model."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from cases import by_text
from cases_classification import pawsx_data, put

from isoglot.encoders import encode
from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.finetune import PawsXFinetune, build, predict
from isoglot.evaluation.tasks.pair_sets import Pairs, PawsX
from isoglot.evaluation.vectors import Remembered

QUICK = PawsXFinetune(epochs=6, rate=5e-3, batch=16)
WORDS = ["cat", "dog", "mat", "park"]


def pairs_data(folder, *, codes=("en", "de"), count=160):
    """Pairs that are paraphrases if and only if the second sentence is about the cat."""
    draw = random.Random(0)
    for code in codes:
        for split in ("train", "dev", "test"):
            rows = []
            for i in range(count):
                label = draw.randrange(2)
                second = "The cat sits" if label else "A dog runs"
                rows.append(f"The {draw.choice(WORDS)} {i % 3}\t{second} {draw.choice(['1', '22'])}\t{label}")
            put(folder / f"{split}-{code}.tsv", rows)
    return folder


def remembered(model):
    return Remembered(lambda texts: encode(model, texts), model=model)


def test_it_learns_and_leaves_the_model_as_it_was(tmp_path, toy_transformer):
    model = toy_transformer(family="xlm-roberta", freeze_embeddings=True)
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(5)
    following = torch.rand(3)
    torch.manual_seed(5)
    scores = QUICK.run(remembered(model), pairs_data(tmp_path))
    assert torch.equal(torch.rand(3), following)  # the user's generator goes on as if nothing had been
    assert {score.subset for score in scores} == {"de", "en", "mean"}
    assert min(score.value for score in scores) > 0.95
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model.backbone.get_input_embeddings().weight.requires_grad


def test_a_second_run_is_the_same_and_another_seed_is_not(tmp_path, toy_transformer):
    pairs_data(tmp_path, count=40)
    model = toy_transformer()
    train, dev = (PawsX().read(tmp_path, "en", split=split, where="t") for split in ("train", "dev"))
    one, two, three = (
        PawsXFinetune(epochs=1, rate=1e-3, seed=seed)._learn(model, train, dev).logits(dev, range(40)).tolist()
        for seed in (0, 0, 3)
    )
    assert one == two
    assert one != three
    runs = [QUICK.run(remembered(model), tmp_path) for _ in range(2)]
    assert [score.items.tolist() for score in runs[0][:2]] == [score.items.tolist() for score in runs[1][:2]]


def test_both_sentences_are_read(toy_transformer):
    classifier = build(toy_transformer(), length=32)
    classifier.layers.eval()
    one, two, three = (
        Pairs((first,), (second,), ("0",), ("x",)) for first, second in (("cat", "dog"), ("cat", "mat"), ("mat", "dog"))
    )
    logits = [classifier.logits(pairs, [0]).tolist() for pairs in (one, two, three)]
    assert logits[0] != logits[1]
    assert logits[0] != logits[2]


def test_predictions_do_not_depend_on_the_batch_and_long_pairs_are_cut(toy_transformer):
    classifier = build(toy_transformer(), length=128)
    assert classifier.length == 48  # what the toy tokenizer allows
    texts = tuple(f"{word} " * (40 * number + 1) for number, word in enumerate(WORDS))
    pairs = Pairs(texts, texts[::-1], ("0",) * 4, ("x",) * 4)
    assert np.array_equal(predict(classifier, pairs, batch=1), predict(classifier, pairs, batch=4))


def test_the_epoch_best_on_the_dev_split_is_kept(tmp_path, toy_transformer):
    """A dev split with the labels turned round likes the untrained start best, so later epochs are thrown away."""
    pairs_data(tmp_path)
    turned = [line[:-1] + str(1 - int(line[-1])) for line in (tmp_path / "dev-en.tsv").read_text().splitlines()]
    put(tmp_path / "dev-en.tsv", turned)
    first = PawsXFinetune(epochs=6, rate=5e-3, batch=16).run(remembered(toy_transformer()), tmp_path)
    assert max(score.value for score in first) < 0.95


def test_vectors_alone_cannot_be_fine_tuned(tmp_path, toy_static):
    pawsx_data(tmp_path, splits=("train", "dev", "test"))
    with pytest.raises(EvaluationError, match="paws-x/finetune: vectors without a model cannot be fine-tuned"):
        PawsXFinetune().run(by_text, tmp_path)
    with pytest.raises(EvaluationError, match="a StaticEncoder cannot be fine-tuned"):
        PawsXFinetune().run(remembered(toy_static), tmp_path)


def test_without_training_pairs_there_is_no_subset(tmp_path):
    pawsx_data(tmp_path)
    assert PawsXFinetune().subsets(tmp_path) == ()
    assert PawsXFinetune().needs_model
    assert "train-en.tsv" in PawsXFinetune().needs
