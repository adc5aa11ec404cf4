import { z } from "zod";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import { text } from "../../platform/api/fields.ts";

export const externalRefParameter = text("The reference of the redemption, URL-encoded.", EXAMPLE.externalRef);

export const sequenceParameter = text("The event's `sequence`.", "2");

export const receipt = z.string().meta({
  id: "Receipt",
  description:
    "A proof in the format [tlog-proof](https://c2sp.org/tlog-proof). In a receipt, `extra` is the event's " +
    "payload in base64: its SHA-256 is the data of the leaf.",
});

/** A receipt from `docs/log-vectors.json`, without its payload and without the witness's cosignature. */
const EXAMPLE_PROOF = `c2sp.org/tlog-proof@v1
index 2
AbiArJ1MxkYYl9gynk2WYYDVphBxotteQw3PTGOA5LM=
Az1VZuPM/jaVF6pQXk8ofgx1Py57A3/hreld6KCmbOw=
xxvDjuxxgHXDeenMtgn52w45OCWGghxRI2rSmetoQSg=
is/HPJ+3Di/BZw719BECHxL1Cc8eDxj713GDA46Q7Jw=

vouchers.example.com/log
9
W/CWE38o7Tx6TALeVO+pxAve1xO4Gv5r0XwTS1u537U=

— vouchers.example.com/log QSpTVP0os6B+O0mbJDdx66llR2zI5j/0kDNL/wZ1WSwwodRrzdr8vskuGFYkrkEIRbAwjJNPmAekbWsqz72e29FmeQ0=
`;

examples.add(receipt, { proof: { summary: "A proof without a payload", value: EXAMPLE_PROOF } });
