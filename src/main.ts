import { createApp } from "./app.ts";
import { openApiContext } from "./context.ts";
import { closeServer, listen } from "./http/server.ts";
import { configureProcess, drainOnSignal } from "./process.ts";

// The API process: configuration, context, server, and on a signal the way back.
const config = configureProcess();
const ctx = openApiContext(config);
const server = await listen(createApp(ctx), config.port);
ctx.log.info({ port: config.port, baseUrl: config.baseUrl }, "listening");
drainOnSignal(ctx.log, async () => {
  await closeServer(server);
  await ctx.close();
});
