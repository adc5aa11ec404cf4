import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import { EXAMPLE } from "../../src/contract/example.ts";
import { RESERVATION_SECONDS } from "../../src/domain/reservation.ts";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import { describeApi } from "../../src/http/openapi/describe-api.ts";

/** The types of every request and response. */
export const TYPES_FILE = fileURLToPath(new URL("src/api.ts", import.meta.url));

const HEADER = "// Generated from the OpenAPI document by `npm run client`. Do not edit.\n\n";

/** Renders the file from the OpenAPI document. The result is always the same. */
export async function renderTypes(): Promise<string> {
  const description = describeApi(ENDPOINTS, { baseUrl: EXAMPLE.baseUrl, reservationSeconds: RESERVATION_SECONDS });
  return HEADER + astToString(await openapiTS(JSON.stringify(description)));
}

if (import.meta.main) writeFileSync(TYPES_FILE, await renderTypes());
