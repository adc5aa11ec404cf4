import type { Bindings } from "./bindings.ts";
import { curl, type PartnerRequest } from "./request.ts";

/** What later lines of a transcript can name. */
const USED_LATER = /^(TICKET|TOKEN)_/;

/** What one run did, step by step, as lines for a shell. */
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

  /** Begins a step with a sentence about it. */
  begin(title: string): void {
    this.#steps += 1;
    this.#lines.push("", `# ${this.#steps}. ${title}`);
  }

  /** Adds what a shell would be told. */
  command(line: string): void {
    this.#lines.push(line);
  }

  /** Adds a remark. */
  remark(text: string): void {
    this.#lines.push(...text.split("\n").map((line) => `#    ${line}`));
  }

  /** Adds a request, its answer, and assignments of what the answer showed first. */
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
    this.remark(`came     ${status} ${this.#bindings.nameValues(JSON.stringify(body))}`);
  }
}
