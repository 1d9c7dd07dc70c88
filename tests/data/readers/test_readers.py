"""The table of readers: reached by name, checked before a file is opened; lines, and languages that nobody knows."""

from collections import Counter

import pytest

from isoglot.core.errors import CorpusError, RecipeError
from isoglot.data import Group
from isoglot.data.readers import READERS, files_of, match_pattern, read, read_sentences
from isoglot.training import recipe as recipes
from isoglot.training.plan import corpus_of


def test_unknown_readers_and_options_are_refused_at_once():
    with pytest.raises(RecipeError, match="unknown reader 'tvs'; did you mean 'tsv'"):
        read("tvs", "a")
    with pytest.raises(RecipeError, match=r"^sources\.0: unknown reader 'qqq'; known: tsv, csv, xlsx, moses"):
        READERS.check("qqq", {}, where="sources.0")
    with pytest.raises(RecipeError, match=r"^'language': reader tsv has .*'en'\); did you mean 'languages'"):
        read("tsv", "a", language="en")
    with pytest.raises(RecipeError, match="mode: 'triples' is not one of triplets, groups, pairs; did you mean 'tri"):
        read("xnli", "a", mode="triples")


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_is_lazy_and_names_the_file_it_cannot_find(reader, tmp_path):
    groups = read(reader, tmp_path / "nothing-here")
    with pytest.raises(CorpusError, match="nothing-here"):
        next(groups)


@pytest.mark.parametrize(
    "reader", [name for name in READERS if name not in ("moses", "folder", "dataset", "xnli", "entities")]
)
def test_every_reader_of_files_refuses_an_empty_one(reader, tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(CorpusError, match="no text"):
        next(read(reader, tmp_path / "a"))


def test_the_files_behind_a_path(tmp_path):
    for name in ("a.de", "a.en", "b[1].de", "sub/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.name for path in files_of(tmp_path / "a.de")] == ["a.de"]
    assert [path.name for path in files_of(tmp_path / "a")] == ["a.de", "a.en"]
    assert [path.name for path in files_of(tmp_path / "b[1]")] == ["b[1].de"]
    assert match_pattern(tmp_path / "b[1].de") == [tmp_path / "b[1].de"]  # there is such a file
    assert match_pattern(tmp_path / "a.[de]*") == [tmp_path / "a.de", tmp_path / "a.en"]
    assert [path.name for path in files_of(tmp_path)] == ["a.de", "a.en", "b[1].de", "c"]
    with pytest.raises(CorpusError, match="no such file"):
        files_of(tmp_path / "nothing")


def test_each_line_is_a_group_of_one_and_blank_ones_are_errors_or_skipped(tmp_path):
    path, counts = tmp_path / "a.txt", Counter()
    path.write_text("one\ttab\n\n \ntwo\n")
    with pytest.raises(CorpusError, match=r"a\.txt:2: is empty"):
        list(read_sentences(path))
    groups = [Group(("one\ttab",), ("und",)), Group(("two",), ("und",))]
    assert list(read_sentences(path, skip_empty=True, counts=counts)) == groups
    assert counts == {"empty": 2}
    assert {group.langs for group in read_sentences(path, language="de", skip_empty=True)} == {("deu",)}


# Languages that nobody knows

PAIR = Group(("Hi", "Hallo"), ("eng", "deu"))
UNIT = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
TSV = "en\tqx9\tde\nHi\tx\tHallo\n"
UNITS = "".join(UNIT.format(*one) for one in (("en", "Hi"), ("qx9", "x"), ("de", "Hallo")))
FILES = [
    ("tsv", TSV, 1),
    ("jsonl", '{"en": "Hi", "qx9": "x", "de": "Hallo"}\n', 1),
    ("jsonl", '{"texts": ["Hi", "x", "Hallo"], "langs": ["en", "qx9", "de"]}\n{"qx9": "y"}\n', 2),  # one is left empty
    ("tmx", f"<tmx><tu>{UNITS}</tu></tmx>", 1),
]


@pytest.mark.parametrize(("reader", "text", "skipped"), FILES)
def test_unknown_languages_are_an_error_or_counted(tmp_path, reader, text, skipped):
    path, counts = tmp_path / "file", Counter()
    path.write_text(text)
    with pytest.raises(CorpusError, match="qx9"):
        list(read(reader, path))
    assert list(read(reader, path, on_unknown_language="skip", counts=counts)) == [PAIR]
    assert sum(count for name, count in counts.items() if "unknown language" in name) == skipped


def test_unknown_languages_of_entities_and_datasets(tmp_path):
    (tmp_path / "sentences.jsonl").write_text(
        '{"text": "a", "lang": "qx9", "entity": "Q1"}\n{"text": "b", "lang": "de", "entity": "Q1"}\n'
    )
    (tmp_path / "entities.tsv").write_text("Q1\t3\tOne\n")
    with pytest.raises(CorpusError, match=r"sentences\.jsonl:1: .*qx9"):
        list(read("entities", tmp_path))
    (group,) = read("entities", tmp_path, on_unknown_language="skip")
    assert group.langs == ("deu",)
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list([{"en": "Hi", "qx9": "x", "de": "Hallo"}]).save_to_disk(tmp_path / "set")
    assert list(read("dataset", tmp_path / "set", on_unknown_language="skip")) == [PAIR]


@pytest.mark.parametrize("place", ["stream", "source"])
def test_a_recipe_skips_unknown_languages_for_a_source_or_for_all(place, tmp_path):
    (tmp_path / "a.tsv").write_text(TSV)
    skip = {"on_unknown_language": "skip"}
    source = {"reader": "tsv", "path": "a.tsv"} | (skip if place == "source" else {})
    stream = {"objectives": [{"name": "info_nce"}], "sources": [source]} | (skip if place == "stream" else {})
    data = {"name": "r", "encoder": {"kind": "static"}, "optimizer": {"lr": 1.0}, "steps": 1, "streams": [stream]}
    recipe = recipes.parse(data, folder=tmp_path)
    corpus = corpus_of(recipe, recipe.stages[0].streams[0])
    corpus.check()
    assert [group for _, groups in corpus.source_groups() for group in groups] == [PAIR]
