<?php // Verifies the history of the voucher CODE.
$url = getenv("API") . "/partner/vouchers/" . getenv("CODE") . "/events";
$context = stream_context_create(["http" => ["header" => "X-Api-Key: " . getenv("KEY"), "follow_location" => 0]]);
$answer = json_decode((string) file_get_contents($url, false, $context), true);
if (!isset($answer["events"])) throw new Exception("no history");
["entityId" => $entityId, "events" => $events] = $answer;
// An event without payload was erased by a later one, which says so.
$erasures = [];
foreach ($events as $event) {
    if ($event["sealStatus"] !== "Sealed" || $event["eventType"] !== "voucher.instance.erased") continue;
    $said = json_decode($event["payload"] ?? "null", true);
    if (($said["eventType"] ?? null) !== $event["eventType"]) continue;
    foreach ($said["data"]["erasedSequences"] ?? [] as $sequence) $erasures[] = [$event["sequence"], $sequence];
}
$previous = str_repeat("0", 64);
$afterPending = false;
foreach ($events as $index => $event) {
    $number = $index + 1;
    $name = "$number {$event["eventType"]}";
    if ($event["sealStatus"] === "Pending") {
        $parts = [$event["payload"], $event["recordHash"], $event["previousHash"]];
        if ($parts !== [null, null, null] || $event["sequence"] !== $number) {
            echo "$name BROKEN\n";
            exit(1);
        }
        echo "$name pending\n";
        $afterPending = true;
        continue;
    }
    $naming = array_filter($erasures, fn($one) => $one[1] === $number && $one[0] > $number);
    $erased = $event["payload"] === null && count($naming) > 0;
    $hash = $erased ? $event["recordHash"] : hash("sha256", $event["payload"] ?? "");
    $said = $erased ? $event : json_decode($event["payload"] ?? "{}", true);
    $links = [$said["sequence"] ?? null, $said["previousHash"] ?? null, $event["sequence"], $event["previousHash"]];
    $erasesLater = count(array_filter($erasures, fn($one) => $one[0] === $number && $one[1] >= $number)) > 0;
    $isHash = preg_match('/^[0-9a-f]{64}$/D', $hash ?? "");
    $isSameType = ($said["eventType"] ?? null) === $event["eventType"];
    $isSameVoucher = $erased || ($said["entityId"] ?? null) === $entityId;
    $isLinked = $links === [$number, $previous, $number, $previous];
    $isTrue = $isHash && $hash === $event["recordHash"] && $isLinked && $isSameType && $isSameVoucher;
    if ($afterPending || !$isTrue || $erasesLater) {
        echo "$name BROKEN\n";
        exit(1);
    }
    echo $erased ? "$name ok, erased\n" : "$name ok\n";
    $previous = $hash;
}
