#!/usr/bin/env bash
# What the action runs before Sprag where the input `install-agent` is set: one npm package of a fixed
# list, at exactly one version.
set -euo pipefail

action=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$action/fail.sh"

wanted=${INSTALL_AGENT:-}
version=${wanted#*@}
name=${wanted%%@*}
package=
names=
# Each line: the name that the input has for a package, and the package.
while read -r known npm_package; do
  names="$names${names:+, }$known"
  [[ $known != "$name" ]] || package=$npm_package
done <"$action/agents.txt"
[[ -n $package ]] ||
  fail "the input \`install-agent\` is $wanted, but only these can be installed, each as name@X.Y.Z: $names"
# A range or a tag such as `latest` would install another program from one day to the next.
[[ $wanted == *@* && $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
  fail "the input \`install-agent\` is $wanted, which is no exact version: write it as name@X.Y.Z"

npm=$(command -v npm) ||
  fail "there is no npm to install $wanted with; run actions/setup-node before this action"

# The repository's own .npmrc must not say where the package comes from.
cd /
"$npm" install --global --ignore-scripts=false --no-audit --no-fund -- "$package@$version" ||
  fail "npm could not install $package@$version; what it says is in the log above"
