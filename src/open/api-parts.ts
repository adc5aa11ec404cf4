import { loadParts } from "./wings.ts";

const PARTS = await loadParts("api");
type Part = (typeof PARTS)[number];

/** Returns the part with this name, such as `pages`, of each optional feature (wing) that has one. */
export function each<Name extends keyof Part>(name: Name): NonNullable<Part[Name]>[] {
  return PARTS.flatMap((part): NonNullable<Part[Name]>[] => {
    const value = part[name];
    return value == null ? [] : [value];
  });
}
