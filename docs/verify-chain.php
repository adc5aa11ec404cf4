<?php // Verifies the history of the voucher CODE.
$url = getenv("API") . "/partner/vouchers/" . getenv("CODE") . "/events";
$context = stream_context_create(["http" => ["header" => "X-Api-Key: " . getenv("KEY")]]);
$events = json_decode(file_get_contents($url, false, $context), true)["events"];
$previous = str_repeat("0", 64);
foreach ($events as $index => $event) {
    $number = $index + 1;
    $name = "$number {$event["eventType"]}";
    if ($event["sealStatus"] === "Pending") {
        echo "$name pending\n";
        continue;
    }
    $hash = hash("sha256", $event["payload"]);
    $said = json_decode($event["payload"], true);
    $links = [$said["sequence"] ?? null, $said["previousHash"] ?? null, $event["previousHash"]];
    if ($hash !== $event["recordHash"] || $links !== [$number, $previous, $previous]) {
        echo "$name BROKEN\n";
        exit(1);
    }
    echo "$name ok\n";
    $previous = $hash;
}
