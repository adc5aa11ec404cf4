import { IntlMessageFormat } from "intl-messageformat";

type Elements = ReturnType<IntlMessageFormat["getAst"]>;

/** The parameters of a sentence in ICU's message syntax, each with the type of its values. */
export function parametersOf(sentence: string): Map<string, "number" | "string"> {
  const found = new Map<string, "number" | "string">();
  const read = (elements: Elements) => {
    for (const element of elements) {
      const { value } = element as { value?: unknown };
      if (typeof value !== "string" || element.type === 0) continue;
      // A value that is formatted as a number, or that selects words, is a number. Any other value is a text.
      if (element.type !== 1 || !found.has(value)) found.set(value, element.type === 1 ? "string" : "number");
      if (element.type === 6) Object.values(element.options).map((option) => read(option.value));
    }
  };
  read(new IntlMessageFormat(sentence, "en", undefined, { ignoreTag: true }).getAst());
  return found;
}
