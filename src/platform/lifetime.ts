/** Ends resources with the process that opened them, before those that were opened earlier. Returns the resource. */
export interface Lifetime {
  closeLater<Resource extends { close(): Promise<void> }>(resource: Resource): Resource;
  drainLater<Resource extends { drain(): Promise<void> }>(resource: Resource): Resource;
}
