/**
 * SQL for the index of an event's leaf in the log, which is null while the batch has no position there.
 * @param event - The alias of `voucher_events`.
 * @param batch - The alias of the `log_batches` row that the event's `log_slot` names.
 */
export const leafOfEvent = (event: string, batch: string) =>
  `coalesce(${batch}.places[(${event}.log_slot & 4095) + 1], ${batch}.first_index + (${event}.log_slot & 4095))`;
