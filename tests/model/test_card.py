"""Model cards: written with every model, filled by training, kept on re-saving, changed by `describe`."""

import base64
import json

import pytest
from web import Web, serving

import isoglot
from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.core.errors import EncoderError
from isoglot.data.files import digest
from isoglot.encoders import StaticEncoder, average, load, trim
from isoglot.model import card, packaged
from isoglot.model.card import Card, Data

PAIRS = [("Guten Morgen", "Good morning"), ("Gute Nacht", "Good night"), ("Danke", "Thanks")]


def facts(**more):
    return card.Card(
        summary="A toy.",
        measure="accuracy (%)",
        languages={"deu": 71.25, "fra": None},
        data=[card.Data(name="pairs|a", licence="CC0", groups=1200, sentences={"deu": 1200, "eng": 1200})],
        scores=[card.Score(task="sts", metric="spearman", value=None)],
        weaknesses=["Long texts."],
        commands=["isoglot train x.toml -o run"],
        seed=7,
        **more,
    )


@pytest.fixture
def toy():
    encoder = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    encoder.card = facts(licence="Apache-2.0", base="nothing")
    return encoder


def test_every_fact_is_on_the_page(toy, tmp_path):
    toy.save(tmp_path / "m", name="toy", weights="int8")
    page = (tmp_path / "m" / card.README).read_text(encoding="utf-8")
    rows = ("| deu | 1,200 | 71.2 |", "| fra | 0 | – |", "| eng | 1,200 | – |", r"| pairs\|a | CC0 | 1,200 | 2 |")
    for words in ("# toy\n", "A toy.", *rows, "Long texts.", "isoglot train x.toml", "| random seed | 7 |"):
        assert words in page
    assert "int8" in page
    assert "Apache-2.0" in page
    weights = tmp_path / "m" / "packed.safetensors"
    assert f"`packed.safetensors`: `{digest(weights)}`" in page


def test_a_language_has_one_code_in_scores_and_data_and_those_without_data_are_averaged_apart():
    languages = {"cmn": 90.0, "swh": 70.0, "fra": None, "kor": 10.0, "xx": 30.0}
    card = Card(languages=languages, data=[Data(name="a", sentences={"zho": 5, "swa": 5})])
    assert set(card.languages) == {"zho", "swa", "fra", "kor", "xx"}
    assert card.means() == [("with training sentences", 2, 80.0), ("without training sentences", 2, 20.0)]


def test_a_card_stays_with_a_model_that_is_saved_again(toy, tmp_path):
    toy.save(tmp_path / "a", name="toy")
    load(tmp_path / "a").save(tmp_path / "b", weights="int4")
    one, two = (card.read(tmp_path / name) for name in "ab")
    written = {"weights", "checksums", "parameters"}  # token weights are folded into the table
    assert one.model_dump(exclude=written) == two.model_dump(exclude=written)
    assert (one.weights, two.weights) == ("float32", "int4")


def test_training_records_its_data(tmp_path):
    base = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    base.card = facts()
    base.save(tmp_path / "base")
    isoglot.train(
        load(tmp_path / "base"), PAIRS, steps=2, batch_size=2, output=tmp_path / "run", languages=["deu", "eng"]
    )
    found = card.read(tmp_path / "run" / "model")
    assert found.base == "base"
    assert [(data.groups, data.sentences) for data in found.data] == [(3, {"deu": 3, "eng": 3})]
    assert not found.summary  # what was true of the base is not known of this one
    assert not found.languages


def test_what_is_made_of_a_model_has_its_data_and_none_of_its_scores(toy):
    toy.name = "toy"
    for made in (average([toy, toy]), trim(toy, SENTENCES).encoder):
        assert made.card.data == toy.card.data
        assert (made.card.scores, made.card.languages, made.card.summary) == ([], {}, "")
    assert made.card.base == "toy"


def test_describe_changes_what_it_is_given(toy, tmp_path):
    toy.save(tmp_path / "m", name="toy")
    changed = card.describe(
        tmp_path / "m", weaknesses=["Irony."], data={"pairs|a": "CC BY 4.0"}, languages={"deu": 80.0}
    )
    assert changed == card.read(tmp_path / "m")
    assert changed.data[0].licence == "CC BY 4.0"
    assert changed.data[0].groups == 1200
    page = (tmp_path / "m" / card.README).read_text(encoding="utf-8")
    assert "Irony." in page
    assert "Long texts." not in page
    assert load(tmp_path / "m").card == changed
    toy.save(tmp_path / "m")  # the folder is still one of ours
    for wrong in ({"weakness": []}, {"seed": "x"}):
        with pytest.raises(EncoderError, match=next(iter(wrong))):
            card.describe(tmp_path / "m", **wrong)


@pytest.fixture
def included(tmp_path, monkeypatch, own_cache):
    """Two models of our own, and the cache in a folder of the test."""
    monkeypatch.setattr(packaged, "INCLUDED", tmp_path / "models")
    monkeypatch.setattr(packaged, "DEFAULT", "isoglot-small")
    monkeypatch.delenv("ISOGLOT_MODEL", raising=False)
    small = build_transformer(normalizes=True).eval()
    small.card = facts(licence="Apache-2.0")
    for name in ("isoglot-static", "isoglot-small"):
        small.save(tmp_path / "models" / name, name=name, weights="int8")
    return small


def test_a_model_of_our_own_opens_without_a_name_and_without_a_cache(included, tmp_path):
    model = isoglot.load()
    assert model.name == "isoglot-small"
    similar = (model.encode(SENTENCES) * included.encode(SENTENCES)).sum(1)
    assert similar.min() > 0.999
    assert not (tmp_path / "cache").exists()


