# Verifies the history of the voucher CODE.
set -euo pipefail
chain=$(curl -sS --fail-with-body "$API/partner/vouchers/$CODE/events" -H "X-Api-Key: $KEY")
# jq compares each event with its payload and the event before, and writes its number, state, recordHash, payload and type.
program='
def quoted: if . == "" then "\"\"" else "\"" + (split("\u007f") | map(tojson[1:-1]) | join("\u007f")) + "\"" end;
# Canonical JSON (RFC 8785), or "?" for a number that payloads do not have.
def canonical:
  if type == "object" then "{" + ([keys[] as $name | ($name | quoted) + ":" + (.[$name] | canonical)] | join(",")) + "}"
  elif type == "array" then "[" + (map(canonical) | join(",")) + "]"
  elif type == "string" then quoted
  elif type == "number" then (. + 0 | tojson | if test("[0-9]e|[0-9]{16}"; "i") then "?" else . end)
  else tojson end;
# The object in the payload; an empty one for a text that is not canonical.
def said: .payload as $text | (try ($text | fromjson) catch null) | if type == "object" and canonical == $text then . else {} end;
def erased: said | if .data | type == "object" then .data.erasedSequences else null end;
def is_hash: type == "string" and length == 64 and test("^[0-9a-f]{64}$");
def is_earlier($number): type == "number" and . == floor and . >= 1 and . < $number;
"voucher.instance.erased" as $erasing | .entityId as $entity
| [.events[] | if type == "object" then . else {} end] as $events
# An event without payload was erased by a later one, which says so.
| [range($events | length) as $at | $events[$at]
   | select(.sealStatus != "Pending" and .eventType == $erasing and said.eventType == $erasing)
   | {by: ($at + 1), list: erased} | select(.list | type == "array")] as $erasures
| range($events | length) as $at | ($at + 1) as $number | $events[$at]
| {v: 1, entityType: "VoucherInstance", entityId: $entity, sequence, eventType, code, occurredAt, previousHash,
   actorConnectedId, actorIsEmployee} as $known
| (if $at == 0 then "0" * 64 else $events[$at - 1].recordHash end) as $previous
| .erasedBy as $erased_by
| (if .sequence != $number then "BROKEN"
   elif .sealStatus == "Pending" then
     if [.payload, .recordHash, .previousHash] == [null, null, null] then "pending" else "BROKEN" end
   elif $at > 0 and $events[$at - 1].sealStatus == "Pending" then "BROKEN"
   elif .previousHash != $previous or (.recordHash | is_hash | not) then "BROKEN"
   elif .payload == null then
     if any($erasures[]; .by > $number and ($erased_by == null or .by == $erased_by) and any(.list[]; . == $number))
     then "erased" else "BROKEN" end
   elif (.payload | type) != "string" or (said + $known | canonical) != .payload then "BROKEN"
   elif .eventType == $erasing and (erased | type != "array" or any(.[]; is_earlier($number) | not)) then "BROKEN"
   else "whole" end) as $state
| [$number, $state, (if $state == "whole" then .recordHash, (.payload | @base64) else "-", "-" end),
   (.eventType | tostring)] | @tsv'
events=$(jq -r "$program" <<< "$chain")
if [ -z "$events" ]; then exit; fi
while IFS=$'\t' read -r number state record_hash payload type; do
  case $state in
    whole)
      hash=$(base64 -d <<< "$payload" | sha256sum | cut -d ' ' -f 1)
      if [ "$hash" = "$record_hash" ]; then state=ok; else state=BROKEN; fi ;;
    erased) state='ok, erased' ;;
  esac
  echo "$number $type $state"
  if [ "$state" = BROKEN ]; then exit 1; fi
done <<< "$events"
