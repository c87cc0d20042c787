# slug TITLE: prints TITLE as a part of a URL.
slug() {
  printf '%s' "$1" | sed 's/É/é/g; s/È/è/g; s/Ä/ä/g; s/Ö/ö/g; s/Ü/ü/g' | tr 'A-Z ' 'a-z-' |
    tr -s '-' | sed 's/^-//; s/-$//'
}
