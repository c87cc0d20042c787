# Sourced by the steps of the action.

# Says what is missing as Sprag would: annotation, outputs, exit code 4.
fail() {
  local line=${1//[$'\r\n']/ }
  printf '::error title=Sprag cannot begin::%s\n' "${line//'%'/%25}"
  if [ -n "${GITHUB_OUTPUT:-}" ]; then
    printf '%s\n' status=environment reason=environment "summary=environment: $line" >>"$GITHUB_OUTPUT"
  fi
  exit 4
}
