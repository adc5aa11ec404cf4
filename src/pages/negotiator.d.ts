// The part of negotiator (https://github.com/jshttp/negotiator) that the service uses. The package has no types.
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: import("node:http").IncomingMessage);
    /** The best encoding for the caller. Among equally good ones, the first in `preferred`. Undefined if none fits. */
    encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
    /** The best language for the caller. Among equally good ones, the first in `available`. Undefined if none fits. */
    language<Language extends string>(available: readonly Language[]): Language | undefined;
    /** The languages that the caller accepts, best first. */
    languages(): string[];
  }
}
