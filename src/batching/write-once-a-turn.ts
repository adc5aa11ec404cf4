/** The part of a `net.Socket` that is used here. */
interface Connection {
  write(...parts: unknown[]): boolean;
  cork(): void;
  uncork(): void;
}

/** Combines the writes of one event-loop turn into one system call. In a busy process, system calls are the main cost of a query. */
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
