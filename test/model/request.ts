import type { Bindings } from "./bindings.ts";
import type { KeyName } from "./model.ts";
import type { Variable } from "./template.ts";

/** A value in a request: a text or a variable. */
export type Word = string | Variable;

/** A partner's call with variables for values that differ between runs. */
export interface PartnerRequest {
  key: KeyName;
  method: "GET" | "POST";
  /** The segments after /partner/vouchers. */
  path: readonly Word[];
  body?: Record<string, Word>;
}

/** A request with concrete values. */
export interface ConcreteRequest {
  method: "GET" | "POST";
  path: string;
  key: string;
  body: Record<string, string> | undefined;
}

export function concrete(request: PartnerRequest, bindings: Bindings): ConcreteRequest {
  const wordOf = (word: Word) => (typeof word === "string" ? word : bindings.textOf(word.name));
  const fields = Object.entries(request.body ?? {}).map(([field, word]): [string, string] => [field, wordOf(word)]);
  return {
    method: request.method,
    path: ["", "partner", "vouchers", ...request.path.map((word) => encodeURIComponent(wordOf(word)))].join("/"),
    key: bindings.textOf(`KEY_${request.key}`),
    body: request.body === undefined ? undefined : Object.fromEntries(fields),
  };
}

/** Renders the request as a shell line with shell variables. */
export function curl({ key, path, body }: PartnerRequest): string {
  const address = ["$API/partner/vouchers", ...path.map(shown)].join("/");
  const line = `curl -s ${address} -H "X-Api-Key: $KEY_${key}"`;
  if (body === undefined) return line;
  const fields = Object.entries(body).map(([field, word]) => [field, shown(word)]);
  return `${line} -d ${quoted(JSON.stringify(Object.fromEntries(fields)))}`;
}

function shown(word: Word): string {
  return typeof word === "string" ? word : `$${word.name}`;
}

/** Quotes with double quotes, so that the shell replaces variables. */
export function quoted(text: string): string {
  return `"${text.replace(/[\\"`]/g, "\\$&")}"`;
}
