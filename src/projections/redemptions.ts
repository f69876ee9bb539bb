/** The gift of each redemption, past ones included. The gift's stream has all other data. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import type { GiftRedeemed } from '../domain/gift/events.js';
import { idOf } from '../domain/streamName.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';

/** `{redemptionId}`. */
interface RedemptionGiftDocument {
  readonly gift_id: string;
}

export const redemptionsProjection: Projection<RedemptionGiftDocument> = {
  name: 'redemptions',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: typesOf<GiftRedeemed['type']>({ GiftRedeemed: true }),
  creates: ['GiftRedeemed'],
  isFinal: () => true,
  documentIds: (event) => [(event.data as GiftRedeemed['data']).redemption_id],
  evolve: (_document, event) => ({ gift_id: idOf(event.stream) }),
};
