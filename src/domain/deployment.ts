/** The deployment that a process's jobs, replies and leases belong to. */
export interface DeploymentIdentity {
  /** The deployment's id. @throws Error until the process has reached the database once. */
  readonly id: string;
  /** The deployment's id with that of the physical database. @throws Error until the process has reached the database once. */
  readonly origin: string;
  /** Resolves once both are known and the database is usable. */
  ready(): Promise<void>;
}
