import os
import pathlib
import sys

import pytest

sys.path.insert(0, os.environ["PASCALINE_PYTHON_PACKAGE"])  # the folder with the package that was built
# Of a sanitized module's runtime: programs that are started have their own, other interpreters need it.
os.environ["PASCALINE_PRELOADED"] = os.environ.pop("LD_PRELOAD", "")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A home without a database of the user's; kernels are kept in the cache of all tests."""
    folder = tmp_path_factory.mktemp("home")
    os.environ["PASCALINE_DB"] = str(folder / "tuned.db")
    return folder


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A database with a short sweep on the emulated device."""
    import pascaline

    file = tmp_path_factory.mktemp("swept") / "tuned.db"
    events: list[dict[str, object]] = []
    summary = pascaline.sweep(
        {"ROWS": 32, "COLUMNS": 48, "STORAGE": "float32"}, kernel="transpose", db=file, device="emulator", trials=2,
        jobs=2, finalists=1, rounds=2, min_samples=3, max_samples=3, preheat=0, progress=events.append)
    assert summary["ok"] >= 1 and summary["problems_done"] == 1 and not summary["interrupted"]
    trials = [event for event in events if event["kind"] == "trial"]
    assert len(trials) == summary["trials"]
    return file
