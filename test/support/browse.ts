/** The password of the operator pages. */
export const OPS_TOKEN = "the token of the operators";

/** The header of HTTP Basic. */
export const basic = (password: string, user = "Zoë") => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`,
});

export type Form = Record<string, string | string[]>;

interface Sent {
  method?: string;
  headers?: Record<string, string>;
  /** The fields of a form, or FormData with files. The method is then POST. */
  form?: Form | FormData | undefined;
  json?: unknown;
}

/** Sends a request like a browser, with these headers, and follows no redirect. */
export async function browse(url: string, { method, headers = {}, form, json }: Sent = {}) {
  const fields = (texts: Form) =>
    Object.entries(texts).flatMap(([name, values]) => [values].flat().map((value): [string, string] => [name, value]));
  const sent = form instanceof FormData ? form : form && new URLSearchParams(fields(form));
  const response = await fetch(url, {
    redirect: "manual",
    method: method ?? (form === undefined ? "GET" : "POST"),
    headers: { accept: "text/html", ...(json !== undefined && { "content-type": "application/json" }), ...headers },
    body: sent ?? (json === undefined ? null : JSON.stringify(json)),
  });
  const location = response.headers.get("location") ?? "";
  return { status: response.status, headers: response.headers, location, text: await response.text() };
}

/** The path of the link to the next page, without `prefix`, or an empty text if there is no link. */
export function nextOf(text: string, prefix: string): string {
  const [, href = ""] = /rel="next" href="([^"]+)"/.exec(text) ?? [];
  return href.replaceAll("&#38;", "&").replace(prefix, "");
}
