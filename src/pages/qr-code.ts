import { encode } from "uqr";
import { type Html, html } from "./html.ts";

/** Width of the white border around a QR code (ISO/IEC 18004, section 5.3.8). Modules. */
const QUIET_ZONE = 4;

/** The QR code of a text, as a scalable image. Black on white, because not every reader reads inverted codes. */
export function qrCode(text: string): Html {
  const { data, size } = encode(text, { ecc: "M", border: QUIET_ZONE });
  const path = data.map((row, y) => {
    const runs = row.map(Number).join("").matchAll(/1+/g);
    return Array.from(runs, ({ 0: run, index }) => `M${index} ${y}h${run.length}v1H${index}z`).join("");
  });
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code of ${text}" \
shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path.join("")}"/></svg>`;
}
