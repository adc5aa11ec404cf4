import type fc from "fast-check";
import { KEYS, type KeyName, type OrganizationName, VOUCHER_NAMES, VOUCHERS, type VoucherName } from "./model.ts";
import { Disagreement, type Step } from "./step.ts";
import type { World } from "./world.ts";

/** Renders a failure as shell lines: how to repeat it here, the setup, and each step with its answer. */
export function reportCounterexample(
  details: fc.RunDetails<[Record<VoucherName, number>, Iterable<Step>]>,
  world: World | null,
): string {
  const { counterexample, counterexamplePath, errorInstance, seed, numShrinks } = details;
  if (counterexample === null || world === null) return `The model test was interrupted (seed ${seed}).`;
  const [validForSeconds, commands] = counterexample;
  const replay = /replayPath="(.*?)"/.exec(String(commands))?.[1] ?? "";
  const steps = world.transcript.lines;
  return [
    `The service and the model disagree: ${(errorInstance as Error).message}`,
    "",
    `# The shortest failing history (seed ${seed}, ${numShrinks} shrinks). To repeat it:`,
    `# MODEL_SEED=${seed} MODEL_PATH="${counterexamplePath}" MODEL_REPLAY="${replay}" npx vitest run test/model`,
    "",
    ...setUp(validForSeconds, steps.join("\n")),
    ...steps,
    "",
    // Other errors are bugs of the test, so their place matters.
    ...(errorInstance instanceof Disagreement ? [] : [(errorInstance as Error).stack]),
  ].join("\n");
}

/** Creates what the steps name. The shell must define API, DATABASE_URL and REDIS_URL. */
function setUp(validForSeconds: Record<VoucherName, number>, steps: string): string[] {
  const names = (variable: string) => new RegExp(`\\$(TYPED_)?${variable}\\b`).test(steps);
  const vouchers = VOUCHER_NAMES.filter((name) => names(VOUCHERS[name].code) || names(`ID_${name}`));
  const keys = (Object.keys(KEYS) as KeyName[]).filter((key) => names(`KEY_${key}`));
  const organizations = (["OURS", "THEIRS"] as const).filter(
    (organization) =>
      names(`ORG_${organization}`) ||
      keys.some((key) => KEYS[key].organization === organization) ||
      vouchers.some((name) => VOUCHERS[name].organization === organization),
  );
  return [
    'ctl() { npm run -s voucherctl -- "$@" --json; }',
    ...organizations.flatMap(makeOrganization),
    ...keys.map(makeKey),
    ...vouchers.flatMap((name) => issueVoucher(name, validForSeconds[name])),
    ...vouchers
      .map((name) => VOUCHERS[name].code)
      .filter((code) => steps.includes(`$TYPED_${code}`))
      .map((code) => `TYPED_${code}=$(tr -d - <<<"\${${code},,}")`),
  ];
}

function makeOrganization(name: OrganizationName): string[] {
  return [
    `ORG_${name}=$(ctl org create --name ${name} | jq -r .id)`,
    `BRAND_${name}=$(ctl brand create --org $ORG_${name} --name ${name} | jq -r .id)`,
    `PRODUCT_${name}=$(ctl product create --brand $BRAND_${name} --key pass --name Pass --type Subscription --retail-price-usd 50 --price-usd 40.25 --benefit-months 6 --usage-unit-label visit | jq -r .id)`,
  ];
}

function makeKey(name: KeyName): string {
  const { organization, mayRedeem } = KEYS[name];
  const scopes = mayRedeem ? "--scope voucher.read --scope voucher.redeem" : "--scope voucher.read";
  return `KEY_${name}=$(ctl key create --org $ORG_${organization} ${scopes} | jq -r .key)`;
}

function issueVoucher(name: VoucherName, validForSeconds: number): string[] {
  const { organization, code } = VOUCHERS[name];
  const printedBefore = code !== `CODE_${name}`;
  return [
    ...(printedBefore ? [`echo "$${code}" > ${name}.codes`] : []),
    `ctl batch issue --product $PRODUCT_${organization} --count 1 --valid-until $(date -u -d "+${validForSeconds} seconds" +%FT%TZ)${printedBefore ? ` --codes ${name}.codes` : ""} --out ${name}.csv`,
    `IFS=, read -r ID_${name} ${code} SERIAL < <(tail -n 1 ${name}.csv)`,
  ];
}
