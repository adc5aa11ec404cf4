import type { Wing } from "../wing.ts";

/** The marketplace: users take vouchers from open windows, by listings, links, claims and purchases. */
export const marketplace = {
  api: async () => (await import("./in-api.ts")).api,
} satisfies Wing;
