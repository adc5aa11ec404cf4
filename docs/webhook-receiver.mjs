// Receives webhooks with the package standardwebhooks: npm install standardwebhooks
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const webhook = new Webhook(process.env.SIGNING_SECRET);
const seen = new Set(); // Replace it with a table whose primary key is the id.

/** Returns the status of the response. An error becomes a 500, and the service sends the event again. */
async function receive(request) {
  let body = "";
  for await (const text of request.setEncoding("utf8")) {
    if (body.length < 65_536) body += text; // A longer body is cut, so its signature does not match.
  }
  let event;
  try {
    event = webhook.verify(body, request.headers);
  } catch {
    return 401;
  }
  const id = request.headers["webhook-id"];
  if (!seen.has(id)) {
    // Store the event here, and do the work later.
    console.log(`${id} ${event.type}`);
    seen.add(id);
  }
  return 204;
}

const server = createServer(async (request, response) => {
  const status = await receive(request).catch(() => 500);
  response.writeHead(status).end();
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => console.log(`listening on port ${server.address().port}`));
