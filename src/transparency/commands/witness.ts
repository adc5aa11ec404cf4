import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeKeyFile } from "#tlog/key-file.ts";
import { parseSecretKey, parseVerifierKey } from "#tlog/note.ts";
import { serveWitness, WitnessServer } from "#tlog/witness-server.ts";
import { type Noun, verbWithoutServers } from "../../cli/command.ts";
import { UsageError } from "../../cli/exit-code.ts";
import { integer, option, required } from "../../cli/options.ts";
import { TlogSettingsError } from "../log-settings.ts";

export const witness: Noun = {
  name: "witness",
  description: "a witness, which cosigns a checkpoint only if it extends the last one it saw",
  verbs: {
    keygen: verbWithoutServers({
      description: "make a witness's key, and print its vkey for the policy",
      options: {
        name: required("<name>", "the witness's name, such as witness.example.net/w1"),
        out: required("<file>", "the key file; never overwritten"),
      },
      examples: ["--name witness.example.net/w1 --out witness.key"],
      async run(ctx, { name, out }) {
        const vkey = await writeKeyFile("witness", name, out);
        ctx.print({ vkey }, () => vkey);
      },
    }),
    serve: verbWithoutServers({
      description: "answer requests to cosign checkpoints, until a signal",
      options: {
        key: required("<file>", "the witness's key file"),
        state: required("<file>", "remembers the last checkpoint; keep it as safe as the key"),
        log: required("<vkey>", "the log's vkey"),
        port: required("<port>", "the port", integer(0, 65_535)),
        host: option("<address>", "the address to listen on", String, "127.0.0.1"),
      },
      help: "Needs no database. Put a reverse proxy with TLS in front of it.",
      examples: ["--key witness.key --state seen.json --log vouchers.example.com/log+… --port 8080"],
      async run(ctx, options) {
        const key = await parseSecretKey("witness", readFileSync(options.key, "utf8"));
        if (key === null) throw new TlogSettingsError(`${options.key} does not hold the key of a witness.`);
        const tlogKey = await parseVerifierKey("log", options.log);
        if (tlogKey === null) throw new UsageError("--log is not the vkey of a log.");
        const witness = await WitnessServer.open(key, [tlogKey], options.state);
        const { url, close } = await serveWitness(witness, options);
        ctx.print({ url, vkey: key.text }, () => `The witness ${key.text} listens at ${url}.`);
        if (!ctx.signal.aborted) await once(ctx.signal, "abort");
        await close();
        witness.close();
      },
    }),
  },
};
