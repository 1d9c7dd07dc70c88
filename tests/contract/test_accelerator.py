"""The tests in `on_accelerator.py`."""

import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"), reason="needs a newer PyTorch"
)
def test_all_that_computes_runs_on_an_accelerator():
    """In a process of its own, because PyTorch counts its devices once, before the first backward pass."""
    file = Path(__file__).with_name("on_accelerator.py")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
