import type { Caller } from "../core/keys/caller.ts";
import type { VoucherName } from "../core/voucher/db/vouchers.ts";
import { survivesInPath } from "../core/voucher/references.ts";
import { verifyUrl } from "../core/voucher/resolve-voucher.ts";
import { type Html, html } from "../pages/html.ts";
import { layOut, renderMenu, type Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";

/** The path of the portal, after the base path. */
export const PORTAL_PATH = "/portal";

/** A caller of the portal: a key that can read but not redeem. */
export interface PortalCaller extends Caller {
  /** The pages of optional features (wings) that the caller may open. */
  further: readonly Pick<PortalPage, "path" | "label">[];
  /** The formats of the reader's country, in the organization's time zone. */
  locale: Locale;
  /** The path of the page. */
  shown: string;
  /** The name of the organization, if known. */
  organizationName?: string;
}

/** A page that an optional feature (wing) adds to the portal and to its navigation. */
export interface PortalPage<Deps = never> {
  /** The path after the portal's path. */
  path: string;
  label: (locale: Locale) => string;
  isOpenTo: (deps: Deps, scopes: ReadonlySet<string>) => boolean;
  render: (deps: Deps, caller: PortalCaller) => Promise<Html>;
}

/** What an optional feature (wing) adds to the page of an order. */
export interface OrderPart<Deps = never> {
  section: (deps: Deps, caller: PortalCaller, externalRef: string) => Promise<Html>;
  file: {
    segment: string;
    /** The name under which browsers save the file. */
    name: string;
    read: (deps: Deps, caller: Caller, externalRef: string) => Promise<string>;
  };
}

/** What an optional feature (wing) adds to the portal. */
export interface PortalPart<Deps = never> {
  pages?: readonly PortalPage<Deps>[];
  order?: OrderPart<Deps>;
}

/** The path of a page of the portal. The segments are encoded. */
export function portalPath(site: Site, ...segments: string[]): string {
  return [site.basePath + PORTAL_PATH, ...segments.map(encodeURIComponent)].join("/");
}

/** The path of an order's page, or of the order's file with this path segment. */
export function orderPath(site: Site, externalRef: string, file?: string): string {
  if (survivesInPath(externalRef))
    return portalPath(site, "orders", externalRef, ...(file === undefined ? [] : [file]));
  return `${portalPath(site, file ?? "orders")}?${new URLSearchParams({ externalRef })}`;
}

/** The top of every page: the navigation, a notice about a sandbox, and the search field with the text `entered`. */
export function renderTop(site: Site, { sandbox, further, locale, shown }: PortalCaller, entered = ""): Html {
  const { t, markup } = locale;
  const path = portalPath(site);
  const links = [
    ["", t("portal.overview")],
    ["/redemptions", t("portal.redemptions")],
    ["/statement", t("portal.statements")],
    ["/activity", t("portal.activity")],
    ...further.map((page) => [page.path, page.label(locale)] as const),
  ] as const;
  const menu = links.map(([below, label]) => [path + below, label] as const);
  return html`${renderMenu(t("portal.name"), menu, shown, true)}
${sandbox ? html`<p class="notice" id="sandbox">${markup("portal.sandbox")}</p>` : null}
<form class="check" role="search" action="${path}" method="post">
<label for="words">${t("portal.find")}</label>
<p class="fine" id="words-help">${t("portal.findHelp")}</p>
<div class="row"><input id="words" name="words" type="search" value="${entered}" required maxlength="500" \
autocomplete="off"
 autocapitalize="off" spellcheck="false" aria-describedby="words-help">
<button type="submit">${t("portal.findButton")}</button></div>
</form>
`;
}

/** A page of the portal. */
export function layOutForPortal(site: Site, caller: PortalCaller, title: string, content: Html, entered = ""): Html {
  const { locale, organizationName } = caller;
  const owner = organizationName === undefined ? null : html`<p class="eyebrow"><bdi>${organizationName}</bdi></p>\n`;
  const main = html`${renderTop(site, caller, entered)}${owner}${content}`;
  return layOut(site, { locale, title: `${title} · ${locale.t("portal.name")}`, main, forDevelopers: false });
}

/** A voucher by its product and serial number, and the order that redeemed it, each as a link to its page. */
export function linkVoucher(site: Site, id: string, name: VoucherName | undefined, { t }: Locale): Html {
  const shown =
    name === undefined
      ? html`<code>${id}</code>`
      : html`<bdi>${name.productName}</bdi>, ${t("portal.serial", { serial: name.serial })}`;
  const voucher = html`<a href="${verifyUrl({ config: site }, id)}">${shown}</a>`;
  if (!name?.externalRef) return voucher;
  return html`${voucher}<br><a href="${orderPath(site, name.externalRef)}"><bdi>${name.externalRef}</bdi></a>`;
}

/** A key by its label, or by its id if it has none. */
export function renderKey({ keyId, keyLabel }: { keyId: string; keyLabel: string | null }): Html {
  return html`<bdi>${keyLabel ?? keyId}</bdi>`;
}
