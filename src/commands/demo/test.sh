# Run by: sh test.sh lowercase|dashes|all
. ./slug.sh
passed=0 failed=0
check() {
  actual=$(slug "$1")
  if [ "$actual" = "$2" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "slug.sh:3:3: error: slug '$1': expected '$2', got '$actual'"
  fi
}
case $1 in lowercase | all)
  check 'Hello' 'hello'
  check 'Release Notes' 'release-notes'
  check 'ÉTÉ 2026' 'été-2026'
esac
case $1 in dashes | all)
  check 'a  b' 'a-b'
  check ' a b ' 'a-b'
esac
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
