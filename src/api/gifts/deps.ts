import type { VoucherDeps } from '../../commands/assignVoucher.js';
import type { CommandContext } from '../../commands/context.js';
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import type { PurchaseDeps } from '../../commands/purchaseGifts.js';
import type { Shortcodes } from '../../domain/giftIds.js';
import type { RefundedMoney } from '../../domain/purchase/status.js';
import type { UserDocument } from '../../projections/accounts.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { commandContext } from '../pipeline/commandContext.js';
import { HttpError } from '../pipeline/errors.js';
import type { EarlyCall } from '../pipeline/route.js';
import type { Viewer } from '../../entities/gifts.js';
import type { GiftModels } from '../../entities/joinedGift.js';

export interface GiftRouteDeps extends VoucherDeps, PurchaseDeps, GiftModels {
  readonly reversals: ReadModel<RefundedMoney>;
  readonly byUser: ReadModel<object>;
  readonly questions: PaymentQuestions;
  readonly publicUrl: string;
  readonly shortcodes: Shortcodes;
  /** The present, ISO 8601, UTC. */
  now(): string;
}

export const GIFT_PARAM = { giftId: "The gift's id or shortcode." };

export const viewing = (
  { publicUrl, shortcodes, now: present }: Pick<GiftRouteDeps, 'publicUrl' | 'shortcodes' | 'now'>,
  user: UserDocument,
  now = present(),
): Viewer => ({ user, now, publicUrl, shortcodes });

/** @throws HttpError forbidden for a client */
export function userOf({ principal }: Pick<EarlyCall, 'principal'>): UserDocument {
  if (principal.kind !== 'user') throw new HttpError('forbidden');
  return principal.user;
}

/** @throws HttpError forbidden for a client */
export function contextOf(call: EarlyCall, now: string): CommandContext {
  userOf(call);
  return commandContext(call, now);
}
