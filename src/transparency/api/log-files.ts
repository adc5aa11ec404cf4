import type { DescribedFile } from "../../pages/openapi/describe-files.ts";

/** The log's files. A tile's path contains slashes, which a path parameter of OpenAPI cannot describe. */
export const LOG_FILES: Record<string, DescribedFile> = {
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
      "The keys of the log and its witnesses, and how many witnesses a checkpoint needs. Compare it with a copy " +
      "that you keep.",
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
