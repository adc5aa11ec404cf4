import { afterEach, expect, it, vi } from "vitest";
import { Batcher, BatcherClosed, BatcherFull, type BatcherOptions } from "../../../src/platform/batching/batcher.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

it("a batcher runs a single item at once, in the same turn of the event loop", async () => {
  const timers = [vi.spyOn(globalThis, "setTimeout"), vi.spyOn(globalThis, "setInterval")];
  const { batcher, begun } = startBatcher();
  const result = batcher.submit("a");
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun.map((batch) => batch.items)).toEqual([["a"]]);
  begun[0]?.succeed();
  expect(await result).toBe("done a");
  for (const timer of timers) expect(timer).not.toHaveBeenCalled();
});

it("a batcher collects items while a batch runs, and keeps the items' order", async () => {
  const { batcher, begun, next } = startBatcher();
  const first = batcher.submit("a");
  const running = await next();
  const later = ["b", "c"].map((item) => batcher.submit(item));
  await settle();
  later.push(batcher.submit("d"));
  await settle();
  expect(begun).toHaveLength(1);
  running.succeed();
  expect(await first).toBe("done a");
  const second = await next();
  expect(second.items).toEqual(["b", "c", "d"]);
  second.succeed();
  expect(await Promise.all(later)).toEqual(["done b", "done c", "done d"]);
});

it("a batcher runs at most batchMax items at once, in order of submission", async () => {
  const { batcher, begun, next } = startBatcher({ batchMax: 2 });
  const results = ["a", "b", "c", "d", "e"].map((item) => batcher.submit(item));
  for (const items of [["a", "b"], ["c", "d"], ["e"]]) {
    const batch = await next();
    expect(batch.items).toEqual(items);
    await settle();
    expect(begun.at(-1)).toBe(batch);
    batch.succeed();
  }
  expect(await Promise.all(results)).toEqual(["a", "b", "c", "d", "e"].map(resultOf));
});

it("a batcher refuses with BatcherFull only items beyond waitingMax", async () => {
  const { batcher, next } = startBatcher({ waitingMax: 2 });
  const running = batcher.submit("running");
  const batch = await next();
  const waiting = [batcher.submit("a"), batcher.submit("b")];
  await expect(batcher.submit("too much")).rejects.toBeInstanceOf(BatcherFull);
  batch.succeed();
  expect(await running).toBe("done running");
  const second = await next();
  expect(second.items).toEqual(["a", "b"]);
  const again = batcher.submit("c");
  second.succeed();
  expect(await Promise.all(waiting)).toEqual(["done a", "done b"]);
  (await next()).succeed();
  expect(await again).toBe("done c");
});

const ownerOf = (item: string) => item.split(" ")[0] ?? "";

it("a batcher takes items of waiting owners in turn, so a new owner's item is in the next batch", async () => {
  const { batcher, next } = startBatcher({ batchMax: 3, ownerOf });
  const crowd = Array.from({ length: 40 }, (_, n) => batcher.submit(`crowd ${n}`));
  const running = await next();
  expect(running.items).toEqual(["crowd 0", "crowd 1", "crowd 2"]);
  const neighbours = ["neighbour 0", "other 0", "neighbour 1"].map((item) => batcher.submit(item));
  running.succeed();
  for (const items of [
    ["crowd 3", "neighbour 0", "other 0"],
    ["crowd 4", "crowd 5", "neighbour 1"],
  ]) {
    const batch = await next();
    expect(batch.items).toEqual(items);
    batch.succeed();
  }
  expect(await Promise.all(neighbours)).toEqual(["neighbour 0", "other 0", "neighbour 1"].map(resultOf));
  for (let at = 6; at < 40; at += 3) (await next()).succeed();
  expect(await Promise.all(crowd)).toHaveLength(40);
});

it("a batcher refuses an owner beyond its share of waiting items, but refuses no other owner", async () => {
  const { batcher, next } = startBatcher({ batchMax: 4, waitingMax: 8, ownerOf });
  const first = batcher.submit("crowd");
  const running = await next();
  const crowd = Array.from({ length: 6 }, (_, n) => batcher.submit(`crowd ${n}`));
  await expect(batcher.submit("crowd 6")).rejects.toBeInstanceOf(BatcherFull);
  const neighbour = batcher.submit("neighbour");
  running.succeed();
  const second = await next();
  expect(second.items).toEqual(["crowd 0", "crowd 1", "crowd 2", "neighbour"]);
  // The batcher accepts this owner's item again, because only waiting items count.
  const again = batcher.submit("crowd 7");
  second.succeed();
  (await next()).succeed();
  expect(await Promise.all([first, ...crowd, neighbour, again])).toHaveLength(9);
});

it("an item counts toward a batcher's `waitingMax` as soon as it is submitted, before its batch starts", async () => {
  const { batcher, next } = startBatcher({ waitingMax: 1 });
  const first = batcher.submit("a");
  await expect(batcher.submit("b")).rejects.toThrow(BatcherFull);
  (await next()).succeed();
  expect(await first).toBe("done a");
});

