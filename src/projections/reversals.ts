/** Money refunded of each purchase; a purchase without refunds and disputes has no document. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { evolveGivenBack, type GivenBack, type GivenBackEvent } from '../domain/purchase/status.js';
import { idOf } from '../domain/streamName.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';
import type { Recorded } from '../ports/eventStore.js';

/** `{transactionId}`. */
export const reversalsProjection: Projection<GivenBack> = {
  name: 'reversals',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: typesOf<GivenBackEvent['type']>({
    GiftsRefunded: true,
    RefundFailed: true,
    RefundedAtProvider: true,
    DisputeOpened: true,
    DisputeClosed: true,
  }),
  documentIds: (event) => [idOf(event.stream)],
  evolve: (document, event) => evolveGivenBack(document, event as Recorded<GivenBackEvent>),
};
