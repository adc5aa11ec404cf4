import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

// Generates the types of all requests and responses from the OpenAPI document of the service.
const HEADER = "// Generated from the OpenAPI document by `npm run prepare`. Do not edit.\n\n";
const description = readFileSync(new URL("../../dist/openapi.json", import.meta.url), "utf8");
// A field with a default may be left out of a request.
const types = astToString(await openapiTS(description, { defaultNonNullable: false }));
writeFileSync(new URL("src/api.ts", import.meta.url), HEADER + types);
