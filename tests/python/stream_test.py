"""What calls on a GPU ask of the CUDA driver: streams, contexts, captures. The driver is a fake one (fake_cuda.cpp), as no
machine without a GPU has another; skipped where it was not built. Only in a process of its own is it found."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def fake_driver() -> tuple[str, dict[str, str]]:
    """The driver's file, and an environment in which it is the one that is found."""
    library = os.environ.get("PASCALINE_FAKE_CUDA")
    if not library:
        pytest.skip("there is no fake driver here: the build makes it")
    # A link of the name that the driver has, alone in its folder.
    return library, {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(library).parent),
                     "EXAMPLES": str(HERE.parents[1] / "examples"), "PYTHONPATH": os.environ["PASCALINE_PYTHON_PACKAGE"]}


def test_a_plan_is_explained_by_what_was_measured_on_the_gpu() -> None:
    _, environment = fake_driver()
    run = subprocess.run([sys.executable, "-m", "pascaline", "explain", "--model", str(HERE.parents[1] / "examples" / "tiny_qwen3_vl"),
                          "--device", "cuda:0", "--context", "256", "--prompt-tokens", "32", "--json"], env=environment,
                         capture_output=True, text=True, timeout=120)
    if "no NVRTC" in run.stderr:
        pytest.skip("no NVRTC compiles for the fake card")
    assert run.returncode == 0, run.stdout + run.stderr
    assert json.loads(run.stdout)["device"]["name"] == "Fake"


def test_calls_on_streams() -> None:
    library, environment = fake_driver()
    run = subprocess.run([sys.executable, str(HERE / "stream_calls.py"), library], env=environment, capture_output=True, text=True,
                         timeout=250)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("passed") == 8
