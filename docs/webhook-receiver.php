<?php // Receives webhooks in any web server that runs PHP. To try it: php -S 127.0.0.1:8080 webhook-receiver.php
http_response_code(500); // Unless the event is stored. After an error the service sends the event again.
$key = base64_decode(substr((string) getenv("SIGNING_SECRET"), strlen("whsec_")));
if ($key === "") throw new Exception("SIGNING_SECRET is not set.");
$id = $_SERVER["HTTP_WEBHOOK_ID"] ?? "";
$timestamp = $_SERVER["HTTP_WEBHOOK_TIMESTAMP"] ?? "";
$given = explode(" ", $_SERVER["HTTP_WEBHOOK_SIGNATURE"] ?? "");
$body = file_get_contents("php://input", length: 65_536); // A longer body is cut, so its signature does not match.

$isTimely = preg_match('/^[0-9]{1,12}$/D', $timestamp) && abs($_SERVER["REQUEST_TIME"] - (int) $timestamp) <= 300;
$expected = "v1," . base64_encode(hash_hmac("sha256", "$id.$timestamp.$body", $key, true));
$matches = array_filter($given, fn ($one) => hash_equals($expected, $one));
if (!$isTimely || $matches === []) {
  http_response_code(401);
  exit;
}

// Replace the files with a table whose primary key is the id. Do the work later.
$inbox = __DIR__ . "/events";
@mkdir($inbox);
$file = "$inbox/" . hash("sha256", $id);
$draft = "$file." . bin2hex(random_bytes(8));
try {
  $isWritten = @file_put_contents($draft, $body) === strlen($body);
  // Only a complete event gets its name, and only once: `link` fails if the event was received before.
  $isNew = $isWritten && @link($draft, $file);
} finally {
  @unlink($draft);
}
if ($isNew) error_log($id . " " . json_decode($body)->type);
if ($isNew || is_file($file)) http_response_code(204);
