/** The caller of a partner route: an API key and its organization, which limits everything that the key can read and change. */
export interface Caller {
  keyId: string;
  organizationId: string;
  /** Whether the organization is a sandbox. */
  sandbox: boolean;
}
