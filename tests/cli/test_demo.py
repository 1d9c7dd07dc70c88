"""The text that the demo is made of is in the package, and what it writes can be used as other outputs can."""

from pathlib import Path

import pytest

from isoglot.core.errors import OutputError
from isoglot.data.files import BUNDLED, exclusive, list_files
from isoglot.model import layout
from isoglot.training import demo
from isoglot.training.demo import dev_pairs


def test_the_bundle_is_whole():
    assert len(list((BUNDLED / "test").iterdir())) == 30
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 8_000_000
    turkish, english = dev_pairs("tur")
    assert len(turkish) == len(english) == 400


def test_models_of_a_demo_can_be_replaced_and_the_demo_too(tmp_path, monkeypatch, toy_static):
    places = ("model", "runs/pairs/model")
    monkeypatch.setattr(demo, "_run", lambda folder, *_: [toy_static.save(folder / place) for place in places])
    for _ in range(2):
        demo.run(tmp_path / "demo", device="cpu", report=str)
    for place in places:
        with exclusive(tmp_path / "demo" / place):
            layout.prepare(tmp_path / "demo" / place)
    assert not [name for name in list_files(tmp_path) if ".tmp" in name or ".lock" in name]


def test_a_demo_fills_an_empty_current_folder_and_no_other(tmp_path, monkeypatch, toy_static):
    monkeypatch.setattr(demo, "_run", lambda folder, *_: toy_static.save(folder / "model"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    place = Path().stat().st_ino
    demo.run(Path(), device="cpu", report=str)
    assert layout.is_model(Path("model"))
    assert Path.cwd().stat().st_ino == place  # a shell that is in it sees the files
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    with pytest.raises(OutputError, match="is the current folder"):
        demo.run(Path(), device="cpu", report=str)
