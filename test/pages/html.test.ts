import { encode } from "uqr";
import { expect, it } from "vitest";
import { html } from "../../src/pages/html.ts";
import { qrCode } from "../../src/pages/qr-code.ts";

it("the page template escapes any text in content and attributes", () => {
  const text = `<script>alert("1")</script> & 'x'`;
  const { markup } = html`<p title="${text}">${text}</p>`;
  const escaped = "&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62; &#38; &#39;x&#39;";
  expect(markup).toBe(`<p title="${escaped}">${escaped}</p>`);
});

it("the page template inserts markup and numbers unchanged, and nothing for null", () => {
  const items = ["a<", "b"].map((item) => html`<li>${item}</li>`);
  expect(html`<ul>${items}</ul>${null}${7}${html`<br>`}`.markup).toBe("<ul><li>a&#60;</li><li>b</li></ul>7<br>");
});

it("the image of a QR code has the right black modules, a margin of four and an escaped name", () => {
  const text = "https://vouchers.example.com/r/<code>";
  const { markup } = qrCode(text);
  const { data, size } = encode(text, { ecc: "M", border: 0 });
  const drawn = Array.from({ length: size + 8 }, () => Array.from({ length: size + 8 }, () => false));
  for (const [, x, y, length] of markup.matchAll(/M(\d+) (\d+)h(\d+)v1H\1z/g)) {
    drawn[Number(y)]?.fill(true, Number(x), Number(x) + Number(length));
  }
  expect(drawn.slice(4, -4).map((row) => row.slice(4, -4))).toEqual(data);
  expect(drawn.flat().filter(Boolean)).toHaveLength(data.flat().filter(Boolean).length);
  expect(markup).toContain(`viewBox="0 0 ${size + 8} ${size + 8}"`);
  expect(markup).toContain('aria-label="QR code of https://vouchers.example.com/r/&#60;code&#62;"');
});
