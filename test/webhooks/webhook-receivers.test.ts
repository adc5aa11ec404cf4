import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSnippets } from "../support/document-snippets.ts";
import { hasProgram } from "../support/has-program.ts";
import { until, untilStarted } from "../support/until.ts";

// Sends the receivers of docs/ the request in docs/webhooks.md, and forged requests.

const RECEIVERS = ["webhook-receiver.mjs", "webhook_receiver.py", "webhook-receiver.php", "verify-webhook.sh"];
const [SHOWN] = readSnippets("docs/webhooks.md").filter(({ code }) => code.startsWith("POST /hooks"));

/** The secret of the test vector in docs/webhooks.md. */
const SECRET = "whsec_uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4=";
const NOW = 1_800_000_000;
const VECTOR = {
  id: "vch_01jzbq0000e00a4g0g0000002b-2",
  timestamp: String(NOW),
  signature: "v1,RHroBtAE5AY6GVKNy7PWWtT9pLwb562xUgKzQkbN9oU=",
  body: JSON.stringify({
    type: "voucher.instance.redeemed",
    timestamp: "2027-02-14T19:30:05.007Z",
    data: {
      voucherId: "vch_01jzbq0000e00a4g0g0000002b",
      sequence: 2,
      recordHash: "58493e991815493a63a4412ae1bd4daaf62f0f62888588d3592c0d0156307c98",
      externalRef: "Bestellung № 4711/ä",
      redeemCode: "W8RC-7Q4K-9MZX",
    },
  }),
};
type Sent = typeof VECTOR;

let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "voucher-webhooks-"));
  for (const name of RECEIVERS) copyFileSync(join("docs", name), join(directory, name));
  symlinkSync(resolve("node_modules"), join(directory, "node_modules"));
  // Makes each program take the time of the test vector for the current time.
  mkdirSync(join(directory, "clock"));
  writeFileSync(join(directory, "clock", "clock.mjs"), `Date.now = () => ${NOW * 1000};\n${NO_SPACE_MJS}`);
  writeFileSync(
    join(directory, "clock", "sitecustomize.py"),
    `import time\ntime.time = lambda: ${NOW}.0\n${NO_SPACE_PY}`,
  );
  const inPhp = `<?php $_SERVER["REQUEST_TIME"] = ${NOW}; require "webhook-receiver.php";`;
  writeFileSync(join(directory, "clock", "webhook-receiver.php"), inPhp);
  writeFileSync(join(directory, "clock", "date"), `#!/bin/sh\necho ${NOW}\n`, { mode: 0o755 });
});

afterAll(() => rmSync(directory, { recursive: true }));

it("docs/webhooks.md shows the test vector of a signed webhook", () => {
  const [head = "", body] = SHOWN?.code.trimEnd().split("\n\n") ?? [];
  expect(body).toBe(VECTOR.body);
  for (const [name, value] of Object.entries(VECTOR)) {
    if (name !== "body") expect(head).toContain(`\nwebhook-${name}: ${value}`);
  }
  expect(signed({}).signature).toBe(VECTOR.signature);
});

it("this file runs every receiver in docs/webhook-receivers.md", () => {
  const page = readFileSync("docs/webhook-receivers.md", "utf8");
  expect(Array.from(page.matchAll(/^\| \[(.+?)\]/gm), ([, name]) => name)).toEqual(RECEIVERS);
});

const HAS_PHP = hasProgram("php", "php-cli");
const SERVERS = [
  { program: process.execPath, args: ["--import", "./clock/clock.mjs", "webhook-receiver.mjs"] },
  { program: "python3", args: ["webhook_receiver.py"] },
  { program: "php", args: ["-S", "127.0.0.1:0", "clock/webhook-receiver.php"] },
].filter(({ program }) => (program === "php" ? HAS_PHP : program === process.execPath || hasProgram(program)));

const FORGED: [what: string, request: Sent][] = [
  ["a wrong signature", { ...VECTOR, signature: signed({ body: "{}" }).signature }],
  ["a signature of another version", { ...VECTOR, signature: VECTOR.signature.replace("v1,", "v1a,") }],
  ["no signature", { ...VECTOR, signature: "v1," }],
  ["a changed body", { ...VECTOR, body: VECTOR.body.replace("4711", "4712") }],
  ["a changed id", { ...VECTOR, id: `${VECTOR.id}0` }],
  ["an old timestamp", signed({ timestamp: String(NOW - 302) })],
  ["a timestamp of the future", signed({ timestamp: String(NOW + 302) })],
  ["a timestamp that is no number", signed({ timestamp: "soon" })],
];

