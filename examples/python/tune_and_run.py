"""Tunes the transposition of one shape, and runs the winner on NumPy arrays: `python tune_and_run.py [DEVICE]`."""

import sys

import numpy as np

import pascaline
from pascaline import ops


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "emulator"
    summary = pascaline.sweep({"ROWS": 64, "COLUMNS": 96}, kernel="transpose", db="example.db", device=device, trials=5,
                              progress=True)
    winner = pascaline.winners("example.db")[0]
    print(f"{summary['trials']} trials; {winner['problem']}: {winner['config']}")
    ops.use_database("example.db")
    x = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    if device == "emulator":
        assert (ops.transpose(x, device="emulator") == x.T).all()


if __name__ == "__main__":
    main()
