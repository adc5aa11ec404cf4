import type { RequestHandler, Response } from "express";
import Negotiator from "negotiator";
import { LANGUAGES, type Language } from "../../api/sentences.ts";

declare global {
  namespace Express {
    interface Locals {
      /** The language of the response, if it was already chosen. */
      language?: Language;
      /** The same language with the reader's country, such as `de-CH`, if the reader names one. */
      localeTag?: string;
    }
  }
}

/**
 * The languages that were chosen for headers seen before, at most {@link CHOICES_MAX}. Most readers send one of a few
 * headers, and choosing takes 10 µs.
 */
const choices = new Map<string, Pick<Express.Locals, "language" | "localeTag">>();
const CHOICES_MAX = 500;

/**
 * The language of this response: of the service's languages, the one that the reader prefers, or else English. Sets the
 * response headers about it. Call it only for a response with words for people.
 */
export function languageOf(response: Response): Language {
  const { locals } = response;
  if (locals.language === undefined) {
    Object.assign(locals, chooseLanguage(response));
    response.vary("Accept-Language");
  }
  const { language = LANGUAGES[0] } = locals;
  response.setHeader("Content-Language", language);
  return language;
}

function chooseLanguage({ req }: Response): Pick<Express.Locals, "language" | "localeTag"> {
  const accepted = req.headers["accept-language"];
  const [first] = LANGUAGES;
  // An asterisk, which many programs send alone, accepts every language.
  if (accepted === undefined || accepted === "*") return { language: first };
  const known = choices.get(accepted);
  if (known !== undefined) return known;
  const negotiator = new Negotiator(req);
  const language = negotiator.language(LANGUAGES) ?? first;
  const localeTag = negotiator.languages().find((tag) => new RegExp(`^${language}-[a-z]{2}$`, "i").test(tag));
  const chosen = { language, ...(localeTag !== undefined && { localeTag }) };
  if (choices.size === CHOICES_MAX) choices.clear();
  choices.set(accepted, chosen);
  return chosen;
}

/** Makes the responses for operators English, regardless of Accept-Language. */
export const speakEnglish: RequestHandler = (_request, response, next) => {
  response.locals.language = "en";
  next();
};
