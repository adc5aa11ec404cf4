// The first part of every script that speaks: a sentence in the language of the page.

/**
 * The sentences of a page that is not English, by the English ones. The page has them as JSON, which no browser runs.
 */
const sentences = JSON.parse(document.querySelector("#script-texts")?.textContent ?? "{}");

/**
 * A sentence with these values in place of {0} and {1}. A test compares the English ones with texts/script-texts.ts.
 */
export function say(english, ...values) {
  return (sentences[english] ?? english).replaceAll(/\{(\d)\}/g, (_, at) => values[at]);
}
