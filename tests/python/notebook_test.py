"""What notebooks need, and the example."""

import os
import pathlib
import runpy
import sys

import pytest

import pascaline

ROOT = pathlib.Path(__file__).parents[2]


def test_trials_as_a_frame(swept: pathlib.Path) -> None:
    rows = pascaline.trials(swept)
    frame = pascaline.frame(rows)
    assert len(frame) == len(rows) and set(frame["kernel"]) == {"transpose"} and set(frame["ROWS"]) == {32}
    assert set(frame["STORAGE"]) == {"float32"} and "config" not in frame and "problem" not in frame
    assert str(frame["TILE"].dtype) == "int64" and frame["median_us"].min() > 0
    winner = pascaline.frame(pascaline.winners(swept)).iloc[0]
    assert f"TILE={winner['TILE']}" in pascaline.winners(swept)[0]["config"]


def test_kinds_of_values() -> None:
    frame = pascaline.frame([{"config": 'A=1 B=0.5 C=true D=row E="Shape<64, 32>" F="a \\"b\\""', "problem": "k N=3"}])
    row = frame.iloc[0]
    assert (row["A"], row["B"], row["D"], row["E"], row["F"], row["N"]) == (1, 0.5, "row", "Shape<64, 32>", 'a "b"', 3)
    assert row["C"] and len(pascaline.frame([])) == 0


def test_page(swept: pathlib.Path) -> None:
    page = pascaline.page(swept, height=300, limits=False)
    shown = page._repr_html_()
    assert "<html" in page.html and shown.startswith('<iframe srcdoc="') and "height: 300px" in shown
    assert shown.count('"') == 6  # all of the page's own are escaped
    with pytest.raises(TypeError, match="format"):
        pascaline.page(swept, format="md")


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples" / "python" / "notebook.py"
    monkeypatch.setattr(sys, "argv", [str(example), "emulator"])
    cells = runpy.run_path(str(example), run_name="__main__")
    assert cells["winners"].shape[0] == 1 and cells["summary"]["ok"] >= 12
    assert "speedup" in capsys.readouterr().out and os.path.exists(cells["db"])


def test_the_examples_cells_run_as_a_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "/run/user/kernel-1.json"])  # a notebook's own
    cells = (ROOT / "examples" / "python" / "notebook.py").read_text().split("\n# %%")[1:]
    names: dict[str, object] = {"__name__": "__main__"}  # and no __file__
    for cell in cells:
        exec(compile("#" + cell, "<cell>", "exec"), names)
    assert hasattr(names["page"], "_repr_html_") and len(cells) == 5
