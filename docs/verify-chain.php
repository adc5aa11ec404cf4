<?php // Verifies the history of the voucher CODE.
$erasing = "voucher.instance.erased";
$url = getenv("API") . "/partner/vouchers/" . getenv("CODE") . "/events";
// Firewalls refuse calls without Accept and User-Agent.
$header = ["X-Api-Key: " . getenv("KEY"), "Accept: application/json", "User-Agent: verify-chain"];
$context = stream_context_create(["http" => ["header" => $header, "follow_location" => 0]]);
$answer = json_decode((string) file_get_contents($url, false, $context));
if (!is_array($answer->events ?? null)) throw new Exception("no history");
// Writes canonical JSON (RFC 8785), or "" for a number of more digits than payloads have.
$canonical = function ($value) use (&$canonical) {
    if (is_array($value)) return "[" . implode(",", array_map($canonical, $value)) . "]";
    if (is_object($value)) {
        $members = (array) $value;
        ksort($members, SORT_STRING);
        $write = fn($name, $member) => $canonical((string) $name) . ":" . $canonical($member);
        return "{" . implode(",", array_map($write, array_keys($members), $members)) . "}";
    }
    $text = json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_LINE_TERMINATORS);
    return !is_string($value) && preg_match('/\de|\d{16}/i', $text) ? "" : $text;
};
// The object in a payload; an empty one for a text that is not canonical.
$parse = function ($text) use ($canonical) {
    $said = is_string($text) ? json_decode($text) : null;
    return is_object($said) && $canonical($said) === $text ? $said : new stdClass();
};
// An event without payload was erased by a later one, which says so.
$named = [];
foreach ($answer->events as $index => $event) {
    $said = $parse($event->payload ?? null);
    $types = [$event->eventType ?? null, $said->eventType ?? null];
    if (($event->sealStatus ?? null) !== "Pending" && $types === [$erasing, $erasing])
        $named[$index + 1] = $said->data->erasedSequences ?? null;
}
$previous = str_repeat("0", 64);
$afterPending = false;
foreach ($answer->events as $index => $event) {
    $number = $index + 1;
    $known = ["v" => 1, "entityType" => "VoucherInstance", "entityId" => $answer->entityId ?? null];
    $beside = ["sequence", "eventType", "code", "occurredAt", "previousHash", "actorConnectedId", "actorIsEmployee"];
    foreach ($beside as $member) $known[$member] = $event->$member ?? null;
    [$payload, $hash] = [$event->payload ?? null, $event->recordHash ?? null];
    $isTrue = $known["sequence"] === $number;
    if (($event->sealStatus ?? null) === "Pending") {
        $isTrue = $isTrue && [$payload, $hash, $known["previousHash"]] === [null, null, null];
        $word = "pending";
        $afterPending = true;
    } else {
        $isTrue = $isTrue && !$afterPending && $known["previousHash"] === $previous && is_string($hash);
        if ($payload === null) {
            $names = fn($list, $at) => is_array($list) && $at > $number && $at === ($event->erasedBy ?? $at)
                && in_array($number, $list, true);
            $isErased = array_filter($named, $names, ARRAY_FILTER_USE_BOTH) !== [];
            $isTrue = $isTrue && $isErased && preg_match('/^[0-9a-f]{64}$/D', $hash);
            $word = "ok, erased";
        } else {
            $said = $parse($payload);
            foreach ($known as $member => $value) $said->$member = $value;
            $isTrue = $isTrue && is_string($payload) && hash("sha256", $payload) === $hash;
            $isTrue = $isTrue && $canonical($said) === $payload;
            $list = $named[$number] ?? null;
            $isLater = fn($erased) => !is_int($erased) || $erased < 1 || $erased >= $number;
            if ($known["eventType"] === $erasing)
                $isTrue = $isTrue && is_array($list) && array_filter($list, $isLater) === [];
            $word = "ok";
        }
        $previous = $hash;
    }
    echo $number, " ", is_string($known["eventType"]) ? $known["eventType"] : "?", " ", $isTrue ? $word : "BROKEN", "\n";
    if (!$isTrue) exit(1);
}
