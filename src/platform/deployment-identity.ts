/** The deployment that a process's jobs, replies and leases belong to. */
export interface DeploymentIdentity {
  /** The deployment's id. @throws Error until the process has reached the database once. */
  readonly id: string;
  /**
   * The id with a fingerprint of server and database, the server's timeline and its start.
   * @throws Error until the process has reached the database once.
   */
  readonly serverId: string;
  /** Resolves once both are known and the database is usable. */
  ready(): Promise<void>;
}
