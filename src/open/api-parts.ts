import { WINGS } from "./wings.ts";

const PARTS = (await Promise.all(WINGS.map(({ api }) => api?.()))).filter((part) => part !== undefined);
type Part = (typeof PARTS)[number];

/** The parts with this name, of all wings that have one. */
export function each<Name extends keyof Part>(name: Name): NonNullable<Part[Name]>[] {
  return PARTS.flatMap((part): NonNullable<Part[Name]>[] => {
    const value = part[name];
    return value == null ? [] : [value];
  });
}
