"""Fine-tuning on PAWS-X: it learns, leaves the model alone, repeats itself, and says when it has no model."""

import copy
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cases import by_text
from cases_classification import pawsx_data, put
from torch.nn.functional import dropout

from isoglot.core.errors import EncoderError, EvaluationError
from isoglot.data.sets.normal import Row, Rows
from isoglot.encoders import TransformerEncoder
from isoglot.evaluation.run import run_tasks
from isoglot.evaluation.sets import sources
from isoglot.evaluation.tasks import finetune
from isoglot.evaluation.tasks.classification import PAWS_X
from isoglot.evaluation.tasks.finetune import PairClassifier, PawsXFinetune, build, predict
from isoglot.evaluation.vectors import Remembered, find_transformer
from isoglot.model import encode

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_second_run_is_the_same_and_another_seed_is_not(tmp_path, toy_transformer):
    pairs_data(tmp_path, count=40)
    model = toy_transformer()
    train, dev = (sources("t", PAWS_X.reads, tmp_path)[split, "en"].read("t") for split in ("train", "dev"))
    one, two, three = (
        PawsXFinetune(epochs=1, rate=1e-3, seed=seed)._learn(model, train, dev).logits(dev, range(40)).tolist()
        for seed in (0, 0, 3)
    )
    assert one == two
    assert one != three
    runs = [QUICK.run(remembered(model), tmp_path) for _ in range(2)]
    assert [score.items.tolist() for score in runs[0][:2]] == [score.items.tolist() for score in runs[1][:2]]
    assert runs[0][0].item_set == runs[0][1].item_set != ""  # rows are translations, though their labels differ here


def test_both_sentences_are_read(toy_transformer):
    classifier = build(toy_transformer(), length=32)
    classifier.layers.eval()
    one, two, three = (
        Rows([Row((first, second), ("x",), "0")]) for first, second in (("cat", "dog"), ("cat", "mat"), ("mat", "dog"))
    )
    logits = [classifier.logits(pairs, [0]).tolist() for pairs in (one, two, three)]
    assert logits[0] != logits[1]
    assert logits[0] != logits[2]


def test_predictions_do_not_depend_on_the_batch_and_long_pairs_are_cut(toy_transformer):
    classifier = build(toy_transformer(), length=128)
    assert classifier.length == 48  # what the toy tokenizer allows
    texts = tuple(f"{word} " * (40 * number + 1) for number, word in enumerate(WORDS))
    pairs = Rows(Row(pair, ("x",), "0") for pair in zip(texts, texts[::-1], strict=True))
    assert np.array_equal(predict(classifier, pairs, batch=1), predict(classifier, pairs, batch=4))


def roomy(model):
    """The toy with room for 256 tokens, and outputs large enough for gradients that have to be clipped."""
    import transformers

    config = copy.deepcopy(model.backbone.config)
    config.max_position_embeddings = model.tokenizer.model_max_length = 256
    torch.manual_seed(1)
    model = TransformerEncoder(transformers.BertModel(config), model.tokenizer)
    model.backbone.encoder.layer[-1].output.LayerNorm.weight.data.mul_(30)
    return model


def learnt_in_loops(model, train):
    """The recipe of XTREME's script from the same draws, AdamW and clipping written out; and the gradients' norms."""
    torch.manual_seed(0)
    layers = build(model, length=128).layers
    weights = list(layers.parameters())
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    count, step, norms = len(train.labels), 0, []
    total = 5 * math.ceil(count / 32)
    for _ in range(5):
        layers.train()
        order = torch.randperm(count).tolist()
        for start in range(0, count, 32):
            rows = order[start : start + 32]
            pairs = [[side[row] for row in rows] for side in (train.texts(0), train.texts(1))]
            inputs = model.tokenizer(*pairs, truncation=True, max_length=128, padding=True, return_tensors="pt")
            token = dropout(layers["backbone"](**inputs).last_hidden_state[:, 0], 0.1)
            logits = layers["head"][4](dropout(torch.tanh(layers["head"][1](token)), 0.1))
            loss = sum(row.logsumexp(0) - row[int(train.labels[i])] for row, i in zip(logits, rows, strict=True))
            gradients = torch.autograd.grad(loss / len(rows), weights, allow_unused=True)
            norms.append(math.sqrt(sum(float((each**2).sum()) for each in gradients if each is not None)))
            rate = 2e-5 * (1 - step / total)
            step += 1
            for place, gradient in enumerate(gradients):
                if gradient is not None:  # BERT's pooler takes no part
                    clipped = gradient * min(1.0, 1.0 / norms[-1])
                    first[place] = 0.9 * first[place] + 0.1 * clipped
                    second[place] = 0.999 * second[place] + 0.001 * clipped**2
                    root = (second[place] / (1 - 0.999**step)).sqrt()
                    weights[place].data -= rate * first[place] / (1 - 0.9**step) / (root + 1e-8)
    return weights, norms


