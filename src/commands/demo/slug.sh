# slug TITLE: prints TITLE as a part of a URL.
slug() {
  printf '%s' "$1" | tr ' ' '-'
}
