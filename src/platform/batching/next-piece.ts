import { startsPerTurn } from "./starts-per-turn.ts";

const startPiece = startsPerTurn(1);

/**
 * Resolves when the next piece of long work may run: one per turn of the event loop, of all long work of the process
 * together. A piece takes a few milliseconds, so that calls between two pieces wait less than 20 ms.
 */
export const nextPiece = (): Promise<void> => new Promise((resolve) => startPiece(resolve));
