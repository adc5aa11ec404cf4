/** Maximum number of problems that an audit describes. Further problems are only counted. */
const DESCRIBED_MAX = 100;

/** The problems that an audit has found. */
export interface Problems {
  problemCount: number;
  /** Descriptions of the first problems. */
  problems: string[];
}

export type AddProblem = (problem: string) => void;

/** Returns a function that adds a problem to the result of an audit. */
export function addProblemsTo(audit: Problems): AddProblem {
  return (problem) => {
    audit.problemCount += 1;
    if (audit.problems.length < DESCRIBED_MAX) audit.problems.push(problem);
  };
}
