import { LOCAL_DIRECTORY } from "./directory.ts";
import { type ServiceServers, webhookEnvOf } from "./servers.ts";
import { useLocalUserKeys } from "./user-keys.ts";

/**
 * The environment of the service's processes on these servers: the given variables, and as defaults the secrets and
 * user keys of the embedded servers.
 */
export async function serviceEnvironment(
  given: NodeJS.ProcessEnv,
  servers: ServiceServers,
): Promise<NodeJS.ProcessEnv> {
  const { databaseUrl, redisUrl, embedded, secrets } = servers;
  return {
    ...webhookEnvOf(servers, given),
    ...given,
    // Only with the embedded database, tokens that are signed with the local user keys are accepted.
    ...(embedded && !given.AUTH_JWKS_URL && { AUTH_JWKS_URL: await useLocalUserKeys(LOCAL_DIRECTORY) }),
    // Unless HOST is set, only this machine can reach the service. The metrics need no sign-in, and the operator pages
    // accept a saved token.
    HOST: given.HOST || "127.0.0.1",
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    RESERVATION_TOKEN_SECRET: given.RESERVATION_TOKEN_SECRET || secrets.reservationTokenSecret,
    ISSUER_API: given.ISSUER_API || "true",
    OPS_WRITABLE: given.OPS_WRITABLE || "true",
    OPS_TOKEN: given.OPS_TOKEN || secrets.opsToken,
  };
}
