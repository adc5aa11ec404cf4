import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { renderTypes } from "../../packages/client/generate-types.ts";
import { REFERENCE } from "../../src/open/endpoints.ts";
import { describeApi } from "../../src/pages/openapi/describe-api.ts";
import { EXAMPLE } from "../../src/platform/api/example.ts";
import { RESERVATION_SECONDS } from "../../src/platform/environment.ts";

/** The client's types of every request and response. */
export const TYPES_FILE = fileURLToPath(new URL("../../packages/client/src/api.ts", import.meta.url));

/** Renders the client's types from the service's description. */
export function renderClientTypes(): Promise<string> {
  return renderTypes(describeApi(REFERENCE, { baseUrl: EXAMPLE.baseUrl, reservationSeconds: RESERVATION_SECONDS }));
}

if (import.meta.main) writeFileSync(TYPES_FILE, await renderClientTypes());
