import { hash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { Html, html } from "./html.ts";
import { sentencesOfScripts } from "./locale.ts";
import { renderReceiptForm } from "./receipt-form.ts";

const ROOT = new URL("../../", import.meta.url);
const readSource = (file: string) => readFileSync(new URL(file, ROOT), "utf8");

/**
 * The page's scripts, in loading order: first the modules that verify receipts, each after its imports, then the page's
 * own scripts.
 */
const SCRIPTS = [
  ...["bytes", "canonical", "merkle", "note", "checkpoint", "policy", "receipt"].map(
    (name) => `packages/tlog/src/${name}.ts`,
  ),
  "src/pages/static/say.js",
  "src/pages/static/check-receipt.js",
];

/** Joins the English sentences and the modules to one script: a file opened from a disk cannot load modules. */
function joinScripts(): string {
  const modules = SCRIPTS.map((file) => stripTypeScriptTypes(readSource(file)));
  return [`const ENGLISH = ${sentencesOfScripts("en")};`, ...modules]
    .map((text) => text.replaceAll(/^import [^;]*;$/gm, "").replaceAll(/^export (?=\w)/gm, ""))
    .join("\n")
    .replaceAll(/[ \t]+$/gm, "")
    .replaceAll(/\n{3,}/g, "\n\n");
}

/** The page `/docs/receipt-verifier.html`. It contains its script and style, so it works from a disk. */
function renderReceiptVerifier(): Html {
  const script = `\n${joinScripts().trimStart()}`;
  const style = `\n${readSource("src/pages/static/pages.css")}`;
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${hash("sha256", script, "base64")}'`,
    `style-src 'sha256-${hash("sha256", style, "base64")}'`,
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
  const advice = html`Enter the copy of the policy, or the log's key, that you received from the operator by another way
than this receipt. To keep it in this file, write it between the tags of the second text field and save the file.`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${new Html(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Receipt verifier</title>
<style>${new Html(style)}</style>
</head>
<body>
<main id="main">
<div id="receipt-check" hidden>
<h1>Verify a receipt</h1>
<p>This file verifies a receipt of the Partner Voucher API's transparency log in your browser. It works from a disk,
without a network: it can send and load nothing.</p>
${renderReceiptForm("", "", undefined, advice)}
</div>
</main>
<noscript><p>This file needs JavaScript. It loads no script; the one in it is all there is.</p></noscript>
<script type="module">${new Html(script)}</script>
</body>
</html>
`;
}

mkdirSync(new URL("dist", ROOT), { recursive: true });
writeFileSync(new URL("dist/receipt-verifier.html", ROOT), renderReceiptVerifier().markup);
