import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { explain } from "../../../src/cli/explain.ts";
import { readAnchor, writeAnchor } from "../../../src/transparency/anchors.ts";
import { naiveProof, naiveRoot } from "../../../test/support/naive-merkle.ts";
import { signCheckpoint } from "../../../test/support/sign-checkpoint.ts";
import { parseCheckpoint } from "../src/checkpoint.ts";
import { lockFile } from "../src/durable-file.ts";
import { makeSigner } from "../src/note.ts";
import { serveWitness, WitnessServer } from "../src/witness-server.ts";

const log = await makeSigner("log", "log.example", Buffer.alloc(32, 1));
const key = await makeSigner("witness", "w.example", Buffer.alloc(32, 2));
const LEAVES = Array.from({ length: 9 }, (_, index) => Buffer.alloc(32, index));

let directory: string;
let state: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "witness-"));
  state = join(directory, "seen.json");
});

afterEach(() => rmSync(directory, { recursive: true }));

const checkpointOf = (size: number, root = naiveRoot(LEAVES.slice(0, size))) => signCheckpoint(log, { size, root });

describe("a witness server", () => {
  it.each<[string, number, [number, number, Buffer?], number, string | RegExp]>([
    ["cosigns an empty tree", 0, [0, 0], 200, /^— w\.example /],
    ["rejects an empty tree with another root", 0, [0, 0, Buffer.alloc(32, 7)], 422, /proof/],
    ["cosigns a tree that continues the last one", 4, [4, 9], 200, /^— w\.example /],
    ["cosigns the last tree again", 4, [4, 4], 200, /^— w\.example /],
    ["names its size when the old size is not its own", 4, [3, 9], 409, "4\n"],
    ["names its size when the old size is zero", 4, [0, 9], 409, "4\n"],
    ["rejects another root for the last size", 4, [4, 4, Buffer.alloc(32, 7)], 422, /proof/],
    ["rejects a proof that leads elsewhere", 4, [4, 9, Buffer.alloc(32, 7)], 422, /proof/],
    ["rejects an old size larger than the tree", 4, [4, 3], 400, /larger/],
  ])("a witness %s", async (_, seen, [oldSize, size, root], status, text) => {
    const witness = await WitnessServer.open(key, [log], state);
    if (seen > 0) expect(await witness.addCheckpoint(await requestOf(0, seen), 1)).toMatchObject({ status: 200 });
    const before = seen > 0 ? readFileSync(state, "utf8") : null;
    const response = await witness.addCheckpoint(await requestOf(oldSize, size, root), 1);
    expect(response).toEqual({
      status,
      text: typeof text === "string" ? text : expect.stringMatching(text),
      contentType: status === 409 ? "text/x.tlog.size" : "text/plain; charset=utf-8",
    });
    if (status !== 200 && before !== null) expect(readFileSync(state, "utf8")).toBe(before);
    witness.close();
  });

  it("a witness server refuses to start with a state that another witness server has open", async () => {
    const witness = await WitnessServer.open(key, [log], state);
    await expect(WitnessServer.open(key, [log], state)).rejects.toThrow(`Another process uses ${state}.`);
    await witness.addCheckpoint(await requestOf(0, 4), 1);
    witness.close();
    const next = await WitnessServer.open(key, [log], state);
    expect(await next.addCheckpoint(await requestOf(0, 4, Buffer.alloc(32, 7)), 1)).toMatchObject({ status: 409 });
    next.close();
  });

  it("a witness server that finds a damaged state closes the state, and leaves its file unchanged", async () => {
    writeFileSync(state, '{"log.example":');
    for (const _ of [1, 2]) await expect(WitnessServer.open(key, [log], state)).rejects.toThrow(/is damaged/);
    expect(readFileSync(state, "utf8")).toBe('{"log.example":');
  });

  it("a damaged anchor file makes the process exit with 78 and an explanation", async () => {
    writeFileSync(join(directory, "anchor"), "damaged\n");
    const damaged = await readAnchor(join(directory, "anchor"), null).catch((error: unknown) => error);
    expect(explain(damaged)).toEqual({ message: expect.stringMatching(/^the anchor .* of this log$/), exitCode: 78 });
  });

  it("a witness server accepts a request without Content-Length, and rejects a request that is too long", async () => {
    const witness = await WitnessServer.open(key, [log], state);
    const { url, close } = await serveWitness(witness, { port: 0, host: "127.0.0.1" });
    const post = (...chunks: string[]) =>
      new Promise<[number | undefined, string]>((resolve, reject) => {
        const sent = request(`${url}/add-checkpoint`, { method: "POST" }, async (response) => {
          let text = "";
          for await (const chunk of response) text += chunk;
          resolve([response.statusCode, text]);
        });
        sent.on("error", reject);
        for (const chunk of chunks) sent.write(chunk);
        sent.end();
      });
    const body = await requestOf(0, 4);
    expect(await post(body.slice(0, 20), body.slice(20))).toEqual([200, expect.stringMatching(/^— w\.example /)]);
    expect(await post("x".repeat(40_000), "x".repeat(40_000))).toEqual([400, "The request is too long.\n"]);
    await close();
    witness.close();
  });
});

it("an anchor file keeps the largest checkpoint of concurrent writers, in any order of their writes", async () => {
  const anchor = join(directory, "anchor");
  const unlock = await lockFile(anchor, 0);
  const sizes = [3, 9, 4, 1, 8];
  const writes = (await Promise.all(sizes.map((size) => checkpointOf(size)))).map((note) =>
    writeAnchor(anchor, note, [log]),
  );
  expect(await readAnchor(anchor, [log])).toBeNull();
  unlock();
  await Promise.all(writes);
  expect((await readAnchor(anchor, [log]))?.size).toBe(9);
  expect(parseCheckpoint(readFileSync(anchor, "utf8"))?.size).toBe(9);
  expect(readdirSync(directory).sort()).toEqual(["anchor", "anchor.lock"]);
});

it("an anchor file is never overwritten by another tree of the same size", async () => {
  const anchor = join(directory, "anchor");
  const first = await checkpointOf(4);
  await writeAnchor(anchor, first, [log]);
  await writeAnchor(anchor, first, [log]);
  const other = writeAnchor(anchor, await checkpointOf(4, Buffer.alloc(32, 1)), [log]);
  await expect(other).rejects.toThrow("it has another tree of 4 leaves");
  expect(readFileSync(anchor, "utf8")).toBe(first);
});

async function requestOf(oldSize: number, size: number, root?: Buffer): Promise<string> {
  const proof = oldSize === 0 || oldSize >= size ? [] : naiveProof(oldSize, LEAVES.slice(0, size));
  const lines = [`old ${oldSize}`, ...proof.map((node) => node.toString("base64")), "", await checkpointOf(size, root)];
  return lines.join("\n");
}
