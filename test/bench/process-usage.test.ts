import { spawn } from "node:child_process";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { CAN_READ_USAGE, readCpuMicros, withChildren } from "./process-usage.ts";

describe.runIf(CAN_READ_USAGE)("process usage", () => {
  it("process usage counts the CPU time of one process only", () => {
    const before = readCpuMicros([process.pid]);
    const own = process.cpuUsage();
    while (process.cpuUsage(own).user + process.cpuUsage(own).system < 300_000);
    const spent = readCpuMicros([process.pid]) - before;
    expect(spent).toBeGreaterThan(250_000);
    expect(spent).toBeLessThan(600_000);
  });

  it("process usage finds the children of a process", async () => {
    const child = spawn("sleep", ["60"]);
    try {
      await until(() => withChildren(process.pid).includes(child.pid as number));
      expect(withChildren(process.pid)).toContain(process.pid);
      expect(withChildren(child.pid as number)).toEqual([child.pid]);
    } finally {
      child.kill();
    }
  });

  it("process usage is zero for an ended process", () => {
    expect(readCpuMicros([2 ** 22 + 1])).toBe(0);
  });
});
