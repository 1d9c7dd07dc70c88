"""The text that the demo is made of is in the package."""

from isoglot.data.files import BUNDLED
from isoglot.training.demo import dev_pairs


def test_the_bundle_is_whole():
    assert len(list((BUNDLED / "test").iterdir())) == 30
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) < 8_000_000
    turkish, english = dev_pairs("tur")
    assert len(turkish) == len(english) == 400
