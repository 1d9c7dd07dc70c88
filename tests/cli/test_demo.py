"""The demo must never take a folder that is not its own."""

import pytest

from isoglot.core.errors import OutputError
from isoglot.data.files import BUNDLED
from isoglot.training.demo import dev_pairs, run


@pytest.mark.parametrize("name", ["notes.txt", "run.json", "runs"])
def test_a_folder_of_something_else_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    (tmp_path / "model").mkdir()
    with pytest.raises(OutputError, match="did not make it as a demo"):
        run(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "model"])


def test_the_bundle_is_whole():
    assert len(list((BUNDLED / "test").iterdir())) == 30
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 8_000_000
    turkish, english = dev_pairs("tur")
    assert len(turkish) == len(english) == 400
