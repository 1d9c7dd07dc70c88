"""`isoglot demo`: train, evaluate and mine on the bundled text."""

from __future__ import annotations

from pathlib import Path

from isoglot.cli.console import say, show_grid
from isoglot.cli.options import Device, Output


def demo(output: Output = Path("isoglot-demo"), device: Device = "auto") -> None:
    """Train, evaluate and mine on the bundled text; takes about three minutes."""
    from isoglot.encoders.device import describe, resolve
    from isoglot.training.demo import run

    say(describe(resolve(device)))
    run(output, device=device, report=say, show=show_grid)
