"""Run docs/tour.ipynb and keep its outputs: `pip install nbclient ipykernel`, then `python scripts/tour.py`."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parent.parent / "docs" / "tour.ipynb"

if __name__ == "__main__":
    notebook = nbformat.read(PAGE, as_version=4)
    NotebookClient(notebook, timeout=600).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times, which differ from run to run
    nbformat.write(notebook, PAGE)
