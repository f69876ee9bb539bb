/** Money refunded of each purchase; a purchase without refunds and disputes has no document. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { evolveRefundedMoney, type RefundedMoney, type RefundedMoneyEvent } from '../domain/purchase/status.js';
import { idOf } from '../domain/streamName.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';
import type { Recorded } from '../ports/eventStore.js';

/** `{transactionId}`. */
export const reversalsProjection: Projection<RefundedMoney> = {
  name: 'reversals',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: typesOf<RefundedMoneyEvent['type']>({
    GiftsRefunded: true,
    RefundFailed: true,
    RefundedAtProvider: true,
    DisputeOpened: true,
    DisputeClosed: true,
  }),
  documentIds: (event) => [idOf(event.stream)],
  evolve: (document, event) => evolveRefundedMoney(document, event as Recorded<RefundedMoneyEvent>),
};
