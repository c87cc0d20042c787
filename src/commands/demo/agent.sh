# The agent of the demo. It follows this script where a real agent asks a model; everything else in the run is real.
# $1 is the pause in seconds before each of its actions, so that a person can follow.
pause=${1:-0}

# Sprag's own events, one line of JSON each.
say() {
  sleep "$pause"
  printf '{"event":"agent.message","text":"%s"}\n' "$1"
}
tool() {
  sleep "$pause"
  printf '{"event":"agent.tool_call","name":"%s","summary":"%s"}\n' "$1" "$2"
}
finish() {
  sleep "$pause"
  printf '%s\n' "$1" >"$SPRAG_FINAL_FILE"
}

case $SPRAG_TASK_ID-$SPRAG_TURN in
lowercase-1)
  tool read slug.sh
  tool read test.sh
  finish 'I looked at slug.sh. It replaces spaces only.

Plan:
1. Change the tr of slug.sh so that it maps A-Z to a-z
2. Run the tests

I will implement this now:'
  ;;
lowercase-2)
  say 'tr can change the case along with the spaces.'
  tool edit slug.sh
  cat >slug.sh <<'END'
# slug TITLE: prints TITLE as a part of a URL.
slug() {
  printf '%s' "$1" | tr 'A-Z ' 'a-z-'
}
END
  finish 'slug.sh now changes A-Z to lower case.

SUGGESTED_COMMIT_MESSAGE: Make slugs lower case'
  ;;
lowercase-3)
  tool run 'sh test.sh lowercase'
  sh test.sh lowercase
  say 'tr works on bytes, so the accented letters stay as they are. sed can change those first.'
  tool edit slug.sh
  cat >slug.sh <<'END'
# slug TITLE: prints TITLE as a part of a URL.
slug() {
  printf '%s' "$1" | sed 's/É/é/g; s/È/è/g; s/Ä/ä/g; s/Ö/ö/g; s/Ü/ü/g' | tr 'A-Z ' 'a-z-'
}
END
  finish 'The accented letters go through sed first; the rest is done by tr as before.

SUGGESTED_COMMIT_MESSAGE: Make slugs lower case, accented letters too'
  ;;
dashes-1)
  tool read slug.sh
  say 'tr -s squeezes the runs, and sed takes the dashes off the ends.'
  tool edit slug.sh
  cat >slug.sh <<'END'
# slug TITLE: prints TITLE as a part of a URL.
slug() {
  printf '%s' "$1" | sed 's/É/é/g; s/È/è/g; s/Ä/ä/g; s/Ö/ö/g; s/Ü/ü/g' | tr 'A-Z ' 'a-z-' |
    tr -s '-' | sed 's/^-//; s/-$//'
}
END
  tool run 'sh test.sh all'
  sh test.sh all
  finish 'Runs of dashes are squeezed and those at the ends removed.

SUGGESTED_COMMIT_MESSAGE: Squeeze and trim the dashes of slugs'
  ;;
esac
