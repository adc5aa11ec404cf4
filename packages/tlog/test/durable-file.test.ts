import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { writeDurably } from "../src/durable-file.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "durable-file-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

it("writeDurably replaces a file, which only its owner can then read", async () => {
  const file = join(folder, "state");
  for (const content of ["first", Buffer.from("second")]) {
    await writeDurably(file, content);
    expect(readFileSync(file, "utf8")).toBe(String(content));
  }
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["state"]);
});

it("writeDurably leaves no temporary file if a rename, write or open fails", async () => {
  const target = join(folder, "directory");
  mkdirSync(target);
  const unwritable = { toString: () => "no text" } as unknown as string;
  for (const _ of [1, 2]) {
    await expect(writeDurably(target, "text")).rejects.toMatchObject({ code: "EISDIR" });
    await expect(writeDurably(join(folder, "file"), unwritable)).rejects.toThrow();
    await expect(writeDurably(join(folder, "missing/file"), "text")).rejects.toMatchObject({ code: "ENOENT" });
  }
  expect(readdirSync(folder)).toEqual(["directory"]);
});
