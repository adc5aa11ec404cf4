import { connect } from "node:net";

/** A raw HTTP answer. */
export interface RawReply {
  status: number;
  /** By lower-case name. */
  headers: Record<string, string>;
  text: string;
}

/**
 * Sends bytes on a new connection and reads until the server closes the connection. A well-formed request needs
 * `Connection: close`. @param afterSend runs when the kernel has the bytes, before a server of this process can read
 * them.
 */
export function exchange(url: string, bytes: string | Buffer, afterSend?: () => void): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => {
      socket.write(bytes);
      afterSend?.();
    });
    // Without `Connection: close`, the connection would stay open until the server's idle limit.
    socket.setTimeout(10_000, () => {
      reject(new Error("the server does not close the connection"));
      socket.destroy();
    });
    socket.on("data", (chunk) => chunks.push(chunk));
    // A server that has answered may close the connection before it has read everything.
    socket.on("error", (error) => (chunks.length > 0 ? resolve(parse(chunks)) : reject(error)));
    socket.on("close", () => resolve(parse(chunks)));
  });
}

function parse(chunks: Buffer[]): RawReply {
  // Skips interim answers such as 100 Continue.
  const all = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^(HTTP\/1\.1 1\d\d .*\r\n\r\n)+/, "");
  const end = all.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = all.slice(0, end === -1 ? undefined : end).split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  return { status: Number(statusLine.split(" ")[1]), headers, text: end === -1 ? "" : all.slice(end + 4) };
}
