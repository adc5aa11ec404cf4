import type { Bindings } from "./bindings.ts";
import { curl, type PartnerRequest } from "./request.ts";

/** Variables that later lines can use. */
const USED_LATER = /^(TICKET|TOKEN)_/;

/** The steps of one run as shell lines. */
export class Transcript {
  readonly #bindings: Bindings;
  readonly #lines: string[] = [];
  #steps = 0;

  constructor(bindings: Bindings) {
    this.#bindings = bindings;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Begins a step with its title. */
  begin(title: string): void {
    this.#steps += 1;
    this.#lines.push("", `# ${this.#steps}. ${title}`);
  }

  /** Adds a shell command. */
  command(line: string): void {
    this.#lines.push(line);
  }

  /** Adds a remark. */
  remark(text: string): void {
    this.#lines.push(...text.split("\n").map((line) => `#    ${line}`));
  }

  /** Adds a request, its answer, and assignments of new variables. */
  exchange(
    request: PartnerRequest,
    { status, body }: { status: number; body: unknown },
    learned: readonly { name: string; place: string }[],
  ): void {
    const kept = learned.filter(({ name }) => USED_LATER.test(name));
    if (kept.length === 0) this.command(`${curl(request)} -w ' %{http_code}\\n'`);
    else {
      this.command(`ANSWER=$(${curl(request)}); echo "$ANSWER"`);
      for (const { name, place } of kept) {
        this.command(`${name}=$(jq -r ${place} <<<"$ANSWER")`);
      }
    }
    this.remark(`actual   ${status} ${this.#bindings.nameValues(JSON.stringify(body))}`);
  }
}