const GENUINE: [what: string, request: Sent][] = [
  ["the request of the page", VECTOR],
  ["signatures of two secrets", { ...VECTOR, signature: `${signed({ body: "{}" }).signature} ${VECTOR.signature}` }],
  ["a timestamp four minutes ago", signed({ id: "vch_a-2", timestamp: String(NOW - 240) })],
];

class Receiver {
  output = "";
  url = "";
  readonly #process: ChildProcess;

  constructor(program: string, args: string[], env: Record<string, string> = {}) {
    this.#process = spawn(program, args, inFolder({ PORT: "0", ...env }));
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        this.output += text;
      });
    }
  }

  async listen(): Promise<void> {
    const port = await untilStarted(() =>
      /^listening on port (\d+)$|127\.0\.0\.1:(\d+)\) started/m.exec(this.output)?.slice(1).find(Boolean),
    );
    this.url = `http://127.0.0.1:${port}/`;
  }

  async deliver({ id, timestamp, signature, body }: Sent): Promise<number> {
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
    return (await fetch(this.url, { method: "POST", headers, body })).status;
  }

  close() {
    this.#process.kill();
  }
}

describe.each(SERVERS)("the example receiver $args", ({ program, args }) => {
  const name = `the receiver ${args.at(-1)}`;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = new Receiver(program, args);
    await receiver.listen();
  });

  afterAll(() => receiver.close());

  const deliver = (request: Sent) => receiver.deliver(request);

  it(`${name} refuses forged webhooks and old webhooks`, async () => {
    for (const [what, request] of FORGED) expect(await deliver(request), what).toBe(401);
    expect(receiver.output).not.toMatch(/voucher\.instance/);
  });

  it(`${name} accepts genuine webhooks`, async () => {
    for (const [what, request] of GENUINE) {
      expect(await deliver(request), what).toBe(204);
      await until(() => receiver.output.includes(`${request.id} voucher.instance.redeemed\n`));
    }
  });

  it(`${name} processes a repeated webhook once`, async () => {
    expect(await deliver(VECTOR)).toBe(204);
    const last = signed({ id: "vch_b-2" });
    expect(await deliver(last)).toBe(204);
    await until(() => receiver.output.includes(last.id));
    expect(receiver.output.split(`${VECTOR.id} voucher.instance.redeemed\n`)).toHaveLength(2);
  });

  it(`${name} refuses a webhook that is too long or lacks headers, and continues to run`, async () => {
    // The receiver in Python closes the connection before it has read the body, so there may be no answer.
    const long = await deliver(signed({ body: JSON.stringify("x".repeat(200_000)) })).catch(() => null);
    expect([401, 413, null]).toContain(long);
    expect((await fetch(receiver.url, { method: "POST", body: "{}" })).status).toBe(401);
    expect(await deliver(VECTOR)).toBe(204);
  });

  it(`${name} does not acknowledge a webhook that it could not store, and accepts a repeat`, async () => {
    const [events, aside] = [join(directory, "events"), join(directory, "aside")];
    const request = signed({ id: `vch_${program === "php" ? "unwritable" : "unprinted"}-2` });
    mkdirSync(events, { recursive: true });
    renameSync(events, aside);
    writeFileSync(events, "a file where the folder should be");
    writeFileSync(join(directory, NO_SPACE), "");
    // The receiver in Python closes the connection without an answer.
    const status = await receiver.deliver(request).catch(() => null);
    rmSync(join(directory, NO_SPACE));
    rmSync(events);
    renameSync(aside, events);
    expect([500, null]).toContain(status);
    expect(receiver.output).not.toContain(`${request.id} voucher`);
    expect(await receiver.deliver(request)).toBe(204);
    await until(() => receiver.output.includes(`${request.id} voucher.instance.redeemed\n`));
  });
});

