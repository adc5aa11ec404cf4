import type { RequestHandler, Response } from "express";
import Negotiator from "negotiator";
import { LANGUAGES, type Language } from "../../api/sentences.ts";

declare global {
  namespace Express {
    interface Locals {
      /** The language of the response, once it is chosen. */
      language?: Language;
    }
  }
}

/**
 * The choice for each header that was seen: most readers share a few, and a choice takes 10 µs. At most {@link
 * CHOICES_MAX}.
 */
const choices = new Map<string, Language>();
const CHOICES_MAX = 500;

/**
 * The language of this response: the one that its reader prefers among those that the service has, or else English.
 * Sets the headers that name it. Call it only for a response with words for people.
 */
export function languageOf(response: Response): Language {
  const { locals } = response;
  if (locals.language === undefined) {
    locals.language = chooseLanguage(response);
    response.vary("Accept-Language");
  }
  response.setHeader("Content-Language", locals.language);
  return locals.language;
}

function chooseLanguage({ req }: Response): Language {
  const accepted = req.headers["accept-language"];
  const [first] = LANGUAGES;
  // Many programs send only an asterisk, which accepts every language.
  if (accepted === undefined || accepted === "*") return first;
  const known = choices.get(accepted);
  if (known !== undefined) return known;
  const chosen = new Negotiator(req).language(LANGUAGES) ?? first;
  if (choices.size === CHOICES_MAX) choices.clear();
  choices.set(accepted, chosen);
  return chosen;
}

/** Makes the responses for operators English, without regard to Accept-Language. */
export const speakEnglish: RequestHandler = (_request, response, next) => {
  response.locals.language = "en";
  next();
};
