"""`isoglot demo`: train, evaluate and mine on the bundled text."""

from __future__ import annotations

from pathlib import Path

from isoglot.cli.console import say, show_grid
from isoglot.cli.options import Output


def demo(output: Output = Path("isoglot-demo")) -> None:
    """Train, evaluate and mine on the bundled text; takes about three minutes."""
    from isoglot.demo import run

    run(output, report=say, show=show_grid)
