import { normaliseCode } from "../core/voucher/codes.ts";

/** Texts that spreadsheets and exports leave in a line of a file, and why such a line is not a code. */
const TRACES: readonly [found: RegExp, reason: string][] = [
  [/\t/, "has more than a code: it contains a tab"],
  [/[;,]/, "has more than a code: it contains a separator of columns"],
  [/["\u201c-\u201f]/, "contains a quotation mark"],
  [/^[='\u2018\u2019]/, "begins like a formula or a text of a spreadsheet"],
  [/^-?\d+(?:\.\d+)?E[+-]\d+$/i, "is a number that a spreadsheet has shortened, so its last digits are lost"],
  [/^#(?:[A-Z\u00c0-\u00dc/0]+[!?]|N\/A|NV|#+)$/i, "is the error message of a spreadsheet"],
  [/^\d{1,2}([./])\d{1,2}\1\d{2,4}$/, "is a date, which a spreadsheet can make of a code"],
];

/** Why a line of a file cannot be a code. Null if it can. The text continues a sentence that begins with "Line 3". */
export function findTrace(line: string): string | null {
  return TRACES.find(([found]) => found.test(line))?.[1] ?? null;
}

/** Characters of titles and totals. In a file of codes, such a character occurs either in all codes or in none. */
const SIGNS = [..."#:()<>[]{}|!?"];
const WORD = /(?:^| )[A-Za-z]+(?: |$)/;

/** If a file has at least this many codes and all end in zeros after 15 digits, a spreadsheet has rounded them. */
const ROUNDED_MIN = 5;

/** A summary of a file of codes, so that a person can check it before the codes are issued. */
export class CodesSummary {
  count = 0;
  first = "";
  last = "";
  /** The number of codes by their length, without separators. */
  readonly lengths = new Map<number, number>();
  /** The number of codes with each of the {@link SIGNS}. */
  private readonly signs = new Map<string, number>();
  private withoutDigit = 0;
  private rounded = 0;

  add(code: string, codeKey: string): void {
    this.count += 1;
    if (this.count === 1) this.first = code;
    this.last = code;
    this.lengths.set(codeKey.length, (this.lengths.get(codeKey.length) ?? 0) + 1);
    for (const sign of SIGNS) if (code.includes(sign)) this.signs.set(sign, (this.signs.get(sign) ?? 0) + 1);
    if (!/\d/.test(code)) this.withoutDigit += 1;
    if (/^\d{15}0+$/.test(codeKey)) this.rounded += 1;
  }

  /** A sentence about why these cannot be the printed codes. Null if nothing suggests that. */
  findFault(): string | null {
    const isAlone = this.count > 1 && this.withoutDigit === 1;
    if (!/\d/.test(this.first) && (isAlone || /codes?$/i.test(this.first.trim()))) {
      return sayNoCode(1, "looks like a heading", this.first);
    }
    if (this.#differs(this.first, this.last)) return sayNoCode(1, "looks like a title", this.first);
    if (this.#differs(this.last, this.first)) return sayNoCode(this.count, "looks like a total", this.last);
    if (this.rounded >= ROUNDED_MIN && this.rounded === this.count) {
      return "Every code ends in zeros after 15 digits: a spreadsheet has rounded them.";
    }
    return null;
  }

  /**
   * Whether the first or the last code of a file is probably a title or a total: it contains one of the SIGNS that no
   * code in between contains, or it has a word that the code at the other end lacks and a length that no other code
   * has. In a file of two codes, each is compared with the other.
   */
  #differs(code: string, opposite: string): boolean {
    const word = WORD.exec(code)?.[0].trim();
    const isForeign = word !== undefined && !opposite.includes(word) && (this.count > 2 || !WORD.test(opposite));
    if (isForeign && this.lengths.get(normaliseCode(code)?.length ?? 0) === 1) return true;
    return SIGNS.some((sign) => {
      const isInBoth = opposite.includes(sign);
      const isOutside = this.signs.get(sign) === (isInBoth ? 2 : 1);
      return code.includes(sign) && isOutside && this.count > (isInBoth ? 2 : 1);
    });
  }
}

const sayNoCode = (line: number, why: string, text: string) =>
  `Line ${line} ${why}: ${text}. Delete it; if it is a code, move it to another line.`;
