// The part of negotiator (https://github.com/jshttp/negotiator) that the service uses. The package has no types.
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: import("node:http").IncomingMessage);
    /**
     * The best available encoding for the caller. Among equally good encodings, the first in `preferred`. Undefined if
     * the caller accepts none.
     */
    encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
    /**
     * The best available language for the caller. Among equally good languages, the first. Undefined if the caller
     * accepts none.
     */
    language<Language extends string>(available: readonly Language[]): Language | undefined;
    /** The languages that the caller accepts, best first. */
    languages(): string[];
  }
}
