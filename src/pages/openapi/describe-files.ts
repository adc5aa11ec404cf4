import { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject } from "zod-openapi";
import { errorsByCode } from "../../platform/api/errors.ts";
import { describeErrors, type ErrorDescriptions } from "./describe-errors.ts";
import { RATE_LIMIT, REQUEST_ID } from "./response-headers.ts";

const FILE_ERRORS = errorsByCode(["not_found", "rate_limited", "overloaded", "unavailable"]);

/** A public file that is not JSON. */
export interface DescribedFile {
  id: string;
  summary: string;
  description: string;
  /** The media type. */
  type: string;
  /** A description of the path's parameter. */
  parameter?: string;
}

/** Describes the files by path. */
export function describeFiles(
  files: Readonly<Record<string, DescribedFile>>,
  errors: ErrorDescriptions,
): ZodOpenApiPathsObject {
  const described = Object.entries(files).map(([path, { id, summary, description, type, parameter }]) => {
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
