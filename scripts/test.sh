#!/usr/bin/env bash
# Sets up, builds the dev preset with warnings as errors, and runs all tests. GPU tests are left out where there is no
# GPU, and counted.
#   scripts/test.sh [--asan] [--lint] [--torch] [--lean]
#     --asan  build with AddressSanitizer and UndefinedBehaviorSanitizer, and run all tests that can be run so in a short
#             time, and the fuzzers, for $PASCALINE_FUZZ_SECONDS (60) each; of the dev preset then only the others (labels
#             slow and unsanitized), and those that depend on what the optimiser does (label optimised)
#     --lint  first check the format, words and includes, and run clang-tidy
#     --torch fetch PyTorch (2 GB) beside the build; the tests with it run then, if it comes within 15 minutes
#     --lean  for a clean clone: remove the sanitized build when its tests are done, which leaves room for the next, and
#             compile the dev preset in larger groups, which takes less time the first time and more the next. All tests
#             run, with less in them: under the sanitizers only those of what reads other programs' data, without three
#             of the checks for undefined behaviour; without debug information, less optimised, emulated kernels, too;
#             where tests do much the same many times, one part of $PASCALINE_TEST_SHARE (6)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

asan=false lint=false torch=false lean=false gpu_label=''
for argument in "$@"; do
  case $argument in
    --asan) asan=true ;;
    --lint) lint=true ;;
    --torch) torch=true ;;
    --lean) lean=true ;;
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown argument '$argument' (known: --asan, --lint, --torch, --lean)" ;;
  esac
done

cd "$project_root"
# Many tests wait for a browser, a deadline or a worker process most of their time.
jobs=${CTEST_PARALLEL_LEVEL:-$((2 * $(nproc)))}
failures=()
# To start a program only to skip takes a second each under the sanitizers.
has_gpu() { compgen -G '/dev/nvidia[0-9]*' >/dev/null || nvidia-smi -L 2>/dev/null | grep -q '^GPU'; }
has_gpu || gpu_label=gpu

# What is built and fetched, in GB; on a full disk a linker or a test would fail, and say so in its own words.
needed=5
if $asan; then needed=$((needed + 7)); fi
if $torch; then needed=$((needed + 5)); fi
free=$(($(df --output=avail -k . | tail -n 1) / 1000000))
[ "$free" -ge "$needed" ] || warn "builds and downloads may take $needed GB, less what is here already; $free GB are free"

say "Set-up"
scripts/setup.sh --dev --nvrtc-all
source scripts/common.sh
if $lean; then
  configure_options=(-DPASCALINE_LEAN=ON)
  export PASCALINE_TEST_SHARE=${PASCALINE_TEST_SHARE:-6}
  # Compiling emulated kernels takes longer than running them.
  mkdir -p build/lean
  printf '#!/bin/sh\nexec g++ "$@" -Og\n' >build/lean/g++
  chmod +x build/lean/g++
  export PASCALINE_HOST_CXX=$project_root/build/lean/g++
  say "Lean: where tests do much the same many times, one part of $PASCALINE_TEST_SHARE"
fi
torch_setup=
if $torch; then
  timeout 900 scripts/setup.sh --dev --torch >build/logs/setup-torch.log 2>&1 </dev/null &
  torch_setup=$!
  trap 'stop_ticker; kill "$torch_setup" 2>/dev/null || true' EXIT
fi

# The ends of what failed tests of a preset printed, again after the lines of all others.
failed_output() {
  awk '/ Testing: / { name = $0; count = 0 } { lines[count++ % 40] = $0 }
    /^Test (Failed|timed out)/ { print name; for (i = count > 40 ? count - 40 : 1; i < count; ++i) print "  " lines[i % 40] }' \
    "build/$1/Testing/Temporary/LastTest.log" | cut -c 1-300
}

# run_tests PRESET [ARGUMENT...]: shows ctest's own progress and closing lines.
run_tests() {
  say "Tests ($1)"
  if [ -n "$gpu_label" ]; then
    say "  no GPU here: $(ctest --preset "$1" -L "$gpu_label" --show-only | sed -n 's/^Total Tests: *//p') GPU tests left out"
  fi
  ctest --preset "$1" --output-on-failure --no-tests=error --parallel "$jobs" "${@:2}" ||
    failures+=("tests of preset $1" "$(sed 's/^[0-9]*:/  /' "build/$1/Testing/Temporary/LastTestsFailed.log")" "$(failed_output "$1")")
}

if $lint; then
  say "Checks"
  scripts/format.sh --check || failures+=("format")
  scripts/lint.sh || failures+=("words, includes or clang-tidy")
fi
if $asan; then
  say "Build (asan)"
  build_preset asan sanitized_tests || exit 1
  rm -rf build/asan/fuzz/logs
  # What is labelled slow is not built, and has one entry each that says so. Two fuzzers run beside the tests.
  jobs=$((jobs + 2)) run_tests asan -LE "slow|unsanitized${gpu_label:+|$gpu_label}" -E '_NOT_BUILT$'
  for log in build/asan/fuzz/logs/*.log; do
    [ -e "$log" ] || continue
    say "  fuzz.$(basename "$log" .log): $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
  done
  if $lean && [ ${#failures[@]} = 0 ]; then rm -rf build/asan; fi
fi
if [ -n "$torch_setup" ]; then
  wait "$torch_setup" && say "PyTorch is there" || warn "PyTorch did not come, what tests it is skipped: build/logs/setup-torch.log"
fi
say "Build (dev)"
if $lean; then configure_options+=(-DCMAKE_UNITY_BUILD_BATCH_SIZE=60); fi
if $asan; then
  build_preset dev unsanitized_tests || exit 1
  # Many of these wait most of their time.
  jobs=$((3 * jobs / 2)) run_tests dev -L 'slow|unsanitized|optimised' ${gpu_label:+-LE "$gpu_label"}
else
  build_preset dev || exit 1
  run_tests dev ${gpu_label:+-LE "$gpu_label"}
fi

if [ ${#failures[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failures[@]}" >&2
  exit 1
fi
