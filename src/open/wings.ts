import { marketplace } from "../marketplace/wing.ts";
import { transparency } from "../transparency/wing.ts";
import { webhooks } from "../webhooks/wing.ts";
import type { Wing } from "../wing.ts";
import type { ApiCore } from "./open-core.ts";
import type { WorkerService } from "./open-worker-service.ts";

/** A wing of this service. What it opens itself is known to the wing alone. */
// biome-ignore lint/suspicious/noExplicitAny: `wing` has checked the type.
type OwnWing = Wing<ApiCore, WorkerService, any>;

/** Checks that this service gives a wing all that its parts take. */
export const wing = <Own extends object>(one: Wing<ApiCore, WorkerService, Own>): OwnWing => one;

/** All wings. To remove a wing, delete its folder and its line here. */
export const WINGS: readonly OwnWing[] = [wing(marketplace), wing(transparency), wing(webhooks)];

/** The files with the grants of all wings. */
export const WING_GRANTS = WINGS.flatMap(({ grants }) => grants ?? []);

/** The parts for single programs. */
type PartName = "acts" | "api" | "commands" | "start" | "sweeper";
type Part<Name extends PartName> = Awaited<ReturnType<NonNullable<OwnWing[Name]>>>;

/** Loads the parts with this name, of all wings that have one. */
export async function loadParts<Name extends PartName>(name: Name): Promise<Part<Name>[]> {
  const parts = await Promise.all(WINGS.map((one) => one[name]?.()));
  return parts.filter((part) => part !== undefined) as Part<Name>[];
}
