"""What runs on the simulated accelerator: nothing mixes devices, results are the CPU's, the host waits seldom.

`test_accelerator.py` starts it in a process of its own.
"""

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import torch
from serving import ask, started
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from typer.testing import CliRunner

from accelerator import Sim, SimTensor, operations, simulated, waits
from conftest import SENTENCES, build_transformer
from isoglot.cli.main import app
from isoglot.core.errors import CheckpointError
from isoglot.data.tokens import Tokens
from isoglot.encoders import load
from isoglot.encoders.device import random_state
from isoglot.index import table as tables
from isoglot.objectives import OBJECTIVES, InfoNCE
from isoglot.search import device as searching
from isoglot.search import neighbours
from isoglot.training import loop
from isoglot.training.loop import run
from isoglot.training.memory import fit_graphs
from isoglot.training.recipe import load as load_recipe
from isoglot.training.settings import OptimizerSettings
from isoglot.training.step import Chunks, StepLimits, backward, train_step
from toys import ToyEncoder, example, toy_batch, toy_objective

ONE, MANY = 10**9, 12  # tokens of a chunk: one chunk, a dozen chunks


class Sizes(TorchDispatchMode):
    """The most numbers of a tensor that is made on the device."""

    largest = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **kwargs or {})
        self.largest = max([self.largest, *(part.numel() for part in tree_iter(made) if isinstance(part, SimTensor))])
        return made


@pytest.fixture
def device():
    with simulated() as device:
        yield device


def stepped(name, device, chunk):
    """The gradients and the state of the objective after one step and its hook."""
    encoder = ToyEncoder().to(device)
    objective = toy_objective(name, encoder).to(device)
    with waits() as waited:
        report = backward(encoder, objective, example(), StepLimits(chunk, 0))
        with torch.no_grad():
            objective.after_step(encoder, [report.batch])
    found = [p.grad.to_dense() for p in (*encoder.parameters(), *objective.parameters()) if p.grad is not None]
    return [*found, *objective.state_dict().values(), *report.losses.values()], waited


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("chunk", [ONE, MANY])
def test_a_step_of_every_objective(device, name, chunk):
    there, waited = stepped(name, device, chunk)
    here, _ = stepped(name, torch.device("cpu"), chunk)
    for one, other in zip(there, here, strict=True):
        assert one.device == (device if one.is_floating_point() else other.device)
        torch.testing.assert_close(one.cpu(), other)
    assert not waited


def test_blocks_of_a_large_matrix_or_queue(device, monkeypatch):
    """As of a batch of thousands, or a queue of 409,600 keys."""
    monkeypatch.setattr("isoglot.objectives.kernel.BLOCK_CELLS", 16)
    for name in ("dual_momentum", "info_nce", "multi_positive", "additive_margin"):
        assert not stepped(name, device, MANY)[1]


class Given:
    """A stream that gives one batch."""

    def __init__(self, name, encoder, device):
        self.name, self.objective = name, toy_objective(name, encoder).to(device)

    def next(self):
        return example(), None


def test_a_move_of_the_loop(device):
    """Two streams, clipped, by the optimizer of a run."""
    from isoglot.training import optimizer

    states = []
    for place in (torch.device("cpu"), device):
        encoder = ToyEncoder().to(place)
        streams = [Given(name, encoder, place) for name in ("info_nce", "pair_softmax")]
        settings = OptimizerSettings(lr=0.1, precision="fp32")
        adam = optimizer.build([encoder, *(stream.objective for stream in streams)], settings)
        with waits() as waited:
            train_step(encoder, streams, adam, StepLimits(MANY, 0), lr=0.1, clip=settings.clip).read()
        assert sum(waited.values()) == (place == device), waited  # for all values, when they are read
        states.append([weight.cpu() for weight in encoder.state_dict().values()])
    torch.testing.assert_close(*states)


FAMILIES = ("bert", "xlm-roberta", "distilbert", "mpnet")


@pytest.fixture
def opened(tmp_path):
    """Opens a toy transformer of a family from its folder, as training does."""

    def open_(family="bert", **settings):
        if not (tmp_path / family).exists():
            build_transformer(family=family).save(tmp_path / family)
        return load(tmp_path / family, device="cpu", **settings)

    return open_


