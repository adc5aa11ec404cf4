import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { Transform } from "node:stream";

/** Keeps the log lines of `npm start`'s processes until the service is ready. Passes on later lines at once. */
export class StartLog {
  private readonly file: string;
  private lines: string[] | null = [];

  constructor(file: string) {
    this.file = file;
  }

  /** A stream for the output of one process. Passes on only whole lines, so that lines of two processes do not mix. */
  open(): Transform {
    let rest = "";
    return new Transform({
      decodeStrings: false,
      transform: (chunk, _encoding, done) => {
        const text = rest + chunk;
        const afterLastLine = text.lastIndexOf("\n") + 1;
        rest = text.slice(afterLastLine);
        const whole = text.slice(0, afterLastLine);
        if (this.lines === null) return done(null, whole);
        this.lines.push(whole);
        done();
      },
    });
  }

  /** Writes the kept lines to the file, and passes on all later lines. */
  end(): void {
    mkdirSync(dirname(this.file), { recursive: true });
    writeFileSync(this.file, this.takeLines(), { mode: 0o600 });
  }

  /** Returns the kept lines, to show them after a failed start. Later lines are passed on. */
  takeLines(): string {
    const kept = this.lines?.join("") ?? "";
    this.lines = null;
    return kept;
  }
}