def flat(weights):
    return torch.cat([weight.detach().flatten() for weight in weights]).double()


@pytest.mark.slow
def test_the_protocol_equals_its_steps_in_loops(tmp_path, toy_transformer, monkeypatch):
    """Epochs, rate, batch, length, decay, clipping: each moves the weights, so none may differ from the loops."""
    model = roomy(toy_transformer())
    read = sources("t", PAWS_X.reads, pairs_data(tmp_path, codes=("en",), count=70))["train", "en"].read("t")
    more = " cat dog mat" * 60
    train = Rows(
        row._replace(texts=(row.texts[0] + more, row.texts[1])) if number < 9 else row
        for number, row in enumerate(read)
    )
    looks = iter(range(100))
    gold = np.array([int(label) for label in train.labels])  # as if every epoch got one more pair right
    monkeypatch.setattr(finetune, "predict", lambda *_: np.where(np.arange(70) < next(looks), gold, 1 - gold))
    learnt = flat(PawsXFinetune()._learn(model, train, train).layers.parameters())
    expected, norms = learnt_in_loops(model, train)
    assert max(norms) > 1  # clipped: else the test would not tell
    torch.manual_seed(0)
    moved = flat(expected) - flat(build(model, length=128).layers.parameters())
    assert float((learnt - flat(expected)).norm()) < 1e-3 * float(moved.norm())
    assert next(looks) == 5  # the dev split is looked at after each epoch


@pytest.mark.slow
def test_the_epoch_best_on_the_dev_split_is_kept(tmp_path, toy_transformer):
    """A dev split with the labels turned round likes the untrained start best, so later epochs are thrown away."""
    pairs_data(tmp_path)
    turned = [line[:-1] + str(1 - int(line[-1])) for line in (tmp_path / "dev-en.tsv").read_text().splitlines()]
    put(tmp_path / "dev-en.tsv", turned)
    first = PawsXFinetune(epochs=6, rate=5e-3, batch=16).run(remembered(toy_transformer()), tmp_path)
    assert max(score.value for score in first) < 0.95


def test_vectors_alone_cannot_be_fine_tuned(tmp_path, toy_static):
    pawsx_data(tmp_path, splits=("train", "dev", "test"))
    for encode_texts in (by_text, remembered(toy_static)):
        with pytest.raises(EvaluationError, match="paws-x/finetune: needs a transformer"):
            PawsXFinetune().run(encode_texts, tmp_path)


def test_a_transformer_that_computes_without_torch_is_fine_tuned(tmp_path, toy_transformer, monkeypatch):
    """Such as a packaged one in 8 bits: it was left out, although the task opens it for training."""
    codes = PAWS_X.lists["xtreme-7"]
    pawsx_data(tmp_path, codes, pairs=4, splits=("train", "dev", "test"))
    learnt = []

    def learn(self, model, *_):
        learnt.append(model)
        return PairClassifier(None, None, 0)

    monkeypatch.setattr(PawsXFinetune, "_learn", learn)
    monkeypatch.setattr(finetune, "predict", lambda _, pairs: np.zeros(len(pairs.labels), np.int64))
    model = toy_transformer()
    onnx = SimpleNamespace(trainable=lambda: model)
    tasks = [(PawsXFinetune(), ())]
    (finished,) = run_tasks(Remembered(by_text, model=onnx), tasks, data=tmp_path)
    assert (finished.task, learnt) == ("paws-x/finetune", [model])
    (mean,) = [score for score in finished.scores if score.subset == "xtreme-7"]
    assert (mean.value, sorted(mean.over)) == (0.5, sorted(codes))

    def fail():
        raise EncoderError("no torch")

    assert find_transformer(Remembered(by_text, model=SimpleNamespace(trainable=fail))) is None


def test_without_training_pairs_there_is_no_subset(tmp_path):
    pawsx_data(tmp_path)
    assert PawsXFinetune().subsets(tmp_path) == ()
    assert PawsXFinetune().needs_model
    assert "train-en.tsv" in PawsXFinetune().needs
