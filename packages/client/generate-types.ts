import openapiTS, { astToString } from "openapi-typescript";

const HEADER = "// Generated from the OpenAPI document by `npm run client`. Do not edit.\n\n";

/** Renders `src/api.ts` from an OpenAPI document. The same document always gives the same text. */
export async function renderTypes(description: object): Promise<string> {
  // A field with a default may be left out of a request.
  return HEADER + astToString(await openapiTS(JSON.stringify(description), { defaultNonNullable: false }));
}
