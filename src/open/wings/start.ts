import type { AdminContext } from "../../acts/open-acts.ts";
import { transparency } from "../../transparency/in-start.ts";

/** The variables of the processes that use the log. */
type LogEnvironment = Record<"LOG_KEY_FILE" | "LOG_ANCHOR", string>;

/** How to prepare a log for the embedded database. */
interface LocalLog {
  /** Creates the log's files in a directory if they do not exist. */
  use: (directory: string, baseUrl: string) => Promise<LogEnvironment>;
  begin: (admin: AdminContext, env: LogEnvironment) => Promise<void>;
}

/** The logs that wings add to `npm start`: one or none. */
export const LOCAL_LOGS: readonly LocalLog[] = [transparency];
