# Prints the body of a genuine request from standard input, and otherwise exits with 1. The headers are in the variables that CGI gives them.
set -euo pipefail
: "${HTTP_WEBHOOK_ID?}" "${HTTP_WEBHOOK_TIMESTAMP?}" "${HTTP_WEBHOOK_SIGNATURE?}"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
head -c 65536 > "$body"
[[ $HTTP_WEBHOOK_TIMESTAMP =~ ^[1-9][0-9]{0,11}$ ]] || exit 1
age=$(($(date +%s) - HTTP_WEBHOOK_TIMESTAMP))
((age <= 300 && age >= -300)) || exit 1
key=$(openssl base64 -d -A <<< "${SIGNING_SECRET#whsec_}" | od -An -v -tx1 | tr -d ' \n')
expected=$({ printf '%s.%s.' "$HTTP_WEBHOOK_ID" "$HTTP_WEBHOOK_TIMESTAMP"; cat "$body"; } |
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
read -ra given <<< "$HTTP_WEBHOOK_SIGNATURE"
for signature in "${given[@]}"; do
  if [ "$signature" = "v1,$expected" ]; then cat "$body"; exit; fi
done
exit 1
