import { existsSync } from "node:fs";

// A process of the service loads this file with NODE_OPTIONS. After SIGUSR2, its event loop is blocked as long as the
// file of BLOCK_WHILE exists.

const { BLOCK_WHILE } = process.env;

process.on("SIGUSR2", () => {
  while (BLOCK_WHILE !== undefined && existsSync(BLOCK_WHILE));
});
