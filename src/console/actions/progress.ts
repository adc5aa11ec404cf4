import type { Response } from "express";
import { Html, html } from "../../pages/html.ts";
import { COUNT } from "../../pages/operator-frame.ts";
import { AppError } from "../../platform/api/errors.ts";
import { watchForEnd } from "../../platform/watch-for-end.ts";

/** Time between two lines of progress. Milliseconds. */
const LINE_EVERY_MS = 500;

const MARKER = new Html("<!-- progress -->");

/** Ends a run when the operator has left the page or the process stops. */
export class RunLeft extends AppError {
  constructor(message = "The run was stopped before everything was done.") {
    super("unavailable", message);
  }
}

/** Ends a run when the operator was revoked, or when the operator or the JWT has expired. */
class SignInEnded extends RunLeft {
  /** @param outcome what was done, as a sentence. */
  constructor(outcome: string) {
    super(`Your sign-in has ended, so the run was stopped. ${outcome}`);
  }
}

type Partly = (done: number, total: number, soFar?: object) => string | null;

/**
 * Shows a long run on a page that grows until the run ends. The page needs no script, and the server keeps no state:
 * the run ends when the operator leaves the page.
 * @param run.render returns the page. Its argument is the markup of the progress.
 */
export function openProgress(
  response: Response,
  stopping: AbortSignal,
  run: { render: (progress: Html) => Html; stillHolds: () => Promise<boolean>; partly: Partly },
) {
  let tail: string | null = null;
  let shownAt = Number.NEGATIVE_INFINITY;
  const left = new AbortController();
  response.once("close", () => left.abort());
  let ended: AbortSignal | null = null;
  return {
    /** Shows the progress. The first call begins the page. @throws RunLeft, SignInEnded. */
    advance(done: number, total: number, soFar?: object): void {
      if (response.closed || stopping.aborted) throw new RunLeft();
      ended ??= watchForEnd(async () => !(await run.stillHolds()), left.signal);
      if (ended.aborted) throw new SignInEnded(run.partly(done, total, soFar) ?? "Nothing was done.");
      // A run that ends in one step needs no progress.
      if (tail === null && done >= total) return;
      if (tail === null) {
        const [head = "", rest = ""] = run.render(MARKER).markup.split(MARKER.markup);
        tail = rest;
        // A proxy must pass on each line at once.
        response.set({ "Cache-Control": "no-store", "X-Accel-Buffering": "no" }).type("html").write(head);
      }
      if (performance.now() - shownAt < LINE_EVERY_MS) return;
      shownAt = performance.now();
      response.write(html`<p>${COUNT.format(done)} of ${COUNT.format(total)} vouchers</p>\n`.markup);
    },
    /** Ends the page with the outcome. Returns false if the page has not begun. */
    end(outcome: Html): boolean {
      if (tail !== null) response.end(outcome.markup + tail);
      return tail !== null;
    },
  };
}
