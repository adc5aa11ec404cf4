import { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject } from "zod-openapi";
import type { ErrorCode } from "../../platform/api/errors.ts";
import { describeErrors, type ErrorDescriptions } from "./describe-errors.ts";
import { RATE_LIMIT, REQUEST_ID } from "./response-headers.ts";

const FILE_ERRORS: ReadonlySet<ErrorCode> = new Set(["not_found", "rate_limited"]);

/** What is served to anyone and is not JSON. The path of a tile has slashes, which a path parameter of OpenAPI cannot express. */
const FILES: Record<string, { id: string; summary: string; description: string; type: string; parameter?: string }> = {
  "/log/checkpoint": {
    id: "readCheckpoint",
    summary: "Read the log's newest checkpoint",
    description: "The size and the root hash of the transparency log, signed by the log and its witnesses.",
    type: "text/plain",
  },
  "/log/policy": {
    id: "readPolicy",
    summary: "Read the log's policy",
    description:
      "The keys of the log and its witnesses, and how many witnesses a checkpoint needs. Compare it with a copy that you keep.",
    type: "text/plain",
  },
  "/log/tile/{path}": {
    id: "readTile",
    summary: "Read a tile of the log",
    description: "A part of the log in the format [tlog-tiles](https://c2sp.org/tlog-tiles). A tile never changes.",
    type: "application/octet-stream",
    parameter:
      "The level and the number of the tile, such as `0/000` or `0/x001/234.p/56`. Its slashes are sent as they are.",
  },
};

/** Describes the files by path. */
export function describeFiles(errors: ErrorDescriptions): ZodOpenApiPathsObject {
  const described = Object.entries(FILES).map(([path, { id, summary, description, type, parameter }]) => {
    const get: ZodOpenApiOperationObject = {
      operationId: id,
      tags: ["Public verification"],
      summary,
      description,
      security: [],
      ...(parameter !== undefined && {
        requestParams: {
          path: z.object({ [/\{(\w+)\}/.exec(path)?.[1] ?? ""]: z.string().meta({ description: parameter }) }),
        },
      }),
      responses: {
        200: {
          description: `${summary.replace(/^\w+ /, "").replace(/^./, (first) => first.toUpperCase())}.`,
          headers: z.object({ ...REQUEST_ID, ...RATE_LIMIT }),
          content: { [type]: { schema: z.string() } },
        },
        ...describeErrors(errors, { security: [], errors: FILE_ERRORS }),
      },
    };
    return [path, { get }];
  });
  return Object.fromEntries(described);
}
