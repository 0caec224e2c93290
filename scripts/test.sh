#!/usr/bin/env bash
# Sets up, builds the dev preset with warnings as errors, and runs all tests. GPU tests say that they skip where there
# is no GPU.
#   scripts/test.sh [--asan] [--lint] [--gpu] [--grouped]
#     --asan  also build with AddressSanitizer and UndefinedBehaviorSanitizer, and run the tests but those labelled slow
#             and those that would take longest without touching other memory than the rest
#     --lint  first check the format and run clang-tidy
#     --gpu   run only the tests labelled gpu
#     --grouped  compile several sources of a library at once, and no benchmarks (clang-tidy compiles them): sooner done
#                from nothing, later after a change
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

asan=false lint=false grouped=false only=()
for argument in "$@"; do
  case $argument in
    --asan) asan=true ;;
    --lint) lint=true ;;
    --gpu) only=(-L gpu) ;;
    --grouped) grouped=true ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown argument '$argument' (known: --asan, --lint, --gpu, --grouped)" ;;
  esac
done

cd "$project_root"
jobs=${CTEST_PARALLEL_LEVEL:-$(nproc)}
failures=()

say "Set-up"
scripts/setup.sh --dev --nvrtc-11.8
source scripts/common.sh

# Searches of large spaces, whole recorded spaces and real compilers: minutes under the sanitizers, which see the same
# code run on smaller ones. The dev preset runs them all.
long_under_asan="SparseSearchTest|SparseSpaceTest.DrawsDoNot|EnumerationTest.(MatmulLeaves|ThinnedMatmul)|package.install"
long_under_asan+="|SharedSpaces|RecordedSpacesOfReal|CompileForPascalWithEveryNvrtc|MissingNvrtcNames|report.figures"

# run_tests PRESET [ARGUMENT...]: shows ctest's own progress and closing lines.
run_tests() {
  say "Tests ($1)"
  ctest --preset "$1" --output-on-failure --no-tests=error --parallel "$jobs" "${only[@]}" "${@:2}" ||
    failures+=("tests of preset $1")
}

if $lint; then
  say "Checks"
  scripts/format.sh --check || failures+=("format")
  step "configure (dev)" configure-dev "read the first error above" cmake --preset dev || exit 1
  scripts/lint.sh || failures+=("clang-tidy")
fi
if $asan; then
  say "Build (asan)"
  build_preset asan || exit 1
  run_tests asan -LE slow -E "$long_under_asan"
fi
say "Build (dev)"
$grouped && configure_options=(-DPASCALINE_BUILD_BENCH=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=40)
build_preset dev || exit 1
run_tests dev

if [ ${#failures[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failures[@]}" >&2
  exit 1
fi
