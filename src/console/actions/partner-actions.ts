import { acceptContract, declineContract, endContract } from "../../acts/contract/move.ts";
import { offerContract } from "../../acts/contract/offer.ts";
import { createKey } from "../../acts/key/create.ts";
import { revokeApiKey } from "../../acts/key/revoke.ts";
import { rotateKey } from "../../acts/key/rotate.ts";
import { createLink } from "../../acts/link/create.ts";
import { addMember } from "../../acts/member/add.ts";
import { createOperator } from "../../acts/operator/create.ts";
import { revokeOperator } from "../../acts/operator/revoke.ts";
import { rotateOperator } from "../../acts/operator/rotate.ts";
import { formOf } from "./act-form.ts";

/** What admins do about named operators. */
export const OPERATOR_ACTIONS = [formOf(createOperator), formOf(rotateOperator), formOf(revokeOperator)];

/** What operators do about API keys and referrers. */
export const PARTNER_ACTIONS = [
  formOf(createKey),
  formOf(rotateKey),
  formOf(revokeApiKey),
  formOf(addMember),
  formOf(offerContract),
  formOf(acceptContract),
  formOf(declineContract),
  formOf(endContract),
  formOf(createLink),
];
