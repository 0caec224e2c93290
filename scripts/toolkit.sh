# Sourced by setup.sh after common.sh: NVRTC for sm_61 in .toolkit/, for those who have none installed, and contributors'
# clang-tidy and nvJitLink. Nothing lands there half: everything is unpacked in .toolkit/tmp.* and renamed when it is whole.
# shellcheck shell=bash

toolkit=$project_root/.toolkit
new_nvrtc=$toolkit/12.9/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
older_nvrtc=$toolkit/11.8/usr/lib/x86_64-linux-gnu/libnvrtc.so.11.2

work=
leave() {
  stop_ticker
  [ -n "$work" ] && rm -rf "$work"
  return 0
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

new_work() {
  [ -n "$work" ] && rm -rf "$work"
  mkdir -p "$toolkit"
  local left process
  for left in "$toolkit"/tmp.*; do # of runs that were killed
    process=${left#"$toolkit/tmp."} process=${process%%.*}
    [ -d "$left" ] && [ ! -d "/proc/$process" ] && rm -rf "$left"
  done
  work=$(mktemp -d "$toolkit/tmp.$$.XXXXXX")
}

# NVRTC libraries of the system, best first.
system_nvrtc() {
  local folder version
  for version in 12 11.2; do
    [ -n "${PASCALINE_NVRTC:-}" ] && echo "$PASCALINE_NVRTC"
    for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-1[12]*; do
      [ -n "$folder" ] && [ -e "$folder/lib64/libnvrtc.so.$version" ] && echo "$folder/lib64/libnvrtc.so.$version"
    done
    { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | awk -v name="libnvrtc.so.$version" '$1 == name { print $NF }'
  done
  return 0
}

# "VERSION PATH" of the first of the given libraries that compiles for sm_61. Without Python their names decide: all
# of NVRTC 11 and 12 can.
first_for_sm_61() {
  if command -v python3 >/dev/null; then
    python3 "$project_root/scripts/nvrtc_supports.py" 61 "$@"
  else
    [ $# -gt 0 ] && [ -e "$1" ] && echo "${1##*.so.} $1"
  fi
}

# The NVRTC that there is: in $found.
have_toolkit() {
  local libraries
  mapfile -t libraries < <([ -e "$new_nvrtc" ] && echo "$new_nvrtc"; system_nvrtc; [ -e "$older_nvrtc" ] && echo "$older_nvrtc")
  [ ${#libraries[@]} -gt 0 ] && found=$(first_for_sm_61 "${libraries[@]}")
}
# With CUDA's headers of the same version, which no other NVRTC can read.
have_new_toolkit() { [ -e "$new_nvrtc" ] && [ -e "$toolkit/12.9/nvidia/cuda_cccl/include/nv/target" ]; }
have_older_toolkit() { [ -e "$older_nvrtc" ] && [ -e "$toolkit/11.8/usr/include/cuda_fp16.h" ]; }

# download_wheels REQUIREMENTS: unpacks the wheels of a pinned, hashed list into $work/tree.
download_wheels() {
  python3 -m pip download --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux_2_27_x86_64 \
    -d "$work/wheels" -r "$project_root/scripts/$1" || return
  local wheel
  for wheel in "$work"/wheels/*.whl; do
    echo "unpacking $(basename "$wheel")"
    python3 -m zipfile -e "$wheel" "$work/tree" || return
  done
}

download_older_wheel() {
  download_wheels toolkit-11.8-requirements.txt || return
  local folder=$work/tree/usr/lib/x86_64-linux-gnu
  mkdir -p "$folder" && mv "$work"/tree/nvidia/cuda_nvrtc/lib/libnvrtc* "$folder" && rm -rf "$work/tree/nvidia"
}

# Headers of CUDA 11.8 beside its NVRTC in $work/tree. Without them, only kernels that include them do not compile.
add_older_headers() {
  rm -rf "$work/wheels"
  download_wheels toolkit-11.8-headers-requirements.txt || return 0
  mv "$work/tree/nvidia/cuda_runtime/include" "$work/tree/usr/include" && rm -rf "$work/tree/nvidia"
}

# put_in_place VERSION LIBRARY: the tree just unpacked becomes .toolkit/VERSION if its LIBRARY works.
put_in_place() {
  first_for_sm_61 "$work/tree/${2#"$toolkit/$1/"}" || { echo "the library that came does not load or lacks sm_61"; return 1; }
  rm -rf "${toolkit:?}/$1"
  mv "$work/tree" "$toolkit/$1"
}

bring_new() { download_wheels toolkit-requirements.txt && put_in_place 12.9 "$new_nvrtc"; }
bring_older() { download_older_wheel && add_older_headers && put_in_place 11.8 "$older_nvrtc"; }

bring_new_toolkit() {
  if have_new_toolkit; then
    say "  NVRTC 12.9: there"
    return 0
  fi
  if [ "$(uname -m)" = x86_64 ]; then
    new_work
    step "bring NVRTC 12.9 (Python wheels, 93 MB)" nvrtc-12.9 "check the network; kernels are compiled by the other NVRTC" bring_new && return
  fi
  warn "NVRTC 12.9 could not be brought; what needs it is skipped"
}

bring_older_toolkit() {
  if have_older_toolkit; then
    say "  NVRTC 11.8: there"
    return 0
  fi
  if [ "$(uname -m)" = x86_64 ]; then
    new_work
    step "bring NVRTC 11.8 (Python wheel, 23 MB)" nvrtc-11.8 "check the network; it is needed only for Pascal kernels that NVRTC 11.8 builds faster" \
      bring_older && return
  fi
  warn "NVRTC 11.8 could not be brought; what needs it is skipped"
}

bring_toolkit() {
  if have_toolkit; then
    say "  NVRTC for sm_61: ${found/ /, }"
    return 0
  fi
  if [ "$(uname -m)" = x86_64 ]; then
    new_work
    step "bring NVRTC 12.9 (Python wheels, 93 MB)" nvrtc-12.9 \
      "install a CUDA toolkit 11.x or 12.x (13 dropped sm_61), or libnvrtc from Debian non-free or Ubuntu multiverse" \
      bring_new && return
  fi
  warn "compiling for sm_61 is unavailable: no NVRTC 11 or 12 here, and none could be brought. The emulated device works."
}

have_lint_tool() { [ -x "$project_lint_tool" ]; }
bring_wheel_of_lint_tool() {
  download_wheels lint-requirements.txt && chmod +x "$work/tree/clang_tidy/data/bin/clang-tidy" || return
  "$work/tree/clang_tidy/data/bin/clang-tidy" --version || return
  rm -rf "$toolkit/lint" && mv "$work/tree" "$toolkit/lint"
}
bring_lint_tool() {
  have_lint_tool && return
  new_work
  step "bring clang-tidy 23 (Python wheel, 45 MB)" clang-tidy "scripts/lint.sh takes an installed clang-tidy instead, which takes longer" \
    bring_wheel_of_lint_tool || true
}

# nvJitLink, which translates PTX without a GPU. A driver's own version comes with CUDA; this one is for the tests.
jit_link=$toolkit/jit_link/nvidia/nvjitlink/lib/libnvJitLink.so.12
have_jit_link() { [ -e "$jit_link" ] || [ "$(uname -m)" != x86_64 ]; }
bring_wheel_of_jit_link() {
  download_wheels jit-link-requirements.txt && [ -e "$work/tree/${jit_link#"$toolkit/jit_link/"}" ] || return
  rm -rf "$toolkit/jit_link" && mv "$work/tree" "$toolkit/jit_link"
}
bring_jit_link() {
  have_jit_link && return
  new_work
  step "bring nvJitLink 12.9 (Python wheel, 40 MB)" jit-link "what tests the translation of PTX is skipped" bring_wheel_of_jit_link || true
}

# What builds and tests the Python package, in an environment of its own: a distribution's Python takes no packages of
# others. Python's headers and its module venv are the distribution's (setup.sh), or come with an interpreter from elsewhere.
python_list=$project_root/scripts/python-requirements.txt
have_python() { cmp -s "$python_list" "$toolkit/python/requirements.txt" && "$toolkit/python/bin/python" -m nanobind --cmake_dir >/dev/null 2>&1; }
has_python_headers() {
  python3 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' 2>/dev/null
}
has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
has_new_python() { python3 -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; }
make_python() {
  rm -rf "$toolkit/python"
  python3 -m venv "$toolkit/python" || return
  "$toolkit/python/bin/python" -m pip install --disable-pip-version-check --no-compile --no-deps --only-binary=:all: --require-hashes \
    -r "$python_list" && cp "$python_list" "$toolkit/python/requirements.txt"
}
bring_python() {
  have_python && return
  if ! has_new_python || [ "$(uname -m)" != x86_64 ]; then
    say "  the Python package is not built here: its tools are for Python 3.11 to 3.13 on x86-64"
    return 0
  fi
  mkdir -p "$toolkit"
  step "bring what the Python package is built and tested with (Python wheels, 58 MB)" python \
    "check the network; the Python package is not built" make_python || rm -rf "$toolkit/python"
}

# PyTorch for the tests with it, beside the environment of bring_python. Wheels are unpacked where they stay: several GB.
torch_list=$project_root/scripts/torch-requirements.txt
have_torch() { cmp -s "$torch_list" "$toolkit/torch/requirements.txt"; }
make_torch() {
  local left
  left=$(df --output=avail -B 1G "$toolkit" | tail -n 1)
  [ "$left" -ge 12 ] || { echo "there are $left GB left on the disk, 12 are needed"; return 1; }
  TMPDIR=$work "$toolkit/python/bin/python" -m pip install --disable-pip-version-check --no-cache-dir --no-compile --no-deps \
    --only-binary=:all: --require-hashes --target "$work/tree" -r "$torch_list" || return
  PYTHONPATH=$work/tree "$toolkit/python/bin/python" -c 'import torch; print(torch.__version__)' || return
  cp "$torch_list" "$work/tree/requirements.txt" && rm -rf "$toolkit/torch" && mv "$work/tree" "$toolkit/torch"
}
bring_torch() {
  have_torch && return
  have_python || { warn "PyTorch is not brought: what the Python package is tested with is not here (--dev)"; return 1; }
  new_work
  step "bring PyTorch (Python wheels, 2 GB)" torch "the tests with PyTorch are skipped" make_torch
}

# build_sqlitecpp SUITE: for a release without the package, from the sources of another release of the distribution.
build_sqlitecpp() {
  new_work
  apt_elsewhere "$work/apt" universe "$1" || return
  (cd "$work" && "${apt[@]}" source --download-only sqlitecpp) || return
  mkdir "$work/source" && tar -xf "$work"/sqlitecpp_*.orig.tar.* -C "$work/source" --strip-components=1 || return
  cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$work/tree" \
    -DSQLITECPP_INTERNAL_SQLITE=OFF -DSQLITECPP_RUN_CPPLINT=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON || return
  cmake --build "$work/build" --target install || return
  rm -rf "$toolkit/prefix" && mv "$work/tree" "$toolkit/prefix"
}
