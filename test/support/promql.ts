/** A selector of an expression: a metric and its label matchers. */
export interface Selector {
  metric: string;
  matchers: { label: string; operator: string; value: string }[];
}

/** Keywords that can stand where a metric's name can. */
const KEYWORDS = "and or unless bool offset by without on ignoring group_left group_right".split(" ");

/**
 * Extracts the selectors of an expression (Prometheus, "Querying basics"). Names without a following parenthesis are
 * metrics, except in label lists such as after `by`.
 */
export function selectorsOf(expression: string): Selector[] {
  const found: Selector[] = [];
  const text = expression.replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, " ");
  const pattern = /"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\b\d[\w.]*|([a-zA-Z_:][\w:]*)\s*(\(|\{([^}]*)\})?/g;
  for (const [, name, suffix, matchers = ""] of text.matchAll(pattern)) {
    if (name === undefined || suffix === "(" || KEYWORDS.includes(name)) continue;
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
