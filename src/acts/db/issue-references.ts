import { arrayOf, boolean, integer, jsonb, text } from "../../platform/db/columns.ts";
import { Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./issue-references.sql", import.meta.url));

export const insertIssueReference = sql.executeOne("insert_issue_reference", {
  organizationId: text,
  issueRef: text,
  batchId: text,
  terms: jsonb<string>(),
});
export const findIssuedUnder = sql.row(
  "find_issued_under",
  { id: text, count: integer, isSame: boolean },
  { productId: text, issueRef: text, terms: jsonb<string>() },
);
export const findBatchIssuedUnder = sql.value(
  "find_batch_issued_under",
  { id: text },
  { organizationId: text, issueRef: text },
);
export const selectIssueReferences = sql.rows(
  "select_issue_references",
  { batchId: text, issueRef: text },
  { batchIds: arrayOf(text) },
);
