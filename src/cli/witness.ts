import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeKeyFile } from "../../packages/tlog/src/key-file.ts";
import { parseSecretKey, parseVerifierKey } from "../../packages/tlog/src/note.ts";
import { serveWitness, WitnessServer } from "../../packages/tlog/src/witness-server.ts";
import { LogSettingsError } from "../services/log/log-settings.ts";
import { actionWithoutServers, type Noun } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { integer } from "./option-parsers.ts";

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
        const vkey = await writeKeyFile("witness", name, out);
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
        const key = await parseSecretKey("witness", readFileSync(options.key, "utf8"));
        if (key === null) throw new LogSettingsError(`${options.key} does not hold the key of a witness.`);
        const logKey = await parseVerifierKey("log", options.log);
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
