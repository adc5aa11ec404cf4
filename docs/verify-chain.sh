# Verifies the history of the voucher CODE.
set -euo pipefail
chain=$(curl -sS --fail-with-body "$API/partner/vouchers/$CODE/events" -H "X-Api-Key: $KEY")
columns='.sealStatus, .eventType, .recordHash // "-", .previousHash // "-",
         $said.sequence // "-", $said.previousHash // "-", (.payload // "" | @base64)'
events=$(jq -r ".events[] | (.payload // \"{}\" | fromjson) as \$said | [$columns] | @tsv" <<< "$chain")
previous=$(printf '0%.0s' {1..64}) number=0
while read -r status type record_hash previous_hash said_sequence said_previous payload; do
  number=$((number + 1))
  if [ "$status" = Pending ]; then echo "$number $type pending"; continue; fi
  hash=$(base64 -d <<< "$payload" | sha256sum | cut -d ' ' -f 1)
  links="$said_sequence $said_previous $previous_hash"
  if [ "$hash" != "$record_hash" ] || [ "$links" != "$number $previous $previous" ]; then
    echo "$number $type BROKEN"; exit 1
  fi
  echo "$number $type ok"
  previous=$hash
done <<< "$events"
