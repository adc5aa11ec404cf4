// The part of negotiator (https://github.com/jshttp/negotiator) that the service uses; the package has no types.
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: import("node:http").IncomingMessage);
    /**
     * The best of the available encodings for the caller, of equal ones the first of `preferred`. Undefined if it
     * accepts none.
     */
    encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
    /** The best of the available languages for the caller, of equal ones the first. Undefined if it accepts none. */
    language<Language extends string>(available: readonly Language[]): Language | undefined;
  }
}