def test_our_own_are_listed_first(included):
    listed = packaged.models()
    assert [model.name for model in listed[:2]] == ["isoglot-small", "isoglot-static"]
    assert packaged.names() == [model.name for model in listed]
    first = listed[0]
    assert (first.licence, first.dim, first.languages, first.installed) == ("Apache-2.0", 16, 3, True)
    assert first.size > 1000


def test_it_is_expanded_for_sentence_transformers(included):
    from isoglot.encoders.loading import expand

    folder = expand("isoglot-small")
    assert json.loads((folder / "modules.json").read_text())
    assert (folder / "model.safetensors").is_file()
    assert expand("isoglot-small") == folder  # written anew
    assert (load(folder).encode(SENTENCES) == isoglot.load().encode(SENTENCES)).all()


def head_of(folder):
    from huggingface_hub import ModelCard

    return ModelCard.load(folder / card.README)


def test_the_head_of_the_page_is_what_the_hub_reads(toy, tmp_path):
    scores = [card.Score(task="sts/toy", metric="spearman", value=0.5), card.Score(task="sts", metric="x", value=None)]
    data = [card.Data(name=name, sentences={"zho": 3, "ber_Tfng": 1}) for name in ("bible", "my own: text")]
    toy.card = facts(licence="MIT, as its start", base="isoglot-base").model_copy(
        update={"scores": scores, "data": data}
    )
    toy.save(tmp_path / "m", name="toy")
    page = head_of(tmp_path / "m")
    assert page.text.lstrip().startswith("# toy\n")
    found = page.data.to_dict()
    (index,) = found.pop("model-index")
    assert (index["name"], len(index["results"])) == ("toy", 1)
    assert index["results"][0]["metrics"] == [{"type": "spearman", "value": 0.5}]
    assert found == {
        "license": "mit",
        "language": ["ber", "de", "fr", "zh"],
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "isoglot"],
        "base_model": "intfloat/multilingual-e5-small",
        "datasets": ["bible"],
    }


def test_a_licence_that_the_hub_does_not_list_has_a_name(toy, tmp_path):
    toy.card = card.Card(licence="PDDL 1.0", base="runs/mine/model.v2")
    toy.save(tmp_path / "m", weights="int8")
    found = head_of(tmp_path / "m").data
    assert (found.license, found.license_name, found.library_name) == ("other", "pddl-1.0", "isoglot")
    assert (found.base_model, found.language) == (None, None)


@pytest.mark.parametrize("head, licence", [("license: mit", "mit"), ("license: other\nlicense_name: own", "own")])
def test_the_licence_of_the_start_is_kept(tmp_path, head, licence):
    start = StaticEncoder.create(build_tokenizer(), 8, seed=1)
    start.save(tmp_path / "start")
    (tmp_path / "start" / card.FILE).unlink()
    (tmp_path / "start" / card.README).write_text(f"---\n{head}\n---\n\n# A model of the hub\n")
    isoglot.train(load(tmp_path / "start"), PAIRS, steps=1, batch_size=2, output=tmp_path / "run")
    assert card.read(tmp_path / "run" / "model").licence == licence


def test_a_page_of_others_that_cannot_be_read_is_no_card(tmp_path):
    for text in ("# no head", "---\nlicense: [\n---\n", "---\ntags: []\n---\n", "---\nlicense: [mit, gpl]\n---\n"):
        (tmp_path / card.README).write_text(text)
        assert card.read(tmp_path) is None


def test_a_packaged_start_of_others_has_its_licence(tmp_path, monkeypatch, toy):
    toy.card = None
    toy.save(tmp_path / "glove")
    monkeypatch.setattr("isoglot.model.loading.find", lambda *_, **__: tmp_path / "glove")
    assert load("glove-6b-50d").card.licence == "PDDL-1.0"


class Hub(Web):
    """What the hub answers to an upload, on this machine; it keeps what was uploaded."""

    def __init__(self):
        super().__init__({})
        self.tokens, self.files = set(), {}

    def handle(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.tokens.add(request.headers.get("authorization"))
        answer = json.dumps(self.answer(request.path, body)).encode()
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer)

    def answer(self, path, body):
        if path == "/api/repos/create":
            return {"url": f"{self.address}/team/toy", "name": "team/toy"}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}
        if "/preupload/" in path:
            files = json.loads(body)["files"]
            return {"files": [{**file, "uploadMode": "regular", "shouldIgnore": False} for file in files]}
        assert "/commit/" in path, path
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        return {"commitUrl": f"{self.address}/team/toy/commit/abc", "commitOid": "abc"}


@pytest.fixture
def hub(monkeypatch):
    with serving(Hub()) as found:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", found.address)
        monkeypatch.setattr("huggingface_hub.hf_api.ENDPOINT", found.address, raising=False)
        yield found


@pytest.mark.parametrize("engine", ["torch", "static"])
def test_a_model_is_uploaded_as_it_is_saved(toy, hub, tmp_path, engine):
    toy.save(tmp_path / "toy", name="old")
    model = isoglot.load(tmp_path / "toy", engine=engine)
    assert model.push_to_hub("team/toy", token="hf_x", private=True).endswith("/team/toy/commit/abc")
    assert hub.tokens == {"Bearer hf_x"}
    for name, content in hub.files.items():
        path = tmp_path / "again" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    again = isoglot.load(tmp_path / "again")
    assert again.card.name == again.name == "toy"
    assert (again.encode(SENTENCES) == model.encode(SENTENCES)).all()
    assert head_of(tmp_path / "again").data.license == "apache-2.0"


def test_what_the_hub_rejects_is_one_error(toy, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EncoderError, match="a/b/c: can't be uploaded"):
        toy.push_to_hub("a/b/c")
    with pytest.raises(EncoderError, match="a/b: can't be uploaded"):
        toy.push_to_hub("a/b", token="hf_x")
