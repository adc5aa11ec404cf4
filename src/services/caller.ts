/** Who calls: a partner's key and the organization it is bound to. Everything a partner does is bounded by that organization. */
export interface Caller {
  keyId: string;
  organizationId: string;
}
