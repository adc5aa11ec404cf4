import { UnusableOptions } from "./errors.ts";

/** Refuses the key of a live organization, to protect live vouchers. @throws UnusableOptions */
export function assertSandboxKey(key: string): void {
  if (!/^pv[kt]_[0-9A-Z]{47}$/.test(key))
    throw new UnusableOptions("--key is not an API key. Copy it exactly as it was shown when it was created.");
  if (!key.startsWith("pvt_"))
    throw new UnusableOptions("This key is live. Give a key of a sandbox, which begins with pvt_.");
}

/** The address without a slash at its end. @throws UnusableOptions */
export function parseAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new UnusableOptions("--url is not an address like https://vouchers.example.com.");
  }
  return url.href.replace(/\/+$/, "");
}
