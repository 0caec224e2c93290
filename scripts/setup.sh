#!/usr/bin/env bash
# Brings what building Pascaline needs: packages of the distribution (apt), and into .toolkit/ an NVRTC that compiles
# for sm_61, unless one is installed. Does nothing where all is there, so it can be run any number of times.
#   scripts/setup.sh [--program | --dev [--torch]] [--nvrtc-all | --nvrtc-11.8 | --nvrtc-12.9]
#     --program     without the libraries that only tests and benchmarks need
#     --dev         also Clang with clang-format and clang-tidy, ccache, mold, what tests written in Python need, what the
#                   Python package is built with, Chromium to test the HTML report in, and Slurm, Open MPI and (in
#                   containers) sshd to test fleets with
#     --torch       also PyTorch (2 GB to fetch, 4 GB on the disk), without which the tests of pascaline.torch are skipped
#     --nvrtc-all   both NVRTC 11.8 and 12.9, into .toolkit/11.8 and .toolkit/12.9: one builds some kernels faster, the
#                   other others, and `pascaline sweep --nvrtc all` finds out which (the tests run with both)
#     --nvrtc-11.8  also NVRTC 11.8
#     --nvrtc-12.9  also NVRTC 12.9, even where another one is installed
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$project_root/scripts/toolkit.sh"

dev=false program=false torch=false older=false newer=false
for argument in "$@"; do
  case $argument in
    --dev) dev=true ;;
    --program) program=true ;;
    --torch) torch=true ;;
    --nvrtc-all) older=true newer=true ;;
    --nvrtc-11.8) older=true ;;
    --nvrtc-12.9) newer=true ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown argument '$argument' (known: --program, --dev, --torch, --nvrtc-all, --nvrtc-11.8, --nvrtc-12.9)" ;;
  esac
done

distribution=unknown
[ -r /etc/os-release ] && distribution=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
has_cmake() {
  local version
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 { print $3 }')
  [ -n "$version" ] && [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" = 3.25 ]
}
has_pip() { python3 -m pip --version >/dev/null 2>&1; }

# Packages that are needed and missing, one a line. A tool that is there by other means needs no package.
missing_packages() {
  local name
  command -v c++ >/dev/null || echo g++
  command -v ninja >/dev/null || echo ninja-build
  if ! has_cmake; then
    case $distribution in
      "ubuntu 22.04") for name in python3-venv python3-pip; do installed $name || echo $name; done ;;
      *) echo cmake ;;
    esac
  fi
  for name in libfmt-dev libcli11-dev libsqlite3-dev nlohmann-json3-dev \
    libboost-context-dev libxxhash-dev libpcre2-dev libutf8proc-dev libpng-dev libjpeg-dev libwebp-dev zlib1g-dev libopenblas0-pthread \
    libjs-chart.js libcpp-httplib-dev; do
    installed $name || echo $name
  done
  case $distribution in
    "ubuntu 22.04") ;; # has no SQLiteCpp: built below
    *) installed libsqlitecpp-dev || echo libsqlitecpp-dev ;;
  esac
  if ! $program; then
    for name in libgtest-dev libbenchmark-dev; do installed $name || echo $name; done
  fi
  if needs_wheels && ! has_pip; then
    for name in python3-pip ca-certificates; do installed $name || echo $name; done
  fi
  if $dev; then
    command -v clang-format >/dev/null || command -v clang-format-14 >/dev/null || echo clang-format
    command -v clang++ >/dev/null || echo clang
    # Clang's sanitizers, which on Ubuntu 22.04 come with it.
    [ "$distribution" = "ubuntu 22.04" ] || installed libclang-rt-dev || echo libclang-rt-dev
    command -v mold >/dev/null || echo mold
    command -v ccache >/dev/null || echo ccache
    if [ "$distribution" != "ubuntu 22.04" ]; then # whose Python is too old for the Python package's tools
      has_python_headers || echo python3-dev
      has_venv || echo python3-venv
    fi
    /usr/bin/python3 -c 'import jsonschema, sqlite3' 2>/dev/null || echo python3-jsonschema
    for name in slurmctld slurmd slurm-client munge openmpi-bin openssh-client; do installed $name || echo $name; done
    # Where there is systemd, the package would also open the machine to logins.
    [ -d /run/systemd/system ] || installed openssh-server || echo openssh-server
    case $distribution in
      ubuntu*) command -v python3 >/dev/null || echo python3-minimal ;; # Chromium is no package there
      *) for name in python3 chromium chromium-driver python3-selenium; do installed $name || echo $name; done ;;
    esac
  fi
}
needs_wheels() {
  ! have_toolkit || { $newer && ! have_new_toolkit; } || { $older && ! have_older_toolkit; } || { $dev && ! { have_lint_tool && have_jit_link; }; }
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt_get() {
  local try
  for try in 1 2 3 4 5; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" && return
    # Only the lock of the package lists is not waited for by apt itself.
    tail -n 3 "$log_folder/apt.log" | grep -qi 'could not get lock' || return 1
    echo "another package manager is at work; trying again in 20 seconds ($try of 5)"
    sleep 20
  done
  return 1
}
install_packages() {
  if [ -n "$(dpkg --audit)" ]; then as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a || return; fi
  apt_get update || echo "the package lists could not be updated; trying with the present ones"
  apt_get install -y --no-install-recommends "$@"
}

bring_packages() {
  if ! command -v apt-get >/dev/null; then
    warn "no apt-get here: install the packages that docs/building.md names by this system's own means; continuing"
    return 0
  fi
  local packages
  packages=$(missing_packages | sort -u | xargs)
  if [ -z "$packages" ]; then
    say "  packages: all installed"
    return 0
  fi
  say "  packages to install: $packages"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "installing packages needs root, and there is no sudo. As root run: apt-get install $packages"
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
      die "installing packages needs root, and sudo refused. Run as root: apt-get install $packages"
  fi
  # shellcheck disable=SC2086
  step "install packages" apt "check the network and 'apt-get update', then run this again; or install by hand: apt-get install $packages" \
    install_packages $packages || exit 1
}

install_cmake() {
  python3 -m venv "$project_root/.venv" && "$project_root/.venv/bin/pip" install --disable-pip-version-check 'cmake>=3.25,<4'
}
bring_cmake() {
  has_cmake && return 0
  step "bring cmake into .venv" venv "install CMake 3.25 or newer by hand and run this again" install_cmake || exit 1
  PATH=$project_root/.venv/bin:$PATH
}

started=$SECONDS
say "Setting up for $distribution in $project_root"
bring_packages
bring_cmake
if [ "$distribution" = "ubuntu 22.04" ] && [ ! -d "$project_root/.toolkit/prefix/include/SQLiteCpp" ]; then
  step "build SQLiteCpp" sqlitecpp "install SQLiteCpp 3.x by hand so that CMake finds it, and run this again" build_sqlitecpp noble || exit 1
fi
bring_toolkit
if $newer; then bring_new_toolkit; fi
if $older; then bring_older_toolkit; fi
if $dev; then bring_lint_tool; bring_jit_link; bring_python; fi
if $torch; then bring_torch || exit 1; fi
say "Set-up finished in $((SECONDS - started)) s"
