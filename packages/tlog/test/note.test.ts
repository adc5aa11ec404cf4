import { describe, expect, it, vi } from "vitest";
import { signCheckpoint } from "../../../test/support/sign-checkpoint.ts";
import { encodeBase64, isEqual } from "../src/bytes.ts";
import { type CheckpointNote, parseCheckpoint } from "../src/checkpoint.ts";
import {
  cosignNote,
  formatSecretKey,
  hasEd25519,
  InvalidSignature,
  isKeyName,
  isSignedBy,
  type KeyUse,
  makeSigner,
  type ParsedNote,
  parseNote,
  parseSecretKey,
  parseVerifierKey,
  type SignerKey,
  signNote,
  verifySignatures,
} from "../src/note.ts";
import { LogNotNamed, meetsQuorum, NotAccepted, PolicyNotRead, parsePolicy, verifyCheckpoint } from "../src/policy.ts";

const seed = (byte: number) => new Uint8Array(32).fill(byte);
const log = await makeSigner("log", "log.example", seed(1));
const [w1, w2, w3] = await Promise.all([2, 3, 4].map((byte) => makeSigner("witness", `w${byte}.example`, seed(byte))));
const head = { size: 3, root: seed(9) };

/** The example note in the documentation of Go's package golang.org/x/mod/sumdb/note. */
const KNOWN_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const KNOWN_NOTE = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`;

describe("a signed note", () => {
  it("verifySignatures accepts a note signed by Go's package, and rejects the note with a changed text", async () => {
    const key = await parseVerifierKey("log", KNOWN_KEY);
    const note = parseNote(KNOWN_NOTE);
    if (key === null || note === null) throw new Error("the known note does not parse");
    expect(await verifySignatures(note, [key])).toHaveLength(1);
    await expect(verifySignatures({ ...note, text: `${note.text}x\n` }, [key])).rejects.toThrow(InvalidSignature);
    expect(await verifySignatures(note, [log])).toEqual([]);
  });

  it.each([
    ["without signatures", "text\n\n"],
    ["without an empty line", "x— a AAAAAAAB\n"],
    ["without its last line end", "text\n\n— a AAAAAAABx"],
    ["with CRLF", KNOWN_NOTE.replaceAll("\n", "\r\n")],
    ["with a tab", KNOWN_NOTE.replace("cryptography", "cryp\ttography")],
    ["with two spaces in a signature", KNOWN_NOTE.replace("— PeterNeumann ", "— PeterNeumann  ")],
    ["with a hyphen for the dash", KNOWN_NOTE.replace("— ", "- ")],
    ["with loose base64", KNOWN_NOTE.replace("AM=\n", "AN=\n")],
    ["with a signature of an id alone", "text\n\n— a AAAAAA==\n"],
    ["that begins with its empty line, without a last line", "\n\n"],
    ["with a lone surrogate", KNOWN_NOTE.replace("answer", "ans\ud800wer")],
    ["with a NUL", KNOWN_NOTE.replace("answer", "ans\0wer")],
    ["with a DEL", KNOWN_NOTE.replace("answer", "ans\u007fwer")],
    ["with extra text before a signature", KNOWN_NOTE.replace("— ", "x— ")],
    ["with extra text after a signature", KNOWN_NOTE.replace("nAM=", "nAM= x")],
    ["with a plus in a name", "text\n\n— a+b AAAAAAAA\n"],
    ["with a line among its signatures that is not one", "text\n\n— a AAAAAAAA\nb\n"],
    ["with more than a hundred signatures", `text\n\n${"— a AAAAAAAA\n".repeat(101)}`],
  ])("the parser refuses a note %s", (_, text) => {
    expect(parseNote(text)).toBeNull();
  });
});

it("a signed note may have a hundred signatures, and empty lines in its text", () => {
  const note = parseNote(`a\n\nb\n\n${"— a AAAAAAAB\n".repeat(100)}`);
  expect(note?.text).toBe("a\n\nb\n");
  expect(note?.signatures).toHaveLength(100);
  const signature = { name: "a", id: Uint8Array.of(0, 0, 0, 0), bytes: Uint8Array.of(0, 1), line: "— a AAAAAAAB" };
  expect(note?.signatures[99]).toEqual(signature);
  expect(parseNote("\n\n— a AAAAAAAB\n")?.text).toBe("\n");
});

it("verifySignatures returns one signature for each key, with the time of a cosignature", async () => {
  const text = "text\n";
  const namesake = await makeSigner("log", "log.example", seed(6));
  const cosigner = w1 as SignerKey;
  const cosignature = await cosignNote(cosigner, text, 1_800_000_000);
  const note = await signNote([log, namesake, log], text);
  const parsed = parseNote(`${note}${cosignature}\n`) as ParsedNote;
  const line = note.split("\n")[2];
  expect(await verifySignatures(parsed, [log, cosigner])).toEqual([
    { key: log, time: null, line },
    { key: cosigner, time: 1_800_000_000, line: cosignature },
  ]);
  expect(await isSignedBy(parsed, [namesake])).toBe(true);
  expect(await isSignedBy(parsed, [w2 as SignerKey])).toBe(false);
  expect(await isSignedBy({ ...parsed, text: "other\n" }, [log])).toBe(false);
  await expect(isSignedBy(parsed, [{ ...log, id: null as never }])).rejects.toThrow(TypeError);
});

it("verifySignatures refuses a note if the signature of a trusted key is wrong or truncated", async () => {
  const parsed = parseNote(await signNote([log], "text\n")) as ParsedNote;
  const cut = { ...parsed, signatures: parsed.signatures.map((one) => ({ ...one, bytes: one.bytes.slice(1) })) };
  for (const canVerify of [true, false])
    await expect(verifySignatures(cut, [log], canVerify)).rejects.toThrow(
      new InvalidSignature("the signature of log.example is wrong"),
    );
  const other = { ...parsed, text: "other\n" };
  await expect(verifySignatures(other, [log])).rejects.toThrow(InvalidSignature);
  expect(await verifySignatures(other, [log], false)).toHaveLength(1);
  // These bytes are not a point of the curve.
  const noPoint = { ...log, publicKey: new Uint8Array(32).fill(2) };
  await expect(verifySignatures(parsed, [noPoint])).rejects.toThrow(InvalidSignature);
  expect(await hasEd25519()).toBe(true);
  const refuse = vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(new DOMException("refused", "DataError"));
  const [wrong, has] = await Promise.allSettled([verifySignatures(parsed, [log]), hasEd25519()]);
  refuse.mockRestore();
  expect(wrong).toMatchObject({ reason: expect.any(InvalidSignature) });
  expect(has).toMatchObject({ value: false });
});

it("a key file and a public key have only one valid encoding, and each is for one use", async () => {
  const secret = await formatSecretKey("log", "log.example", seed(1));
  expect(secret).toMatch(/^PRIVATE\+KEY\+log\.example\+[0-9a-f]{8}\+AQEB/);
  expect((await parseSecretKey("log", `${secret}\n`))?.text).toBe(log.text);
  expect((await parseVerifierKey("log", log.text))?.text).toBe(log.text);
  const withPlus = await formatSecretKey("log", "log.example", seed(0xfb));
  expect(withPlus).toMatch(/\+Afv7\+\//);
  expect(await parseSecretKey("log", withPlus)).not.toBeNull();
  for (const wrong of [
    secret.replace("log.example", "log.example.org"),
    secret.slice(0, -1),
    secret.slice("PRIVATE+KEY+".length),
    secret.replace("log.example", "log example"),
    secret.replace("+AQ", "+BA"),
    log.text,
  ]) {
    expect(await parseSecretKey("log", wrong), wrong).toBeNull();
  }
  const otherId = log.text.replace(/\+[0-9a-f]{8}/, "+00000000");
  for (const wrong of [` ${log.text}`, `${log.text} `, log.text.replace("+", "++"), otherId, secret, "", "a+b+c"]) {
    expect(await parseVerifierKey("log", wrong), wrong).toBeNull();
  }
  expect(await parseSecretKey("witness", secret)).toBeNull();
  expect(await parseVerifierKey("witness", log.text)).toBeNull();
  await expect(makeSigner("log", "a b", seed(1))).rejects.toThrow(/cannot be the name/);
});

it("isEqual distinguishes byte arrays with different content or length", () => {
  const bytes = Uint8Array.of(1, 2);
  expect(isEqual(bytes, Uint8Array.of(1, 2))).toBe(true);
  for (const other of [[1], [1, 3], [1, 2, 3]]) expect(isEqual(bytes, Uint8Array.from(other))).toBe(false);
});

it("a log key's name has no white space, plus sign or control character", () => {
  expect(["a", "log.example/x", "ä"].filter((name) => !isKeyName(name))).toEqual([]);
  expect(["", "a b", "a\u2003", "a+b", "+", "a\u0085", "\ud800"].filter(isKeyName)).toEqual([]);
});

describe("a checkpoint of the log", () => {
  it("signCheckpoint is deterministic, and the parser returns the signed checkpoint unchanged", async () => {
    const note = await signCheckpoint(log, head);
    expect(await signCheckpoint(log, head)).toBe(note);
    expect(parseCheckpoint(note)).toMatchObject({ origin: "log.example", ...head });
  });

  it.each([
    ["a size with a sign", "log.example\n+3\n"],
    ["a size beyond 2^53", "log.example\n9007199254740993\n"],
    ["no origin", "\n3\n"],
    ["a short root", "log.example\n3\nAAAA\n"],
    ["an empty line after the root", `log.example\n3\n${encodeBase64(seed(9))}\n\nmore\n`],
  ])("the parser refuses a checkpoint with %s", (_, text) => {
    const full = text.split("\n").length === 3 ? `${text}${encodeBase64(seed(9))}\n` : text;
    expect(parseCheckpoint(`${full}\n— a AAAAAAAA\n`)).toBeNull();
    expect(parseCheckpoint(`log.example\n3\n${encodeBase64(seed(9))}\n\n— a AAAAAAAA\n`)).not.toBeNull();
  });
});

describe("a policy of logs and witnesses", async () => {
  const lines = [
    "# Two of three, or one of them",
    "",
    `log ${log.text} https://log.example/log`,
    `witness a ${w1?.text}`,
    `  witness b\t${w2?.text} https://w.example/`,
    `witness c ${w3?.text}`,
    "group two 2 a b c",
    "quorum two",
  ];
  const policy = await parsePolicy(`${lines.join("\n")}\n`);

  it("a policy's quorum counts the members of groups and of nested groups", async () => {
    expect(meetsQuorum(policy, new Set(["a"]))).toBe(false);
    expect(meetsQuorum(policy, new Set(["a", "c"]))).toBe(true);
    const nested = await parsePolicy(`${lines.slice(2, 6).join("\n")}\ngroup x any a b\ngroup y all x c\nquorum y\n`);
    expect(nested.logs[0]?.url).toBe("https://log.example/log");
    expect(meetsQuorum(nested, new Set(["a", "b"]))).toBe(false);
    expect(meetsQuorum(nested, new Set(["b", "c"]))).toBe(true);
    expect(meetsQuorum(await parsePolicy("quorum none\n"), new Set())).toBe(true);
  });

  it("a policy may have comments, blanks and tabs anywhere between words", async () => {
    const text = `#<x> {y} [z]\n# a\uFEFFb#\n \t \nlog \t${log.text}\t \nquorum  none \n`;
    const { logs, quorum } = await parsePolicy(text);
    expect([logs.map(({ key, url }) => [key.name, url]), quorum]).toEqual([[["log.example", null]], null]);
  });

  it("a policy rejects a checkpoint without a valid signature of the log, with the reason", async () => {
    const other = await makeSigner("log", "other.example", seed(5));
    const two = await parsePolicy(`log ${log.text}\nlog ${other.text}\nquorum none\n`);
    const verify = (note: string, canVerify?: boolean) =>
      verifyCheckpoint(two, parseCheckpoint(note) as CheckpointNote, canVerify);
    const note = await signCheckpoint(log, head);
    const text = note.slice(0, note.indexOf("\n\n") + 1);
    expect(await verify(note)).toEqual([]);
    const unknown = verify(await signCheckpoint({ ...log, name: "third.example" }, head));
    await expect(unknown).rejects.toThrow(LogNotNamed);
    await expect(unknown).rejects.toThrow(/^The policy has no log third\.example\.$/);
    // The other log has signed the text, but the text names the first log.
    await expect(verify(await signNote([other], text))).rejects.toThrow(
      /^The checkpoint is not signed by log\.example\.$/,
    );
    const forged = await signNote([{ ...log, privateKey: other.privateKey }], text);
    const wrong = /^In the checkpoint, the signature of log\.example is wrong\.$/;
    await expect(verify(forged)).rejects.toThrow(NotAccepted);
    await expect(verify(forged)).rejects.toThrow(wrong);
    expect(await verify(forged, false)).toEqual([]);
  });

  it("a policy accepts a checkpoint only with its quorum, and counts each witness once", async () => {
    const note = await signCheckpoint(log, head);
    const text = `${note.slice(0, note.indexOf("\n\n"))}\n`;
    const verify = async (...cosigners: (typeof w1)[]) => {
      const lines = await Promise.all(cosigners.map((key) => key && cosignNote(key, text, 1_800_000_000)));
      const checkpoint = parseCheckpoint(`${note}${lines.map((line) => `${line}\n`).join("")}`);
      return checkpoint && verifyCheckpoint(policy, checkpoint);
    };
    expect(await verify(w1, w3)).toHaveLength(2);
    await expect(verify(w1)).rejects.toThrow(/too few/);
    await expect(verify(w1, w1)).rejects.toThrow(/too few/);
    await expect(verify(w1, await makeSigner("witness", "w9.example", seed(77)))).rejects.toThrow(/too few/);
  });

  const NO_NAME = "needs a name of its own";
  const NO_THRESHOLD = "has no threshold from 1 to the number of members";
  const NO_QUORUM = "names no witness and no group";
  const keyOf = async (use: KeyUse, byte: number) => (await makeSigner(use, "other.example", seed(byte))).text;

  it.each([
    ["an unknown word", "logs x", "begins with an unknown word"],
    ["a witness's key as a log", `log ${w1?.text}`, "has no key of a log"],
    ["a log's key as a witness", `witness d ${log.text}`, "has no key of a witness"],
    ["a log without a key", "log", "has no key of a log"],
    ["a second log with the same key", `log ${await keyOf("log", 1)}`, "repeats a key"],
    ["a witness with another's key", `witness d ${await keyOf("witness", 2)}`, "repeats a key"],
    ["a name twice", `witness a ${await keyOf("witness", 8)}`, NO_NAME],
    ["the name none", "group none 1 two", NO_NAME],
    ["a witness without a name", "witness", NO_NAME],
    ["a member that is not defined", "group x any d", "names d, which no earlier line defines"],
    ["a member of two groups", "group x any a", "repeats the member a"],
    ["a threshold of zero", "group x 0 two", NO_THRESHOLD],
    ["a threshold beyond the members", "group x 2 two", NO_THRESHOLD],
    ["a group without members", "group x all", NO_THRESHOLD],
    ["a group without a threshold", "group x", NO_THRESHOLD],
    ["a quorum of two names", "quorum a b", NO_QUORUM],
    ["a quorum without a name", "quorum", NO_QUORUM],
    ["a quorum that is not defined", "quorum d", NO_QUORUM],
    ["a word in place of a URL", `log ${await keyOf("log", 7)} nowhere`, "has no URL after the key"],
    ["extra text after a URL", `log ${await keyOf("log", 7)} https://a.example b`, "has no URL after the key"],
  ])("the parser refuses a policy with %s", async (_, line, reason) => {
    const parsed = parsePolicy(`${lines.join("\n")}\n${line}\n`);
    await expect(parsed).rejects.toThrow(PolicyNotRead);
    await expect(parsed).rejects.toMatchObject({ message: `Line 9 of the policy ${reason}.` });
  });

  const AGAIN = "Download the policy again, with curl -o";

  it.each([
    ["a second quorum", "quorum none\nquorum none\n", "The policy must have one line that begins with quorum."],
    ["no line", "", "The policy must have one line that begins with quorum."],
    ["a control character", "# bell \u0007\nquorum none\n", "The policy has a control character."],
    [
      "a byte order mark",
      "\uFEFFquorum none\n",
      `The policy is saved as UTF-16 or with a byte order mark. ${AGAIN}, or save it as UTF-8.`,
    ],
    ["UTF-16", "q\0u\0", `The policy is saved as UTF-16 or with a byte order mark. ${AGAIN}, or save it as UTF-8.`],
    ["CRLF", "quorum none\r\n", `The lines of the policy end with CR and LF. ${AGAIN}, or remove each CR.`],
    ["a web page", "<html>\n", `This is a web page, not a policy. ${AGAIN}, and compare the address.`],
    ["an indented web page", " \n<html>\n", `This is a web page, not a policy. ${AGAIN}, and compare the address.`],
    ["JSON", "{}", `This is JSON, such as an error of the service, not a policy. Read it. ${AGAIN}.`],
    ["indented JSON", "\n [\n", `This is JSON, such as an error of the service, not a policy. Read it. ${AGAIN}.`],
    ["a cut line", "quorum none", `The last line of the policy has no end: it was cut. ${AGAIN}.`],
  ])("a policy with %s is refused with a message", async (_, text, message) => {
    await expect(parsePolicy(text)).rejects.toMatchObject({ message });
  });

  it("a policy may have a thousand lines, and is refused with 1 001 lines", async () => {
    expect(await parsePolicy(`${"#\n".repeat(999)}quorum none\n`)).toMatchObject({ quorum: null });
    await expect(parsePolicy(`${"#\n".repeat(1_000)}quorum none\n`)).rejects.toThrow(/more than 1000 lines/);
  });
});
