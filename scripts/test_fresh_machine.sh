#!/usr/bin/env bash
# For maintainers, as root on Debian: makes a minimal Debian 12 (or another release) in a temporary folder, clones the
# committed state of this repository into it and runs the given stages there as a new user would, with their times.
#   scripts/test_fresh_machine.sh [--release NAME] [--keep] [setup] [quickstart] [test]     (default: quickstart test)
# Mirror, proxies, certificates and pip's index are taken from this machine at run time. Its mounts live in a namespace
# of their own, so nothing stays mounted however it ends.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

release=bookworm keep=false stages=()
while [ $# -gt 0 ]; do
  case $1 in
    --release) release=${2:?--release needs a name}; shift ;;
    --keep) keep=true ;;
    setup | quickstart | test) stages+=("$1") ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) die "unknown argument '$1'" ;;
  esac
  shift
done
[ ${#stages[@]} -gt 0 ] || stages=(quickstart test)
[ "$(id -u)" = 0 ] || die "this needs root: it makes a root folder and enters it with chroot"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"

machine=$(mktemp -d /var/tmp/pascaline-machine.XXXXXX)
leave() {
  stop_ticker
  if $keep; then say "kept: $machine"; else rm -rf --one-file-system "$machine"; fi
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# "URI SUITE COMPONENTS" of this machine's sources of the release and its updates.
sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
  awk -v release="$release" 'index($2, release) == 1 { key = $1 " " $2; if (!seen[key " " $3]++) parts[key] = parts[key] " " $3 }
    END { for (key in parts) print key parts[key] }' | sort)
mirror=$(awk -v release="$release" '$2 == release { print $1; exit }' <<<"$sources")
[ -n "$mirror" ] || die "this machine's package sources have no release '$release'"

# pip's and the proxies' settings of this machine, as environment for the new one.
settings=(HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -n "${!name:-}" ] && settings+=("$name=${!name}")
done
while IFS='=' read -r key value; do
  value=${value#\'} value=${value%\'}
  case $key in
    *.index-url) settings+=("PIP_INDEX_URL=$value") ;;
    *.extra-index-url) settings+=("PIP_EXTRA_INDEX_URL=$value") ;;
    *.trusted-host) settings+=("PIP_TRUSTED_HOST=$value") ;;
    *.proxy) settings+=("PIP_PROXY=$value") ;;
    *.cert) cp -L "$value" "$machine/host-ca.crt" && settings+=(PIP_CERT=/etc/host-ca.crt) ;;
  esac
done < <(python3 -m pip config list 2>/dev/null || true)

make_machine() {
  debootstrap --variant=minbase "$release" "$machine/root" "$mirror" || return
  [ -e "$machine/host-ca.crt" ] && mv "$machine/host-ca.crt" "$machine/root/etc/host-ca.crt"
  sed 's/^/deb /' <<<"$sources" >"$machine/root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(.*Proxy|Check-)' >"$machine/root/etc/apt/apt.conf.d/90host" || true
  cp -L /etc/resolv.conf "$machine/root/etc/resolv.conf"
  cp /etc/hosts "$machine/root/etc/hosts"
  git -c safe.directory='*' clone --quiet "file://$project_root" "$machine/root/root/pascaline"
}

# enter COMMAND: runs it in the new machine's copy of the repository.
enter() {
  unshare --mount --pid --fork bash -c '
    set -e
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev" && mount --make-rslave "$0/dev"
    mount -t tmpfs tmpfs "$0/tmp"
    exec chroot "$0" /usr/bin/env -i "${@:2}" bash -c "cd /root/pascaline && $1"' "$machine/root" "$1" "${settings[@]}"
}

step "make a minimal $release" fresh-machine "check the mirror $mirror" make_machine || exit 1
status=0
summary=()
for stage in "${stages[@]}"; do
  began=$SECONDS outcome=passed
  say "==== scripts/$stage.sh"
  enter "scripts/$stage.sh" || { outcome=FAILED status=1; }
  summary+=("$stage: $outcome in $((SECONDS - began)) s")
  [ "$status" = 0 ] || break
done
began=$SECONDS
[ "$status" = 0 ] && enter "scripts/setup.sh >/dev/null" && summary+=("set-up again: $((SECONDS - began)) s")
printf '%s\n' "==== on a minimal $release:" "${summary[@]}"
exit "$status"
