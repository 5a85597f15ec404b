# shellcheck shell=bash
# Shared by the scripts of this folder; source it from a script that has set -eu and pipefail.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What building and running needs, by Debian 12 package; scripts/test adds the second compiler.
readonly BUILD_PACKAGES=(g++ cmake ninja-build libssl-dev libfmt-dev nlohmann-json3-dev
  libcli11-dev liblzma-dev libxxhash-dev catch2)
readonly TEST_PACKAGES=("${BUILD_PACKAGES[@]}" librapidcheck-dev python3 python3-jsonschema xz-utils
  clang-19 libclang-rt-19-dev clang-format-19)

step() { printf '\n== %s\n' "$*"; }

fail() {
  local status=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$status"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Installs those of the named Debian packages that are missing. Touches neither apt nor the network
# when all are there. Without dpkg it changes nothing: CMake then names what it cannot find.
need_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "Not a Debian system; make sure that these are installed: $*"
    return
  fi
  local missing=() package as_root=()
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail 3 "needs root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  step "Install ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# build PRESET [TARGET...]: configures and builds below build/PRESET.
build() {
  local preset=$1 targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  step "Build $preset"
  cmake --preset "$preset"
  cmake --build --preset "$preset" "${targets[@]}"
}
