import { connect, type Socket } from "node:net";
import { parentPort, Worker, workerData } from "node:worker_threads";
import pLimit from "p-limit";

/** The answer to one request of a crowd. */
export interface CrowdAnswer {
  /** 0: the connection ended or timed out without a complete answer. */
  status: number;
  body: string;
  latencyMs: number;
}

interface Crowd {
  port: number;
  /** Complete requests. Each is sent on a connection of its own. */
  requests: readonly string[];
}

/** Connections that are being opened at the same time, below the backlog of the server. */
const OPENING = 1_000;
/** A longer silence ends a connection. Milliseconds. */
const TIMEOUT_MS = 60_000;

/**
 * Opens a connection for each request and sends it, all as fast as possible, from a thread of its own.
 * @param onSend is called just before the first connection is opened.
 * @returns the answers in order of the requests; every latency counts from the start of the crowd.
 */
export function sendAtOnce(crowd: Crowd, onSend: () => void = () => undefined): Promise<CrowdAnswer[]> {
  const thread = new Worker(new URL(import.meta.url), { workerData: crowd });
  return new Promise((resolve, reject) => {
    thread.on("message", (message: "sent" | CrowdAnswer[]) => {
      if (message === "sent") onSend();
      else resolve(message);
    });
    thread.on("error", reject);
  });
}

if (parentPort !== null) {
  const { port, requests } = workerData as Crowd;
  const opening = pLimit(OPENING);
  parentPort.postMessage("sent");
  const startedAt = performance.now();
  const answers = requests.map(async (request) => ask(await opening(() => open(port)), request, startedAt));
  parentPort.postMessage(await Promise.all(answers));
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

function ask(socket: Socket, request: string, startedAt: number): Promise<CrowdAnswer> {
  return new Promise((resolve) => {
    let text = "";
    const end = (status: number, body: string) => {
      socket.destroy();
      resolve({ status, body, latencyMs: performance.now() - startedAt });
    };
    socket.on("error", () => end(0, ""));
    socket.on("close", () => end(0, ""));
    socket.setTimeout(TIMEOUT_MS, () => end(0, ""));
    socket.on("data", (chunk) => {
      text += chunk;
      const [head = "", body] = text.split("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
      if (body !== undefined && Buffer.byteLength(body) >= length) end(Number(head.slice(9, 12)), body);
    });
    socket.write(request);
  });
}
