/** A reason why a server refuses a connection, and what an operator must change. */
interface Remedy {
  of: RegExp;
  /** Sentences. */
  remedy: string;
  /** Whether a later attempt with the same address may succeed. */
  mayPass?: true;
}

const REMEDIES: readonly Remedy[] = [
  {
    of: /SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|CERT_(UNTRUSTED|SIGNATURE|CHAIN)/,
    remedy: "Name the file with the certificate of its authority in NODE_EXTRA_CA_CERTS.",
  },
  { of: /ERR_TLS_CERT_ALTNAME_INVALID/, remedy: "Write a host for which its certificate is." },
  { of: /CERT_(HAS_EXPIRED|NOT_YET_VALID)/, remedy: "Renew its certificate, or set the clock of this machine." },
  { of: /does not support SSL/, remedy: "Leave sslmode out of the address, and PGSSLMODE out of the environment." },
  { of: /^(ERR_SSL|EPROTO)|establishing an SSL/, remedy: "Write the host and the port of a server that uses TLS." },
  {
    of: /^28000/,
    remedy: "Let its pg_hba.conf admit this user from this machine, with TLS if the address has sslmode.",
  },
  { of: /^28|client password must/, remedy: "Write the user and the password that it knows." },
  { of: /^3D000/, remedy: "Create this database, or name another." },
  {
    of: /^53300|max(imum)? (number of )?clients/i,
    remedy:
      "Allow more connections (max_connections of Postgres or its pooler, maxclients of Redis), or end processes.",
    mayPass: true,
  },
  { of: /^(53|57|58|XX)/, remedy: "It must take connections again.", mayPass: true },
];

/** Why a connection failed, and whether a later attempt with the same address may succeed. */
export interface Refusal {
  sentence: string;
  mayPass: boolean;
}

/**
 * Explains the error of a connection to a server that answered.
 * @param server such as `Postgres at db:5432`.
 * @returns null for an unknown error.
 */
export function explainRefusal(server: string, error: Error & { code?: string }): Refusal | null {
  const found = REMEDIES.find(({ of }) => of.test(`${error.code ?? ""} ${error.message}`.trimStart()));
  if (found === undefined) return null;
  const words = error.message.replace(/\.?\s*$/, "");
  return { sentence: `${server} cannot be used: ${words}. ${found.remedy}`, mayPass: found.mayPass ?? false };
}
