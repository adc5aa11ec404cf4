/** One series that an expression asks for: a metric's name and what its labels must be. */
export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** Words of the language that stand where a metric's name could. */
const KEYWORDS = new Set([
  "and",
  "or",
  "unless",
  "bool",
  "offset",
  "by",
  "without",
  "on",
  "ignoring",
  "group_left",
  "group_right",
]);

/**
 * Every selector of an expression (Prometheus, "Querying basics"). Reads names followed by no parenthesis as metrics, except within
 * the lists of labels behind `by` and its like.
 */
export function selectorsOf(expression: string): Selector[] {
  const found: Selector[] = [];
  const text = expression.replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, " ");
  const pattern = /"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\b\d[\w.]*|([a-zA-Z_:][\w:]*)\s*(\(|\{([^}]*)\})?/g;
  for (const [, name, behind, matchers = ""] of text.matchAll(pattern)) {
    if (name === undefined || behind === "(" || KEYWORDS.has(name)) continue;
    found.push({
      metric: name,
      matchers: Array.from(
        matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g),
        ([, label = "", operator = "", value = ""]) => ({ label, operator, value }),
      ),
    });
  }
  return found;
}
