// What is used of autocannon (https://github.com/mcollina/autocannon), which brings no types.
declare module "autocannon" {
  import type { EventEmitter } from "node:events";

  interface Request {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
    /** Makes the next request. */
    setupRequest?: (request: Request) => Request;
    onResponse?: (status: number, body: string) => void;
  }

  interface Options {
    url: string;
    connections: number;
    /** Seconds. */
    duration: number;
    /** Seconds. */
    timeout: number;
    requests: Request[];
  }

  interface Result {
    errors: number;
    /** Seconds. */
    duration: number;
  }

  interface Instance extends EventEmitter, Promise<Result> {
    on(
      event: "response",
      listener: (client: unknown, status: number, bytes: number, milliseconds: number) => void,
    ): this;
  }

  export default function autocannon(options: Options): Instance;
}
