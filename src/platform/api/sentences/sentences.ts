import type { ErrorCode } from "../error-codes.ts";

/**
 * What the service says in one language. A sentence of an error says what happened and what to do now, to a seller,
 * without technical terms. Each language is a file, which does not compile while one of its sentences is missing.
 */
export interface Sentences {
  /** What an error says. The sentence of `invalid_request` is an example, because each such error names its fields. */
  errors: Record<ErrorCode, string>;
  /** More exact sentences for errors whose cause is known. */
  inDetail: {
    reservationsUnavailable: string;
    signInUnchecked: string;
    endpointDisabled: string;
    sandboxFull(max: number): string;
    webhooksFull(max: number): string;
    earlierSecretsFull(max: number): string;
    filesFull(max: number): string;
    fileTooLarge(megabytes: number): string;
    fileTooSlow(seconds: number): string;
    /** Why a voucher cannot be voided. */
    notVoided: Record<"voucher_used" | "voucher_voided" | "voucher_expired", string>;
    /** The thing that a caller names belongs to another organization, or does not exist. */
    notOwn: string;
    /** The thing that a caller wants to create exists already. */
    exists: { productKey(key: string): string; listing: string; contract: string };
    contractCannotBecome(wanted: string, status: string): string;
    noProductOfContract(contract: string, product: string): string;
    /** What a long act had done when its key ended. */
    keyEnded: { nothingDone: string; voided(count: number): string };
  };
  /** Why a release has released nothing. */
  nothingReleased: string;
  /** What is wrong with a field: the end of a sentence that begins with its name, or with `aField` or `aFieldName`. */
  problems: {
    aField: string;
    aFieldName: string;
    required: string;
    notText: string;
    empty: string;
    unstorable: string;
    tooLong(max: number): string;
    controlCharacters: string;
    noPathSegment: string;
    erased: string;
    notWhole(min: number, max: number): string;
    notOneValue: string;
    noTime(example: string): string;
    blankInTime: string;
    noYear: string;
    noMonth: string;
    noDay: string;
    noCursor: string;
    differsFromCursor: string;
    noCsv: string;
    noVerifyLink: string;
    notObject: string;
    notTrueOrFalse: string;
    notOneOf(values: readonly string[]): string;
    noEventTypes(types: readonly string[]): string;
    repeatedType: string;
    noEventIds: string;
    noEventId: string;
    tooMany(max: number): string;
    noUrl: string;
    notHttps: string;
    urlWithUser: string;
    urlWithFragment: string;
    urlPort: string;
    urlHost: string;
    noMoment: string;
    noDollars: string;
    noDuration: string;
    noNetworks: string;
    noChoice: string;
    isPast(time: string): string;
    earlierThan(name: string): string;
    laterThan(name: string): string;
    needWindow(times: string, windows: string): string;
  };
  /** What is wrong with a request as a whole, without a full stop. */
  wholes: {
    codeOrTicket: string;
    codeAndTicket: string;
    codeOrId: string;
    codeAndId: string;
    idsOrTimes: string;
    fromBeforeTo: string;
  };
}

/** A sentence in any language. */
export type Sentence = (sentences: Sentences) => string;
