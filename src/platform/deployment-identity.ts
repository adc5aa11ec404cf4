/** The deployment to which a process's jobs, replies and leases belong. */
export interface DeploymentIdentity {
  /** The deployment's id. @throws Error until the process has once reached the database. */
  readonly id: string;
  /**
   * The id of the database server in use: the deployment's id, a fingerprint of server and database, the server's
   * timeline and its start.
   * @throws Error until the process has once reached the database.
   */
  readonly serverId: string;
  /** Resolves once the identity is known and the database is usable. */
  ready(): Promise<void>;
}
