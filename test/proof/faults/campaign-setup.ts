import type { HostileKind } from "../../support/hostile-receiver.ts";
import { makeOffer } from "../../support/marketplace.ts";
import type { IssuerKey } from "../../support/user-tokens.ts";
import type { CampaignOptions } from "./campaign.ts";
import { addReceivers, listenToWebhooks } from "./campaign-webhooks.ts";
import { startCappedTills, supplyCappedTills } from "./capped-tills.ts";
import type { Cluster } from "./cluster.ts";
import { startFeedFollowers } from "./feed-followers.ts";
import { openProxies, supplyFiles, workAsFileReader } from "./file-readers.ts";
import { makeFlooder } from "./floods.ts";
import { History, type SuppliedOffer } from "./history.ts";
import { LOOPS_PER_ORGANIZATION, type Organization, startPartners, supplyOrganization } from "./organizations.ts";
import { workAsShopper } from "./partner.ts";
import { SeededRandom } from "./seeded-random.ts";

const ORGANIZATIONS = 2;
/**
 * How many vouchers a partner's loop uses per second while most calls fail. A loop that has used all of its vouchers
 * starts again with the first ones.
 */
const VOUCHERS_PER_LOOP_SECOND = 6;
/** The number of users who claim and buy. They soon empty each offer, so a new offer follows every few seconds. */
const SHOPPERS = 4;
const OFFER_SUPPLY = 8;
const OFFER_EVERY_MS = 3_000;
/** Number of loops of partners in the second deployment. It tests isolation, which needs little load. */
const SECOND_LOOPS = 3;
const SECOND_VOUCHERS = 1_500;

/** The deployments, callers and histories of a campaign. */
export type CampaignSetup = Awaited<ReturnType<typeof setUpCampaign>>;

/** Creates data in both deployments, adds their receivers and a copy of the database, and starts all processes. */
export async function setUpCampaign(
  cluster: Cluster,
  receivers: readonly { kind: HostileKind; url: string }[],
  { seed, faultsMs }: Pick<CampaignOptions, "seed" | "faultsMs">,
) {
  const { db, apis } = cluster;
  const [history, secondHistory] = [new History(), new History()];
  const vouchersPerLoop = Math.ceil((faultsMs / 1_000) * VOUCHERS_PER_LOOP_SECOND);
  const organizations: Organization[] = [];
  while (organizations.length < ORGANIZATIONS)
    organizations.push(await supplyOrganization(db, vouchersPerLoop * LOOPS_PER_ORGANIZATION, faultsMs));
  const [first, second] = organizations as [Organization, Organization];
  const lastVouchers = first.vouchers.splice(-apis.length);
  const offers: SuppliedOffer[] = [];
  while (offers.length < Math.ceil(faultsMs / OFFER_EVERY_MS))
    offers.push({ ...(await makeOffer(db, OFFER_SUPPLY)), supply: OFFER_SUPPLY });
  const enableReceivers = await addReceivers(db, first.keys[0].organizationId, receivers);
  const listener = await listenToWebhooks(db, second.keys[0].organizationId, history);
  const flooder = await makeFlooder(db);
  const cappedTills = await supplyCappedTills(db);
  const files = await Promise.all(organizations.map((organization) => supplyFiles(db, organization)));
  const secondDeployment = await cluster.addDeployment();
  const secondOrganization = await supplyOrganization(secondDeployment.db, SECOND_VOUCHERS);
  const copyOfDatabase = await cluster.addCopy();

  await cluster.heal();
  const proxies = await openProxies(apis);
  const startedAt = performance.now();
  return {
    cluster,
    random: new SeededRandom(seed),
    history,
    secondHistory,
    organizations,
    first,
    lastVouchers,
    offers,
    enableReceivers,
    listener,
    flooder,
    cappedTills,
    files,
    proxies,
    secondDeployment,
    secondOrganization,
    copyOfDatabase,
    elapsedMs: () => Math.round(performance.now() - startedAt),
  };
}

/** Starts every caller. The returned promises reject if a caller fails. */
export function startCallers(setup: CampaignSetup, issuer: IssuerKey, signal: AbortSignal, goesOn: () => boolean) {
  const { cluster, random, history, organizations, first, offers, secondDeployment, secondOrganization } = setup;
  const at = { random, signal };
  const currentOffer = () =>
    offers[Math.min(Math.floor(setup.elapsedMs() / OFFER_EVERY_MS), offers.length - 1)] as SuppliedOffer;
  const working = [
    ...organizations.flatMap((organization, which) => {
      const foreign = organizations[(which + 1) % organizations.length] as Organization;
      const own = { ...at, name: `org-${which + 1}`, history };
      return startPartners(cluster, organization, foreign, LOOPS_PER_ORGANIZATION, own, goesOn);
    }),
    ...Array.from({ length: SHOPPERS }, (_, index) => {
      const name = `shopper-${index + 1}`;
      const own = { ...at, name, random: random.fork(name), apis: cluster.apis, history, issuer, currentOffer };
      return workAsShopper(own, goesOn);
    }),
    ...startCappedTills(setup.cappedTills, { ...at, name: "capped", apis: cluster.apis, history }, goesOn),
    ...setup.files.map((files, index) => {
      const name = `bookkeeper-${index + 1}`;
      const own = { ...at, name, random: random.fork(name), apis: setup.proxies.proxied, history, files };
      return workAsFileReader(own, goesOn);
    }),
  ];
  const { followed, following } = startFeedFollowers(
    first.keys[0],
    { ...at, name: "follower", apis: cluster.apis },
    goesOn,
  );
  working.push(...following);
  const ofSecond = { ...at, name: "second", history: setup.secondHistory };
  const secondWorking = startPartners(
    ...([secondDeployment, secondOrganization, first, SECOND_LOOPS, ofSecond, goesOn] as const),
  );
  for (const work of [...working, ...secondWorking]) work.catch(() => undefined);
  return { working, secondWorking, followed };
}
