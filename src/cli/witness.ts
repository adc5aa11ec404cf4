import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parseSecretKey, parseVerifierKey } from "../domain/log/note.ts";
import { LogSettingsError } from "../services/log/log-settings.ts";
import { readBody } from "../services/log/log-source.ts";
import { WitnessServer } from "../services/log/witness.ts";
import { actionWithoutServers, type Noun } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { makeKeyFile } from "./log.ts";
import { integer } from "./option-parsers.ts";

/** Longest request that is read: a checkpoint with its proof and a hundred signatures. Bytes. */
const REQUEST_MAX = 64_000;

export const witness: Noun = {
  name: "witness",
  description: "a witness, which cosigns a checkpoint only if it extends the last one it saw",
  addVerbs(noun) {
    actionWithoutServers<{ name: string; out: string }>(
      noun
        .command("keygen")
        .description("make a witness's key, and print its vkey for the policy")
        .requiredOption("--name <name>", "the witness's name, such as witness.example.net/w1")
        .requiredOption("--out <file>", "the key file; never overwritten"),
      ["witness keygen --name witness.example.net/w1 --out witness.key"],
      async (ctx, { name, out }) => {
        const vkey = makeKeyFile("witness", name, out);
        ctx.print({ vkey }, () => vkey);
      },
    );
    actionWithoutServers<{ key: string; state: string; log: string; port: number; host: string }>(
      noun
        .command("serve")
        .description("answer requests to cosign checkpoints, until a signal")
        .requiredOption("--key <file>", "the witness's key file")
        .requiredOption("--state <file>", "remembers the last checkpoint; keep it as safe as the key")
        .requiredOption("--log <vkey>", "the log's vkey")
        .requiredOption("--port <port>", "the port", integer(0, 65_535))
        .option("--host <address>", "the address to listen on", "127.0.0.1")
        .addHelpText("after", "\nNeeds no database. Put a reverse proxy with TLS in front of it."),
      ["witness serve --key witness.key --state seen.json --log vouchers.example.com/log+… --port 8080"],
      async (ctx, options) => {
        const key = parseSecretKey("witness", readFileSync(options.key, "utf8"));
        if (key === null) throw new LogSettingsError(`${options.key} does not hold the key of a witness.`);
        const logKey = parseVerifierKey("log", options.log);
        if (logKey === null) throw new UsageError("--log is not the vkey of a log.");
        const witness = await WitnessServer.open(key, [logKey], options.state);
        const { url, close } = await serveWitness(witness, options);
        ctx.print({ url, vkey: key.text }, () => `The witness ${key.text} listens at ${url}.`);
        if (!ctx.signal.aborted) await once(ctx.signal, "abort");
        await close();
        witness.close();
      },
    );
  },
};

/** Listens for `POST /add-checkpoint`. */
export async function serveWitness(
  witness: Pick<WitnessServer, "addCheckpoint">,
  { port, host }: { port: number; host: string },
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, async (request, response) => {
    const answer = (status: number, text: string, contentType = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": contentType }).end(text);
    try {
      if (request.url !== "/add-checkpoint" || request.method !== "POST") return answer(404, "POST /add-checkpoint\n");
      // Destroying a request that is too long would close the connection before the response.
      const body = await readBody(request.iterator({ destroyOnReturn: false }), REQUEST_MAX);
      if (body === null) return answer(400, "The request is too long.\n");
      const now = Math.floor(Date.now() / 1_000);
      const { status, text, contentType } = await witness.addCheckpoint(body.toString(), now);
      answer(status, text, contentType);
    } catch (error) {
      console.error(error);
      answer(500, "The witness failed.\n");
    }
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
