import { text } from "./columns.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./deployment.sql", import.meta.url));

/** The id of the deployment to which this database belongs. */
export const readDeploymentId = sql.requiredValue("read_deployment_id", { id: text });
/**
 * Makes the connected database a separate deployment. Returns its new id. The caller must then restart all processes of
 * this database.
 */
export const adoptDatabase = sql.requiredValue("adopt_database", { id: text });