def sentences(encoder):
    """The example with sentences that the encoder knows."""
    batch = example()
    return replace(batch, tokens=encoder.tokenize([SENTENCES[at % 7] for at in range(len(batch))]))


def prepared(encoder, limits):
    """A stream of one batch of sentences, whose chunks the thread of the batches has made."""
    batch = sentences(encoder)
    with ThreadPoolExecutor(1) as maker:
        chunks = maker.submit(Chunks.of, encoder, batch.tokens, limits).result()
    stream = Given("info_nce", encoder, encoder.device)
    stream.next = lambda: (batch, chunks)
    return stream


def moves(encoder, limits, count=2):
    """The waits of each of `count` steps of a run, in which nothing is padded, and the operations of the last one."""
    from isoglot.training import optimizer

    stream, found = prepared(encoder, limits), []
    # The bias of keys has no gradient but for rounding, which a small eps makes large.
    settings = OptimizerSettings(lr=0.01, eps=1e-3, precision="fp32")
    adam = optimizer.build([encoder, stream.objective], settings)
    for _ in range(count):
        with operations() as ran, patch.object(Tokens, "pad", side_effect=AssertionError):
            with waits() as early:
                result = train_step(encoder, [stream], adam, limits, lr=0.01, clip=settings.clip)
            with waits() as late:
                result.read()
        assert all(line.endswith(" coalesce") for line in early), early  # others wait until values are read
        found.append(early + late)
    return found, ran


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chunk", [ONE, MANY])
def test_a_move_of_a_transformer(device, opened, family, chunk):
    """In one chunk and in many, twice: the host waits once a step."""
    states = []
    for place in (torch.device("cpu"), device):
        encoder = opened(family, dropout=0.0).to(place).train()
        for waited in moves(encoder, StepLimits(chunk, 0))[0]:
            assert sum(waited.values()) == (place == device), waited
        states.append([weight.cpu() for weight in encoder.state_dict().values()])
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-4)


def test_chunks_are_made_in_memory_that_copies_do_not_wait_for(device, opened):
    encoder = opened().to(device)
    for piece in prepared(encoder, StepLimits(MANY, 0)).next()[1].pieces:
        assert all(part.data_ptr() in Sim.pinned for part in piece.table if part is not None)


@pytest.mark.parametrize("family", FAMILIES)
def test_dropout_is_replayed(device, opened, family):
    """The gradient of many chunks that are embedded twice is that of a kept graph."""
    grads = []
    for graph in (0, ONE):
        encoder = opened(family, dropout=0.3).to(device).train()
        Sim.random = torch.Generator().manual_seed(1).get_state()
        backward(encoder, toy_objective("info_nce", encoder).to(device), sentences(encoder), StepLimits(MANY, graph))
        grads.append([weight.grad.cpu() for weight in encoder.parameters() if weight.grad is not None])
    torch.testing.assert_close(*grads, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("kind", "tables"), [("transformer", 1), ("static", 2)])
