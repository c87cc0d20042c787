# Shared by the scripts beside it and by .ci/run; sourced, never run. Written for bash.

set -euo pipefail
export LC_ALL=C.UTF-8

# The root of the checkout, and where the scripts keep what they install.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
TOOLS=$TARGET/tools

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# What could not be done here and therefore was not. Said at once in capitals, and again at the
# end of .ci/run, which names the file in SPRAG_CI_SKIPPED. With SPRAG_CI_STRICT=1 it is an error.
skipped() {
  say ""
  say "!!! NOT DONE: $*"
  say ""
  if [ -n "${SPRAG_CI_SKIPPED:-}" ]; then printf '%s\n' "$*" >>"$SPRAG_CI_SKIPPED"; fi
  if [ "${SPRAG_CI_STRICT:-}" = 1 ]; then die "SPRAG_CI_STRICT=1 allows nothing to be left out"; fi
}

# apt COMMAND PACKAGE...: installs Debian packages unless the command is there already.
# Fails when it cannot, which callers may answer with `|| skipped ...`.
apt() {
  local command=$1 sudo=()
  shift
  if has "$command"; then return 0; fi
  if ! has apt-get; then return 1; fi
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then return 1; fi
    sudo=(sudo -n)
  fi
  say "installing $* for $command"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
    { "${sudo[@]}" apt-get update -qq && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends "$@" >/dev/null; } || return 1
  has "$command"
}

# wheel COMMAND VERSION PACKAGE: a program that its makers publish as a package for pip.
wheel() {
  local command=$1 version=$2 to=$TOOLS/$1
  case $("$to/bin/$command" --version 2>/dev/null) in *" $version") return 0 ;; esac
  rm -rf "$to"
  if ! python3 -m pip --version >/dev/null 2>&1; then apt pip3 python3 python3-pip || return 1; fi
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
    --no-deps --target "$to" "$3==$version"
}

# What every build needs: Rust, and a C compiler for libgit2.
need_toolchain() {
  has cargo || die "cargo is missing: install Rust from https://rustup.rs"
  apt cc gcc libc6-dev || die "a C compiler is missing: install gcc or clang"
}

# Prints the target of binaries with everything linked into them. Fails where its standard library or its
# compiler of C cannot be had.
musl_target() {
  local musl
  musl=$(uname -m)-unknown-linux-musl
  [ -d "$(rustc --print sysroot)/lib/rustlib/$musl/lib" ] ||
    { has rustup && rustup target add "$musl" >&2; } || return 1
  apt musl-gcc musl-tools || return 1
  printf '%s\n' "$musl"
}
