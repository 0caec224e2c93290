#!/usr/bin/env bash
# Builds the Python package's wheel, installs it into a fresh environment, and uses it from another folder: data, program
# and a sweep on the emulated device. Takes minutes, as the wheel is a release build of its own.
#   scripts/test_wheel.sh [PYTHON]   default: python3
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=${1:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/environment"
"$folder/environment/bin/pip" --disable-pip-version-check wheel --no-deps -w "$folder" "$project_root"
"$folder/environment/bin/pip" --disable-pip-version-check install "$folder"/pascaline-*.whl numpy
cd "$folder"
"$folder/environment/bin/pascaline" --version
PASCALINE_DB=$folder/tuned.db PASCALINE_CACHE_DIR=$folder/cache "$folder/environment/bin/python" - <<'CODE'
import pathlib
import numpy
import pascaline

package = pathlib.Path(pascaline.__file__).parent
for name in ("kernel_templates", "search_spaces", "shim"):
    assert pathlib.Path(pascaline._native.data_folder(name)).is_relative_to(package), name
assert (package / "py.typed").exists() and (package / "_native.pyi").exists()
problem = {"ROWS": 32, "COLUMNS": 48}
summary = pascaline.sweep(problem, kernel="transpose", device="emulator", trials=1, preheat=0)
assert summary["ok"] >= 1, summary
x = numpy.arange(32 * 48, dtype=numpy.float32).reshape(32, 48)
assert (pascaline.ops.transpose(x, device="emulator") == x.T).all()
print("the wheel works")
CODE
