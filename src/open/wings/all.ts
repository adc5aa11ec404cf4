/** The intersection of a union's members: a type that satisfies all of them. */
export type All<Union> = (Union extends unknown ? (value: Union) => void : never) extends (value: infer Both) => void
  ? Both
  : never;
