# A client of the Partner Voucher API without any package. docs/clients.md shows how to use it.
import json, random, socket, ssl, time
from decimal import Decimal
from http.client import HTTPException
from urllib.parse import quote, urlencode
from urllib.request import HTTPErrorProcessor, Request, build_opener


class VoucherRefused(Exception):
    """The service refused the call; repeating it unchanged would not help. `code` is for programs, the message for people."""

    def __init__(self, status, body):
        super().__init__(body["error"])
        self.status, self.code, self.request_id = status, body["code"], body.get("requestId")


class OutcomeUnknown(Exception):
    """No final response before the time limit. Keep the reference and repeat the call later."""


class ReferenceReused(Exception):
    """The reference has redeemed another voucher. The voucher of this call was not redeemed: do not deliver."""

    def __init__(self, external_ref, redemption):
        super().__init__(f"{external_ref} has redeemed another voucher. Do not deliver.")
        self.redemption = redemption


class _AsIs(HTTPErrorProcessor):
    """Returns every response as it is. Following a redirect would send the key to another address."""

    def http_response(self, request, response):
        return response

    https_response = http_response


_opener = build_opener(_AsIs)
# Firewalls refuse calls without Accept, and those of the name that Python gives itself.
_opener.addheaders = [("Accept", "application/json"), ("User-Agent", "voucher-client")]
_open = _opener.open


def _is_lasting(error):
    """Whether waiting does not change it: an unknown host, a wrong certificate, protocol or address."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, socket.gaierror):
        return reason.errno == socket.EAI_NONAME
    if isinstance(reason, ssl.SSLError):
        return isinstance(reason, ssl.SSLCertVerificationError) or reason.reason == "WRONG_VERSION_NUMBER"
    return isinstance(error, ValueError) and not isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))


class VoucherClient:
    """The calls of one key. Each call is retried after a network error, a 408, 429, 5xx, or an answer that is not the
    service's, for at most `patience_s`."""

    def __init__(self, api, key, patience_s=60):
        self.api, self.key, self.patience_s = api.rstrip("/"), key.strip(), patience_s

    def look_up(self, code_or_ticket):
        return self._call("GET", "vouchers/" + quote(code_or_ticket, safe=""))

    def events(self, code_or_ticket):
        return self._call("GET", "vouchers/" + quote(code_or_ticket, safe="") + "/events")

    def reserve(self, code):
        return self._call("POST", "vouchers/reserve", {"code": code})

    def redeem(self, external_ref, **voucher):
        redemption = self._call("POST", "vouchers/redeem", {"externalRef": external_ref, **voucher})
        if redemption.get("otherVoucher"):
            raise ReferenceReused(external_ref, redemption)
        return redemption

    def release(self, ticket, reason=None):
        return self._call("POST", "vouchers/release", {"ticket": ticket, "reason": reason})

    def redemptions(self, **query):
        return self._call("GET", "redemptions?" + urlencode(query))

    def _call(self, method, path, body=None):
        give_up_at = time.monotonic() + self.patience_s
        attempt = 0
        while True:
            wait_s = min(2**attempt, 8)
            try:
                request = Request(
                    f"{self.api}/partner/{path}",
                    method=method,
                    headers={"X-Api-Key": self.key, "Content-Type": "application/json"},
                    data=None if body is None else json.dumps(body).encode(),
                )
                with _open(request, timeout=15) as response:
                    status, retry_after = response.status, response.headers.get("Retry-After", "")
                    if retry_after.isdigit():
                        wait_s = int(retry_after) or wait_s
                    answer = json.load(response, parse_float=Decimal)
                answer = answer if isinstance(answer, dict) else {}
                if status == 200 and answer:
                    return answer
                # An answer without the service's code is a proxy's: it says nothing about the voucher.
                is_refusal = isinstance(answer.get("code"), str) and isinstance(answer.get("error"), str)
                if is_refusal and status < 500 and status not in (408, 429):
                    raise VoucherRefused(status, answer)
                cause = None
            except (OSError, HTTPException, ValueError) as error:
                cause = error  # No response, an incomplete one, or no JSON.
            wait_s *= 1 + random.random() / 2
            if time.monotonic() + wait_s > give_up_at or _is_lasting(cause):
                raise OutcomeUnknown(f"{method} {path} got no final answer: {cause or status}") from cause
            time.sleep(wait_s)
            attempt += 1
