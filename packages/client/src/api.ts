// Generated from the OpenAPI document by `npm run client`. Do not edit.

export interface paths {
    "/partner/vouchers/reserve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reserve a voucher for one checkout
         * @description Reserves a voucher for 15 minutes, so that no other key can redeem it without the reservation's token. A repeat by the same key returns the same ticket, token and expiry. Every other key is refused while the reservation is live.
         */
        post: operations["reserveVoucher"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/vouchers/redeem": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redeem a voucher, exactly once
         * @description Redeems a voucher under your own order reference, exactly once. Repeat the call with the same `externalRef` as often as you like: it redeems one voucher and returns the same result, with `alreadyConfirmed: true`.
         *
         *     **If you get no response, or a 503, send the call again with the same `externalRef` until you get another response.** A different `externalRef` is a different order and redeems another voucher.
         *
         *     A refusal confirms nothing, so its `externalRef` can be used again. A reservation made by your own key does not prevent redemption. A voucher reserved by another key of your organization requires the reservation's `token`.
         */
        post: operations["redeemVoucher"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/vouchers/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Release a reservation
         * @description Ends a reservation that is not needed, so that the voucher is free at once. Always safe to call: a ticket without a live reservation, for any reason, answers 200 with `released: false`.
         */
        post: operations["releaseReservation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/vouchers/{codeOrTicket}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look up a voucher
         * @description Returns a voucher's value, its status and its live reservation. Changes nothing. Vouchers of other organizations answer like vouchers that do not exist.
         */
        get: operations["lookUpVoucher"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/vouchers/{codeOrTicket}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a voucher's sealed events
         * @description Every event of the voucher with the exact text that was hashed, so that you can recompute each hash: `recordHash` is the SHA-256 of `payload`, and each payload contains the previous event's hash.
         */
        get: operations["readVoucherEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/redemptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your organization's redemptions
         * @description Every redemption by any key of your organization, one page at a time, to settle a day or to keep your own books.
         *
         *     Follow `nextCursor` until it is null, and each redemption is listed exactly once, also those that commit while you read. A list without `to` never ends: keep the last cursor and continue with it later. Only redemptions before `completeUntil` are listed, and none is ever added before it. The list has no voucher codes.
         *
         *     With `externalRef`, the response is that of `GET /partner/redemptions/{externalRef}`, also through proxies that change a path with an encoded slash.
         *
         *     With `Accept: text/csv` the answer is one CSV file of all redemptions from `from` to the earlier of `to` and `completeUntil`; `limit` and `cursor` do not apply. The header `Complete-Until` has the end that it reaches.
         */
        get: operations["listRedemptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/redemptions/{externalRef}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the redemption of a reference
         * @description What this `externalRef` redeemed, as a repeated redeem would answer it, without trying to redeem anything. A 404 is no proof that an attempt failed: it may still be in progress. Repeat the redeem to find out.
         */
        get: operations["readRedemption"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/vouchers/{codeOrTicket}/events/{sequence}/receipt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the receipt of an event
         * @description A proof that one sealed event of the voucher is in the transparency log, with the event's payload. An event that does not exist answers 404 `not_found`.
         */
        get: operations["readEventReceipt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/redemptions/{externalRef}/receipt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a redemption's receipt
         * @description A proof that the redemption's sealed event is in the transparency log. It has the event's payload and verifies offline, also after this service is gone: keep it with your order. Until a checkpoint covers the event, usually for a second, the response is 409 `not_logged_yet`.
         */
        get: operations["readRedemptionReceipt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/redemptions/receipt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a redemption's receipt by a query
         * @description The response of `GET /partner/redemptions/{externalRef}/receipt`, also through proxies that change a path with an encoded slash.
         */
        get: operations["readReceiptByReference"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your organization's webhook endpoints
         * @description All endpoints, without their secrets.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook endpoint
         * @description Events of your organization's vouchers are sent to `url` from now on, signed with the `secret` of the response as [Standard Webhooks](https://www.standardwebhooks.com/) specifies. The secret is shown only here. An organization has at most 20 endpoints. The name is resolved and its addresses are checked when a request is sent, so send a test to see whether it arrives.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a webhook endpoint
         * @description Shows whether it is enabled, and since when it has been failing. The secret is not shown again: rotate it if you have lost it.
         */
        get: operations["readWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook endpoint
         * @description Ends its deliveries, and deletes their list. A request that is on its way may still arrive.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook endpoint
         * @description Changes the fields that the body has. `enabled: true` enables an endpoint that you disabled, that answered 410, or that failed for 5 days. Only the operator can enable one that the operator disabled.
         */
        patch: operations["changeWebhook"];
        trace?: never;
    };
    "/partner/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test to a webhook endpoint
         * @description Sends one signed event of the type `webhook.test` now, and returns the result within about 15 seconds. It is not repeated and not listed among the deliveries.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give a webhook endpoint a new secret
         * @description For 24 hours, each request is also signed with the previous secret. Another rotation within that time ends no earlier secret: each signs for its 24 hours. While 10 earlier secrets sign, a further rotation is refused.
         */
        post: operations["rotateWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/webhooks/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send deliveries of a webhook endpoint again
         * @description Sends finished deliveries again, with the same ids: those of events in a period, or those with the given `eventIds`. At most 10,000, the oldest first: call it again with a later `from` for more. Deliveries that still wait are not affected.
         */
        post: operations["replayWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/partner/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the deliveries of a webhook endpoint
         * @description What was sent to the endpoint in the last 30 days and what waits, with the state and the last result of each. Of an answer, only its status is kept.
         */
        get: operations["listWebhookDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/brands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your organization's brands
         * @description The operator creates brands. Products belong to one.
         */
        get: operations["listBrands"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/products": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your organization's products
         * @description All products, or those of one brand.
         */
        get: operations["listProducts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your organization's batches
         * @description All batches, or those of one brand or product. It counts no vouchers: read one batch for that.
         */
        get: operations["listBatches"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/batches/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a batch and count its vouchers by status
         * @description The counts are of this moment. A million vouchers take seconds.
         */
        get: operations["readBatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/batches/{id}/vouchers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the codes of a batch
         * @description All vouchers of the batch, used and voided ones too. Each reading leaves an audit entry. With `Accept: text/csv` the answer is one file with the columns `id,code,serial`, and `limit` and `cursor` do not apply. A file that breaks off is not complete: a batch with a `count` of 500 has 500 lines after the heading.
         */
        get: operations["listBatchVouchers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/vouchers/void": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Void one voucher
         * @description It can never be used again, and its reservation ends. Exactly one of `code` and `id` names it. A repeat is a success. A voucher that was redeemed or has expired cannot be voided.
         */
        post: operations["voidVoucher"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/batches/{id}/void": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Void the active vouchers of a batch
         * @description They can never be used again, and their reservations end. The response comes after at most five seconds: repeat the call until `remaining` is 0. Each call begins where the last one ended.
         */
        post: operations["voidBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/brands/{id}/rename": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rename the brand
         * @description Partners and customers see the new name at once, on old vouchers too.
         */
        post: operations["renameBrand"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/brands/{id}/products": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a product
         * @description Create a product. It leaves an audit entry.
         */
        post: operations["createProduct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/products/{id}/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Issue a batch of vouchers
         * @description If it ends early, nothing is issued.
         */
        post: operations["issueBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/batches/{id}/listings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * List the batch on the marketplace
         * @description Users can buy the listed vouchers while the batch is open to buy.
         */
        post: operations["createListing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/brands/{id}/contracts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Offer a referrer a contract
         * @description It has no effect until it is accepted.
         */
        post: operations["offerContract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/contracts/{id}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept the contract
         * @description The referrer has accepted: links can be made.
         */
        post: operations["acceptContract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/contracts/{id}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decline the contract
         * @description The referrer has declined the contract.
         */
        post: operations["declineContract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/contracts/{id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the contract
         * @description Its links stop working at once, for good.
         */
        post: operations["endContract"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/issuer/contracts/{id}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a link
         * @description Each signed-in user can claim a voucher with the link while the contract is active.
         */
        post: operations["createLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sandbox/advance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a sandbox's times come closer
         * @description Moves the times of the key's sandbox organization that are still ahead back by `seconds`, as if that time had passed: the ends of live reservations, `validUntil` of vouchers, windows, and the ends of referrer contracts. Reservations and vouchers whose time is over then end as usual. Nothing else moves: events, redemptions, keys and times that have passed stay as they are.
         *
         *     Each call moves the times again, so do not repeat it blindly. It applies to the whole organization, also to the vouchers of other tests. At most 10,000 reservations may be live. The expired events of a large batch are recorded within seconds after the response; `status` is right at once.
         */
        post: operations["advanceSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/integrity/events/{entityType}/{entityId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Verify a voucher's history without a key
         * @description The chain's hashes, for anyone who knows the voucher's id; every `verifyUrl` points here. Payloads are left out because they contain codes: the holder of a payload can hash it and find the hash here. A browser gets a page that shows the chain and verifies it.
         */
        get: operations["readPublicEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/integrity/events/{entityType}/{entityId}/{sequence}/proof": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Prove an event without a key
         * @description A proof that the event's `recordHash` is in the transparency log, for anyone who knows the voucher's id. It has no payload: if you have the payload, hash it to compare.
         */
        get: operations["readEventProof"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/marketplace/listings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the marketplace
         * @description Every listing whose vouchers are still valid, one page at a time. Everyone sees listings for referrers; `canBuy` tells whether this caller may buy. A caller without a token is treated as a user without a contract.
         */
        get: operations["readListings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/marketplace/listings/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one listing
         * @description One listing as the caller sees it. The token is optional.
         */
        get: operations["readListing"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/marketplace/listings/{id}/buy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Buy from a listing
         * @description Gives the user a voucher of the listing's batch for a payment that the storefront has captured. One voucher per organization, user and `paymentRef`, across both purchase endpoints: a repeat returns the same voucher, even if the offer has since closed.
         */
        post: operations["buyListing"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/products/{id}/buy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Buy a product's voucher
         * @description Gives the user a voucher of the product for a payment that the storefront has captured. The voucher comes from the batch that expires first among those open to the user. One voucher per organization, user and `paymentRef`, across both purchase endpoints.
         */
        post: operations["buyProduct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/products/{id}/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Claim a product's voucher
         * @description Gives the user a free voucher of the product, from the batch that expires first among those open to the user. One voucher per user and product: a repeat returns the same voucher.
         */
        post: operations["claimProduct"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/r/{code}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Open a referral link
         * @description What the link offers, for callers that prefer JSON, as `Accept: application/json` does. All others get a page for people. `POST /r/{code}/claim` claims through it. A link works while its contract is active.
         */
        get: operations["openLink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/r/{code}/claim": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Claim through a referrer's link
         * @description Gives the user a free voucher of the link's product, from batches of either audience, and records the referrer. Works while the referrer's contract is active. One voucher per user and product, like every claim.
         */
        post: operations["claimByLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the process up?
         * @description For liveness probes. Contacts no other server.
         */
        get: operations["health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Can the process serve requests?
         * @description For readiness probes. Checks within 1.5 seconds that Postgres has the schema of this release, and that both servers answer and take writes.
         */
        get: operations["readiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/log/checkpoint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the log's newest checkpoint
         * @description The size and the root hash of the transparency log, signed by the log and its witnesses.
         */
        get: operations["readCheckpoint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/log/policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the log's policy
         * @description The keys of the log and its witnesses, and how many witnesses a checkpoint needs. Compare it with a copy that you keep.
         */
        get: operations["readPolicy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/log/tile/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a tile of the log
         * @description A part of the log in the format [tlog-tiles](https://c2sp.org/tlog-tiles). A tile never changes.
         */
        get: operations["readTile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "voucher.instance.redeemed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: voucher.instance.redeemed
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["voucherInstanceRedeemed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "voucher.instance.voided": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: voucher.instance.voided
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["voucherInstanceVoided"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "voucher.instance.expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: voucher.instance.expired
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["voucherInstanceExpired"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "voucher.instance.claimed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: voucher.instance.claimed
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["voucherInstanceClaimed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "voucher.instance.bought": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: voucher.instance.bought
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["voucherInstanceBought"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "reservation.expired": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: reservation.expired
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["reservationExpired"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook.test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sent to your endpoints: webhook.test
         * @description Later versions may add types and fields. Answer within 15 seconds.
         */
        post: operations["webhookTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        ReserveRequest: {
            /**
             * @description The voucher's code, in any case, with or without white space, dashes, full stops, asterisks and low lines, with O for 0 and I or L for 1. A reservation's ticket also works.
             * @example 25QP-086Q-XM9Q-S8QT
             */
            code: string;
        };
        /** @description Exactly one of `code` and `ticket` identifies the voucher. A null field is treated as absent. */
        RedeemRequest: {
            /**
             * @description The voucher's code, in any case, with or without white space, dashes, full stops, asterisks and low lines, with O for 0 and I or L for 1. A reservation's ticket also works.
             * @example 25QP-086Q-XM9Q-S8QT
             */
            code?: string | null;
            /**
             * @description The ticket of a reservation.
             * @example rsv_01m7zjmag2eh3rfc0c44b0yr38
             */
            ticket?: string | null;
            /**
             * @description Your reference for this redemption, such as the order number. It is the idempotency key: it must be unique in your organization and can redeem only one voucher. White space at its ends is removed: spaces of any kind, tabs and line ends. Control characters are rejected, and so is a text that begins with `erased:`. Format characters, such as zero-width spaces, are removed too, and the rest is compared in Unicode's form NFC. `.` and `..` are rejected.
             * @example order-20261121-0007
             */
            externalRef: string;
            /**
             * @description The token from the reservation's response. Required only to redeem a voucher that another key of your organization has reserved. A wrong token is refused, even from the key that made the reservation.
             * @example S7wbuIyIyPXwKbzyVFtXS8HXQvY5Bij2ETQpjXhTJWE
             */
            token?: string | null;
            /**
             * @description Free text, kept permanently in the voucher's sealed history. Do not send personal data.
             * @example Till 4, evening shift
             */
            note?: string | null;
        } & ({
            code: string;
            ticket?: null;
        } | {
            ticket: string;
            code?: null;
        });
        ReleaseRequest: {
            /**
             * @description The ticket of a reservation.
             * @example rsv_01m7zjmag2eh3rfc0c44b0yr38
             */
            ticket: string;
            /**
             * @description Why the reservation is not needed. Stored with the reservation.
             * @example customer left
             */
            reason?: string | null;
        };
        CreateWebhookRequest: {
            /**
             * @description Where requests are sent: https, port 443 or 8443, a public address, no user name, password or fragment.
             * @example https://shop.example.com/hooks/vouchers
             */
            url: string;
            /**
             * @description A name for your own use.
             * @default
             * @example orders of the web shop
             */
            description?: string;
            /**
             * @description The events that are sent. An empty list means all, also types that later versions add.
             * @default []
             * @example [
             *       "voucher.instance.redeemed",
             *       "voucher.instance.voided"
             *     ]
             */
            eventTypes?: ("voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.claimed" | "voucher.instance.bought" | "reservation.expired")[];
            /**
             * @description Whether events are sent. Events that happen while it is disabled are never sent.
             * @default true
             */
            enabled?: boolean;
        };
        ChangeWebhookRequest: {
            /**
             * @description Where requests are sent: https, port 443 or 8443, a public address, no user name, password or fragment.
             * @example https://shop.example.com/hooks/vouchers
             */
            url?: string;
            /**
             * @description A name for your own use.
             * @example orders of the web shop
             */
            description?: string;
            /**
             * @description The events that are sent. An empty list means all, also types that later versions add.
             * @example [
             *       "voucher.instance.redeemed",
             *       "voucher.instance.voided"
             *     ]
             */
            eventTypes?: ("voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.claimed" | "voucher.instance.bought" | "reservation.expired")[];
            /** @description Whether events are sent. Events that happen while it is disabled are never sent. */
            enabled?: boolean;
        };
        ReplayWebhookRequest: {
            /**
             * Format: date-time
             * @description Replays events that were queued at or after this time. ISO 8601 with a time zone; encode a plus sign as %2B.
             */
            from?: string;
            /**
             * Format: date-time
             * @description Replays events that were queued before this time. ISO 8601 with a time zone; encode a plus sign as %2B.
             */
            to?: string;
            /**
             * @description Replays these events.
             * @example [
             *       "vch_01m7zjmag2eh3rfc071drn775z-2"
             *     ]
             */
            eventIds?: string[];
        };
        /** @description Exactly one of `code` and `id`. A null field is treated as absent. */
        VoidVoucherRequest: {
            /**
             * @description The voucher's code, in any accepted spelling.
             * @example 25QP-086Q-XM9Q-S8QT
             */
            code?: string | null;
            /**
             * @description The voucher's id.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            id?: string | null;
            /**
             * @description Kept in the sealed history.
             * @default null
             */
            reason?: string | null;
        };
        VoidBatchRequest: {
            /**
             * @description Kept in the sealed history.
             * @default null
             */
            reason?: string | null;
        };
        RenameBrandRequest: {
            /** @description Name. */
            name: string;
        };
        CreateProductRequest: {
            /** @description Name. Customers see it. */
            name: string;
            /** @description Key. For programs, unique within the brand: day-pass */
            key: string;
            /**
             * @description Type.
             * @enum {string}
             */
            type: "Subscription" | "Product" | "Service" | "Discount";
            /** @description List price in US dollars. */
            retailPriceUsd: number;
            /** @description Price of the voucher in US dollars. */
            priceUsd: number;
            /**
             * @description Months. How long the benefit lasts. 0: not stated.
             * @default 0
             */
            benefitMonths?: number;
            /**
             * @description In which uses are counted, such as visit.
             * @default null
             */
            usageUnitLabel?: string | null;
        };
        IssueBatchRequest: {
            /** @description Number of vouchers. */
            count: number;
            /** @description Valid until. A date alone means the end of that day, UTC. */
            validUntil: string;
            /**
             * @description Who may claim or buy. This cannot be changed later.
             * @default OpenToAll
             * @enum {string}
             */
            audience?: "OpenToAll" | "ReferrerOnly";
            /** @description The windows through which users may claim or buy. */
            windows?: {
                /** @description The window through which users claim. Without it, they cannot. */
                claim?: {
                    /** @description When it opens; null: with the issue. */
                    opensAt?: string | null;
                    /** @description When it closes; null: when the vouchers expire. */
                    closesAt?: string | null;
                };
                /** @description The window through which users buy. Without it, they cannot. */
                buy?: {
                    /** @description When it opens; null: with the issue. */
                    opensAt?: string | null;
                    /** @description When it closes; null: when the vouchers expire. */
                    closesAt?: string | null;
                };
            };
            /**
             * @description Your reference for the batch, such as the order's number. It issues at most one. White space at its ends is removed: spaces of any kind, tabs and line ends. Control characters are rejected, and so is a text that begins with `erased:`. Format characters, such as zero-width spaces, are removed too, and the rest is compared in Unicode's form NFC. `.` and `..` are rejected.
             * @example order-20261121-0007
             */
            issueRef: string;
        };
        OfferContractRequest: {
            /** @description User. The subject of the referrer's tokens. */
            user: string;
            /** @description Ends at. A date alone means the end of that day, UTC. */
            endsAt?: string | null;
        };
        CreateLinkRequest: {
            /** @description Product. */
            product: string;
        };
        AdvanceSandboxRequest: {
            /**
             * @description How far to move the times back: at most 400 days.
             * @example 900
             */
            seconds: number;
        };
        BuyRequest: {
            /**
             * @description The id of the captured payment. Each payment of a user can buy only one voucher of an organization. White space at its ends is removed: spaces of any kind, tabs and line ends. Control characters are rejected, and so is a text that begins with `erased:`.
             * @example pay_3QK9v2Lx81
             */
            paymentRef: string;
        };
        /** @description Fields are ignored, and the body may be omitted. */
        ClaimRequest: Record<string, never>;
        WebhookRedeemed: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "voucher.instance.redeemed";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * @description The event's position in the voucher's chain.
                 * @example 2
                 */
                sequence: number;
                /** @description The event's `recordHash` in the voucher's chain. */
                recordHash: string;
                /**
                 * @description The reference under which the voucher was redeemed.
                 * @example order-20261121-0007
                 */
                externalRef: string;
                /**
                 * @description The code to give to the customer, who uses it to get the benefit.
                 * @example FZPY-DXN7-0MV2
                 */
                redeemCode: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookVoided: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "voucher.instance.voided";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * @description The event's position in the voucher's chain.
                 * @example 2
                 */
                sequence: number;
                /** @description The event's `recordHash` in the voucher's chain. */
                recordHash: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookExpired: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "voucher.instance.expired";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * @description The event's position in the voucher's chain.
                 * @example 2
                 */
                sequence: number;
                /** @description The event's `recordHash` in the voucher's chain. */
                recordHash: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookClaimed: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "voucher.instance.claimed";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * @description The event's position in the voucher's chain.
                 * @example 2
                 */
                sequence: number;
                /** @description The event's `recordHash` in the voucher's chain. */
                recordHash: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookBought: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "voucher.instance.bought";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * @description The event's position in the voucher's chain.
                 * @example 2
                 */
                sequence: number;
                /** @description The event's `recordHash` in the voucher's chain. */
                recordHash: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookReservationExpired: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "reservation.expired";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                voucherId: string;
                /**
                 * Format: date-time
                 * @description When the reservation began. ISO 8601 in UTC, with milliseconds.
                 * @example 2026-11-21T11:58:31.902Z
                 */
                startedAt: string;
                /**
                 * Format: date-time
                 * @description When it expired, as the answer to reserve said. ISO 8601 in UTC, with milliseconds.
                 * @example 2026-11-21T12:13:31.902Z
                 */
                expiresAt: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        WebhookTest: {
            /**
             * @description The type of the event.
             * @constant
             */
            type: "webhook.test";
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            timestamp: string;
            /** @description What has happened. */
            data: {
                /**
                 * @description The endpoint that was tested.
                 * @example whk_01m7zjmag4eh3rfc1b0q9x4d7e
                 */
                webhookId: string;
                /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
                sandbox?: boolean;
            };
        };
        Reservation: {
            /**
             * @description Identifies the reservation. Accepted wherever a code is accepted; required to release the reservation.
             * @example rsv_01m7zjmag2eh3rfc0c44b0yr38
             */
            ticket: string;
            /**
             * @description A secret that lets another key of the same organization redeem the reserved voucher. Treat it as a password: pass it on only to complete the sale, and never log it.
             * @example S7wbuIyIyPXwKbzyVFtXS8HXQvY5Bij2ETQpjXhTJWE
             */
            token: string;
            /**
             * Format: date-time
             * @description When the reservation expires. Reserving again does not extend it. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:13:31.902Z
             */
            expiresAt: string;
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            voucher: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Error: {
            /** @description A sentence for a person, in the language of `Content-Language`. */
            error: string;
            code: components["schemas"]["ErrorCode"];
            /**
             * @description The value of `X-Request-Id`. Quote it when you ask us about a response.
             * @example 48949506-6721-4252-90f3-fa52b013b41e
             */
            requestId: string;
        };
        /** @description A stable code for programs to branch on. Later releases add codes: treat one that you do not know by the status of its response. */
        ErrorCode: components["schemas"]["KnownErrorCode"] | string;
        /**
         * @description The codes of this release.
         * @enum {string}
         */
        KnownErrorCode: "invalid_http" | "headers_too_large" | "request_timeout" | "invalid_json" | "invalid_request" | "body_too_large" | "unsupported_encoding" | "missing_key" | "unknown_key" | "missing_scope" | "missing_token" | "invalid_token" | "missing_password" | "wrong_password" | "missing_role" | "cross_site" | "portal_needs_read_key" | "referrers_only" | "key_without_organization" | "address_not_allowed" | "sandbox_only" | "not_found" | "voucher_not_found" | "entity_not_found" | "redemption_not_found" | "listing_not_found" | "product_not_found" | "link_not_found" | "webhook_not_found" | "webhooks_off" | "method_not_allowed" | "voucher_used" | "voucher_voided" | "voucher_expired" | "reservation_ended" | "token_mismatch" | "voucher_reserved" | "not_logged_yet" | "payload_erased" | "webhook_limit" | "webhook_disabled" | "sold_out" | "window_closed" | "already_exists" | "wrong_status" | "rate_limited" | "too_many_misses" | "redeem_timeout" | "redeem_unknown" | "voucher_busy" | "overloaded" | "unavailable" | "internal_error";
        Redemption: {
            /**
             * @description The voucher is redeemed under your `externalRef`.
             * @constant
             */
            redeemed: true;
            /** @description Confirmed means redeemed under this `externalRef`. False: this call redeemed the voucher. True: an earlier call redeemed it; the other fields repeat that call's result, and nothing was redeemed again. Both are successes. */
            alreadyConfirmed: boolean;
            /**
             * @description Present and true only when this `externalRef` has redeemed another voucher than the one that this request names. The voucher of this request was not redeemed: **do not accept it**. Either your references repeat, or a retry has changed its code.
             * @constant
             */
            otherVoucher?: true;
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            voucherInstanceId: string;
            /**
             * @description The code to give to the customer, who uses it to get the benefit.
             * @example FZPY-DXN7-0MV2
             */
            redeemCode: string;
            /**
             * @description The voucher's number within its batch, starting at 1.
             * @example 1042
             */
            serial: number;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
             * @example studio-pass-3
             */
            productKey: string;
            /**
             * @description The voucher's value. US dollars, at most two decimals.
             * @example 19.9
             */
            discountPriceUsd: number;
            /**
             * @description Duration of the benefit in months. 0 means that the product states no duration.
             * @example 3
             */
            benefitMonths: number;
            /**
             * Format: date-time
             * @description When the voucher was redeemed. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            redeemedAt: string;
            /**
             * Format: uri
             * @description Where anyone can verify the voucher's history without a key. May be printed on a receipt.
             * @example https://vouchers.example.com/integrity/events/VoucherInstance/vch_01m7zjmag2eh3rfc071drn775z
             */
            verifyUrl: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Release: components["schemas"]["Released"] | components["schemas"]["NothingReleased"];
        /** @description The voucher is free again. */
        Released: {
            /**
             * @description This call ended the reservation.
             * @constant
             */
            released: true;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        /** @description The ticket has no live reservation. This is not an error. */
        NothingReleased: {
            /**
             * @description There was no live reservation.
             * @constant
             */
            released: false;
            /** @description Why there was nothing to release: a sentence in the language of `Content-Language`. */
            reason: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        LookUp: {
            voucher: components["schemas"]["Voucher"];
            /** @description The live reservation; null when there is none. */
            reservation: components["schemas"]["LiveReservation"] | null;
            /**
             * Format: uri
             * @description Where anyone can verify the voucher's history without a key. May be printed on a receipt.
             * @example https://vouchers.example.com/integrity/events/VoucherInstance/vch_01m7zjmag2eh3rfc071drn775z
             */
            verifyUrl: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        /** @description A voucher, its value and its status. */
        Voucher: {
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            id: string;
            /**
             * @description The code as it was issued. A secret: it can be redeemed.
             * @example 25QP-086Q-XM9Q-S8QT
             */
            code: string;
            /**
             * @description The voucher's number within its batch, starting at 1.
             * @example 1042
             */
            serial: number;
            /**
             * @description The brand's name.
             * @example Blue Door Studios
             */
            brand: string;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
             * @example studio-pass-3
             */
            productKey: string;
            /**
             * @description The kind of product.
             * @enum {string}
             */
            type: "Subscription" | "Product" | "Service" | "Discount";
            /**
             * @description The product's list price when the voucher was issued. US dollars, at most two decimals.
             * @example 29.9
             */
            retailPriceUsd: number;
            /**
             * @description The voucher's value. US dollars, at most two decimals.
             * @example 19.9
             */
            priceUsd: number;
            /**
             * @description Duration of the benefit in months. 0 means that the product states no duration.
             * @example 3
             */
            benefitMonths: number;
            /**
             * @description The unit in which uses are counted, such as `visit`. Null when uses are not counted.
             * @example visit
             */
            usageUnitLabel: string | null;
            /**
             * Format: date-time
             * @description The first moment at which the voucher is no longer valid. ISO 8601 in UTC, with milliseconds.
             * @example 2027-12-31T23:59:59.000Z
             */
            validUntil: string;
            /** @description The status at the time of the call, by the service's clock. Active: can be reserved and redeemed. Redeemed and Voided are final and do not change after `validUntil`. Later releases may add values: treat one that you do not know as not redeemable. */
            status: ("Active" | "Redeemed" | "Voided" | "Expired") | string;
            /**
             * Format: date-time
             * @description When the voucher was redeemed; null until then. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            redeemedAt: string | null;
        };
        /** @description The voucher's live reservation. Never contains its token. */
        LiveReservation: {
            /**
             * @description The ticket. Shown only to the key that made the reservation; null for other keys.
             * @example rsv_01m7zjmag2eh3rfc0c44b0yr38
             */
            ticket: string | null;
            /**
             * Format: date-time
             * @description When the reservation began. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T11:58:31.902Z
             */
            startedAt: string;
            /**
             * Format: date-time
             * @description When the reservation expires. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:13:31.902Z
             */
            expiresAt: string;
            /** @description Whether the calling key made the reservation. */
            heldByCaller: boolean;
        };
        Chain: {
            /**
             * @description The type of the chain's entity.
             * @constant
             */
            entityType: "VoucherInstance";
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            entityId: string;
            /**
             * @description The namespace of these events.
             * @constant
             */
            anchorNamespace: "VoucherInstance:events";
            /** @description In the order of `sequence`. */
            events: components["schemas"]["Event"][];
            /**
             * Format: date-time
             * @description The time since which this service has stored the exact payloads. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-02T08:00:12.481Z
             */
            canonPreservedSinceUtc: string;
            /** @description Whether there are more events. To read them, set `after` to the last `sequence` of this page. */
            hasMore: boolean;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Event: {
            /**
             * @description The event's position in the chain: 1, 2, 3, without gaps.
             * @example 1
             */
            sequence: number;
            /** @description What happened. Later releases may add types. */
            eventType: ("voucher.instance.issued" | "voucher.instance.claimed" | "voucher.instance.bought" | "voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.erased") | string;
            /** @description A short code of the event's type. Later releases may add codes. */
            code: ("VCH001" | "VCH002" | "VCH003" | "VCH004" | "VCH005" | "VCH006" | "VCH007") | string;
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            occurredAt: string;
            /** @description Sealed: hashed, linked and never changed again, except that its payload may be erased. Pending: it happened and will be sealed within seconds. Later releases may add values. */
            sealStatus: ("Pending" | "Sealed") | string;
            /** @description The lower-case hex SHA-256 of the event's payload. Null while the event is Pending. */
            recordHash: string | null;
            /**
             * @description The event's leaf in the transparency log. Null until the served checkpoint covers it, and in a deployment without a log.
             * @example 70311
             */
            logIndex: number | null;
            /** @description The previous event's `recordHash`; 64 zeros for the first event. Null while the event is Pending. */
            previousHash: string | null;
            /**
             * @description Present if the payload was erased: the sequence of the event that says so.
             * @example 3
             */
            erasedBy?: number;
            /** @description Present in an event of type `voucher.instance.erased`: the earlier events whose payloads it erased. */
            erasedSequences?: number[];
            /** @description The exact text that was hashed: canonical JSON (RFC 8785). Hash this string exactly as received; do not parse and re-encode it. It contains codes. Null while the event is Pending, and after it was erased. */
            payload: string | null;
            /**
             * @description Who did it: the key's id for a partner, the token's subject for a user, null for the issuer or the service itself.
             * @example key_01m7zjmag2eh3rfc0nmdxz2f2a
             */
            actorConnectedId: string | null;
            /** @description For a user: whether they belong to the brand's organization. Null for all others. */
            actorIsEmployee: boolean | null;
        };
        RedemptionsPageOrRedemption: components["schemas"]["RedemptionsPage"] | components["schemas"]["Redemption"];
        RedemptionsPage: {
            /** @description In ascending order of `redeemedAt`, then of `voucherInstanceId`. */
            redemptions: components["schemas"]["ListedRedemption"][];
            /**
             * @description Send it as `cursor` to get what follows, now or on another day. Null only on the last page of a list whose `to` is before `completeUntil`.
             * @example Qk3yZ1fJ0m8b2cXw5tHn7FsxNzk1NzI2OTc4MTM3LCJ2Y2hfMDFtN3pqbWFnMmVoM3JmYzA3MWRybjc3NXoiLG51bGwsbnVsbF0
             */
            nextCursor: string | null;
            /**
             * Format: date-time
             * @description Redemptions before this time are final: all are listed, and none is ever added. Later ones are listed by a later call. Usually two to four seconds ago. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T23:00:04.316Z
             */
            completeUntil: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        ListedRedemption: {
            /**
             * @description The reference under which the voucher was redeemed.
             * @example order-20261121-0007
             */
            externalRef: string;
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            voucherInstanceId: string;
            /**
             * @description The code to give to the customer, who uses it to get the benefit.
             * @example FZPY-DXN7-0MV2
             */
            redeemCode: string;
            /**
             * @description The voucher's number within its batch, starting at 1.
             * @example 1042
             */
            serial: number;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
             * @example studio-pass-3
             */
            productKey: string;
            /**
             * @description The voucher's value. US dollars, at most two decimals.
             * @example 19.9
             */
            discountPriceUsd: number;
            /**
             * @description Duration of the benefit in months. 0 means that the product states no duration.
             * @example 3
             */
            benefitMonths: number;
            /**
             * Format: date-time
             * @description When the voucher was redeemed. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            redeemedAt: string;
            /**
             * @description The reservation that the redemption consumed; null when there was none.
             * @example rsv_01m7zjmag2eh3rfc0c44b0yr38
             */
            ticket: string | null;
            /**
             * @description The API key that redeemed.
             * @example key_01m7zjmag2eh3rfc0nmdxz2f2a
             */
            keyId: string;
            /**
             * @description The key's label, such as the name of a till; null when it has none.
             * @example Till 3
             */
            keyLabel: string | null;
            /**
             * Format: uri
             * @description Where anyone can verify the voucher's history without a key. May be printed on a receipt.
             * @example https://vouchers.example.com/integrity/events/VoucherInstance/vch_01m7zjmag2eh3rfc071drn775z
             */
            verifyUrl: string;
        };
        /** @description A proof in the format [tlog-proof](https://c2sp.org/tlog-proof). In a receipt, `extra` is the event's payload in base64: its SHA-256 is the data of the leaf. */
        Receipt: string;
        WebhookList: {
            /** @description Oldest first, at most 20. */
            webhooks: components["schemas"]["Webhook"][];
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Webhook: {
            /**
             * @description The endpoint's id.
             * @example whk_01m7zjmag4eh3rfc1b0q9x4d7e
             */
            id: string;
            /**
             * Format: uri
             * @description Where requests are sent.
             * @example https://shop.example.com/hooks/vouchers
             */
            url: string;
            /**
             * @description A name for your own use.
             * @example orders of the web shop
             */
            description: string;
            /** @description The events that are sent. Empty: all. */
            eventTypes: (("voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.claimed" | "voucher.instance.bought" | "reservation.expired") | string)[];
            /** @description Whether events are sent. */
            enabled: boolean;
            /** @description Why no events are sent: `partner` (a request disabled it), `operator` (only an operator can enable it again), `gone` (it answered 410) or `failing` (nothing but failures for 5 days). Null while it is enabled. */
            disabledReason: ("partner" | "operator" | "gone" | "failing") | null;
            /**
             * Format: date-time
             * @description When it was disabled; null while it is enabled. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            disabledAt: string | null;
            /**
             * Format: date-time
             * @description The first failure since it last succeeded, was enabled or got another `url`; null when there is none. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            failingSince: string | null;
            /**
             * Format: date-time
             * @description Until then, requests are also signed with the secret from before the last rotation; null when there is none. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            previousSecretUntil: string | null;
            /**
             * Format: date-time
             * @description When it was created. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-02T08:00:12.481Z
             */
            createdAt: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        NewWebhook: {
            /**
             * @description The endpoint's id.
             * @example whk_01m7zjmag4eh3rfc1b0q9x4d7e
             */
            id: string;
            /**
             * Format: uri
             * @description Where requests are sent.
             * @example https://shop.example.com/hooks/vouchers
             */
            url: string;
            /**
             * @description A name for your own use.
             * @example orders of the web shop
             */
            description: string;
            /** @description The events that are sent. Empty: all. */
            eventTypes: (("voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.claimed" | "voucher.instance.bought" | "reservation.expired") | string)[];
            /** @description Whether events are sent. */
            enabled: boolean;
            /** @description Why no events are sent: `partner` (a request disabled it), `operator` (only an operator can enable it again), `gone` (it answered 410) or `failing` (nothing but failures for 5 days). Null while it is enabled. */
            disabledReason: ("partner" | "operator" | "gone" | "failing") | null;
            /**
             * Format: date-time
             * @description When it was disabled; null while it is enabled. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            disabledAt: string | null;
            /**
             * Format: date-time
             * @description The first failure since it last succeeded, was enabled or got another `url`; null when there is none. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            failingSince: string | null;
            /**
             * Format: date-time
             * @description Until then, requests are also signed with the secret from before the last rotation; null when there is none. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            previousSecretUntil: string | null;
            /**
             * Format: date-time
             * @description When it was created. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-02T08:00:12.481Z
             */
            createdAt: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
            /**
             * @description Verifies signatures. Shown only here: save it now. In the form of Standard Webhooks: `whsec_` and 32 bytes in base64.
             * @example whsec_uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4=
             */
            secret: string;
        };
        DeletedWebhook: {
            /**
             * @description The endpoint's id.
             * @example whk_01m7zjmag4eh3rfc1b0q9x4d7e
             */
            id: string;
            /**
             * @description It is deleted, with its deliveries.
             * @constant
             */
            deleted: true;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        WebhookTestResult: {
            /** @description Whether it answered with a status from 200 to 299. */
            delivered: boolean;
            /**
             * @description The HTTP status of the last attempt; null when it got no answer.
             * @example 204
             */
            status: number | null;
            /** @description Why the last attempt failed; null when it did not. */
            failure: ("timeout" | "refused_address" | "unknown_host" | "connection" | "tls" | "redirect" | "status" | "invalid_response") | null;
            /**
             * @description How long it took. Milliseconds.
             * @example 87
             */
            durationMs: number;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        RotatedWebhook: {
            /**
             * @description The endpoint's id.
             * @example whk_01m7zjmag4eh3rfc1b0q9x4d7e
             */
            id: string;
            /**
             * @description Verifies signatures. Shown only here: save it now. In the form of Standard Webhooks: `whsec_` and 32 bytes in base64.
             * @example whsec_uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4=
             */
            secret: string;
            /**
             * Format: date-time
             * @description Until then, requests are also signed with the previous secret. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            previousSecretUntil: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        WebhookReplay: {
            /**
             * @description Deliveries that are sent again: at most 10000, oldest first.
             * @example 12
             */
            replayed: number;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        WebhookDeliveries: {
            /** @description Newest first, of the last 30 days. */
            deliveries: components["schemas"]["WebhookDelivery"][];
            /** @description Send it as `cursor` for the next page; null on the last one. */
            nextCursor: string | null;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        WebhookDelivery: {
            /**
             * @description The `webhook-id` header: the same in every attempt.
             * @example vch_01m7zjmag2eh3rfc071drn775z-2
             */
            eventId: string;
            /** @description What happened. Later releases may add types. */
            eventType: ("voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.claimed" | "voucher.instance.bought" | "reservation.expired") | string;
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            voucherId: string;
            /**
             * @description The event's position in the voucher's chain.
             * @example 2
             */
            sequence: number | null;
            /** @description Delivered: it answered with a status from 200 to 299. Failed: no attempt follows, unless it is replayed. Erased: the event's payload was erased, so it is not sent. Later releases may add states. */
            state: ("Pending" | "Delivered" | "Failed" | "Erased") | string;
            /**
             * @description Number of attempts.
             * @example 1
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When the next attempt is due; null when none follows, or while an earlier event of the voucher is not finished. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            nextAttemptAt: string | null;
            /**
             * @description The HTTP status of the last attempt; null when it got no answer.
             * @example 204
             */
            lastStatus: number | null;
            /** @description Why the last attempt failed; null when it did not. */
            lastFailure: ("timeout" | "refused_address" | "unknown_host" | "connection" | "tls" | "redirect" | "status" | "invalid_response") | null;
            /**
             * Format: date-time
             * @description When the event was queued. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was delivered or given up; null before. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            finishedAt: string | null;
        };
        BrandsPage: {
            /** @description In the order of ids, new ones last. */
            items: {
                /**
                 * @description The brand's id.
                 * @example brd_01m7zjmag4eh3rfc0q7s3k9xhe
                 */
                id: string;
                /**
                 * @description The brand's name.
                 * @example Blue Door Studios
                 */
                name: string;
                /**
                 * Format: date-time
                 * @description When it was created. ISO 8601 in UTC, with milliseconds.
                 * @example 2026-11-02T08:00:12.481Z
                 */
                createdAt: string;
            }[];
            /** @description Send it as `cursor` to get the next page. Null on the last page. */
            nextCursor: string | null;
        };
        ProductsPage: {
            /** @description In the order of ids, new ones last. */
            items: {
                /**
                 * @description The product's id.
                 * @example prd_01m7zjmag4eh3rfc12yych2kay
                 */
                id: string;
                /**
                 * @description The brand's id.
                 * @example brd_01m7zjmag4eh3rfc0q7s3k9xhe
                 */
                brandId: string;
                /**
                 * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
                 * @example studio-pass-3
                 */
                key: string;
                /**
                 * @description The product's name, as shown to customers.
                 * @example Studio Pass, 3 months
                 */
                name: string;
                /**
                 * @description What the vouchers are for.
                 * @example Subscription
                 */
                type: string;
                /**
                 * @description List price. US dollars, at most two decimals.
                 * @example 29.9
                 */
                retailPriceUsd: number;
                /**
                 * @description Price of a voucher. US dollars, at most two decimals.
                 * @example 19.9
                 */
                priceUsd: number;
                /**
                 * @description Duration of the benefit in months. 0 means that the product states no duration.
                 * @example 3
                 */
                benefitMonths: number;
                /**
                 * @description The unit in which uses are counted, such as `visit`. Null when uses are not counted.
                 * @example visit
                 */
                usageUnitLabel: string | null;
                /**
                 * Format: date-time
                 * @description When it was created. ISO 8601 in UTC, with milliseconds.
                 * @example 2026-11-02T08:00:12.481Z
                 */
                createdAt: string;
            }[];
            /** @description Send it as `cursor` to get the next page. Null on the last page. */
            nextCursor: string | null;
        };
        BatchesPage: {
            /** @description In the order of ids, new ones last. */
            items: {
                /**
                 * @description The batch's id.
                 * @example bat_01m7zjmag4eh3rfc15ae6t0d8b
                 */
                id: string;
                /**
                 * @description The product's id.
                 * @example prd_01m7zjmag4eh3rfc12yych2kay
                 */
                productId: string;
                /**
                 * @description The product's name, as shown to customers.
                 * @example Studio Pass, 3 months
                 */
                productName: string;
                /**
                 * @description `OpenToAll` or `ReferrerOnly`.
                 * @example OpenToAll
                 */
                audience: string;
                /**
                 * @description How many vouchers it has.
                 * @example 500
                 */
                count: number;
                /**
                 * Format: date-time
                 * @description When its vouchers expire. ISO 8601 in UTC, with milliseconds.
                 * @example 2027-12-31T23:59:59.000Z
                 */
                validUntil: string;
                /**
                 * @description Price of a voucher. US dollars, at most two decimals.
                 * @example 19.9
                 */
                priceUsd: number;
                /**
                 * Format: date-time
                 * @description When it was created. ISO 8601 in UTC, with milliseconds.
                 * @example 2026-11-02T08:00:12.481Z
                 */
                createdAt: string;
                /**
                 * @description The reference that it was issued under, or its replacement once the operator has erased it. Null if the operator issued the batch.
                 * @example order-20261121-0007
                 */
                issueRef: string | null;
                /**
                 * @description The windows that it has.
                 * @example [
                 *       "buy"
                 *     ]
                 */
                windows: string[];
            }[];
            /** @description Send it as `cursor` to get the next page. Null on the last page. */
            nextCursor: string | null;
        };
        Batch: {
            /**
             * @description The batch's id.
             * @example bat_01m7zjmag4eh3rfc15ae6t0d8b
             */
            id: string;
            /**
             * @description The product's id.
             * @example prd_01m7zjmag4eh3rfc12yych2kay
             */
            productId: string;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description `OpenToAll` or `ReferrerOnly`.
             * @example OpenToAll
             */
            audience: string;
            /**
             * @description How many vouchers it has.
             * @example 500
             */
            count: number;
            /**
             * Format: date-time
             * @description When its vouchers expire. ISO 8601 in UTC, with milliseconds.
             * @example 2027-12-31T23:59:59.000Z
             */
            validUntil: string;
            /**
             * @description Price of a voucher. US dollars, at most two decimals.
             * @example 19.9
             */
            priceUsd: number;
            /**
             * Format: date-time
             * @description When it was created. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-02T08:00:12.481Z
             */
            createdAt: string;
            /**
             * @description The reference that it was issued under, or its replacement once the operator has erased it. Null if the operator issued the batch.
             * @example order-20261121-0007
             */
            issueRef: string | null;
            /**
             * @description List price. US dollars, at most two decimals.
             * @example 29.9
             */
            retailPriceUsd: number;
            /**
             * @description Duration of the benefit in months. 0 means that the product states no duration.
             * @example 3
             */
            benefitMonths: number;
            /**
             * @description The unit in which uses are counted, such as `visit`. Null when uses are not counted.
             * @example visit
             */
            usageUnitLabel: string | null;
            /**
             * @description Vouchers that can be used.
             * @example 480
             */
            active: number;
            /**
             * @description Vouchers that have expired.
             * @example 0
             */
            expired: number;
            /**
             * @description Vouchers that were redeemed.
             * @example 18
             */
            redeemed: number;
            /**
             * @description Vouchers that were voided.
             * @example 2
             */
            voided: number;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
            /**
             * @description Its windows.
             * @example {
             *       "claim": null,
             *       "buy": null
             *     }
             */
            windows: {
                /** @description Null if the batch has no such window. */
                claim: {
                    /**
                     * Format: date-time
                     * @description When it opens; null: with the issue. ISO 8601 in UTC, with milliseconds.
                     * @example 2026-11-02T08:00:12.481Z
                     */
                    opensAt: string | null;
                    /**
                     * Format: date-time
                     * @description When it closes; null: with the vouchers' end. ISO 8601 in UTC, with milliseconds.
                     * @example 2027-12-31T23:59:59.000Z
                     */
                    closesAt: string | null;
                } | null;
                /** @description Null if the batch has no such window. */
                buy: {
                    /**
                     * Format: date-time
                     * @description When it opens; null: with the issue. ISO 8601 in UTC, with milliseconds.
                     * @example 2026-11-02T08:00:12.481Z
                     */
                    opensAt: string | null;
                    /**
                     * Format: date-time
                     * @description When it closes; null: with the vouchers' end. ISO 8601 in UTC, with milliseconds.
                     * @example 2027-12-31T23:59:59.000Z
                     */
                    closesAt: string | null;
                } | null;
            };
            /**
             * @description Vouchers that users can still claim or buy; null without a window.
             * @example 480
             */
            left: number | null;
        };
        BatchVouchersPage: {
            /** @description In the order of serials. */
            items: {
                /**
                 * @description The voucher's id. Identifies it where its code must not be shown.
                 * @example vch_01m7zjmag2eh3rfc071drn775z
                 */
                id: string;
                /**
                 * @description The voucher's code.
                 * @example 25QP-086Q-XM9Q-S8QT
                 */
                code: string;
                /**
                 * @description The voucher's number within its batch, starting at 1.
                 * @example 1042
                 */
                serial: number;
            }[];
            /** @description Send it as `cursor` to get the next page. Null on the last page. */
            nextCursor: string | null;
        };
        VoidedVoucher: {
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            id: string;
            /**
             * @description The voucher is voided.
             * @example true
             * @constant
             */
            voided: true;
            /**
             * @description Whether it was voided before this call.
             * @example false
             */
            alreadyVoided: boolean;
        };
        VoidedBatch: {
            /**
             * @description Vouchers that this call has voided.
             * @example 480
             */
            voided: number;
            /**
             * @description Vouchers that were redeemed, voided or expired before this call reached them.
             * @example 20
             */
            alreadyFinal: number;
            /**
             * @description Vouchers that this call has not reached. If it is not 0, repeat the call.
             * @example 0
             */
            remaining: number;
        };
        RenameBrandResult: {
            /** @description The brand's id. */
            id: string;
            /**
             * @description The brand's name.
             * @example Blue Door Studios
             */
            name: string;
        };
        CreateProductResult: {
            /** @description The id of what was created. */
            id: string;
        };
        IssueBatchResult: {
            /** @description The batch's id. */
            id: string;
            /**
             * @description How many vouchers it has.
             * @example 500
             */
            count: number;
            /**
             * @description The first serial.
             * @example 1
             */
            firstSerial: number;
            /**
             * @description The last serial.
             * @example 500
             */
            lastSerial: number;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
            /**
             * @description Whether the reference had issued this batch before. Then nothing was issued now.
             * @example false
             */
            alreadyIssued: boolean;
            /**
             * @description Present if the reference had issued a batch with other content than this request asks for.
             * @constant
             */
            otherBatch?: true;
        };
        CreateListingResult: {
            /** @description The id of what was created. */
            id: string;
        };
        OfferContractResult: {
            /** @description The id of what was created. */
            id: string;
        };
        AcceptContractResult: {
            /** @description The contract's id. */
            id: string;
            /**
             * @description Its status.
             * @example Active
             */
            status: string;
        };
        DeclineContractResult: {
            /** @description The contract's id. */
            id: string;
            /**
             * @description Its status.
             * @example Declined
             */
            status: string;
        };
        EndContractResult: {
            /** @description The contract's id. */
            id: string;
            /**
             * @description Its status.
             * @example Ended
             */
            status: string;
        };
        CreateLinkResult: {
            /**
             * @description The link's code: users claim with it under `/r/{code}`.
             * @example cxj4tnzf279b
             */
            code: string;
        };
        SandboxAdvance: {
            /**
             * @description How far the times moved.
             * @example 900
             */
            advancedSeconds: number;
            /**
             * @description Reservations that were live before this call and have ended.
             * @example 1
             */
            reservationsEnded: number;
            /**
             * @description Active vouchers that were valid before this call and have expired.
             * @example 0
             */
            vouchersExpired: number;
        };
        PublicChain: {
            /**
             * @description The type of the chain's entity.
             * @constant
             */
            entityType: "VoucherInstance";
            /**
             * @description The voucher's id. Identifies it where its code must not be shown.
             * @example vch_01m7zjmag2eh3rfc071drn775z
             */
            entityId: string;
            /**
             * @description The namespace of these events.
             * @constant
             */
            anchorNamespace: "VoucherInstance:events";
            /** @description In the order of `sequence`. */
            events: components["schemas"]["PublicEvent"][];
            /**
             * Format: date-time
             * @description The time since which this service has stored the exact payloads. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-02T08:00:12.481Z
             */
            canonPreservedSinceUtc: string;
            /** @description Whether there are more events. To read them, set `after` to the last `sequence` of this page. */
            hasMore: boolean;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        PublicEvent: {
            /**
             * @description The event's position in the chain: 1, 2, 3, without gaps.
             * @example 1
             */
            sequence: number;
            /** @description What happened. Later releases may add types. */
            eventType: ("voucher.instance.issued" | "voucher.instance.claimed" | "voucher.instance.bought" | "voucher.instance.redeemed" | "voucher.instance.voided" | "voucher.instance.expired" | "voucher.instance.erased") | string;
            /** @description A short code of the event's type. Later releases may add codes. */
            code: ("VCH001" | "VCH002" | "VCH003" | "VCH004" | "VCH005" | "VCH006" | "VCH007") | string;
            /**
             * Format: date-time
             * @description When it happened. ISO 8601 in UTC, with milliseconds.
             * @example 2026-11-21T12:02:58.137Z
             */
            occurredAt: string;
            /** @description Sealed: hashed, linked and never changed again, except that its payload may be erased. Pending: it happened and will be sealed within seconds. Later releases may add values. */
            sealStatus: ("Pending" | "Sealed") | string;
            /** @description The lower-case hex SHA-256 of the event's payload. Null while the event is Pending. */
            recordHash: string | null;
            /**
             * @description The event's leaf in the transparency log. Null until the served checkpoint covers it, and in a deployment without a log.
             * @example 70311
             */
            logIndex: number | null;
            /** @description The previous event's `recordHash`; 64 zeros for the first event. Null while the event is Pending. */
            previousHash: string | null;
            /**
             * @description Present if the payload was erased: the sequence of the event that says so.
             * @example 3
             */
            erasedBy?: number;
            /** @description Present in an event of type `voucher.instance.erased`: the earlier events whose payloads it erased. */
            erasedSequences?: number[];
        };
        ListingsPage: {
            /** @description The oldest listings first. */
            listings: components["schemas"]["Listing"][];
            /**
             * @description Send it as `cursor` to get the next page; null on the last page.
             * @example lst_01m7zjmag4eh3rfc0th0k5h2aa
             */
            nextCursor: string | null;
        };
        Listing: {
            /**
             * @description The listing's id.
             * @example lst_01m7zjmag4eh3rfc0th0k5h2aa
             */
            id: string;
            /**
             * @description The product's id.
             * @example prd_01m7zjmag4eh3rfc12yych2kay
             */
            productId: string;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
             * @example studio-pass-3
             */
            productKey: string;
            /**
             * @description The kind of product.
             * @enum {string}
             */
            type: "Subscription" | "Product" | "Service" | "Discount";
            /**
             * @description The brand's name.
             * @example Blue Door Studios
             */
            brand: string;
            /**
             * @description The product's list price. US dollars, at most two decimals.
             * @example 29.9
             */
            retailPriceUsd: number;
            /**
             * @description The price of a voucher in this listing. US dollars, at most two decimals.
             * @example 19.9
             */
            priceUsd: number;
            /**
             * @description Duration of the benefit in months. 0 means that the product states no duration.
             * @example 3
             */
            benefitMonths: number;
            /**
             * @description The unit in which uses are counted, such as `visit`. Null when uses are not counted.
             * @example visit
             */
            usageUnitLabel: string | null;
            /**
             * @description OpenToAll: any user can claim or buy a voucher. ReferrerOnly: only users with an active referrer contract with the brand, and owners of its organization, can.
             * @enum {string}
             */
            audience: "OpenToAll" | "ReferrerOnly";
            /** @description Whether to mark the listing as for referrers only. */
            referrerOnly: boolean;
            /**
             * @description Vouchers that can be bought, counted up to 1000; in a list at most 20 seconds ago. 0 only if none can be bought now.
             * @example 214
             */
            available: number;
            /** @description Whether more vouchers are available than `available` states. */
            availableMore: boolean;
            /**
             * Format: date-time
             * @description The first moment at which its vouchers are no longer valid. ISO 8601 in UTC, with milliseconds.
             * @example 2027-12-31T23:59:59.000Z
             */
            validUntil: string;
            /** @description Whether a purchase by this caller would succeed now, given the audience, the window and the supply. Use this field instead of deriving it from others. */
            canBuy: boolean;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Acquisition: {
            voucher: components["schemas"]["Voucher"];
            /** @description False: this call gave the user the voucher. True: an earlier call did; this is the same voucher in its current state. */
            alreadyConfirmed: boolean;
            /**
             * Format: uri
             * @description Where anyone can verify the voucher's history without a key. May be printed on a receipt.
             * @example https://vouchers.example.com/integrity/events/VoucherInstance/vch_01m7zjmag2eh3rfc071drn775z
             */
            verifyUrl: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Link: {
            /**
             * @description The link's code.
             * @example cxj4tnzf279b
             */
            code: string;
            /**
             * @description The brand's name.
             * @example Blue Door Studios
             */
            brand: string;
            /**
             * @description The product's name, as shown to customers.
             * @example Studio Pass, 3 months
             */
            productName: string;
            /**
             * @description The product's key in the brand's catalog. Stable, so programs can rely on it.
             * @example studio-pass-3
             */
            productKey: string;
            /**
             * @description The product's price. A claim costs nothing. US dollars, at most two decimals.
             * @example 19.9
             */
            priceUsd: number;
            /**
             * @description The product's list price. US dollars, at most two decimals.
             * @example 29.9
             */
            retailPriceUsd: number;
            /**
             * @description Vouchers that can be claimed through the link, counted up to 1000, at most 20 seconds ago. 0 only if none can be claimed now.
             * @example 214
             */
            available: number;
            /**
             * Format: date-time
             * @description The first moment at which the voucher that the next claim gives is no longer valid. Null if none can be claimed now. ISO 8601 in UTC, with milliseconds.
             * @example 2027-12-31T23:59:59.000Z
             */
            validUntil: string | null;
            /** @description Whether a claim by a user who has not claimed this product would succeed now. */
            canClaim: boolean;
            /**
             * @description The link's address, which also has a page for people.
             * @example https://vouchers.example.com/r/cxj4tnzf279b
             */
            url: string;
            /** @description Present only for a sandbox organization: its vouchers are for tests and have no value. */
            sandbox?: boolean;
        };
        Health: {
            /**
             * @description Always `ok`; otherwise the response is an error.
             * @constant
             */
            status: "ok";
        };
        Readiness: {
            /**
             * @description Always `ok`; otherwise the response is an error.
             * @constant
             */
            status: "ok";
            /**
             * @description `unavailable`: Postgres does not answer or refuses writes; `outdated`: the schema lacks migrations of this release; `copied`: the database is a copy of another deployment's database, or its files were set back; the error says what to do.
             * @enum {string}
             */
            postgres: "ok" | "unavailable" | "outdated" | "copied";
            /**
             * @description `unavailable`: Redis does not answer or refuses writes, or redemptions cannot be queued; the error says why.
             * @enum {string}
             */
            redis: "ok" | "unavailable";
            /** @description Shards of the queues whose Redis server does not answer or refuses writes, such as `2/6`: redemptions of their vouchers get 503. Absent when there are none. */
            silentShards?: string[];
            /** @description How far the database's clock has jumped ahead of the time that has passed. Absent if it has not. Lists of redemptions do not follow it. */
            clockAheadSeconds?: number;
        };
        ReadinessError: {
            /** @description A sentence for a person, in the language of `Content-Language`. */
            error: string;
            code: components["schemas"]["ErrorCode"];
            /**
             * @description The value of `X-Request-Id`. Quote it when you ask us about a response.
             * @example 48949506-6721-4252-90f3-fa52b013b41e
             */
            requestId: string;
            /**
             * @description `unavailable`: Postgres does not answer or refuses writes; `outdated`: the schema lacks migrations of this release; `copied`: the database is a copy of another deployment's database, or its files were set back; the error says what to do.
             * @enum {string}
             */
            postgres: "ok" | "unavailable" | "outdated" | "copied";
            /**
             * @description `unavailable`: Redis does not answer or refuses writes, or redemptions cannot be queued; the error says why.
             * @enum {string}
             */
            redis: "ok" | "unavailable";
        };
    };
    responses: {
        /**
         * @description Errors that any URL can return:
         *
         *     - `not_found`: There is nothing at this address, or the organization has nothing with this id or code.
         *     - `method_not_allowed`: The address does not accept this method; the `Allow` header lists those it accepts.
         *     - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
         *     - `invalid_http`: The request is not valid HTTP, or has no Host header.
         *     - `request_timeout`: The headers did not arrive within 10 seconds, or the whole request within 15.
         *     - `headers_too_large`: The address and the headers together are longer than 16 KiB.
         *     - `internal_error`: The service failed unexpectedly; quote the `requestId` when you report it.
         */
        AnyAddress: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Content-Language": components["headers"]["Content-Language"];
                Allow: components["headers"]["Allow"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description The request's id: the one you sent, if it is valid, or a new one. The service's log contains it. */
        "X-Request-Id": string;
        /** @description The limit that counts this request: its name, the number of requests and the seconds, such as `"read";q=200;w=1`. */
        "RateLimit-Policy": string;
        /** @description The requests that remain, and the seconds until the limit resets, such as `"read";r=187;t=1`. */
        RateLimit: string;
        /** @description The language of the sentences in the body, such as `de`. */
        "Content-Language": string;
        /** @description Seconds to wait before you try again. */
        "Retry-After": number;
        /** @description With 405: the methods that the address accepts. */
        Allow: string;
        /** @description The required authentication scheme. */
        "WWW-Authenticate": "Bearer";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    reserveVoucher: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReserveRequest"];
            };
        };
        responses: {
            /** @description The reservation, new or repeated. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reservation"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `voucher_not_found`: No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `voucher_used`: The voucher was redeemed under another reference; this is final.
             *     - `voucher_voided`: The issuer cancelled the voucher; this is final.
             *     - `voucher_expired`: The voucher's `validUntil` has passed; this is final.
             *     - `reservation_ended`: This ticket's reservation has expired or was released; the voucher itself may still be valid.
             *     - `voucher_reserved`: Another key of the same organization has reserved the voucher.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    redeemVoucher: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RedeemRequest"];
            };
        };
        responses: {
            /** @description The redemption under this `externalRef`, new or repeated. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redemption"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `voucher_not_found`: No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `voucher_used`: The voucher was redeemed under another reference; this is final.
             *     - `voucher_voided`: The issuer cancelled the voucher; this is final.
             *     - `voucher_expired`: The voucher's `validUntil` has passed; this is final.
             *     - `reservation_ended`: This ticket's reservation has expired or was released; the voucher itself may still be valid.
             *     - `token_mismatch`: The voucher has no live reservation, or the token belongs to another one.
             *     - `voucher_reserved`: Another key of the same organization has reserved the voucher.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `redeem_timeout`: The redemption did not complete. Nothing was redeemed under the reference, and no attempt made before this response will redeem later; a new one may.
             *     - `redeem_unknown`: It is not known yet whether the voucher was redeemed; retry with the same reference to find out.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    releaseReservation: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReleaseRequest"];
            };
        };
        responses: {
            /** @description The ticket no longer has a live reservation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    /** @description With a `reason`: the language in which it is. */
                    "Content-Language"?: string;
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Release"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    lookUpVoucher: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description A voucher's code in any accepted spelling, or a reservation's ticket. */
                codeOrTicket: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The voucher's current state. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LookUp"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `voucher_not_found`: No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readVoucherEvents: {
        parameters: {
            query?: {
                /** @description Only events with a greater `sequence`. */
                after?: number;
                /** @description Maximum number of events on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description A voucher's code in any accepted spelling, or a reservation's ticket. */
                codeOrTicket: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the chain, oldest events first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Chain"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `voucher_not_found`: No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listRedemptions: {
        parameters: {
            query?: {
                /** @description Lists redemptions at or after this time; omit it for all. ISO 8601 with a time zone; encode a plus sign as %2B. */
                from?: string;
                /** @description Lists redemptions before this time; omit it for a list without an end. ISO 8601 with a time zone; encode a plus sign as %2B. */
                to?: string;
                /** @description The previous page's `nextCursor`; omit it for the first page. It remembers `from` and `to`: omit them, or send the same ones. */
                cursor?: string;
                /** @description Maximum number of redemptions on the page. */
                limit?: number;
                /** @description Your reference: the response is its redemption instead of a list. The other parameters do not apply. */
                externalRef?: string;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of redemptions; with `externalRef`, the redemption under it. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RedemptionsPageOrRedemption"];
                    "text/csv": string;
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `redemption_not_found`: The caller's organization has redeemed nothing under this reference yet; references of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readRedemption: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description Your reference, URL-encoded, in any form that a redeem would accept as the same. Some proxies change a reference with a slash: use the query then. */
                externalRef: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The redemption under this reference. `alreadyConfirmed` is true. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redemption"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `redemption_not_found`: The caller's organization has redeemed nothing under this reference yet; references of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readEventReceipt: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description A voucher's code in any accepted spelling, or a reservation's ticket. */
                codeOrTicket: string;
                /** @description The event's `sequence`. */
                sequence: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receipt. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["Receipt"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `voucher_not_found`: No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_logged_yet`: The event is not covered by the log's checkpoint yet, or this deployment has no log. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `payload_erased`: The event's payload was erased, so no new receipt of it can be made. Receipts from before stay valid. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readRedemptionReceipt: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The reference of the redemption, URL-encoded. */
                externalRef: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receipt. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["Receipt"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `redemption_not_found`: The caller's organization has redeemed nothing under this reference yet; references of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_logged_yet`: The event is not covered by the log's checkpoint yet, or this deployment has no log. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `payload_erased`: The event's payload was erased, so no new receipt of it can be made. Receipts from before stay valid. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readReceiptByReference: {
        parameters: {
            query: {
                /** @description Your reference. */
                externalRef: string;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receipt. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["Receipt"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `redemption_not_found`: The caller's organization has redeemed nothing under this reference yet; references of other organizations get the same response. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_logged_yet`: The event is not covered by the log's checkpoint yet, or this deployment has no log. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `payload_erased`: The event's payload was erased, so no new receipt of it can be made. Receipts from before stay valid. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoints. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhooks_off`: The operator of this deployment has not switched webhooks on. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhookRequest"];
            };
        };
        responses: {
            /** @description The endpoint is created. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewWebhook"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhooks_off`: The operator of this deployment has not switched webhooks on. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhook_limit`: The organization has 20 webhook endpoints, or the webhook endpoint has ten earlier secrets that still sign: the most. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The endpoint is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedWebhook"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    changeWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ChangeWebhookRequest"];
            };
        };
        responses: {
            /** @description The endpoint after the change. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhook_disabled`: The webhook endpoint is disabled; the sentence says who can enable it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The test was sent; `delivered` says whether it was accepted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookTestResult"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhook_disabled`: The webhook endpoint is disabled; the sentence says who can enable it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    rotateWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new secret, which is shown only here. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RotatedWebhook"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhook_limit`: The organization has 20 webhook endpoints, or the webhook endpoint has ten earlier secrets that still sign: the most. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    replayWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplayWebhookRequest"];
            };
        };
        responses: {
            /** @description The deliveries are sent again within seconds. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookReplay"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `webhook_disabled`: The webhook endpoint is disabled; the sentence says who can enable it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listWebhookDeliveries: {
        parameters: {
            query?: {
                /** @description Only deliveries in this state. */
                state?: "Pending" | "Delivered" | "Failed" | "Erased";
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of deliveries on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The endpoint's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveries"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `webhook_not_found`: The caller's organization has no webhook endpoint with this id; webhook endpoints of other organizations get the same response.
             *     - `webhooks_off`: The operator of this deployment has not switched webhooks on.
             */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listBrands: {
        parameters: {
            query?: {
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of items on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of brands. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BrandsPage"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listProducts: {
        parameters: {
            query?: {
                /** @description The id of a brand, to list only what belongs to it. */
                brand?: string;
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of items on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of products. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProductsPage"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listBatches: {
        parameters: {
            query?: {
                /** @description The id of a brand, to list only what belongs to it. */
                brand?: string;
                /** @description The id of a product, to list only what belongs to it. */
                product?: string;
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of items on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of batches. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchesPage"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a batch of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The batch. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Batch"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    listBatchVouchers: {
        parameters: {
            query?: {
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of items on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a batch of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of vouchers. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchVouchersPage"];
                    "text/csv": string;
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    voidVoucher: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VoidVoucherRequest"];
            };
        };
        responses: {
            /** @description The voucher is voided. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VoidedVoucher"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `voucher_used`: The voucher was redeemed under another reference; this is final.
             *     - `voucher_expired`: The voucher's `validUntil` has passed; this is final.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again.
             *     - `too_many_misses`: The key has tried too many codes that do not exist or belong to another organization. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work.
             */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    voidBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a batch of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["VoidBatchRequest"];
            };
        };
        responses: {
            /** @description What this call has done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VoidedBatch"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    renameBrand: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a brand of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenameBrandRequest"];
            };
        };
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenameBrandResult"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    createProduct: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a brand of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateProductRequest"];
            };
        };
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateProductResult"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `already_exists`: What the call would create exists already: a product with this key, a listing of the batch, an open contract of the user with the brand; the sentence says which. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    issueBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a product of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IssueBatchRequest"];
            };
        };
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssueBatchResult"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    createListing: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a batch of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateListingResult"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `already_exists`: What the call would create exists already: a product with this key, a listing of the batch, an open contract of the user with the brand; the sentence says which. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    offerContract: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a brand of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OfferContractRequest"];
            };
        };
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OfferContractResult"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `already_exists`: What the call would create exists already: a product with this key, a listing of the batch, an open contract of the user with the brand; the sentence says which. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    acceptContract: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a contract of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptContractResult"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `wrong_status`: The contract's or the queue's state does not allow this; the sentence names it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    declineContract: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a contract of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeclineContractResult"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `wrong_status`: The contract's or the queue's state does not allow this; the sentence names it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    endContract: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a contract of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EndContractResult"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `wrong_status`: The contract's or the queue's state does not allow this; the sentence names it. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    createLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The id of a contract of your organization. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateLinkRequest"];
            };
        };
        responses: {
            /** @description It is done. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreateLinkResult"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    advanceSandbox: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AdvanceSandboxRequest"];
            };
        };
        responses: {
            /** @description The times have moved. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SandboxAdvance"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_key`: The request has no key.
             *     - `unknown_key`: The key is mistyped, unknown, revoked or expired.
             *     - `missing_scope`: The key is valid but lacks the scope that this HTTP endpoint requires.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `key_without_organization`: The key is valid but is not bound to an organization.
             *     - `address_not_allowed`: The key may not be used from the caller's address.
             *     - `sandbox_only`: The HTTP endpoint is for keys of sandbox organizations, which begin with `pvt_`; this key is live.
             */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readPublicEvents: {
        parameters: {
            query?: {
                /** @description Only events with a greater `sequence`. */
                after?: number;
                /** @description Maximum number of events on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The type of the chain's entity. */
                entityType: string;
                /** @description The voucher's id. */
                entityId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the chain, oldest events first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublicChain"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `entity_not_found`: No entity with this type and id has a history. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readEventProof: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The type of the chain's entity. */
                entityType: string;
                /** @description The voucher's id. */
                entityId: string;
                /** @description The event's `sequence`. */
                sequence: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The proof. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["Receipt"];
                };
            };
            /** @description - `entity_not_found`: No entity with this type and id has a history. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `not_logged_yet`: The event is not covered by the log's checkpoint yet, or this deployment has no log. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readListings: {
        parameters: {
            query?: {
                /** @description The previous page's `nextCursor`; omit it for the first page. */
                cursor?: string;
                /** @description Maximum number of listings on the page. */
                limit?: number;
            };
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of listings. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListingsPage"];
                };
            };
            /** @description - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readListing: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The listing's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The listing. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Listing"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `listing_not_found`: There is no such listing. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    buyListing: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The listing's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BuyRequest"];
            };
        };
        responses: {
            /** @description The user's voucher. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Acquisition"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `referrers_only`: Only users with an active referrer contract with the brand, and owners of its organization, can claim or buy these vouchers. */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `listing_not_found`: There is no such listing. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `window_closed`: There is no such window, or it is not open now.
             *     - `sold_out`: The window is open, but no voucher is left.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    buyProduct: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The product's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BuyRequest"];
            };
        };
        responses: {
            /** @description The user's voucher. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Acquisition"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `referrers_only`: Only users with an active referrer contract with the brand, and owners of its organization, can claim or buy these vouchers. */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `product_not_found`: There is no such product. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `window_closed`: There is no such window, or it is not open now.
             *     - `sold_out`: The window is open, but no voucher is left.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    claimProduct: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The product's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ClaimRequest"];
            };
        };
        responses: {
            /** @description The user's voucher. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Acquisition"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `referrers_only`: Only users with an active referrer contract with the brand, and owners of its organization, can claim or buy these vouchers. */
            403: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `product_not_found`: There is no such product. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `window_closed`: There is no such window, or it is not open now.
             *     - `sold_out`: The window is open, but no voucher is left.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    openLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The link's code. */
                code: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the link offers. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Link"];
                    "text/html": string;
                };
            };
            /** @description - `link_not_found`: There is no such link, or its contract is no longer active. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    claimByLink: {
        parameters: {
            query?: never;
            header?: {
                /** @description The languages of the person who reads `error` and `reason`, as browsers send them, such as `de-AT, en;q=0.5`. The service speaks en, de, fr, es, nl; English is the default. */
                "Accept-Language"?: string;
            };
            path: {
                /** @description The link's code. */
                code: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ClaimRequest"];
            };
        };
        responses: {
            /** @description The user's voucher. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Acquisition"];
                };
            };
            /**
             * @description - `invalid_json`: The body is not a JSON object in UTF-8.
             *     - `invalid_request`: A field is missing, of the wrong type or too long; the sentence names it.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `missing_token`: The request has no user token.
             *     - `invalid_token`: The token's signature is wrong, the token has expired, or it was issued for another service.
             */
            401: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `link_not_found`: There is no such link, or its contract is no longer active. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `window_closed`: There is no such window, or it is not open now.
             *     - `sold_out`: The window is open, but no voucher is left.
             */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `body_too_large`: The body is larger than 16 KiB. */
            413: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `unsupported_encoding`: The body is not in UTF-8, or is compressed by a method that the service does not support. */
            415: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             *     - `voucher_busy`: Another operation has locked the voucher, or is about to reserve it; the request was not carried out. A redeem will not be carried out later either.
             *     - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is up. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process can serve requests. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            /** @description - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadinessError"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readCheckpoint: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log's newest checkpoint. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The log's policy. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    readTile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The level and the number of the tile, such as `0/000` or `0/x001/234.p/56`. Its slashes are sent as they are. */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A tile of the log. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description - `not_found`: There is nothing at this address, or the organization has nothing with this id or code. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description - `rate_limited`: The caller sent too many requests; `Retry-After` says when to try again. */
            429: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /**
             * @description - `overloaded`: Too many requests are waiting; the request was not carried out. A redeem will not be carried out later either.
             *     - `unavailable`: The service cannot reach a server that it depends on, or cannot tell yet what the call has changed: send it again.
             */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Content-Language": components["headers"]["Content-Language"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            default: components["responses"]["AnyAddress"];
        };
    };
    voucherInstanceRedeemed: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookRedeemed"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    voucherInstanceVoided: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookVoided"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    voucherInstanceExpired: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookExpired"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    voucherInstanceClaimed: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookClaimed"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    voucherInstanceBought: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookBought"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    reservationExpired: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookReservationExpired"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    webhookTest: {
        parameters: {
            query?: never;
            header: {
                /** @description The same in every attempt: ignore what you have handled. */
                "webhook-id": string;
                /** @description When this attempt was signed, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more signatures `v1,…` of Standard Webhooks, separated by spaces. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookTest"];
            };
        };
        responses: {
            /** @description The endpoint is gone: it is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Delivered. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Failed: the delivery is tried again. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
