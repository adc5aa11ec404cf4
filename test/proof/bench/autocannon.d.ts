// The part of autocannon (https://github.com/mcollina/autocannon) that the benchmark uses; the package has no types.
declare module "autocannon" {
  interface Request {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
  }

  /**
   * One step of the requests that each connection repeats. `Context` lasts from a connection's first step to its last.
   */
  interface Step<Context> extends Request {
    /** Makes the request. Null returns to the first step. */
    setupRequest: (request: Request, context: Context) => Request | null;
    onResponse: (status: number, body: string, context: Context) => void;
  }

  interface Options<Context> {
    /** The number of threads for the connections. */
    url: string[];
    connections: number;
    /** Seconds. */
    duration: number;
    /** Seconds. */
    timeout: number;
    /** How often it checks whether the time has passed. Milliseconds. */
    sampleInt: number;
    requests: Step<Context>[];
  }

  interface Instance extends PromiseLike<{ errors: number; duration: number }> {
    stop(): void;
  }

  export default function autocannon<Context>(options: Options<Context>): Instance;
}
