# Creates a product, issues 500 vouchers, writes a mail for each of the first orders, voids a returned voucher and
# issues one in its place. Needs API, KEY (scope voucher.issue) and RUN, a name of your own for this run.
import itertools, json, os, sys, time
from http.client import HTTPException
from urllib.request import HTTPErrorProcessor, Request, build_opener

sys.excepthook = lambda _, error, __: print(error, file=sys.stderr)  # A sentence instead of a stack.
API, KEY, RUN = os.environ["API"], os.environ["KEY"], os.environ["RUN"]


class Refused(Exception):
    pass


class AsIs(HTTPErrorProcessor):
    """Returns every response as it is. Following a redirect would send the key to another address."""

    def http_response(self, request, response):
        return response

    https_response = http_response


opener = build_opener(AsIs)
# Firewalls refuse calls without Accept, and those of the name that Python gives itself.
opener.addheaders = [("Accept", "application/json"), ("User-Agent", "back-office")]
send = opener.open


def sentence(text, otherwise):
    """The service's sentence. A proxy's own answer has none."""
    try:
        return json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return otherwise


def call(path, body=None):
    """Sends a call, and repeats it while the outcome is unknown: every call here may be repeated."""
    for wait in itertools.chain([1, 2, 4], itertools.repeat(8)):
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{API}/issuer{path}", data, {"X-Api-Key": KEY, "Content-Type": "application/json"})
        try:
            with send(request, timeout=60) as response:
                status, retry_after, text = response.status, response.headers.get("Retry-After", ""), response.read()
            if status < 300:
                return json.loads(text)
            if status < 500 and status not in (408, 429):
                raise Refused(sentence(text, f"{path} answered {status}"))
            wait = int(retry_after or wait)
        except (OSError, HTTPException, ValueError):
            pass
        time.sleep(wait)


def items(path):
    """All items of a list, page by page."""
    cursor = ""
    while cursor is not None:
        page = call(f"{path}?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
        yield from page["items"]
        cursor = page["nextCursor"]


def product_with(key):
    """Your brand's product with this key. A key names one product, so a repeat does not create a second one."""
    brands = call("/brands")["items"]
    if not brands:
        sys.exit("Your organization has no brand: ask the operator of the voucher service to create one.")
    for product in items("/products"):
        if product["key"] == key:
            return product["id"]
    terms = {"name": "Day pass", "type": "Service", "retailPriceUsd": 19.9, "priceUsd": 15}
    return call(f"/brands/{brands[0]['id']}/products", {"key": key, **terms})["id"]


product = product_with(f"day-pass-{RUN}")
valid_until = "2030-12-31"
terms = {"issueRef": f"spring-{RUN}", "count": 500, "validUntil": valid_until}
batch = call(f"/products/{product}/batches", terms)

# One voucher for each order. Keep the voucher's id with the order: you need it when goods come back.
orders = [{"to": to, "number": f"{RUN}-{n}"} for n, to in enumerate(["ann@example.com", "bob@example.com"], 1)]
for order, voucher in zip(orders, items(f"/batches/{batch['id']}/vouchers")):
    order["voucher_id"] = voucher["id"]
    print(f"To: {order['to']}\nSubject: Your day pass, order {order['number']}\n\nYour code: {voucher['code']}\n")

# Bob returns his goods: void his voucher, and issue one for the goods that he gets instead.
returned = orders[1]
reason = f"returned, order {returned['number']}"
voided = call("/vouchers/void", {"id": returned["voucher_id"], "reason": reason})
terms = {"issueRef": f"{returned['number']} instead of {voided['id']}", "count": 1, "validUntil": valid_until}
instead = call(f"/products/{product}/batches", terms)
replacement = call(f"/batches/{instead['id']}/vouchers")["items"][0]
print(f"To: {returned['to']}\nSubject: Your new day pass, order {returned['number']}\n\nYour code: {replacement['code']}")
