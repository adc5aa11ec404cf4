/**
 * Whether an address has an unencoded `#`, `/` or `?` in its user or password. The parser would end the host at this
 * character, so the address would name another host. Parameters may contain `@`.
 */
export function hasBareSeparator(url: string): boolean {
  return /^[a-z]+:\/\/(?:[^/?#]*[/#][^?=]*|[^@/?#]*\?[^=]*)@/i.test(url);
}

/** The description of this problem. */
export const BARE_SEPARATOR =
  "has a user or a password with #, / or ? as it is; write %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for %";

/** Whether a Postgres address has a list of hosts, in its authority or in the parameter `host` or `port`. */
export function namesSeveralHosts(url: string): boolean {
  const [, authority = "", query = ""] = /^postgres(?:ql)?:\/\/([^/?#]*)[^?#]*(.*)$/.exec(url) ?? [];
  return authority.slice(authority.lastIndexOf("@") + 1).includes(",") || /[?&](host|port)=[^&]*(,|%2c)/i.test(query);
}

/**
 * Whether a text is a Postgres URL. The query may name a folder of a Unix socket as host. `URL` refuses a user without
 * a host, so the check inserts one.
 */
export function isDatabaseUrl(text: string): boolean {
  const ofSocket = /^([^?#]*@)(\/[^?#]*\?(?:[^#]*&)?host=)/;
  return /^postgres(ql)?:\/\/./.test(text) && URL.canParse(text.replace(ofSocket, "$1socket$2"));
}

/** Whether a text is an http origin, spelled as browsers send it. `URL` alone would accept wildcards in host names. */
export function isOrigin(entry: string): boolean {
  return /^https?:\/\/[^*]+$/.test(entry) && URL.canParse(entry) && new URL(entry).origin === entry;
}
