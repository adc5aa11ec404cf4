import { expect, it } from "vitest";
import { type Started, startProgram } from "../support/child-process.ts";
import { until } from "../support/until.ts";

/** Writes 20 MB of lines, ends at SIGTERM, and reports the event loop's longest stall and dropped lines on stderr. */
const WRITER = `
  import { openLogger, droppedLines } from "./src/platform/logger.ts";
  const log = openLogger("info", "test");
  process.on("SIGTERM", () => process.exit(0));
  let stallMs = 0;
  let turnedAt = performance.now();
  for (let turn = 0; turn < 400; turn++) {
    for (let n = 0; n < 100; n++) log.info({ text: "x".repeat(400) }, "line");
    await new Promise((resolve) => setImmediate(resolve));
    stallMs = Math.max(stallMs, performance.now() - turnedAt);
    turnedAt = performance.now();
  }
  process.stderr.write(JSON.stringify({ stallMs, dropped: droppedLines() }) + "\\n");
  setInterval(() => undefined, 1_000);
`;

/** Shell commands for an output that accepts the first lines and then blocks or fails. */
const STOPPED: [output: string, command: string][] = [
  [
    "a pipe whose reader has stopped",
    '{ "$0" --input-type=module -e "$1" & echo $! >&3; wait $!; echo "exit $?" >&3; } | sleep 60',
  ],
  ["a full disk", '"$0" --input-type=module -e "$1" > /dev/full & echo $! >&3; wait $!; echo "exit $?" >&3'],
];

/** Only root can become another user. */
const OF_ANOTHER_USER: typeof STOPPED =
  process.getuid?.() === 0
    ? [
        [
          "a pipe of another user, whose reader has stopped",
          [
            '{ setpriv --reuid=65534 --regid=65534 --clear-groups "$0" --input-type=module -e "$1" & echo $! >&3',
            'wait $!; echo "exit $?" >&3; } | sleep 60',
          ].join("; "),
        ],
      ]
    : [];

it.each([
  ...STOPPED,
  ...OF_ANOTHER_USER,
])("the process log drops and counts lines, and delays no work or exit, while its output is %s", async (_, command) => {
  const { started, pid, stallMs, dropped } = await run(command);
  try {
    expect(dropped).toBeGreaterThan(1_000);
    // If the process waited for the reader of its output, it would stall for a minute.
    expect(stallMs).toBeLessThan(20_000);
    process.kill(pid, "SIGTERM");
    await until(() => /^exit 0$/m.test(started.output()));
  } finally {
    endGroup(started);
  }
});

it("the process log writes every line that it does not count as dropped", async () => {
  const { started, pid, dropped } = await run(
    '"$0" --input-type=module -e "$1" & echo $! >&3; wait $!; echo "exit $?" >&3',
  );
  process.kill(pid, "SIGTERM");
  const { stdout } = await started.ended;
  expect(stdout.match(/"msg":"line"/g)?.length).toBe(40_000 - dropped);
});

async function run(command: string) {
  const script = `exec 3>&1; trap 'kill $(jobs -p) 2>/dev/null' EXIT; ${command}`;
  const started = startProgram("sh", ["-c", script, process.execPath, WRITER], {}, undefined, { detached: true });
  const [pid] = await until(() => /^\d+$/m.exec(started.output()));
  const [report] = await until(() => /^\{"stallMs".*\}$/m.exec(started.output()));
  return { started, pid: Number(pid), ...(JSON.parse(report) as { stallMs: number; dropped: number }) };
}

function endGroup({ child }: Started): void {
  // If the child has not exited, ends its whole process group.
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
}
