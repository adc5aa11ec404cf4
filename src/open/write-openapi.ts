import { writeFileSync } from "node:fs";
import { describeApi } from "../pages/openapi/describe-api.ts";
import { EXAMPLE } from "../platform/api/example.ts";
import { REFERENCE } from "./endpoints.ts";

// Writes the OpenAPI document from which the client package generates its types.
const description = describeApi(REFERENCE, { baseUrl: EXAMPLE.baseUrl, reservationSeconds: null });
writeFileSync(new URL("../../dist/openapi.json", import.meta.url), JSON.stringify(description));
