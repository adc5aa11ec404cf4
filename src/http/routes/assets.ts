import { AppError } from "../../domain/errors.ts";
import { findAsset } from "../pages/assets.ts";
import type { Route } from "../route.ts";

/** For ever, as far as HTTP knows it: a year, in seconds. A changed file has another name. */
const MAX_AGE_SECONDS = 31_536_000;

/** GET /assets/{fileName}: style, scripts and pictures of the pages. */
export const assetsRoute: Route = {
  path: "/assets/:fileName",
  methods: {
    get: [
      (request, response) => {
        const asset = findAsset(String(request.params.fileName));
        if (asset === null) throw new AppError("not_found", "There is nothing at this address.");
        response.setHeader("Cache-Control", `public, max-age=${MAX_AGE_SECONDS}, immutable`);
        response.setHeader("Content-Type", asset.contentType);
        response.setHeader("X-Content-Type-Options", "nosniff");
        response.send(asset.content);
      },
    ],
  },
};
