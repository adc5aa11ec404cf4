/** What is needed of a stream. */
interface Connection {
  write(...parts: unknown[]): boolean;
  cork(): void;
  uncork(): void;
}

/**
 * Makes a connection send what is written to it in one turn of the event loop in one write, instead of one for each command:
 * system calls are the largest part of what a command costs a busy process (docs/benchmarks.md). What is written alone leaves at
 * the end of its turn.
 */
export function writeOnceATurn(connection: Connection): void {
  const write = connection.write.bind(connection);
  let corked = false;
  connection.write = (...parts: unknown[]) => {
    if (!corked) {
      corked = true;
      connection.cork();
      setImmediate(() => {
        corked = false;
        connection.uncork();
      });
    }
    return write(...parts);
  };
}
