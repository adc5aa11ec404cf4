import { createReadStream, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { CodesSummary, findTrace } from "../acts/printed-code-formats.ts";
import { assertCount, notIssued, type ReadLines, readPrintedCodes } from "../acts/printed-codes.ts";
import { formatCount, pluralize } from "./format.ts";

/** Maximum number of lengths that the summary lists. With more, it names only the shortest and the longest. */
const LENGTHS_MAX = 4;

/**
 * Opens a file of printed codes, which can be read several times: text in UTF-8 or UTF-16, one code per line. Blank
 * lines at the end are ignored.
 * @throws AppError `invalid_request` during a read, with the line that is not a code and the reason.
 */
export async function openPrintedCodes(file: string): Promise<ReadLines> {
  // Reads a pipe into memory, because it can be read only once.
  const content = statSync(file).isFile() ? null : await readFile(file);
  return () => linesOf(content === null ? createReadStream(file) : Readable.from([content]));
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const input = Readable.from(decode(bytes));
  let line = 0;
  let blank = 0;
  for await (const text of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    line += 1;
    if (text.trim() === "") {
      blank ||= line;
      continue;
    }
    if (blank > 0) throw notIssued(`Line ${blank} is blank, and more lines follow.`);
    const trace = findTrace(text.trim());
    if (trace !== null) throw notIssued(`Line ${line} ${trace}.`);
    yield text;
  }
}

/** Decodes text as spreadsheets save it. */
async function* decode(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  for await (const chunk of bytes) {
    decoder ??= new TextDecoder(encodingOf(chunk));
    yield decoder.decode(chunk, { stream: true });
  }
  // If the file ends within a character, this call yields U+FFFD, so the last code is refused. Otherwise the decoder
  // would silently drop the character.
  if (decoder !== undefined) yield decoder.decode();
}

/** Finds the encoding by the byte order mark. Without one, finds UTF-16 by the zero byte in the first character. */
function encodingOf([first, second, third]: Uint8Array): string {
  if (first === 0x50 && second === 0x4b && third === 3) {
    throw notIssued("The file is a workbook or an archive. Save the column of codes as text, one code a line.");
  }
  if ((first === 0xff && second === 0xfe) || second === 0) return "utf-16le";
  if ((first === 0xfe && second === 0xff) || first === 0) return "utf-16be";
  return "utf-8";
}

/** Describes all codes: their number, their lengths, the first and the last. @throws AppError `invalid_request`. */
export async function describePrintedCodes(readLines: ReadLines, count: number): Promise<string> {
  const summary = new CodesSummary();
  for await (const { code, codeKey } of readPrintedCodes(readLines)) summary.add(code, codeKey);
  const fault = summary.findFault();
  if (fault !== null) throw notIssued(fault);
  assertCount(summary.count, count);
  const { first, last, lengths } = summary;
  return `${pluralize(count, "code")} from the file, the first ${first}, the last ${last}. ${describeLengths(lengths)}`;
}

function describeLengths(lengths: ReadonlyMap<number, number>): string {
  const sorted = [...lengths].sort(([a], [b]) => a - b);
  const [[shortest, all] = [0, 0]] = sorted;
  const [longest] = sorted.at(-1) ?? [0];
  if (sorted.length === 1)
    return `${all === 1 ? "It has" : "Each has"} ${shortest} characters, not counting separators.`;
  const each = sorted.map(([length, count]) => `${length} (${formatCount(count)})`).join(", ");
  return `Characters, not counting separators: ${sorted.length > LENGTHS_MAX ? `${shortest} to ${longest}` : each}.`;
}
