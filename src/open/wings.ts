import { marketplace } from "../marketplace/wing.ts";
import { transparency } from "../transparency/wing.ts";
import { webhooks } from "../webhooks/wing.ts";
import type { Wing } from "../wing.ts";
import type { ApiCore } from "./open-core.ts";
import type { WorkerService } from "./open-worker-service.ts";

/** A wing of this service. Only the wing knows the type of what it opens. */
// biome-ignore lint/suspicious/noExplicitAny: `wing` has checked the type.
type OwnWing = Wing<ApiCore, WorkerService, any>;

/** Checks that this service provides everything that a wing's parts need. */
export const wing = <Own extends object>(one: Wing<ApiCore, WorkerService, Own>): OwnWing => one;

/** The optional parts of the service. To remove one, delete its folder, its import above and its entry in this list. */
export const WINGS: readonly OwnWing[] = [wing(marketplace), wing(transparency), wing(webhooks)];

/** The SQL files that grant the database rights which the wings need. */
export const WING_GRANTS = WINGS.flatMap(({ grants }) => grants ?? []);

/** The parts that only certain programs load. */
type PartName = "acts" | "api" | "commands" | "demo" | "start" | "sweeper";
type Part<Name extends PartName> = Awaited<ReturnType<NonNullable<OwnWing[Name]>>>;

/** Loads the part with this name, such as `commands`, of each optional feature (wing) that has one. */
export async function loadParts<Name extends PartName>(name: Name): Promise<Part<Name>[]> {
  const parts = await Promise.all(WINGS.map((one) => one[name]?.()));
  return parts.filter((part) => part !== undefined) as Part<Name>[];
}
