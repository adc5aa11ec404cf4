/** Text that is markup already. Only {@link html} makes it, so nothing gets into a page without being escaped. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** What may stand in a template: text is escaped, markup and lists of it are put in as they are, null leaves nothing. */
type Part = string | number | Html | readonly Html[] | null;

/** A template of markup. Every text put into it is escaped for element content and for attribute values in double quotes. */
export function html(template: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(String.raw({ raw: template }, ...parts.map(render)));
}

function render(part: Part): string {
  if (part === null) return "";
  if (part instanceof Html) return part.markup;
  if (typeof part === "object") return part.map(render).join("");
  return String(part).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
