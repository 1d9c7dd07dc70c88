"""Encoding in pieces equals encoding at once; a run that was cut short goes on; other vectors are never mixed in."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from killed import tree

from isoglot.core.errors import CorpusError, EncoderError, IsoglotError
from isoglot.data.store import Rows
from isoglot.encoders import load
from isoglot.model import encode, engine
from isoglot.scale import Cluster, encode_shards, encoding, neighbours_shards, open_shards

LINES = [f"sentence {number} of the cat" for number in range(25)] + ["", "Die Katze sitzt auf der Matte."]


@pytest.fixture
def model(toy_static, tmp_path):
    toy_static.save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(LINES[::-1]))
    return [tmp_path / "a.txt", tmp_path / "b.txt.gz"]


def test_equals_encoding_at_once(model, files, tmp_path):
    told = []
    found = encode_shards(model, files, tmp_path / "out", lines=10, progress=lambda *event: told.append(event))
    assert [path.name for path in found.files] == [f"{side}.txt-{at:06d}.npy" for side in "ab" for at in range(3)]
    assert found.counts == (10, 10, 7) * 2
    assert told == [(number, 6) for number in range(1, 7)]
    expected = encode(load(model), [*LINES, *LINES[::-1]])
    np.testing.assert_allclose(found.rows(0, 54), expected, atol=1e-6)
    assert open_shards(str(tmp_path / "out")) == found
    turned = encode_shards(model, files[::-1], tmp_path / "turned", lines=10)
    assert open_shards(tmp_path / "turned") == turned
    assert turned.files[0].name.startswith("b.txt")


def test_a_run_that_was_cut_short_goes_on(model, files, tmp_path):
    whole, told = encode_shards(model, files, tmp_path / "out", lines=10), []
    content, kept = tree(tmp_path / "out"), whole.files[0].stat().st_mtime_ns
    for at in (1, 4):
        whole.files[at].unlink()
    assert encode_shards(model, files, tmp_path / "out", lines=10, progress=lambda *event: told.append(event)) == whole
    assert told == [(5, 6), (6, 6)]
    assert tree(tmp_path / "out") == content
    assert whole.files[0].stat().st_mtime_ns == kept


@pytest.mark.parametrize("count", [2, 9])
def test_shards_in_any_order_write_the_bytes_of_one_run(model, files, tmp_path, count):
    whole = encode_shards(model, files, tmp_path / "whole", lines=10)
    parts = [
        encode_shards(model, files, tmp_path / "out", lines=10, shard=(number, count)) for number in range(count, 0, -1)
    ]
    assert sum(len(part) for part in parts) == len(whole)  # each piece by one job
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    assert encode_shards(model, files, tmp_path / "out", lines=10) == open_shards(tmp_path / "out")


def test_vectors_of_a_job_that_failed_are_missed(model, files, tmp_path):
    """Without them all later rows belonged to other lines."""
    for number in (1, 3):
        encode_shards(model, files, tmp_path / "out", lines=10, shard=(number, 3))
    with pytest.raises(EncoderError, match="out: has 4 of 6 pieces"):
        neighbours_shards(tmp_path / "out", tmp_path / "out", 1)
    encode_shards(model, files, tmp_path / "out", lines=10, shard=(2, 3))
    assert len(open_shards(tmp_path / "out")) == 2 * len(LINES)


def test_shards_that_start_at_once_or_fail(model, files, tmp_path, monkeypatch):
    """One whose first look finds an empty folder sees the note then."""
    out = tmp_path / "out"
    encode_shards(model, files, out, lines=10, shard=(2, 2))
    seen = []

    def empty_at_first(look, nothing):
        def call(path, *given):
            if path in (out, out / "shards.json") and not seen:
                seen.append(path)
                return nothing
            return look(path, *given)

        return call

    monkeypatch.setattr(Path, "glob", empty_at_first(Path.glob, iter(())))
    monkeypatch.setattr(encoding, "read_record", empty_at_first(encoding.read_record, None))
    assert len(encode_shards(model, files, out, lines=10, shard=(1, 2))) == 27
    for shard in ((0, 2), (3, 2), (1, 0)):
        with pytest.raises(ValueError, match=r"shard is ./.; it must be 1/"):
            encode_shards(model, files, out, lines=10, shard=shard)


def test_a_piece_that_was_cut_short_resumes_after_its_last_window(model, files, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)
    encode_shards(model, files[:1], tmp_path / "whole", lines=20)
    calls, append = [], Rows.append

    def stopped(rows, block, **more):
        calls.append(len(rows))
        if len(calls) == 4:
            raise KeyboardInterrupt
        append(rows, block, **more)

    monkeypatch.setattr(Rows, "append", stopped)
    with pytest.raises(KeyboardInterrupt):
        encode_shards(model, files[:1], tmp_path / "out", lines=20)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "a.txt-000000.npy.partial", "a.txt-000000.npy.partial.journal", "shards.json",
    ]  # fmt: skip
    encode_shards(model, files[:1], tmp_path / "out", lines=20)
    assert calls[4:] == [12, 16, 0, 4]  # the rest of the first piece, then the second
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda call, folder: call.update(settings={"normalize_embeddings": True}), r"\(settings\.norm"),
        (lambda call, folder: call.update(settings={"precision": "bf16"}), r"\(precision\)"),
        (lambda call, folder: call.update(lines=11), r"\(lines\)"),
        (lambda call, folder: (folder / "a.txt").write_text("other\n"), r"\(inputs\.0\.1\)"),
        (lambda call, folder: (folder / "model" / "more.txt").write_text("x"), r"\(weights\)"),
        (lambda call, folder: (folder / "out" / "shards.json").write_text("{"), r"shards\.json: .*damaged"),
        (lambda call, folder: (folder / "out" / "shards.json").unlink(), "unknown origin"),
    ],
)
def test_a_folder_of_other_vectors_is_refused(model, files, tmp_path, change, message):
    call = {"lines": 10, "settings": {}}
    encode_shards(model, files, tmp_path / "out", **call)
    change(call, tmp_path)
    with pytest.raises(IsoglotError, match=message):
        encode_shards(model, files, tmp_path / "out", **call)


def test_a_model_that_was_trained_on_is_opened_anew(model, files, tmp_path, toy_static):
    raw = {"normalize_embeddings": False}
    first = encode_shards(model, files[:1], tmp_path / "first", settings=raw).rows(0, 27)
    with torch.no_grad():
        toy_static.table.mul_(2)
    toy_static.save(tmp_path / "model")
    second = encode_shards(model, files[:1], tmp_path / "second", settings=raw).rows(0, 27)
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5)


def test_settings_reach_the_encoder(model, files, tmp_path):
    encoding = {"normalize_embeddings": True, "truncate_dim": 4, "dtype": "float16"}
    found = encode_shards(model, files[:1], tmp_path / "out", settings={"prompt": "query: ", **encoding}).rows(0, 27)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, encode(load(model), LINES, prompt="query: ", **encoding), atol=1e-3)


def test_accelerators_do_not_continue_what_processors_began(model, files, tmp_path, monkeypatch):
    monkeypatch.setenv("ISOGLOT_DEVICE", "cpu")  # as on a machine without one, from which a cluster is called
    whole = encode_shards(model, files, tmp_path / "out", lines=10)
    whole.files[1].unlink()
    for settings in ({}, {"precision": "auto"}):
        with pytest.raises(EncoderError, match=r"another run \(precision\)"):
            encode_shards(model, files, tmp_path / "out", lines=10, cluster=Cluster("auto", gpus=1), settings=settings)
    assert not whole.files[1].exists()
    with_gpus = Cluster(gpus=1)  # in this process, whose device is the CPU
    assert encode_shards(model, files, tmp_path / "out", lines=10, cluster=with_gpus) == whole


def test_all_pieces_have_the_precision_of_the_caller(toy_transformer, files, tmp_path):
    toy_transformer().save(tmp_path / "model")
    model, both = str(tmp_path / "model"), []
    for precision in ("fp32", "bf16"):
        out = tmp_path / precision
        both.append(encode_shards(model, files[:1], out, lines=10, settings={"precision": precision}).rows(0, 27))
        expected = encode(load(model, device="cpu"), LINES, precision=precision)
        np.testing.assert_allclose(both[-1], expected, atol=1e-6 if precision == "fp32" else 0.05)
    assert not np.array_equal(*both)
    assert json.loads((tmp_path / "bf16" / "shards.json").read_text())["precision"] == "bfloat16"


def test_refused(model, files, tmp_path):
    with pytest.raises(ValueError, match="unknown setting 'promt'; did you mean 'prompt'"):
        encode_shards(model, files, tmp_path / "out", settings={"promt": "x"})
    for settings, message in (
        ({"precision": "fp8"}, r"model: precision must be one of float32, .*got 'fp8'"),
        ({"precision": "int8"}, "int8"),
        ({"truncate_dim": 9}, "model: truncate_dim must lie between 1 and the model's 8"),
        ({"dtype": "int8"}, "model: dtype must be a kind of float"),
        ({"dtype": "nonsense"}, "model: .*nonsense"),
        ({"pooling": "cls"}, "needs a transformer"),
    ):
        with pytest.raises(EncoderError, match=message):
            encode_shards(model, files, tmp_path / "out", shard=(1, 2), settings=settings)
    with pytest.raises(ValueError, match="lines is 0"):
        encode_shards(model, files, tmp_path / "out", lines=0)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("x\n")
    with pytest.raises(EncoderError, match=r"both be written as a\.txt"):
        encode_shards(model, [*files, tmp_path / "more" / "a.txt"], tmp_path / "out")
    for name, content in {"empty.txt": b"", "bad.txt": b"\xff"}.items():
        (tmp_path / name).write_bytes(content)
    for name in ("absent.txt", "empty.txt", "bad.txt"):
        with pytest.raises(CorpusError, match=name):
            encode_shards(model, [tmp_path / name], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_shards_that_changed_or_do_not_fit(tmp_path):
    for name, shape in (("a", (3, 4)), ("b", (2, 4))):
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float32))
    shards = open_shards(tmp_path)
    assert shards.rows(2, 4).shape == (2, 4)
    assert shards.rows(5, 9).shape == (0, 4)
    np.save(tmp_path / "b.npy", np.ones((5, 4), np.float32))
    with pytest.raises(EncoderError, match="was replaced"):
        shards.rows(0, 5)
    np.save(tmp_path / "b.npy", np.ones((5, 3), np.float32))
    with pytest.raises(EncoderError, match="is 3 wide"):
        open_shards(tmp_path)
    np.save(tmp_path / "b.npy", np.ones(5, int))
    with pytest.raises(EncoderError, match="contains int64"):
        open_shards(tmp_path)


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes(model, files, tmp_path):
    pytest.importorskip("ray")
    here = encode_shards(model, files, tmp_path / "here", lines=4)
    there = encode_shards(model, files, tmp_path / "there", lines=4, cluster=Cluster("local", workers=2))
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
    both = [neighbours_shards(shards, shards, 2) for shards in (here, there)]
    np.testing.assert_array_equal(both[0].forward_scores, both[1].forward_scores)
