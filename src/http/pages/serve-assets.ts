import { AppError } from "../../contract/errors.ts";
import type { Route } from "../endpoint.ts";
import { findAsset } from "./assets.ts";

/** One year. A changed file gets a new name. */
const MAX_AGE_SECONDS = 31_536_000;

/** Styles, scripts and images of the pages. */
export const assetsRoute: Route = {
  path: "/assets/:fileName",
  methods: {
    get: [
      (request, response) => {
        const asset = findAsset(String(request.params.fileName));
        if (asset === null) throw new AppError("not_found");
        response.setHeader("Cache-Control", `public, max-age=${MAX_AGE_SECONDS}, immutable`);
        response.setHeader("Content-Type", asset.contentType);
        response.setHeader("X-Content-Type-Options", "nosniff");
        response.send(asset.content);
      },
    ],
  },
};
