import { CODE_KEY_MAX, CODE_KEY_MIN, isPathWord, normaliseCode, normaliseTicket } from "../core/voucher/codes.ts";
import { isTicket } from "../core/voucher/ids.ts";
import { AppError } from "../platform/api/errors.ts";

/** Reads the lines of printed codes from the beginning, one code per line. */
export type ReadLines = () => AsyncIterable<string>;

export interface Code {
  code: string;
  codeKey: string;
}

/**
 * Yields exactly `count` codes.
 * @throws AppError `invalid_request` for another number of codes, and the errors of `readPrintedCodes`.
 */
export async function* printedCodes(readLines: ReadLines, count: number): AsyncGenerator<Code> {
  let found = 0;
  for await (const code of readPrintedCodes(readLines)) {
    found += 1;
    if (found > count) throw notIssued(`The file contains more than ${count} codes.`);
    yield code;
  }
  assertCount(found, count);
}

/** @throws AppError `invalid_request` when a file's number of codes differs from the batch's number of vouchers. */
export function assertCount(found: number, count: number): void {
  if (found !== count) throw notIssued(`The file contains ${found} codes, not ${count}.`);
}

/** Yields printed codes. @throws AppError `invalid_request` with the number of a line that cannot be imported. */
export async function* readPrintedCodes(readLines: ReadLines): AsyncGenerator<Code> {
  let line = 0;
  for await (const text of readLines()) {
    line += 1;
    const code = text.trim();
    const codeKey = normaliseCode(code);
    if (codeKey === null) {
      throw notIssued(
        `Line ${line} is not a code: codes have ${CODE_KEY_MIN} to ${CODE_KEY_MAX} visible ASCII characters, not ` +
          "counting spaces, hyphens, and * . _",
      );
    }
    if (isTicket(normaliseTicket(code)) || /^rsv_/i.test(code))
      throw notIssued(`Line ${line} starts like a reservation ticket.`);
    if (isPathWord(codeKey)) throw notIssued(`Line ${line} is ${code}, which is the name of a call and not a code.`);
    yield { code, codeKey };
  }
}

/**
 * Explains why the database refused a code as a duplicate. The error's `detail` has the code's key only if the database
 * role may see it. Otherwise the message names no line.
 */
export async function explainTaken(readLines: ReadLines, error: unknown): Promise<AppError> {
  const [, taken] = /=\(\w+, (.*)\)/s.exec((error as { detail?: string }).detail ?? "") ?? [];
  const lines: number[] = [];
  let line = 0;
  for await (const { codeKey } of readPrintedCodes(readLines)) {
    line += 1;
    if (codeKey === taken && lines.push(line) === 2) break;
  }
  const [first, second] = lines;
  if (first === undefined) return notIssued("A code occurs twice, or the organization already has it.", error);
  if (second === undefined) return notIssued(`Line ${first} is a code that the organization already has.`, error);
  return notIssued(`Line ${second} repeats the code of line ${first}.`, error);
}

/** The refusal to issue a batch. None of its vouchers is issued. `reason` is a sentence. */
export function notIssued(reason: string, cause?: unknown): AppError {
  return new AppError("invalid_request", `${reason} Nothing was issued.`, { cause });
}
