"""Screenshots of the map, the page of results and the search page, for the README: `python scripts/screenshots.py`.

Needs the extras `evaluate`, `plot` and `serve`, and Chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import isoglot

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BUNDLED = Path(isoglot.__path__[0]) / "bundled"
MODEL = "isoglot-static"
PORT = 8799
QUERY = "Do you speak English?"
MOST = 150_000  # bytes of a picture


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").symlink_to(BUNDLED)  # the pages show the commands
        command("plot", MODEL, "data/pairs/deu-fra.tsv.xz", "--limit", 80, "--output", "map.html", cwd=folder)
        shoot((folder / "map.html").as_uri(), "map", height=680)
        command("evaluate", MODEL, "--tasks", "tatoeba", "--data", "data/test", "--output", "scores", cwd=folder)
        shoot((folder / "scores" / "page.html").as_uri(), "results", height=900)
        sources = [path.name for path in (BUNDLED / "dev").glob("*.xz") if path.name.split(".")[2] != "eng"]
        files = [f"{name.split('.')[2]}={name}" for name in sorted(sources)]
        command("index", MODEL, *files, "-o", folder / "index", cwd=BUNDLED / "dev")  # the page shows the names
        server = subprocess.Popen(words("serve", folder / "index", "--port", PORT))
        try:
            wait(f"http://127.0.0.1:{PORT}/health")
            shoot(f"http://127.0.0.1:{PORT}/?{urlencode({'q': QUERY})}", "search", height=760)
        finally:
            server.terminate()
            server.wait()


def words(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "isoglot", *map(str, arguments)]


def command(*arguments: object, cwd: Path | None = None) -> None:
    subprocess.run(words(*arguments), check=True, cwd=cwd)


def wait(url: str) -> None:
    for _ in range(120):
        try:
            urlopen(url).close()
        except URLError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit(f"{url}: no answer")


def shoot(url: str, name: str, *, height: int) -> None:
    """A picture of a page, 1,100 pixels wide."""
    path = IMAGES / f"{name}.png"
    browser = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    view = [f"--window-size=1100,{height}", "--virtual-time-budget=8000", f"--screenshot={path}"]
    subprocess.run([*browser, *view, url], check=True, capture_output=True, timeout=120)
    if path.stat().st_size > MOST:
        raise SystemExit(f"{path.name} has {path.stat().st_size:,} bytes; make it smaller")


if __name__ == "__main__":
    main()
