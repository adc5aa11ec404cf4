// The first part of every script that speaks, after the constant ENGLISH: a sentence in the language of the page.

/** The sentences of the scripts, by key. A page that is not English has its own as JSON, which no browser runs. */
const sentences = JSON.parse(document.querySelector("#script-texts")?.textContent ?? "null") ?? ENGLISH;

/** The sentence `script.<key>` of `src/locales`, with these values in place of their names in braces. */
export function say(key, values) {
  return sentences[key].replaceAll(/\{(\w+)\}/g, (_, name) => values[name]);
}
