# Replays what an agent did in this turn, at the pace at which a person can follow.
here=$(dirname "$0")
turn=$SPRAG_TASK_ID-$SPRAG_TURN
while IFS= read -r line; do
  printf '%s\n' "$line"
  sleep 0.3
done <"$here/$turn.jsonl"
if [ -f "$here/$turn.sh" ]; then cp "$here/$turn.sh" slug.sh; fi
