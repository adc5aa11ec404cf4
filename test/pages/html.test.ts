import { encode } from "uqr";
import { expect, it } from "vitest";
import { renderColours } from "../../src/pages/brand-files.ts";
import { html } from "../../src/pages/html.ts";
import { localeIn } from "../../src/pages/locale.ts";
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

it("the QR code's SVG has the right black modules, a margin of four modules and an escaped name", () => {
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

it("text on a brand's colour has a contrast of at least 4.5 for every colour", () => {
  const steps = [0, 31, 63, 95, 117, 118, 119, 127, 159, 191, 223, 255];
  for (const rgb of steps.flatMap((red) => steps.flatMap((green) => steps.map((blue) => [red, green, blue])))) {
    const colour = `#${rgb.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    const [, text] = /--brand: (?:#\w{6});\n {2}--on-brand: #(ffffff|000000);/.exec(renderColours(colour)) ?? [];
    const [red = 0, green = 0, blue = 0] = rgb.map((part) =>
      part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    const contrast = text === "ffffff" ? 1.05 / (luminance + 0.05) : (luminance + 0.05) / 0.05;
    expect(contrast, colour).toBeGreaterThan(4.5);
  }
});

it.each([
  ["Europe/Berlin", "2026-12-31T23:00:00.000Z", "31 December 2026"],
  ["Europe/Berlin", "2026-12-31T22:59:59.999Z", "31 December 2026"],
  ["Europe/Berlin", "2026-12-31T17:00:00.000Z", "31 December 2026, 18:00 CET"],
  ["Europe/Berlin", "2026-12-31T16:59:59.999Z", "31 December 2026, 18:00 CET"],
  ["Europe/Berlin", "2026-12-31T16:59:30.000Z", "31 December 2026, 17:59 CET"],
  // `--valid-until 2026-12-31` without a time means the end of that day in UTC.
  ["UTC", "2026-12-31T23:59:59.999Z", "31 December 2026"],
  ["Europe/Berlin", "2026-12-31T23:59:59.999Z", "31 December 2026"],
  ["America/New_York", "2026-12-31T23:59:59.999Z", "31 December 2026, 19:00 GMT-5"],
])("in the time zone %s, a voucher that is valid until %s is shown with the end %s", (timeZone, end, shown) => {
  const { markup } = localeIn("en").in(timeZone).end(new Date(end));
  expect(markup.replaceAll(/<[^>]+>/g, "")).toBe(shown);
});
