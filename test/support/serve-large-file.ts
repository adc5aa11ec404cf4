import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { openFiles } from "../../src/platform/http/send-file.ts";

// Serves a file that is larger than the kernel's buffers for a reader, and prints its port.

const MEGABYTES = 32;

async function* parts() {
  for (let made = 0; made < MEGABYTES; made += 1) yield `${"x".repeat(1023)}\n`.repeat(1024);
}

const app = express();
const sendFile = openFiles();
app.get("/", (_request, response) => {
  response.locals.reader = { id: "reader", stillHolds: async () => true };
  return sendFile(response, { headers: {}, parts: parts() });
});
const server = createServer(app).listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
