import type pg from "pg";
import type { Logger } from "pino";
import { readDurabilitySettings } from "../db/durability.ts";

/** A setting with which acknowledged work could be lost, or answers be of no use. */
interface Risk {
  code: string;
  /** What is wrong, and what to change, as sentences for an operator. */
  message: string;
}

/** Logs a warning for each risk. Never fails: the readiness check reports a server that does not respond. */
export async function warnOfRisks(log: Logger, find: Promise<Risk[]> | Risk[]): Promise<void> {
  for (const { code, message } of await Promise.resolve(find).catch(() => [])) log.warn({ risk: code }, message);
}

/** Finds a public address that only this machine can reach. */
export function findAddressRisks({ baseUrl }: { baseUrl: string }): Risk[] {
  if (!/^(localhost|127\..*|\[::1\])$|\.localhost$/.test(new URL(baseUrl).hostname)) return [];
  const message =
    `The addresses in answers, such as verifyUrl, begin with ${baseUrl}, which only this machine can reach. ` +
    "Set BASE_URL to the public address.";
  return [{ code: "local_base_url", message }];
}

/** Finds settings of Postgres that could lose acknowledged work. @throws Error without an answer. */
export async function findDurabilityRisks(pool: pg.Pool): Promise<Risk[]> {
  const settings = await readDurabilitySettings(pool);
  if (settings.isStandby) {
    // The primary can have other settings, so those of the standby are not checked.
    return [{ code: "standby", message: "DATABASE_URL leads to a standby. It must always lead to the primary." }];
  }
  const risks: Risk[] = [];
  if (settings.fsync !== "on") {
    risks.push({ code: "fsync_off", message: "Postgres has fsync = off: a crash of its host can lose everything." });
  }
  if (settings.fullPageWrites !== "on") {
    const message = "Postgres has full_page_writes = off: a crash of its host can leave damaged pages.";
    risks.push({ code: "full_page_writes_off", message });
  }
  if (settings.synchronousStandbyNames === "") {
    const message =
      "Postgres has no synchronous standby (synchronous_standby_names is empty): if the primary's disk is lost or " +
      "a standby is promoted, " +
      "acknowledged redemptions can be missing and their vouchers redeemed again.";
    risks.push({ code: "no_synchronous_standby", message });
  } else if (settings.restartAfterCrash !== "off") {
    const message =
      "Postgres has restart_after_crash = on with synchronous standbys: after a crash it serves transactions that " +
      "no standby has. Set it to off.";
    risks.push({ code: "restart_after_crash", message });
  }
  return risks;
}
