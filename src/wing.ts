import type { AnyAct } from "./acts/acts.ts";
import type { AdminContext } from "./acts/open-acts.ts";
import type { CommandPart } from "./cli/program.ts";
import type { ConsolePart } from "./console/console-part.ts";
import type { MetricsPart } from "./core/metrics/metrics.ts";
import type { WingBacklog } from "./core/metrics/open-metrics.ts";
import type { Tasks } from "./core/sweep/sweep.ts";
import type { PagesPart } from "./pages/mount-pages.ts";
import type { DescribedParts } from "./pages/openapi/describe-api.ts";
import type { Config } from "./platform/config.ts";
import type { WingVariables } from "./platform/environment.ts";
import type { Endpoint, Route } from "./platform/http/endpoint.ts";
import type { QueueResources } from "./platform/queues/open-queue.ts";
import type { QueueSettings } from "./platform/queues/queue-settings.ts";
import type { RunningWorker } from "./platform/queues/worker.ts";
import type { PortalPart } from "./portal/portal-frame.ts";
import type { WingFaults } from "./watch/facts.ts";

/**
 * A wing: everything that an optional feature adds to the service. Functions load the parts that only one program
 * needs. `src/open/wings.ts` states what an API process (`Core`) and a worker process (`Service`) provide. The compiler
 * checks that the parts need nothing else, except what the wing itself opens (`Own`).
 */
export interface Wing<Core = never, Service = never, Own extends object = object> extends MetricsPart {
  variables?: WingVariables;
  queues?: readonly QueueSettings[];
  /** The file with the database rights that only statements of the wing need. */
  grants?: URL;
  api?: () => Promise<ApiPart<Core, Own>>;
  /** The workers of its queues. */
  workers?: Readonly<Record<string, () => Promise<{ prepare: PrepareWorker<Service> }>>>;
  /** Opens the tasks that the wing adds to a pass of the sweeper. */
  sweeper?: () => Promise<(service: Service & { queueLinks: QueueResources }) => Tasks<unknown>>;
  /** The wing's acts. Verbs, forms and endpoints follow from them, unless the wing declares its own form or verb. */
  acts?: () => Promise<readonly AnyAct[]>;
  commands?: () => Promise<CommandPart>;
  start?: () => Promise<StartPart>;
  demo?: () => Promise<DemoPart>;
}

/** What a wing adds to the API. */
export interface ApiPart<Core, Own extends object> {
  /** Opens what the wing's other parts need in addition to `Core`. */
  open?: (core: Core) => Own;
  endpoints?: readonly Endpoint<Core & NoInfer<Own>>[];
  /** Routes whose responses are neither JSON nor pages. */
  routes?: (deps: Core & NoInfer<Own>) => readonly Route[];
  /** What the wing adds to the API reference besides its endpoints. */
  described?: Partial<DescribedParts>;
  pages?: PagesPart<Core & NoInfer<Own>>;
  // biome-ignore lint/suspicious/noExplicitAny: only the wing knows what it measures.
  backlog?: WingBacklog<any>;
  faults?: WingFaults;
  operatorPages?: ConsolePart<Core & NoInfer<Own>>;
  portal?: PortalPart<Core & NoInfer<Own>>;
}

/** The dependencies of one queue's jobs, and a function that starts the worker. */
interface PreparedWorker {
  ctx: object;
  start: () => RunningWorker;
}

/** Prepares a worker. Returns null in a process without the queue's secret. */
export type PrepareWorker<Service> = (service: Service) => PreparedWorker | null | Promise<PreparedWorker | null>;

/** What a wing adds to `npm start` on the embedded database. */
export interface StartPart {
  /** Creates the wing's files in a directory if they are missing. Returns the variables with the files' paths. */
  use: (directory: string, baseUrl: string) => Promise<Record<string, string>>;
  begin: (admin: AdminContext, env: Record<string, string>) => Promise<void>;
}

/** What a wing adds to `npm run demo`. Only a service on the embedded database accepts the demo's user tokens. */
export interface DemoPart {
  /** The option of `npm run demo` that adds this part. */
  option: string;
  about: string;
  /** Adds this part to a demo, and returns commands to try. `mintToken` creates a token of a user. */
  show: (
    admin: AdminContext & { config: Pick<Config, "baseUrl"> },
    demo: { organizationId: string; brandId: string; productId: string; validUntil: Date },
    mintToken: (user: string) => Promise<string>,
  ) => Promise<string>;
}
