<?php // Adds up the redemptions from FROM to TO. Needs voucher-client.php in the same folder.
require "voucher-client.php";

$vouchers = new VoucherClient(getenv("API"), getenv("KEY"));
$query = ["from" => getenv("FROM"), "to" => getenv("TO"), "limit" => 1000];
$count = $cents = 0;
for (;;) {
    $page = $vouchers->redemptions($query);
    foreach ($page["redemptions"] as $redemption) {
        // Here, compare with your order of $redemption["externalRef"].
        $count += 1;
        $cents += (int) round($redemption["discountPriceUsd"] * 100);
    }
    if ($page["nextCursor"] === null) break;
    if ($page["redemptions"] === []) {
        fwrite(STDERR, "Not complete: the list is final until {$page["completeUntil"]}. Try again later.\n");
        exit(1);
    }
    $query = ["cursor" => $page["nextCursor"], "limit" => 1000];
}
printf("%d redemptions, %d.%02d USD\n", $count, intdiv($cents, 100), $cents % 100);
