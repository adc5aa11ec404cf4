import express, { type Router } from "express";
import type { ApiContext } from "../../../open-api.ts";
import { CATALOG_ACTIONS } from "./catalog-actions.ts";
import { PARTNER_ACTIONS } from "./partner-actions.ts";
import { sendCsv, showPrintSheet } from "./send-codes.ts";
import { type Console, runAction, showForm } from "./serve-action.ts";

/** Mounts what operators can do. The caller has authenticated them and refused requests of other sites. */
export function mountActions(pages: Router, ctx: ApiContext, console: Console): void {
  for (const action of [...CATALOG_ACTIONS, ...PARTNER_ACTIONS]) {
    const [path] = action.is;
    pages.get(path, showForm(ctx, action));
    pages.post(path, express.urlencoded({ extended: false, limit: "16kb" }), runAction(ctx, console, action));
  }
  pages.get("/batches/:id/codes.csv", sendCsv(ctx, console));
  pages.get("/batches/:id/print", showPrintSheet(ctx, console));
}
