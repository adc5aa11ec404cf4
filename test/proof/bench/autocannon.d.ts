// The part of autocannon (https://github.com/mcollina/autocannon) that the benchmark uses; the package has no types.
declare module "autocannon" {
  interface Request {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: string;
  }

  /** One of the requests that each connection sends in turn. `Context` lasts from the first step to the last. */
  interface Step<Context> extends Request {
    /** Makes the request. After null, the connection continues with the first step. */
    setupRequest: (request: Request, context: Context) => Request | null;
    onResponse: (status: number, body: string, context: Context) => void;
  }

  interface Options<Context> {
    url: string[];
    connections: number;
    /** Seconds. */
    duration: number;
    /** Seconds. */
    timeout: number;
    /** How often autocannon checks whether `duration` has passed. Milliseconds. */
    sampleInt: number;
    requests: Step<Context>[];
  }

  interface Instance extends PromiseLike<{ errors: number; duration: number }> {
    stop(): void;
  }

  export default function autocannon<Context>(options: Options<Context>): Instance;
}
