/** Where the dashboard answers, behind the base path. */
export const DASHBOARD_PATH = "/ops/queues";
