import { writeFileSync } from "node:fs";
import { parametersOf } from "./sentence-parameters.ts";
import { sentencesOf } from "./sentences.ts";

// Generates the type of the values of each sentence from the English sentences.
const HEADER = "// Generated from src/locales/en.json by `npm run prepare`. Do not edit.\n\n";
const lines = Object.entries(sentencesOf("en")).map(([key, sentence]) => {
  const values = [...parametersOf(sentence)].map(([name, type]) => `${name}: ${type}`).join("; ");
  return `  ${JSON.stringify(key)}: ${values === "" ? "null" : `{ ${values} }`};\n`;
});
const types = `${HEADER}export interface SentenceValues {\n${lines.join("")}}\n`;
writeFileSync(new URL("sentence-values.ts", import.meta.url), types);
