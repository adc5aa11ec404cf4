/** The caller of a partner route: an API key, which can read and change only its organization's data. */
export interface Caller {
  keyId: string;
  organizationId: string;
  /** Whether the organization is a sandbox. */
  sandbox: boolean;
  /** Whether the key had a daily limit when it was looked up. */
  capped?: boolean;
  /** Whether the key has the scope `voucher.issue`, which lists codes. */
  issues?: boolean;
  /** Aborts when the caller disconnects, so that its calls stop waiting. */
  readonly signal?: AbortSignal | undefined;
}
