#!/usr/bin/env python3
"""Each pair of examples/kernels passes a check on a shape that nothing divides, and fails it with a mistake in the kernel."""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import unittest
except ImportError:
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/kernels"
# A shape, a part of the kernel, and what to write there that is wrong.
KERNELS = {
    "bicubic_resize": ("HEIGHT=37,WIDTH=53,OUT_HEIGHT=41,OUT_WIDTH=29", "width - 1", "width"),
    "bilateral_filter": ("HEIGHT=37,WIDTH=53", "-spatial * distance", "-1.01f * spatial * distance"),
    "bitonic_rows": ("ROWS=5,WIDTH=333", "int size = 2;", "int size = 4;"),
    "dot_product": ("N=10007", "i < count", "i + 1 < count"),
    "fft_stage": ("BATCH=3,GROUPS=7,STRIDE=13", "a - c + turned", "a - c - turned"),
    "histogram": ("N=10007", "thread < n % 4", "thread + 1 < n % 4"),
    "n_body": ("N=501", "min(kBlock, n - start)", "min(kBlock, n - start - 1)"),
    "row_scan": ("ROWS=7,WIDTH=2477", "carry += total", "carry = total"),
    "sorted_search": ("KEYS=3001,QUERIES=1009", "keys[found[i]] < wanted[i]", "keys[found[i]] <= wanted[i]"),
    "spmv_csr": ("ROWS=997,COLUMNS=1511,NONZEROS=7919", "distance = kLanes / 2", "distance = kLanes / 4"),
    "star_stencil": ("ROWS=67,COLUMNS=101", "row >= 0", "row > 0"),
    "sum_of_squares": ("N=10007", "*tickets = 0;", ""),
}


class ExampleKernelsTest(unittest.TestCase):
    def check(self, folder, kernel, *options):
        result = subprocess.run([os.environ["PASCALINE_PROGRAM"], "check", "--kernels", folder, "--spaces", folder,
                                 "--kernel", kernel, "--problem", KERNELS[kernel][0], *options],
                                capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr

    def test_every_pair_is_checked_here(self):
        self.assertEqual({file.stem for file in FOLDER.glob("*.cu")}, set(KERNELS))
        self.assertEqual({file.stem for file in FOLDER.glob("*.json")}, set(KERNELS))

    def test_kernels_are_right(self):
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                code, out = self.check(FOLDER, kernel, "--limit", "3")
                self.assertEqual(code, 0, out)
                self.assertEqual(out.count("    ok\n"), 3, out)

    def test_mistakes_are_found(self):
        for kernel, (_, right, wrong) in KERNELS.items():
            with self.subTest(kernel=kernel), tempfile.TemporaryDirectory() as folder:
                text = (FOLDER / f"{kernel}.cu").read_text(encoding="utf-8")
                self.assertIn(right, text)
                (pathlib.Path(folder) / f"{kernel}.cu").write_text(text.replace(right, wrong, 1), encoding="utf-8")
                for other in (f"{kernel}.json", "include"):
                    (pathlib.Path(folder) / other).symlink_to(FOLDER / other)
                code, out = self.check(folder, kernel)
                self.assertEqual(code, 3, out)
                self.assertIn("wrong_result", out)


if __name__ == "__main__":
    unittest.main()
