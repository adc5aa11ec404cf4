<?php // checkout.php
require "voucher-client.php";

$vouchers = new VoucherClient(getenv("API"), getenv("KEY"));
$externalRef = "shop-10005"; // The order's number.

// Replace these: orders in your database, payments that charge an order once however often they are called, and refunds
// that give back what the order was charged, if it was: a crash may have come after the charge.
$file = "order-$externalRef.json";
$save = fn(array $order) => file_put_contents($file, json_encode($order));
$takePayment = fn(array $order) => true;
$refund = fn(array $order) => null;

// After a crash or an OutcomeUnknown, run it again: it continues where it stopped.
$new = ["externalRef" => $externalRef, "code" => getenv("CODE"), "paid" => false];
$order = is_file($file) ? json_decode(file_get_contents($file), true) : $new;
$save($order); // Before the first call.
try {
    if (!$order["paid"]) {
        $reservation = $vouchers->reserve($order["code"]);
        $order["voucherId"] = $reservation["voucher"];
        $order["paid"] = $takePayment($order);
        $save($order);
        if (!$order["paid"]) $vouchers->release($reservation["ticket"], "not paid");
    }
    if ($order["paid"]) {
        $redemption = $vouchers->redeem($externalRef, ["code" => $order["code"]]);
        if ($redemption["voucherInstanceId"] !== $order["voucherId"]) throw new ReferenceReused($externalRef, $redemption);
        echo "Thank you! Your code is {$redemption["redeemCode"]}.\n";
    }
} catch (VoucherRefused $refusal) {
    if ($refusal->status !== 409 && $refusal->reason !== "voucher_not_found") {
        fwrite(STDERR, $refusal->getMessage() . "\n"); // The setup is wrong.
        exit(1);
    }
    $refund($order);
    $save(["paid" => false] + $order);
    echo $refusal->getMessage(), "\n"; // A sentence for people.
} catch (OutcomeUnknown | ReferenceReused $stop) {
    fwrite(STDERR, $stop->getMessage() . "\n");
    exit(1);
}
