// The first part of every script with sentences, after the constant ENGLISH. It provides sentences in the language of
// the page.

/**
 * The sentences of the scripts, by key. A page in another language than English contains them as JSON, which browsers
 * do not run.
 */
const sentences = JSON.parse(document.querySelector("#script-texts")?.textContent ?? "null") ?? ENGLISH;

/** The sentence `script.<key>` of `src/locales`. The values replace their names in braces. */
export function say(key, values) {
  return sentences[key].replaceAll(/\{(\w+)\}/g, (_, name) => values[name]);
}
