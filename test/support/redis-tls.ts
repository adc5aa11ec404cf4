import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** A Redis user with the rights that the service needs, and settings of a server that uses only TLS. */
export interface RedisTls {
  /** The certificate of the authority, for NODE_EXTRA_CA_CERTS. */
  caFile: string;
  user: string;
  password: string;
  /** `user:password@` for an address. */
  login: string;
  /** Arguments of `redis-server`, without its port. */
  settings: string[];
  /** The user of operators: of `redis-cli` and the tests' own connections. */
  admin: { username: string; password: string };
}

/** The rights of the service's user, from `docs/servers.md`. */
export const ACL_RULES =
  "~* &* +@all -@admin -@dangerous +info +role +client|list +cluster|slots +cluster|nodes +cluster|info";

/** Creates an authority and a certificate for loopback in a directory, and two users. The default user is disabled. */
export function makeRedisTls(directory: string): RedisTls {
  const path = (name: string) => join(directory, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: directory, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=Test authority");
  openssl("req", ...key, "-keyout", "redis.key", "-out", "redis.csr", "-subj", "/CN=redis");
  writeFileSync(path("redis.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n");
  const signed = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "redis.ext"];
  openssl("x509", "-req", "-in", "redis.csr", ...signed, "-out", "redis.crt");
  const [user, password] = ["vouchers", "p@ss:word,/?%1"];
  const admin = { username: "operator", password: "password-of-the-operator" };
  return {
    caFile: path("ca.crt"),
    user,
    password,
    login: `${user}:${encodeURIComponent(password)}@`,
    settings: [
      ...["--port", "0", "--tls-auth-clients", "no"],
      ...[
        "--tls-cert-file",
        path("redis.crt"),
        "--tls-key-file",
        path("redis.key"),
        "--tls-ca-cert-file",
        path("ca.crt"),
      ],
      ...["--user", "default", "off"],
      ...["--user", user, "on", `>${password}`, ...ACL_RULES.split(" ")],
      ...["--user", admin.username, "on", `>${admin.password}`, "~*", "&*", "+@all"],
    ],
    admin,
  };
}
