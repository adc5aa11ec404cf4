import { openKinds } from "../core/callers/bulkhead.ts";
import { openPreservedSince } from "../core/chain/read-chain.ts";
import { openConfirmations } from "../core/commit/confirm-reads.ts";
import { EventFeed } from "../core/feed/event-feed.ts";
import { KeyAuthenticator } from "../core/keys/authenticate-key.ts";
import { UserAuthenticator } from "../core/keys/authenticate-user.ts";
import type { ApiMetrics } from "../core/metrics/metrics.ts";
import { PartnerCalls } from "../core/processes/partner-calls.ts";
import { openTokenReports } from "../core/processes/token-reports.ts";
import { openCompleteUntil } from "../core/redeem/complete-until.ts";
import { openReferenceEnds } from "../core/redeem/end-references.ts";
import { openRedemptionReads } from "../core/redeem/read-redemption.ts";
import { openReservationCommitter } from "../core/reserve/reservation-committer.ts";
import { openVoucherReads } from "../core/voucher/resolve-voucher.ts";
import { openFiles } from "../platform/http/send-file.ts";
import { openLimits } from "../platform/limits/open-limits.ts";
import { PauseWatch } from "../platform/pauses.ts";
import type { ServiceContext } from "./open-service.ts";

/** Opens what is needed to authenticate, limit and answer calls. */
export function openCalls(service: ServiceContext, metrics: ApiMetrics | null) {
  const { config, pool, redis, deployment, traces, log, use } = service;
  const observed = { pool, metrics, traces };
  const onDropped = (calls: number) => metrics?.callsDropped.with().inc(calls);
  const confirming = { ...service, confirmations: use(openConfirmations(service)) };
  const kinds = openKinds();
  const { partnerCalls, portalReads } = kinds;
  const reportToken = openTokenReports(service);
  return {
    ...kinds,
    keys: use(new KeyAuthenticator(pool, log)),
    users: new UserAuthenticator(config.users, deployment.clock, { log, reportToken }),
    reportToken,
    limits: openLimits(config, redis),
    sendFile: openFiles(),
    calls: use(new PartnerCalls({ redis, deployment, log, onDropped })),
    pauses: use(new PauseWatch(log)),
    voucherReads: openVoucherReads(observed),
    confirmations: confirming.confirmations,
    referenceEnds: use(openReferenceEnds(service)),
    reservationCommitter: use(openReservationCommitter(observed)),
    redemptionReads: use(openRedemptionReads(service)),
    completeUntil: openCompleteUntil({ ...confirming, partnerCalls }),
    eventFeed: new EventFeed({ ...service, partnerCalls }),
    preservedSince: openPreservedSince(pool),
    /** The portal's dependencies. The portal has its own connections, separate from those of partners' calls. */
    inPortal: {
      partnerCalls: portalReads,
      eventFeed: new EventFeed({ ...service, partnerCalls: portalReads }),
      completeUntil: openCompleteUntil({ ...confirming, partnerCalls: portalReads }),
    },
  };
}
