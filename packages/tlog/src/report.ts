import { encodeHex } from "./bytes.ts";
import { parsePolicy } from "./policy.ts";
import { parseProof, verifyProof } from "./receipt.ts";

/** Verifies a receipt, and reports what it proves, both as fields and as text. @throws PolicyNotRead, NotAccepted */
export async function reportReceipt(receipt: string, policy: string): Promise<[fields: object, text: string]> {
  const { cosignatures, recordHash, origin, index, size } = await verifyProof(receipt, await parsePolicy(policy));
  const payload = new TextDecoder().decode(parseProof(receipt).extra ?? undefined);
  const witnesses = cosignatures.map(({ key, time }) => ({
    name: key.name,
    seenAt: new Date((time ?? 0) * 1_000).toISOString(),
  }));
  const lines = [
    `Leaf ${index} of the log ${origin}, in its tree of ${size} leaves.`,
    ...witnesses.map(({ name, seenAt }) => `Seen by ${name} at ${seenAt}.`),
    payload,
  ];
  return [{ origin, index, size, recordHash: encodeHex(recordHash), witnesses, payload }, lines.join("\n")];
}

/** A sentence about when a log was last cosigned. */
export function describeAge(seconds: number | null): string {
  return seconds === null ? "No witness has cosigned it." : `A witness has cosigned it ${seconds} s ago.`;
}
