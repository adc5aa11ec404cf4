// The modules of the package that browsers can load. They need Web Crypto, and no module of Node.
export * from "./bytes.ts";
export * from "./canonical.ts";
export * from "./checkpoint.ts";
export * from "./merkle.ts";
export * from "./note.ts";
export * from "./policy.ts";
export * from "./receipt.ts";
export * from "./tiles.ts";
