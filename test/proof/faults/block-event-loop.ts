import { existsSync } from "node:fs";

// Given to a process of the service with NODE_OPTIONS: after SIGUSR2, its event loop is blocked while the file of
// BLOCK_WHILE exists.

const { BLOCK_WHILE } = process.env;

process.on("SIGUSR2", () => {
  while (BLOCK_WHILE !== undefined && existsSync(BLOCK_WHILE));
});
