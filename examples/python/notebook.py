"""A sweep, looked at with pandas. The cells are those of a notebook: editors show `# %%` as such, and
`jupytext --to notebook notebook.py` makes one. It runs as a script, too: `python notebook.py [DEVICE]`."""

# %% Tune a shape
import pathlib
import sys
import tempfile

import pascaline

is_script = "__file__" in globals()  # in a notebook, sys.argv is of the notebook's own program
device = sys.argv[1] if is_script and len(sys.argv) > 1 else None  # None: a GPU, or the emulated device
db = pathlib.Path(tempfile.mkdtemp()) / "notebook.db"
summary = pascaline.sweep({"ROWS": 64, "COLUMNS": 96}, kernel="transpose", db=db, device=device, trials=12, progress=True)
print(f"{summary['trials']} trials in {summary['wall_s']:.0f} s")

# %% What was tried: a row each, with a column for each parameter
trials = pascaline.frame(pascaline.trials(db))
print(trials.groupby(["status", "stage"]).size())
ok = trials[trials["median_us"].notna() & (trials["stage"] == "search")]
print(ok[["median_us", "registers", "TILE", "BLOCK_THREADS"]].head())

# %% Which values of a parameter are among fast configurations
print(ok.groupby("TILE")["median_us"].agg(["min", "median", "count"]))

# %% What won
winners = pascaline.frame(pascaline.winners(db))
print(winners[["kernel", "ROWS", "COLUMNS", "default_us", "best_us", "speedup"]].to_string(index=False))

# %% The report, below the cell
page = pascaline.page(db, limits=False)
page
