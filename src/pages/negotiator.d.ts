// The part of negotiator (https://github.com/jshttp/negotiator) that the service uses. The package has no types.
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: import("node:http").IncomingMessage);
    /**
     * The best available encoding for the caller. Among equally good ones, the first in `preferred`. Undefined if the
     * caller accepts none.
     */
    encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
    /** The caller's best available language; of equal ones, the first. Undefined if the caller accepts none. */
    language<Language extends string>(available: readonly Language[]): Language | undefined;
    /** The languages that the caller accepts, the best first. */
    languages(): string[];
  }
}
