import { execFileSync, spawn } from "node:child_process";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import {
  CAN_READ_USAGE,
  readCpuMicros,
  readEndedChildrenCpuMicros,
  readMemoryBytes,
  readResidentBytes,
  withChildren,
} from "./process-usage.ts";

const BURN = "const end = process.cpuUsage().user + 300_000; while (process.cpuUsage().user < end);";

describe.runIf(CAN_READ_USAGE)("usage of processes", () => {
  it("counts the CPU time of a process, whatever else the machine does", () => {
    const before = readCpuMicros([process.pid]);
    const own = process.cpuUsage();
    while (process.cpuUsage(own).user + process.cpuUsage(own).system < 300_000);
    const spent = readCpuMicros([process.pid]) - before;
    expect(spent).toBeGreaterThan(250_000);
    expect(spent).toBeLessThan(600_000);
  });

  it("counts what ended children have spent, once they were waited for", () => {
    const before = readEndedChildrenCpuMicros();
    execFileSync(process.execPath, ["-e", BURN]);
    expect(readEndedChildrenCpuMicros() - before).toBeGreaterThan(250_000);
  });

  it("finds the children of a process", async () => {
    const child = spawn("sleep", ["60"]);
    try {
      await until(() => withChildren(process.pid).includes(child.pid as number));
      expect(withChildren(process.pid)).toContain(process.pid);
      expect(withChildren(child.pid as number)).toEqual([child.pid]);
    } finally {
      child.kill();
    }
  });

  it("reads memory that shared pages count in once, and not more than what is resident", () => {
    const shared = readMemoryBytes([process.pid]);
    expect(shared).toBeGreaterThan(10_000_000);
    expect(shared).toBeLessThanOrEqual(readResidentBytes(process.pid) * 1.1);
  });

  it("counts a process that is gone as nothing", () => {
    expect(readCpuMicros([2 ** 22 + 1])).toBe(0);
    expect(readMemoryBytes([2 ** 22 + 1])).toBe(0);
  });
});
