#!/usr/bin/env bash
# What the action runs: finds the binary and becomes it, so that one process is there to be
# signalled. Inputs come as INPUT_* variables, which Sprag reads itself.
set -euo pipefail

action=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$action/action/fail.sh"

# A value of the package in the action's own tree, which says its version whatever the ref was
# under which the action is used: a tag, a branch or a commit.
package() { sed -n "/^$1 = \"/{s/^$1 = \"\(.*\)\"\$/\1/p;q;}" "$action/Cargo.toml"; }

# get NAME FILE: one file of the release.
get() {
  curl --fail --silent --show-error --location --proto '=https' --retry 3 \
    --connect-timeout 20 --max-time 300 --output "$2" "$release/$1"
}
download() {
  get "$1" "$2" ||
    fail "$release/$1 cannot be downloaded; the input \`binary\` names a sprag that is there already"
}

if [ -n "${INPUT_BINARY:-}" ]; then
  binary=$(command -v -- "$INPUT_BINARY") ||
    fail "the input \`binary\` is $INPUT_BINARY, which is no program that can be run"
else
  case "$(uname -s) $(uname -m)" in
    "Linux x86_64") asset=sprag-x86_64-linux ;;
    "Linux aarch64" | "Linux arm64") asset=sprag-aarch64-linux ;;
    *) fail "there is no sprag for $(uname -s) on $(uname -m), only for Linux on x86_64 and aarch64" ;;
  esac
  server=${GITHUB_SERVER_URL:-https://github.com}
  upstream=$(package repository)
  releases=releases/download/v$(package version)
  release=$server/${ACTION_REPOSITORY:-${upstream#https://github.com/}}/$releases

  at=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/sprag-binary.XXXXXX")
  # Not run where the script becomes Sprag.
  trap 'rm -rf "$at"' EXIT
  binary=$at/sprag
  # A server of one's own has the action's tree, and seldom its releases. The checksum is that of the tree.
  if [ "$server" != https://github.com ] && ! get "$asset" "$binary"; then
    release=$upstream/$releases
  fi
  [ -s "$binary" ] || download "$asset" "$binary"
  # The tree of a release carries the checksums of its binaries: who pins its commit pins them.
  sums=$action/action/SHA256SUMS
  if [ ! -f "$sums" ]; then
    sums=$at/SHA256SUMS
    download SHA256SUMS "$sums"
  fi
  wanted=$(awk -v name="$asset" '$2 == name { print $1 }' "$sums")
  found=$(sha256sum <"$binary" | cut -d ' ' -f 1)
  [ "$wanted" = "$found" ] ||
    fail "$asset of $release has the checksum $found, but ${wanted:-none} is expected"
  chmod +x "$binary"
fi

publish=${INPUT_PUBLISH:-}
matrix=${INPUT_MATRIX:-}
shards=${INPUT_SHARDS:-}
integrate=${INPUT_INTEGRATE:-}
unset INPUT_BINARY INPUT_PUBLISH INPUT_MATRIX INPUT_SHARDS INPUT_INTEGRATE ACTION_REPOSITORY
if [ -n "$publish" ]; then
  exec "$binary" publish -- "$publish"
fi
if [ -n "$matrix" ]; then
  exec "$binary" matrix ${shards:+"--shards=$shards"} -- "$matrix"
fi
if [ -n "$integrate" ]; then
  exec "$binary" integrate -- "$integrate"
fi
# GitHub's machines let no ordinary process have namespaces, which private caches need. They serve one job.
if [ "${RUNNER_ENVIRONMENT:-}" = github-hosted ]; then
  sudo -n sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0 2>/dev/null || true
fi
exec "$binary" run
