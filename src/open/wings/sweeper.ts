import type { Tasks } from "../../core/sweep/sweep.ts";
import { webhooks } from "../../webhooks/in-sweeper.ts";
import type { All } from "./all.ts";

/** What a wing adds to the sweeper. */
interface SweeperPart {
  /** Opens the dependencies of its tasks. */
  open: (service: never) => object;
  tasks: Tasks<never>;
}

/** The wings of the sweeper. */
const WINGS = [webhooks] as const satisfies readonly SweeperPart[];
type Part = (typeof WINGS)[number];
type OpenDeps = All<Parameters<Part["open"]>[0]>;
type OpenPart = { open: (service: OpenDeps) => object };

/** The dependencies of the tasks of wings. */
export type TaskDeps = object & All<ReturnType<Part["open"]>> & All<Parameters<Part["tasks"][keyof Part["tasks"]]>[0]>;

/** The names of the tasks of each part in a union. */
type NamesOf<Each> = Each extends { tasks: infer Named } ? keyof Named & string : never;

export const WING_TASKS: Tasks<TaskDeps, NamesOf<Part>> = Object.assign(
  {},
  ...WINGS.map(({ tasks }: SweeperPart) => tasks),
);

/** Opens the dependencies of the tasks of wings. */
export function openTasks(service: OpenDeps): object & All<ReturnType<Part["open"]>> {
  return Object.assign({}, ...WINGS.map(({ open }: OpenPart) => open(service)));
}
