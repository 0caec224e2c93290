"""What calls on a GPU ask of the CUDA driver: streams, contexts, captures. The driver is a fake one (fake_cuda.cpp), as no
machine without a GPU has another; skipped where it was not built. Only in a process of its own is it found."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def test_calls_on_streams() -> None:
    library = os.environ.get("PASCALINE_FAKE_CUDA")
    if not library:
        pytest.skip("there is no fake driver here: the build makes it")
    # A link of the name that the driver has, alone in its folder.
    environment = {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(library).parent), "EXAMPLES": str(HERE.parents[1] / "examples"),
                   "PYTHONPATH": os.environ["PASCALINE_PYTHON_PACKAGE"]}
    run = subprocess.run([sys.executable, str(HERE / "stream_calls.py"), library], env=environment, capture_output=True, text=True,
                         timeout=250)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("passed") == 8
