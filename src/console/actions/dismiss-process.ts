import type { RequestHandler } from "express";
import { dismissProcess, type Reports } from "../../acts/process/dismiss.ts";
import type { Site } from "../../pages/layout.ts";
import { opsPath } from "../../pages/operator-frame.ts";
import { actingAs, type Console } from "./serve-action.ts";

/** The path of the form after `/ops`. */
export const DISMISS_PATH = "/processes/dismiss";

export type DismissDeps = Reports & Parameters<typeof actingAs>[1] & { config: Site };

/**
 * Dismisses a process that vanished, as `voucherctl process dismiss` does. One that has come back since the page was
 * read stays.
 */
export function runDismissal(ctx: DismissDeps, console: Console): RequestHandler {
  return async (request, response) => {
    const id = String(Object(request.body).process);
    await dismissProcess.run({ ...ctx, ...actingAs(request, ctx, console, dismissProcess.name, { id }) }, id, {});
    response.redirect(303, opsPath(ctx.config));
  };
}
