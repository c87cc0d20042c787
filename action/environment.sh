#!/usr/bin/env bash
# The environment of the job around Sprag. Whoever can write to the runner's files and then kills Sprag with SIGKILL
# would choose what later steps run with, since nobody is left who undoes it. So one step notes the environment before,
# as an output, which the runner keeps where no process of the job can write, and a step after compares. It starts
# bash by its path, without what bash takes from variables, and uses nothing but bash, sha256sum and /proc.
set -euo pipefail

# The variables of the job, each with a digest. Those of the runner and of the step differ in every step.
state() {
  local entry name
  while IFS= read -r -d '' entry; do
    name=${entry%%=*}
    case $name in
      GITHUB_* | RUNNER_* | INPUT_* | ACTIONS_* | BEFORE_* | LD_AUDIT | LD_LIBRARY_PATH | LD_PRELOAD | _ | PWD | SHLVL | OLDPWD) continue ;;
      # The step has these empty, and the job's by other names.
      JOB_LD_*)
        [ -n "${entry#*=}" ] || continue
        name=${name#JOB_}
        ;;
    esac
    printf '%s %s\n' "$name" "$(digest "${entry#*=}")"
  done </proc/$$/environ
}

digest() {
  local digest
  digest=$(printf '%s' "$1" | command -p sha256sum)
  printf '%s' "${digest%% *}"
}

case $1 in
  note)
    {
      printf 'bash=%s\npath=%s\nstate<<sprag_end_of_state\n' "$BASH" "$PATH"
      state
      printf 'sprag_end_of_state\n'
    } >>"$GITHUB_OUTPUT"
    ;;
  check)
    changed=
    while read -r name digest; do
      case $'\n'$BEFORE_STATE$'\n' in
        *$'\n'"$name $digest"$'\n'*) continue ;;
      esac
      changed="$changed $name"
      if [ "$name" = PATH ]; then
        # The last line that the runner reads comes first on the path.
        IFS=: read -r -a directories <<<"$BEFORE_PATH"
        for ((at = ${#directories[@]} - 1; at >= 0; at--)); do
          printf '%s\n' "${directories[at]}" >>"$GITHUB_PATH"
        done
      else
        printf '%s=\n' "$name" >>"$GITHUB_ENV"
      fi
    done < <(state)
    [ -z "$changed" ] || {
      echo "::error title=The environment of the job has changed::While Sprag worked, these variables changed, and Sprag was ended before it could undo this:$changed. They are empty from now on, and PATH begins as it was."
      exit 1
    }
    ;;
esac
