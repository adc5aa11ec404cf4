import { text } from "./columns.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./deployment.sql", import.meta.url));

/** The id of the deployment that this database belongs to. */
export const readDeploymentId = sql.requiredValue("read_deployment_id", { id: text });
/** Makes the connected database a deployment of its own; returns the new id. All its processes must be restarted. */
export const adoptDatabase = sql.requiredValue("adopt_database", { id: text });
