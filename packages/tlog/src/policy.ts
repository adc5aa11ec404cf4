import { isEqual, parseDecimal } from "./bytes.ts";
import type { CheckpointNote } from "./checkpoint.ts";
import {
  InvalidSignature,
  type KeyUse,
  type NoteSignature,
  parseVerifierKey,
  type VerifierKey,
  verifySignatures,
} from "./note.ts";

/** The key of a log or a witness, and its URL, if the policy has one. */
interface PolicyEntry {
  key: VerifierKey;
  url: string | null;
}

/** Which checkpoints to accept: those signed by one of the logs and cosigned by the quorum (C2SP tlog-policy). */
export interface Policy {
  logs: PolicyEntry[];
  witnesses: (PolicyEntry & { name: string })[];
  groups: { name: string; threshold: number; members: string[] }[];
  /** The name of a witness or group. Null requires no witness. */
  quorum: string | null;
}

/** A policy, receipt or checkpoint cannot be parsed or verified. The message is a sentence for users. */
export class NotAccepted extends Error {}

/** The policy cannot be parsed, which says nothing about the receipt or checkpoint. */
export class PolicyNotRead extends NotAccepted {}

/** The policy does not name the log. The receipt or checkpoint may be valid under another policy. */
export class LogNotNamed extends NotAccepted {}

const LINES_MAX = 1_000;

/** A sentence about how a file was changed or replaced, and the remedy. Null if the text shows no such change. */
export function explainDamage(text: string, what: string): string | null {
  const again = `Download the ${what} again, with curl -o`;
  if (/^\uFEFF|\0/.test(text))
    return `The ${what} is saved as UTF-16 or with a byte order mark. ${again}, or save it as UTF-8.`;
  if (text.includes("\r")) return `The lines of the ${what} end with CR and LF. ${again}, or remove each CR.`;
  if (/^\s*</.test(text)) return `This is a web page, not a ${what}. ${again}, and compare the address.`;
  if (/^\s*[{[]/.test(text)) return `This is JSON, such as an error of the service, not a ${what}. Read it. ${again}.`;
  return text === "" || text.endsWith("\n") ? null : `The last line of the ${what} has no end: it was cut. ${again}.`;
}

/** Parses a policy file strictly. @throws PolicyNotRead with the reason. */
export async function parsePolicy(text: string): Promise<Policy> {
  const policy: Policy = { logs: [], witnesses: [], groups: [], quorum: null };
  const names = new Set<string>();
  const allMembers = new Set<string>();
  let quorums = 0;
  const damage = explainDamage(text, "policy");
  if (damage !== null) throw new PolicyNotRead(damage);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a policy must not contain control characters.
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(text)) throw new PolicyNotRead("The policy has a control character.");
  const lines = text.split("\n").slice(0, -1);
  if (lines.length > LINES_MAX) throw new PolicyNotRead(`The policy has more than ${LINES_MAX} lines.`);
  for (const [index, line] of lines.entries()) {
    const [word = "", ...rest] = line.split(/[ \t]/).filter((item) => item !== "");
    if (word === "" || word.startsWith("#")) continue;
    const refuse = (reason: string) => new PolicyNotRead(`Line ${index + 1} of the policy ${reason}.`);
    const define = (name: string | undefined): string => {
      if (name === undefined || name === "none" || names.has(name)) throw refuse("needs a name of its own");
      names.add(name);
      return name;
    };
    const parseEntry = async (use: KeyUse, [vkey = "", address, ...more]: string[]): Promise<PolicyEntry> => {
      const url = address ?? null;
      const key = await parseVerifierKey(use, vkey);
      if (key === null) throw refuse(`has no key of a ${use}`);
      if (more.length > 0 || (url !== null && !URL.canParse(url))) throw refuse("has no URL after the key");
      const others = use === "log" ? policy.logs : policy.witnesses;
      if (others.some((other) => isEqual(other.key.publicKey, key.publicKey))) throw refuse("repeats a key");
      return { key, url };
    };
    if (word === "log") policy.logs.push(await parseEntry("log", rest));
    else if (word === "witness") {
      const [name, ...keyAndUrl] = rest;
      policy.witnesses.push({ name: define(name), ...(await parseEntry("witness", keyAndUrl)) });
    } else if (word === "group") {
      const [name, count = "", ...members] = rest;
      for (const member of members) {
        if (!names.has(member)) throw refuse(`names ${member}, which no earlier line defines`);
        if (allMembers.has(member)) throw refuse(`repeats the member ${member}`);
        allMembers.add(member);
      }
      const threshold = count === "any" ? 1 : count === "all" ? members.length : (parseDecimal(count) ?? 0);
      if (threshold < 1 || threshold > members.length) throw refuse("has no threshold from 1 to the number of members");
      policy.groups.push({ name: define(name), threshold, members });
    } else if (word === "quorum") {
      const [name = "", ...more] = rest;
      if (more.length > 0 || (name !== "none" && !names.has(name))) throw refuse("names no witness and no group");
      policy.quorum = name === "none" ? null : name;
      quorums += 1;
    } else throw refuse("begins with an unknown word");
  }
  if (quorums !== 1) throw new PolicyNotRead("The policy must have one line that begins with quorum.");
  return policy;
}

/** Whether the witnesses with these names meet the quorum. */
export function meetsQuorum(policy: Policy, witnesses: ReadonlySet<string>): boolean {
  const met = new Set(witnesses);
  // One pass over the groups is enough, because a policy defines each group after its members.
  for (const { name, threshold, members } of policy.groups) {
    if (members.filter((member) => met.has(member)).length >= threshold) met.add(name);
  }
  return policy.quorum === null || met.has(policy.quorum);
}

/**
 * Verifies a checkpoint against a policy: that one of the policy's logs has signed it under its own origin, and that
 * the quorum of witnesses has cosigned it.
 * @param canVerify whether the runtime verifies signatures. See `verifySignatures`.
 * @returns the witnesses' valid cosignatures.
 * @throws NotAccepted with the reason.
 */
export async function verifyCheckpoint(
  policy: Policy,
  { note, origin }: CheckpointNote,
  canVerify = true,
): Promise<NoteSignature[]> {
  const logs = policy.logs.map(({ key }) => key).filter(({ name }) => name === origin);
  if (logs.length === 0) throw new LogNotNamed(`The policy has no log ${origin}.`);
  const cosigners = policy.witnesses.map(({ key }) => key);
  try {
    if ((await verifySignatures(note, logs, canVerify)).length === 0)
      throw new NotAccepted(`The checkpoint is not signed by ${origin}.`);
    const cosignatures = await verifySignatures(note, cosigners, canVerify);
    const witnesses = policy.witnesses.filter(({ key }) => cosignatures.some((cosignature) => cosignature.key === key));
    if (meetsQuorum(policy, new Set(witnesses.map(({ name }) => name)))) return cosignatures;
  } catch (error) {
    if (error instanceof InvalidSignature) throw new NotAccepted(`In the checkpoint, ${error.message}.`);
    throw error;
  }
  throw new NotAccepted("The checkpoint has too few cosignatures of the policy's witnesses.");
}
