/** A name in synchronous_standby_names, with or without double quotes. */
const NAME = /"((?:[^"]|"")*)"|[^\s,()"]+/g;

/**
 * The number of standbys that Postgres waits for but that are not connected. Its setting has their number, or names one
 * of them. A standby that the setting does not name is asynchronous and replaces none.
 * @param standbys the names of the connected standbys.
 */
export function countMissingStandbys({
  standbyNames,
  standbys,
}: {
  standbyNames: string;
  standbys: readonly string[];
}) {
  const [, number, list = ""] = /^\s*(?:(?:FIRST\s+|ANY\s+)?(\d+)\s*\()?([\s\S]*)$/i.exec(standbyNames) ?? [];
  const named = Array.from(list.matchAll(NAME), ([name, quoted]) =>
    (quoted?.replaceAll('""', '"') ?? name).toLowerCase(),
  );
  if (named.length === 0) return 0;
  const synchronous = standbys.filter((name) => named.includes("*") || named.includes(name.toLowerCase()));
  return Math.max(0, Number(number ?? 1) - synchronous.length);
}
