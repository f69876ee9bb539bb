import type { VoucherDeps } from '../../commands/assignVoucher.js';
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import type { PurchaseDeps } from '../../commands/purchaseGifts.js';
import type { Shortcodes } from '../../domain/giftIds.js';
import type { RefundedMoney } from '../../domain/purchase/status.js';
import type { UserDocument } from '../../projections/accounts.js';
import type { PolledCatalogueView } from '../../projections/catalogue/view.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { Viewer } from '../../entities/gifts.js';
import type { GiftModels } from '../../entities/joinedGift.js';

export interface GiftRouteDeps extends VoucherDeps, PurchaseDeps, GiftModels {
  readonly catalogue: PolledCatalogueView;
  readonly reversals: ReadModel<RefundedMoney>;
  readonly byUser: ReadModel<object>;
  readonly questions: PaymentQuestions;
  readonly publicUrl: string;
  readonly shortcodes: Shortcodes;
  /** The present, ISO 8601, UTC. */
  now(): string;
}

export const GIFT_PARAM = { giftId: "The gift's id or shortcode." };

/** What routes of one gift have in common. */
export const OF_GIFT = { caller: 'user', params: GIFT_PARAM, giftParam: 'giftId' } as const;

export const viewing = (
  { publicUrl, shortcodes, now: present }: Pick<GiftRouteDeps, 'publicUrl' | 'shortcodes' | 'now'>,
  user: UserDocument,
  now = present(),
): Viewer => ({ user, now, publicUrl, shortcodes });
