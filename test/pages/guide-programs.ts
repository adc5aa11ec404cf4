import { readFileSync } from "node:fs";
import { readSnippets, type Snippet } from "../support/document-snippets.ts";
import { hasProgram } from "../support/has-program.ts";

const PAGES = ["integration", "clients", "orders", "settlement", "history", "going-live"];
/** The code blocks of the guide. */
export const SNIPPETS = PAGES.flatMap((page) => readSnippets(`docs/${page}.md`));
/** The program for each language's snippets. */
export const PROGRAM_OF: Record<string, string> = {
  bash: "bash",
  js: process.execPath,
  ts: process.execPath,
  python: "python3",
  php: "php",
};
/** Examples of the guide that are in files of their own. */
const EXAMPLES: Snippet[] = [
  { language: "python", name: "checkout.py" },
  { language: "php", name: "checkout.php" },
  { language: "js", name: "several-vouchers.mjs" },
].map((example) => ({ ...example, code: readFileSync(`docs/${example.name}`, "utf8") }));
/** The snippets and examples that a program of `PROGRAM_OF` can run. */
export const RUNNABLE = [...SNIPPETS, ...EXAMPLES].filter(({ language }) => language in PROGRAM_OF);
/** Whether a language's programs are installed. */
export const HAS = {
  bash: hasProgram("curl") && hasProgram("jq"),
  js: true,
  python: hasProgram("python3"),
  php: hasProgram("php", "php-cli"),
};

/** The guide's files for a checkout, by language. `tellsRefund` is a refund that prints a line when it is called. */
export const CLIENTS = [
  {
    language: "php",
    tellsRefund: 'fn(array $order) => print("refunded\n")',
    checkout: "checkout.php",
    client: "voucher-client.php",
    settle: "settle-day.php",
    externalRef: "shop-10005",
  },
  {
    language: "js",
    tellsRefund: 'async () => console.log("refunded")',
    checkout: "checkout.mjs",
    client: "voucher-client.mjs",
    settle: "settle-day.mjs",
    externalRef: "shop-10002",
  },
  {
    language: "python",
    tellsRefund: 'lambda order: print("refunded")',
    checkout: "checkout.py",
    client: "voucher_client.py",
    settle: "settle_day.py",
    externalRef: "shop-10003",
  },
] as const;

/** The files that verify a chain, by language. */
export const VERIFIERS = {
  bash: "verify-chain.sh",
  js: "verify-chain.mjs",
  python: "verify_chain.py",
  php: "verify-chain.php",
} as const;
