/**
 * Markup that is inserted without escaping. Only {@link html}, and pages made of the project's own files, create it.
 */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** A value in a template. Text is escaped. Markup and lists of markup are inserted unchanged. Null inserts nothing. */
type Part = string | number | Html | readonly Html[] | null;

/** A template of markup. Text is escaped for element content and for attribute values in double quotes. */
export function html(template: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: template }, ...parts.map(render)));
}

function render(part: Part): string {
  if (part === null) return "";
  if (part instanceof Html) return part.markup;
  if (typeof part === "object") return part.map(render).join("");
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