it("a batcher runs exactly as many batches at once as its concurrency allows", async () => {
  const { batcher, begun, next } = startBatcher({ concurrency: 2, batchMax: 1 });
  const results = ["a", "b", "c", "d"].map((item) => batcher.submit(item));
  const [first, second] = [await next(), await next()];
  expect([first.items, second.items]).toEqual([["a"], ["b"]]);
  await settle();
  expect(begun).toHaveLength(2);
  second.succeed();
  expect(await results[1]).toBe("done b");
  const third = await next();
  expect(third.items).toEqual(["c"]);
  await settle();
  expect(begun).toHaveLength(3);
  third.succeed();
  const fourth = await next();
  fourth.succeed();
  first.succeed();
  expect(await Promise.all(results)).toEqual(["a", "b", "c", "d"].map(resultOf));
});

it("a result that is a promise delays only its own item of a batch, and a rejection fails only that item", async () => {
  const { batcher, next } = startBatcher();
  const slow = Promise.withResolvers<string>();
  const [a, b, c] = [batcher.submit("a"), batcher.submit("b"), batcher.submit("c")];
  const waiting = watch(b);
  (await next()).succeed(["done a", slow.promise, "done c"]);
  expect([await a, await c]).toEqual(["done a", "done c"]);
  const d = batcher.submit("d");
  (await next()).succeed();
  expect(await d).toBe("done d");
  expect(waiting.settled).toBe(false);
  slow.reject(new Error("failed at last"));
  await expect(b).rejects.toThrow("failed at last");
});

it("a failed batch fails all its items, unless the batcher may split the batch", async () => {
  const { batcher, begun, next } = startBatcher();
  const error = new Error("the database is away");
  const results = ["a", "b"].map((item) => batcher.submit(item));
  const outcomes = Promise.allSettled(results);
  (await next()).fail(error);
  expect(await outcomes).toEqual([
    { status: "rejected", reason: error },
    { status: "rejected", reason: error },
  ]);
  await settle();
  expect(begun).toHaveLength(1);
});

it.each([
  [["poison 0"], 15],
  [["poison 127"], 15],
  [["poison 63", "poison 64"], 27],
  [["poison 5", "poison 6", "poison 90"], 29],
])("a failed batch of 128 items is run again in halves, so that %j fail alone in %i runs", async (bad, runs) => {
  const { batcher, begun, next } = startBatcher({ batchMax: 128, waitingMax: 128, splitOn: () => true });
  const items = Array.from({ length: 128 }, (_, n) => bad.find((one) => one === `poison ${n}`) ?? `item ${n}`);
  const outcomes = Promise.allSettled(items.map((item) => batcher.submit(item)));
  const ended: string[] = [];
  while (ended.length < items.length) {
    const batch = await next();
    await settle();
    // Batches run one after another: the next one begins when this one has ended.
    expect(begun.at(-1)).toBe(batch);
    const poison = batch.items.find((item) => item.startsWith("poison"));
    if (poison === undefined) batch.succeed();
    else batch.fail(new Error(`the batch has ${poison}`));
    if (poison === undefined || batch.items.length === 1) ended.push(...batch.items);
  }
  expect(ended).toEqual(items);
  expect(await outcomes).toEqual(
    items.map((item) =>
      item.startsWith("poison")
        ? { status: "rejected", reason: new Error(`the batch has ${item}`) }
        : { status: "fulfilled", value: `done ${item}` },
    ),
  );
  expect(begun).toHaveLength(runs);
});

it("a batcher stops splitting a failed batch after 16 failures in a row, and each item gets the error", async () => {
  const items = Array.from({ length: 100 }, (_, n) => `item ${n}`);
  const { runs, told } = await submitAll(items, () => "poison for all");
  expect(runs.length).toBeLessThanOrEqual(24);
  expect([told.length, ...new Set(told)]).toEqual([100, "poison for all"]);
});

it("a failed batch with an odd number of items is halved until each bad item is alone", async () => {
  const items = ["a", "poison", "c"];
  const findError = (batch: string[]) => (batch.includes("poison") ? `poison in ${batch.join(" ")}` : null);
  expect(await submitAll(items, findError)).toEqual({
    runs: ["a poison c", "a poison", "a", "poison", "c"],
    told: ["done a", "poison in poison", "done c"],
  });
});

it("an error that no single item causes fails only its half of a split batch", async () => {
  const findError = (_batch: string[], run: number) => ["some poison", "the database is away"][run - 1] ?? null;
  expect(await submitAll(["a", "b", "c", "d"], findError)).toEqual({
    runs: ["a b c d", "a b", "c d"],
    told: ["the database is away", "the database is away", "done c", "done d"],
  });
});

