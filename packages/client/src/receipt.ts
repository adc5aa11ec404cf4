import { parsePayload, parsePolicy, parseProof, verifyProof } from "../../tlog/src/verify.ts";

/** What an accepted receipt proves. */
export interface AcceptedReceipt {
  /** The sealed event's payload: `entityId`, `sequence`, `eventType`, `occurredAt` and other fields. */
  event: Record<string, unknown>;
  /** The event's position in the log. */
  index: number;
  /** The witnesses that saw the log's checkpoint, and when. Seconds since 1970. */
  witnesses: { name: string; time: number }[];
}

/**
 * Checks a receipt offline against a policy that you have kept: the log's key, and the witnesses that must have seen
 * its checkpoint. Get the policy from `/log/policy` the first time, and compare it with what the operator publishes
 * elsewhere.
 * @throws Error with the reason when the receipt or the policy is not accepted.
 */
export async function verifyReceipt(receipt: string, policy: string): Promise<AcceptedReceipt> {
  const { extra } = parseProof(receipt);
  const event = extra && parsePayload(extra);
  if (event === null) throw new Error("The receipt has no payload.");
  const { index, cosignatures } = await verifyProof(receipt, await parsePolicy(policy));
  return {
    event,
    index,
    witnesses: cosignatures.map(({ key, time }) => ({ name: key.name, time: time as number })),
  };
}
