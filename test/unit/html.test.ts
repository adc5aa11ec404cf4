import { expect, it } from "vitest";
import { html } from "../../src/http/pages/html.ts";

it("the template of pages escapes any text, in content and in attributes", () => {
  const text = `<script>alert("1")</script> & 'x'`;
  const { markup } = html`<p title="${text}">${text}</p>`;
  const escaped = "&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62; &#38; &#39;x&#39;";
  expect(markup).toBe(`<p title="${escaped}">${escaped}</p>`);
});

it("the template of pages takes markup of its own, lists of it and numbers as they are, and nothing for null", () => {
  const items = ["a<", "b"].map((item) => html`<li>${item}</li>`);
  expect(html`<ul>${items}</ul>${null}${7}${html`<br>`}`.markup).toBe("<ul><li>a&#60;</li><li>b</li></ul>7<br>");
});