def test_row_sparse_gradients_wait_once_more(device, opened, toy_static, kind, tables):
    """The number of rows depends on values; each table with such gradients is one wait, and no row is read."""
    states = []
    for place in (torch.device("cpu"), device):
        encoder = opened(dropout=0.0, sparse_embeddings=True) if kind == "transformer" else deepcopy(toy_static)
        found, _ = moves(encoder.to(place).train(), StepLimits(MANY, 0))
        for waited in found:
            assert sum(waited.values()) == (tables + 1) * (place == device), waited
            assert sum(n for what, n in waited.items() if what.endswith(" coalesce")) == tables * (place == device)
        states.append([weight.cpu() for weight in encoder.state_dict().values()])
    torch.testing.assert_close(*states, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_of_a_layer(device, opened, family, monkeypatch):
    """Those that a layer adds to a step in bfloat16, of one chunk and for each further one: every weight is seen.

    Attention is here some fifty operations of which a device makes few.
    """
    monkeypatch.setattr("isoglot.encoders.rounding._CASTING", (device.type,))
    monkeypatch.setattr("isoglot.data.tokens._WORTH", 1)
    ran = {}
    for layers in (1, 2):
        for chunk in (ONE, 60):
            encoder = opened(family, layers=layers, dropout=0.0).to(device).train()
            limits = StepLimits(chunk, ONE, precision="bfloat16")
            pieces = len(prepared(encoder, limits).next()[1].pieces)
            ran[layers, chunk] = moves(encoder, limits)[1]

    def added(name=None):
        counts = {key: ran[key].total() if name is None else ran[key][name] for key in ran}
        one, many = (counts[2, chunk] - counts[1, chunk] for chunk in (ONE, 60))
        return one, (many - one) / (pieces - 1)

    casts, operations = {"mpnet": ((46, 38), (106, 112))}.get(family, ((43, 35), (106, 111)))
    for most, found in ((casts, added("cast")), (operations, added()), ((3, 1), added("cat"))):
        assert all(some <= limit for some, limit in zip(found, most, strict=True)), (found, most, ran)


@pytest.mark.parametrize(
    ("family", "pooling"), [*((family, "mean") for family in FAMILIES), ("bert", "max"), ("bert", "first-last")]
)
def test_inference_of_a_transformer(device, opened, family, pooling):
    encoder = opened(family, pooling=pooling)
    here = encoder.encode(SENTENCES)
    encoder.to(device)
    with waits() as waited:
        there = encoder.encode(SENTENCES, batch_size=2)
    assert sum(waited.values()) == 5, waited  # for the vectors of each of five chunks
    np.testing.assert_allclose(there, here, atol=1e-6)
    assert encoder.encode(SENTENCES, convert_to_tensor=True).device == device


def test_little_is_padded_and_results_are_the_same(device, toy_transformer, monkeypatch):
    """In inference, for the states of tokens, and in training with keys of momentum."""
    monkeypatch.setattr("isoglot.data.tokens._WORTH", 1)
    texts = [f"{text} {number}" * (1 + 2 * (number == 0)) for number in range(8) for text in SENTENCES]
    encoder = toy_transformer(dropout=0.0)
    tokens = encoder.tokenize(texts)
    batch = replace(toy_batch([2] * (len(texts) // 2)), tokens=tokens)

    def results(place):
        encoder.to(place).zero_grad()
        objective = toy_objective("dual_momentum", encoder).to(place)
        found = [encoder.encode(texts), *encoder.encode(texts, output_value="token_embeddings")]
        backward(encoder, objective, batch, StepLimits.on(place, chunk=None, graph=None, precision="float32"))
        return [*found, *(weight.grad.cpu() for weight in encoder.parameters() if weight.grad is not None)]

    here, computed = results(torch.device("cpu")), []
    pad = Tokens.pad

    def counted(tokens, fill=0):
        table, mask = pad(tokens, fill)
        computed.append(table.size)
        return table, mask

    monkeypatch.setattr(Tokens, "pad", counted)
    for one, other in zip(results(device), here, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-4)
    assert len(texts) * tokens.lengths.max() > 1.5 * tokens.lengths.sum()  # as one chunk
    assert sum(computed) <= 4 * 1.1 * tokens.lengths.sum()


def test_inference_of_a_static_encoder(device, toy_static):
    here = toy_static.encode(SENTENCES)
    np.testing.assert_allclose(toy_static.to(device).encode(SENTENCES), here, atol=1e-6)


RECIPE = """
name = "tiny"
steps = 3
[encoder]
kind = "transformer"
model = "transformer"
[[streams]]
sources = [{reader = "tsv", path = "pairs.tsv"}]
batching = {size = 6}
objectives = [{name = "info_nce", direction = "two-way"}]
[optimizer]
lr = 0.001
precision = "fp32"
[evaluation]
data = "dev"
every = 2
"""


@pytest.fixture
def files(tmp_path, monkeypatch, toy_static, toy_transformer):
    """Models, texts, pairs, a recipe and a dev set in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("isoglot.core.machine._DRIVERS", (str(tmp_path),))  # a simulation has no driver
    toy_static.save(tmp_path / "static")
    transformer = toy_transformer()
    transformer.backbone.config.hidden_dropout_prob = transformer.backbone.config.attention_probs_dropout_prob = 0.0
    transformer.save(tmp_path / "transformer")
    load(tmp_path / "transformer")  # transformers leaves buffers empty if its first model is loaded on the simulation
    turned = [" ".join(reversed(text.split())) for text in SENTENCES]
    (tmp_path / "dev").mkdir()
    for name in ("text.eng", "dev/tatoeba.deu-eng.eng"):
        (tmp_path / name).write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    for name in ("text.deu", "dev/tatoeba.deu-eng.deu"):
        (tmp_path / name).write_text("\n".join(turned) + "\n", encoding="utf-8")
    rows = zip(["eng", *SENTENCES], ["deu", *turned], strict=True)
    (tmp_path / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows), encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


def verb(words, place):
    """Run a verb on the CPU or on the device, which `auto` finds, with the sentences on stdin; gives its stdout."""
    words = [*words.split(), "--device", "cpu" if place == "cpu" else "auto"]
    done = CliRunner().invoke(app, words, input="\n".join(SENTENCES), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert f"device: {place}" in done.stderr
    return done.stdout


def numbers(text):
    """JSON lines as two lists: the numbers that are not whole, and all other values with their places."""
    found, rest = [], []

    def walk(value, *place):
        if isinstance(value, dict | list):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                walk(item, *place, key)
        elif isinstance(value, float):
            found.append(value)
        else:
            rest.append((*place, value))

    walk([json.loads(line) for line in text.splitlines()])
    return found, rest


def assert_alike(one, other):
    (found, rest), (others, other_rest) = numbers(one), numbers(other)
    assert rest == other_rest
    np.testing.assert_allclose(found, others, rtol=1e-4, atol=1e-4)
    assert found


@pytest.mark.parametrize("model", ["static", "transformer"])
def test_verbs_have_the_results_of_the_cpu(files, device, model):
    (files / "entities.tsv").write_text("".join(f"Q{row}\t1\t{text}\n" for row, text in enumerate(SENTENCES)))
    tables, texts, kept = [], [], []
    for place in ("cpu", str(device)):
        verb(f"encode {model} text.eng -o v.npy", place)
        verb(f"trim {model} text.eng -o {place}.small", place)
        small = load(f"{place}.small", device="cpu").encode(SENTENCES)
        tables.append([np.load("v.npy"), small, np.load(verb(f"entities . --model {model}", place).strip())])
        verb(f"mine {model} text.eng text.deu -o pairs.jsonl", place)
        verb(f"index {model} text.eng -o {place}.index", place)
        verb(f"fit whitening {model} text.eng -o {place}.white --dim 4", place)
        verb(f"fit flow {model} text.eng -o {place}.flow --epochs 1", place)
        verb(f"negatives {model} pairs.tsv -o negatives.jsonl", place)
        verb(f"evaluate {model} --data dev --tasks tatoeba -o {place}.scores", place)
        scores = json.loads((files / f"{place}.scores" / "results.json").read_text(encoding="utf-8"))["scores"]
        verb(f"plot {model} text.eng text.deu --parallel --layout pca -o map.svg", place)
        drawn = re.split(r"(-?\d+\.\d+)", (files / "map.svg").read_text(encoding="utf-8"))
        drawing = [drawn[0::2], [float(number) for number in drawn[1::2]]]
        hits = verb(f"search {place}.index cat Hund --json", place)
        pairs = (files / "pairs.jsonl").read_text(encoding="utf-8")
        texts.append([pairs, hits, json.dumps(scores), json.dumps(drawing)])
        verb(f"filter --model {model} pairs.tsv -o kept.jsonl", place)
        kept.append((files / "kept.jsonl").read_text(encoding="utf-8"))
        for name in ("v.npy", "pairs.jsonl", "negatives.jsonl", "kept.jsonl"):
            (files / name).unlink()
    for both in zip(*tables, strict=True):
        np.testing.assert_allclose(*both, atol=1e-5)
    for both in zip(*texts, strict=True):
        assert_alike(*both)
    assert kept[0] == kept[1]


def test_a_sweep_has_the_scores_of_the_cpu(files, device):
    made = []
    for place in ("cpu", str(device)):
        verb(f"sweep tiny.toml -o {place}.sweep --data dev --tasks tatoeba --over batching.size=4,6 --seeds 1", place)
        made.append(json.dumps(json.loads((files / f"{place}.sweep" / "sweep.json").read_text())["values"]))
    assert_alike(*made)


@pytest.mark.parametrize("model", ["static", "transformer"])
def test_a_server_answers_as_on_the_cpu(files, device, model, monkeypatch):
    """Of a model alone, and of an index."""
    answers = []

    def asked(app, **_):
        replies = []
        with started(app) as server:
            for path, body in (
                ("/v1/embeddings", {"input": SENTENCES}),
                ("/similarity", {"a": SENTENCES[:2], "b": SENTENCES}),
                *([("/search", {"query": "Hund"})] if indexed else []),
            ):
                status, _, reply = ask(server, "POST", path, body)
                assert status == 200, reply
                replies.append(reply.decode())
        answers.append("\n".join(replies))

    monkeypatch.setattr("isoglot.serve.serve", asked)
    verb(f"index {model} text.eng -o made.index", "cpu")
    for indexed in (False, True):
        for place in ("cpu", str(device)):
            verb(f"serve {'made.index' if indexed else model}", place)
        assert_alike(*answers)
        answers.clear()


@pytest.mark.parametrize("model", ["static", "transformer"])
def test_verbs_wait_for_the_vectors_of_a_chunk_alone(files, device, model, monkeypatch):
    """More chunks: as many more waits."""
    verb(f"index {model} text.eng -o made.index", str(device))
    for words in (
        f"encode {model} text.eng -o OUT.npy",
        f"mine {model} text.eng text.deu -o OUT.tsv",
        "search made.index",
        f"evaluate {model} --data dev --tasks tatoeba -o OUT.scores",
    ):
        found = []
        for budget in (ONE, MANY):
            for name in ("DEVICE_TOKENS", "STATIC_TOKENS"):
                monkeypatch.setattr(f"isoglot.model.engine.{name}", budget)
            with waits() as waited:
                verb(words.replace("OUT", str(budget)), str(device))
            found.append((sum(waited.values()), sum(n for what, n in waited.items() if what.endswith(" event"))))
        (few, chunks), (all_of_them, more) = found
        assert more > chunks > 0
        assert all_of_them - few == more - chunks, (words, waited)


def test_a_search_waits_once_for_each_block(device, monkeypatch):
    """And never for a copy to the device, where the largest tensor belongs to a tile."""
    side, dim, k = 64, 24, 3
    monkeypatch.setattr(searching, "SIDE", side)
    monkeypatch.setattr(searching, "STRIPE", 2 * side * dim)
    x, y = np.random.default_rng(0).integers(-2, 3, (2, 640, dim)).astype(np.float32)
    expected = neighbours(x, y, k)
    with waits() as found, Sizes() as sizes:
        there = neighbours(x, y, k, device=str(device))
    for one, other in zip(there, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    blocks, stripes, by_kind = 10, 5, Counter[str]()
    for what, count in found.items():
        by_kind[what.split(maxsplit=1)[1]] += count
    # The two pieces of each stripe and the blocks that pass by it, without the first two. Results: two tables of each.
    assert by_kind == {"event": stripes * (2 + blocks) - 2, "copied to the host": 2 * (stripes + 1)}
    assert sizes.largest == side * (side + k) < x.size


def test_an_index_finds_many_queries_on_the_device(device):
    rng = np.random.default_rng(0)
    rows, queries = (rng.integers(-2, 3, (size, 6)).astype(np.float32) for size in (9000, 70))
    with waits() as found:
        there = tables.find_nearest(tables.Table(rows), queries, 5, device=str(device))
    np.testing.assert_array_equal(there, tables.find_nearest(tables.Table(rows), queries, 5))
    assert sum(found.values()) == 2 + 1  # the queries and three blocks, without two; the result


def test_training_has_the_log_of_the_cpu(files, device):
    """With evaluations and checkpoints; the model is saved from the device. Chunks of a device are padded less."""
    for place in ("cpu", str(device)):
        verb(f"train tiny.toml -o {place}.run", place)
    logs = [(files / f"{place}.run" / "log.jsonl").read_text() for place in ("cpu", str(device))]
    assert_alike(*(re.sub(r'("padding": )[^,}]+', r"\g<1>0", log) for log in logs))
    one, other = (load(files / f"{place}.run" / "model", device="cpu").encode(SENTENCES) for place in ("cpu", device))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_step_is_read_when_the_next_one_is_queued(files, device, monkeypatch):
    """And before an evaluation, here after the second step."""
    for place in ("cpu", str(device)):
        events = []

        def watched(*given, events=events, **named):
            events.append("queued")
            return train_step(*given, **named)

        def record(status, events=events):
            events.append(f"read {status.step}")

        monkeypatch.setattr(loop, "train_step", watched)
        run(load_recipe("tiny.toml", ["steps=5"]), files / place, device=torch.device(place), update=record)
        order = [event.split()[0] for event in events]
        apart = ["queued", "queued", "read", "read", "queued", "queued", "read", "read", "queued", "read"]
        assert order == (["queued", "read"] * 5 if place == "cpu" else apart)
        assert [event for event in events if "read" in event] == [f"read {step}" for step in range(1, 6)]


@pytest.mark.parametrize("every", [1, 2, 0])
def test_a_loss_that_is_not_finite_names_its_step_and_is_never_saved(files, device, monkeypatch, every):
    """As on a CPU, though the host sees it when the next step is queued; here it is that of the third step."""
    forward, found = InfoNCE.forward, []
    for place in ("cpu", str(device)):
        calls = []

        def diverging(*given, calls=calls):
            calls.append(1)
            return {name: loss / (len(calls) != 3) for name, loss in forward(*given).items()}

        monkeypatch.setattr(InfoNCE, "forward", diverging)
        recipe = load_recipe("tiny.toml", ["steps=6", "evaluation=[]", f"checkpoint_every={every}"])
        with pytest.raises(CheckpointError, match=r"^step 3: .* no longer finite"):
            run(recipe, files / place, device=torch.device(place))
        found.append(sorted(path.name for path in (files / place / "checkpoints").glob("*")))
        assert len(calls) == (4 if place != "cpu" and every != 1 else 3)
    assert found[0] == found[1] == [f"step-{step:08d}.pt" for step in ([1, 2] if every == 1 else [2] * bool(every))]


def test_graphs_take_the_share_of_the_free_memory_that_is_measured(device, monkeypatch):
    encoder, taken = ToyEncoder(dropout=0.1).train().to(device), [0]

    def grow(_, given, __):
        taken[0] += 100 * given[0].ids.size + 10**6 * (not taken[0])  # a token's, and what libraries take once

    encoder.register_forward_hook(grow)
    adam = torch.optim.AdamW(encoder.parameters())
    limits = StepLimits.on(device, chunk=None, graph=None, precision="float32")
    assert fit_graphs(limits, encoder, adam) == limits  # of a device that does not tell
    memory, random = torch.get_device_module(device), random_state(device)
    for name, value in {"mem_get_info": (10**9, 2 * 10**9), "memory_reserved": 5 * 10**8}.items():
        monkeypatch.setattr(memory, name, lambda _, value=value: value, raising=False)
    monkeypatch.setattr(memory, "memory_allocated", lambda _: taken[0], raising=False)
    fitted = fit_graphs(limits, encoder, adam)
    weights = 8 * sum(each.numel() for each in encoder.parameters())
    free = 10**9 + 5 * 10**8 - taken[0] - 3 * weights
    assert fitted.graph_tokens == pytest.approx(0.7 * free / 100, rel=1e-6)
    assert torch.equal(random_state(device)[device.type], random[device.type])
    assert StepLimits.on(device, chunk=None, graph=7, precision="float32").graph_tokens == 7


def test_a_mix_of_devices_is_an_error(device):
    with pytest.raises(RuntimeError, match="two devices"):
        torch.ones(2, device=device) + torch.ones(2)


def test_waits_are_counted(device):
    values = torch.arange(3.0).to(device)
    with waits() as found:
        _ = values + 1
        assert not found
        for wait in (values.sum().item, values.nonzero, values.cpu, lambda: values[values > 1]):
            wait()
        assert sum(found.values()) == 4
