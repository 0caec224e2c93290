#!/usr/bin/env bash
# Builds the Python package's wheel, installs it into fresh environments, and uses it there from another folder: where its data
# are, the program, and the tests of tests/python (those of PyTorch skip unless PASCALINE_TEST_TORCH=1 has it installed). Takes
# minutes the first time, as the wheel is a release build of its own in build/wheel.
#   scripts/test_wheel.sh [PYTHON [OTHER_PYTHON...]]
#     PYTHON builds (default: python3) and uses it; the others use the same wheel, where that is for several (from 3.12 on)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -gt 0 ] || set -- python3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -m venv "$folder/builder"
"$folder/builder/bin/pip" --disable-pip-version-check wheel --no-deps -w "$folder" "$project_root"
wheel=$(echo "$folder"/pascaline-*.whl)
say "built $(basename "$wheel"), $(du -h "$wheel" | cut -f 1)"

# use_wheel PYTHON: in a fresh environment with a home of its own.
use_wheel() {
  local environment=$folder/environment libraries=(numpy pandas pytest tqdm)
  rm -rf "$environment"
  "$1" -m venv "$environment"
  if [ "${PASCALINE_TEST_TORCH:-0}" = 1 ]; then libraries+=(torch); fi
  "$environment/bin/pip" --disable-pip-version-check install -q "$wheel" "${libraries[@]}"
  cd "$folder"
  export PASCALINE_DB=$folder/tuned.db PASCALINE_CACHE_DIR=$folder/cache PYTHONDONTWRITEBYTECODE=1
  "$environment/bin/pascaline" --version
  "$environment/bin/python" - <<'CODE'
import pathlib
import pascaline

package = pathlib.Path(pascaline.__file__).parent
for name in ("kernel_templates", "search_spaces", "shim"):
    assert pathlib.Path(pascaline._native.data_folder(name)).is_relative_to(package), name
assert (package / "py.typed").exists() and (package / "_native.pyi").exists()
CODE
  PASCALINE_PYTHON_PACKAGE=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))') \
    "$environment/bin/python" -m pytest -q -p no:cacheprovider --ignore "$project_root/tests/python/typing_test.py" \
    "$project_root/tests/python"
  say "the wheel works with $("$environment/bin/python" --version)"
}
for python in "$@"; do use_wheel "$python"; done
