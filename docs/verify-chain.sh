# Verifies the history of the voucher CODE.
set -euo pipefail
chain=$(curl -sS --fail-with-body "$API/partner/vouchers/$CODE/events" -H "X-Api-Key: $KEY")
# An event without payload was erased by a later one, which says so.
erasures='[.events[] | select(.sealStatus == "Sealed" and .eventType == "voucher.instance.erased" and .payload != null)
           | .sequence as $by | .eventType as $type | .payload | fromjson | select(.eventType == $type)
           | .data.erasedSequences[] | {by: $by, erased: .}]'
state='if .sealStatus == "Pending"
       then if [.payload, .recordHash, .previousHash] == [null, null, null] then "pending" else "false" end
       elif any($erasures[]; .by == $number and .erased >= $number) then "false"
       elif .payload != null and [$said.eventType, $said.entityId] != [.eventType, $entity] then "false"
       elif .payload != null then "whole"
       elif any($erasures[]; .erased == $number and .by > $number) then "erased" else "lost" end'
columns='.eventType, .sequence, .recordHash // "-", .previousHash // "-", $state,
         $said.sequence // "-", $said.previousHash // "-", (.payload // "" | @base64)'
events=$(jq -r "$erasures as \$erasures | .entityId as \$entity | .events[] | .sequence as \$number
  | (.payload // \"{}\" | fromjson) as \$said | ($state) as \$state | [$columns] | @tsv" <<< "$chain")
previous=$(printf '0%.0s' {1..64}) number=0 after_pending=no
while read -r type sequence record_hash previous_hash state said_sequence said_previous payload; do
  number=$((number + 1))
  if [ "$state $sequence" = "pending $number" ]; then
    echo "$number $type pending"; after_pending=yes; continue
  fi
  hash=$(base64 -d <<< "$payload" | sha256sum | cut -d ' ' -f 1) ok=ok
  if [ "$state" = erased ] && [[ $record_hash =~ ^[0-9a-f]{64}$ ]]; then
    hash=$record_hash said_sequence=$sequence said_previous=$previous_hash ok='ok, erased'
  fi
  links="$sequence $said_sequence $said_previous $previous_hash"
  if [ "$hash" != "$record_hash" ] || [ "$links" != "$number $number $previous $previous" ] ||
    [ "$state" = false ] || [ "$state" = lost ] || [ "$after_pending" = yes ]; then
    echo "$number $type BROKEN"; exit 1
  fi
  echo "$number $type $ok"
  previous=$hash
done <<< "$events"
