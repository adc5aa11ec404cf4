<?php
// A client of the Partner Voucher API for PHP 8.1 with OpenSSL, without any package. docs/clients.md shows how to use it.

/** The service refused the call; repeating it unchanged would not help. `$reason` is for programs, the message for people. */
final class VoucherRefused extends Exception
{
    public readonly string $reason;

    public function __construct(public readonly int $status, array $body)
    {
        parent::__construct($body["error"]);
        $this->reason = $body["code"];
    }
}

/** No final response before the time limit. Keep the reference and repeat the call later. */
final class OutcomeUnknown extends Exception {}

/** The reference has redeemed another voucher. The voucher of this call was not redeemed: do not deliver. */
final class ReferenceReused extends Exception
{
    public function __construct(string $externalRef, public readonly array $redemption)
    {
        parent::__construct("$externalRef has redeemed another voucher. Do not deliver.");
    }
}

/**
 * The calls of one key. Each call is retried after a network error, a 408, 429, 5xx, or an answer that is not the
 * service's, for at most `$patience` seconds.
 */
final class VoucherClient
{
    /** What waiting does not change: PHP's settings, an unknown host, a wrong certificate or protocol. */
    private const LASTING = "/wrapper|not known|certificate verify failed|did not match|wrong version number/i";

    /** Firewalls refuse calls without them. */
    private const NAMED = ["Accept: application/json", "User-Agent: voucher-client"];

    public function __construct(private string $api, private string $key, private float $patience = 60) {}

    public function lookUp(string $codeOrTicket): array
    {
        return $this->call("GET", "vouchers/" . rawurlencode($codeOrTicket));
    }

    public function events(string $codeOrTicket): array
    {
        return $this->call("GET", "vouchers/" . rawurlencode($codeOrTicket) . "/events");
    }

    public function reserve(string $code): array
    {
        return $this->call("POST", "vouchers/reserve", ["code" => $code]);
    }

    public function redeem(string $externalRef, array $voucher): array
    {
        $redemption = $this->call("POST", "vouchers/redeem", ["externalRef" => $externalRef] + $voucher);
        if ($redemption["otherVoucher"] ?? false) throw new ReferenceReused($externalRef, $redemption);
        return $redemption;
    }

    public function release(string $ticket, ?string $reason = null): array
    {
        return $this->call("POST", "vouchers/release", ["ticket" => $ticket, "reason" => $reason]);
    }

    public function redemptions(array $query): array
    {
        return $this->call("GET", "redemptions?" . http_build_query($query));
    }

    private function call(string $method, string $path, ?array $body = null): array
    {
        $giveUpAt = microtime(true) + $this->patience;
        for ($attempt = 0; ; $attempt++) {
            [$status, $headers, $answer, $failure] = $this->send($method, $path, $body);
            if ($status === 200 && is_array($answer)) return $answer;
            // An answer without the service's code is a proxy's: it says nothing about the voucher.
            $isRefusal = is_array($answer) && is_string($answer["code"] ?? null) && is_string($answer["error"] ?? null);
            if ($isRefusal && $status < 500 && $status !== 408 && $status !== 429) {
                throw new VoucherRefused($status, $answer);
            }
            $wait = min(2 ** $attempt, 8);
            foreach ($headers as $header) {
                if (preg_match('/^retry-after: *([1-9]\d*)$/i', $header, $match)) $wait = (int) $match[1];
            }
            $wait *= 1 + random_int(0, 500) / 1000;
            if (microtime(true) + $wait > $giveUpAt || preg_match(self::LASTING, $failure)) {
                throw new OutcomeUnknown("$method $path got no final answer. $failure");
            }
            usleep((int) ($wait * 1_000_000));
        }
    }

    /**
     * The status, headers and JSON of a response, and why there is none. The status is 0 without a response, the JSON null
     * when it is incomplete.
     */
    private function send(string $method, string $path, ?array $body): array
    {
        $warnings = [];
        set_error_handler(function (int $level, string $text) use (&$warnings) {
            $warnings[] = $text;
            return true;
        });
        $stream = fopen(rtrim($this->api, "/") . "/partner/$path", "r", false, stream_context_create(["http" => [
            "method" => $method,
            "header" => ["X-Api-Key: " . trim($this->key), "Content-Type: application/json", ...self::NAMED],
            "content" => $body === null ? "" : json_encode($body, JSON_THROW_ON_ERROR),
            "timeout" => 15,
            "follow_location" => 0,
            "ignore_errors" => true, // A refusal has a body, too.
        ]]));
        restore_error_handler();
        if ($stream === false) return [0, [], null, implode(" ", $warnings)];
        $headers = stream_get_meta_data($stream)["wrapper_data"];
        $answer = json_decode((string) stream_get_contents($stream), true);
        fclose($stream);
        return [(int) explode(" ", $headers[0])[1], $headers, $answer, "The status is $headers[0]."];
    }
}