it("a failed batch counts as running until its items have been run again", async () => {
  const { batcher, begun, next } = startBatcher({ splitOn: () => true });
  const outcomes = Promise.allSettled(["a", "b"].map((item) => batcher.submit(item)));
  (await next()).fail(new Error("poison"));
  const later = batcher.submit("later");
  const first = await next();
  await settle();
  expect(begun).toHaveLength(2);
  first.succeed();
  (await next()).succeed();
  expect((await outcomes).map((outcome) => outcome.status)).toEqual(["fulfilled", "fulfilled"]);
  const last = await next();
  expect(last.items).toEqual(["later"]);
  last.succeed();
  expect(await later).toBe("done later");
});

it("a failed batch with one item is not tried again", async () => {
  const { batcher, begun, next } = startBatcher({ splitOn: () => true });
  const outcome = Promise.allSettled([batcher.submit("a")]);
  (await next()).fail(new Error("poison"));
  expect((await outcome)[0].status).toBe("rejected");
  await settle();
  expect(begun).toHaveLength(1);
});

it.each([
  ["too few", ["only one"]],
  ["too many", ["one", "two", "three"]],
  ["none", []],
])("a batch fails if it has fewer or more results than items: %s", async (_what, results) => {
  const { batcher, next } = startBatcher();
  const outcomes = Promise.allSettled(["a", "b"].map((item) => batcher.submit(item)));
  (await next()).succeed(results);
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("results") } });
  }
});

it("an idle batcher closes at once, and then accepts no item", async () => {
  const { batcher, next } = startBatcher();
  const result = batcher.submit("a");
  (await next()).succeed();
  await result;
  await settle();
  await batcher.close();
  await expect(batcher.submit("b")).rejects.toBeInstanceOf(BatcherClosed);
});

it.each([1, 2])("a closing batcher waits for all submitted items, with %s batches at a time", async (concurrency) => {
  const { batcher, next } = startBatcher({ batchMax: 1, concurrency });
  const results = ["a", "b"].map((item) => batcher.submit(item));
  const closed = batcher.close();
  const watched = watch(closed);
  await settle();
  expect(watched.settled).toBe(false);
  const first = await next();
  const second = concurrency === 1 ? null : await next();
  (second ?? first).succeed();
  await settle();
  expect(watched.settled).toBe(false);
  (second === null ? await next() : first).succeed();
  await closed;
  expect(await Promise.all(results)).toEqual(["done a", "done b"]);
});

it("close resolves for every caller of a batcher's close, even if the last batch fails", async () => {
  const { batcher, next } = startBatcher();
  const failed = Promise.allSettled([batcher.submit("a")]);
  const closed = Promise.all([batcher.close(), batcher.close()]);
  (await next()).fail(new Error("broken"));
  await closed;
  await failed;
});

/** A batch that runs until the test ends it. */
interface Batch {
  items: string[];
  succeed(results?: (string | PromiseLike<string>)[]): void;
  fail(error: unknown): void;
}

/** Starts a batcher whose batches end when the test says so. `next` yields the batches in the order of their start. */
function startBatcher(options: Partial<BatcherOptions<string>> = {}) {
  const begun: Batch[] = [];
  const unseen: Batch[] = [];
  const wanted: ((batch: Batch) => void)[] = [];
  const batcher = new Batcher<string, string>(
    (items) => {
      const { promise, resolve, reject } = Promise.withResolvers<(string | PromiseLike<string>)[]>();
      const batch: Batch = { items, succeed: (results = items.map(resultOf)) => resolve(results), fail: reject };
      begun.push(batch);
      const want = wanted.shift();
      if (want === undefined) unseen.push(batch);
      else want(batch);
      return promise;
    },
    { batchMax: 100, waitingMax: 100, ...options },
  );
  const next = () => {
    const batch = unseen.shift();
    return batch === undefined ? new Promise<Batch>((resolve) => wanted.push(resolve)) : Promise.resolve(batch);
  };
  return { batcher, begun, next };
}

/** Submits items to a batcher that runs a batch with a poisonous item again in halves. Returns outcomes and runs. */
async function submitAll(items: string[], findError: (batch: string[], run: number) => string | null) {
  const runs: string[] = [];
  const run = async (batch: string[]) => {
    const error = findError(batch, runs.push(batch.join(" ")));
    if (error !== null) throw new Error(error);
    return batch.map(resultOf);
  };
  const splitOn = (error: unknown) => String(error).includes("poison");
  const batcher = new Batcher(run, { batchMax: 100, waitingMax: 100, splitOn });
  const outcomes = await Promise.allSettled(items.map((item) => batcher.submit(item)));
  return { runs, told: outcomes.map((one) => (one.status === "fulfilled" ? one.value : one.reason.message)) };
}

function resultOf(item: string): string {
  return `done ${item}`;
}

/** Waits some turns of the event loop, so that all work ends that does not wait for the test. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns an object that tells whether the promise has settled. */
function watch(promise: Promise<unknown>): { settled: boolean } {
  const watched = { settled: false };
  const settledNow = () => {
    watched.settled = true;
  };
  promise.then(settledNow, settledNow);
  return watched;
}