describe.runIf(HAS_PHP)("the example receiver webhook-receiver.php on a misconfigured host", () => {
  const ID = "vch_bad-host-2";
  const SERVE = ["php", "-d", "display_errors=1", "-S", "127.0.0.1:0"];
  const START = ["clock/webhook-receiver.php"];
  const HOSTS: [what: string, command: string[], env?: Record<string, string>][] = [
    ["the disk is full", ["sh", "-c", `trap "" XFSZ; ulimit -f 0; exec "$@"`, "sh", ...SERVE, ...START]],
    ["the host has no function link", [...SERVE, "-d", "disable_functions=link", ...START]],
    ["no secret is set", [...SERVE, ...START], { SIGNING_SECRET: "" }],
  ];

  async function deliverTo([program = "", ...args]: string[], request: Sent, env?: Record<string, string>) {
    const receiver = new Receiver(program, args, env);
    try {
      await receiver.listen();
      return [await receiver.deliver(request), await receiver.deliver(request)];
    } finally {
      receiver.close();
    }
  }

  it.each(HOSTS)("webhook-receiver.php answers 500 and stores nothing if %s", async (_what, command, env) => {
    const kept = () => readdirSync(join(directory, "events"));
    mkdirSync(join(directory, "events"), { recursive: true });
    const before = kept();
    const request = signed({ id: ID }, env?.SIGNING_SECRET);
    expect(await deliverTo(command, request, env)).toEqual([500, 500]);
    expect(kept()).toEqual(before);
  });

  it("webhook-receiver.php stores a webhook once, even after earlier deliveries of the webhook got 500", async () => {
    const kept = () => readdirSync(join(directory, "events"));
    const before = kept();
    const request = signed({ id: ID });
    expect(await deliverTo([...SERVE, ...START], request)).toEqual([204, 204]);
    const added = kept().filter((name) => !before.includes(name));
    expect(added.map((name) => readFileSync(join(directory, "events", name), "utf8"))).toEqual([request.body]);
  });
});

it("each example receiver with an empty secret accepts no request", () => {
  const { id, timestamp, signature, body } = signed({}, "");
  const sent = { HTTP_WEBHOOK_ID: id, HTTP_WEBHOOK_TIMESTAMP: timestamp, HTTP_WEBHOOK_SIGNATURE: signature };
  const options = inFolder({ PORT: "0", SIGNING_SECRET: "", ...sent });
  const servers = SERVERS.filter(({ program }) => program !== "php");
  for (const { program, args } of [...servers, { program: "bash", args: ["verify-webhook.sh"] }]) {
    const { status, stdout } = spawnSync(program, args, { ...options, input: body, timeout: 10_000 });
    expect({ status, stdout: String(stdout) }, args.at(-1)).toEqual({ status: 1, stdout: "" });
  }
});

it.runIf(hasProgram("openssl"))(
  "verify-webhook.sh prints the body of a genuine webhook, and refuses all other webhooks",
  () => {
    for (const [what, { id, timestamp, signature, body }] of [...FORGED, ...GENUINE]) {
      const headers = { HTTP_WEBHOOK_ID: id, HTTP_WEBHOOK_TIMESTAMP: timestamp, HTTP_WEBHOOK_SIGNATURE: signature };
      const { status, stdout } = spawnSync("bash", ["verify-webhook.sh"], { ...inFolder(headers), input: body });
      const isGenuine = GENUINE.some(([name]) => name === what);
      expect({ status, stdout: String(stdout) }, what).toEqual(
        isGenuine ? { status: 0, stdout: body } : { status: 1, stdout: "" },
      );
    }
  },
);

/** Signs a request by Standard Webhooks, with another implementation than the service's. */
function signed(request: Partial<Sent>, secret = SECRET): Sent {
  const { id, timestamp, body } = { ...VECTOR, ...request };
  const hmac = createHmac("sha256", Buffer.from(secret.slice(6), "base64")).update(`${id}.${timestamp}.${body}`);
  return { id, timestamp, body, signature: `v1,${hmac.digest("base64")}` };
}

/** Returns the options of a program in the receivers' folder, at the vector's time. */
function inFolder(env: Record<string, string>) {
  const clock = join(directory, "clock");
  const own = { PATH: `${clock}:${process.env.PATH}`, PYTHONPATH: clock, SIGNING_SECRET: SECRET };
  return { cwd: directory, env: { ...own, ...env } };
}

/** While this file exists, the receivers that only print an event cannot print, as on a full disk. */
const NO_SPACE = "no-space";
const NO_SPACE_MJS = `import { existsSync } from "node:fs";
const print = console.log;
console.log = (text) => {
  if (existsSync("${NO_SPACE}")) throw new Error("no space");
  print(text);
};`;
const NO_SPACE_PY = `import builtins, os
say = builtins.print
def say_or_fail(*args, **options):
    if os.path.exists("${NO_SPACE}"):
        raise OSError("no space")
    say(*args, **options)
builtins.print = say_or_fail
`;
