/**
 * Index of a user's lists: documents with an id only, and no fields (docs/read-models.md#lists-of-a-user). `accounts`
 * shows who may use a payment method at present.
 */
import { createHash } from 'node:crypto';
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { timeKey } from './timeKey.js';
import type { PaymentMethod, PaymentMethodEvent, PhoneTaken } from '../domain/account.js';
import type { GiftReassigned } from '../domain/gift/events.js';
import type { GiftsPurchased } from '../domain/purchase/events.js';
import { idOf } from '../domain/streamName.js';
import type { Recorded, RecordedEvent } from '../ports/eventStore.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';

type Folded =
  | GiftsPurchased
  | GiftReassigned
  | PhoneTaken
  | Extract<PaymentMethodEvent, { type: `${string}${'Added' | 'Changed'}` }>;

/** Ids of users have no `/` (`import/schemas.ts`). */
export const boughtBy = (userId: string): string => `bought/${userId}/`;
/** Purchases of a user with one name of their own, which may have any characters and so is hashed. */
export const orderedBy = (userId: string, referenceId: string): string =>
  `ordered/${userId}/${createHash('sha256').update(referenceId).digest('hex').slice(0, 32)}/`;
export const numbersOf = (userId: string): string => `number/${userId}/`;
export const methodsOf = (userId: string): string => `method/${userId}/`;

/** Prefix of the gifts that were ever reassigned: whose they were before, no other read model tells. */
export const REASSIGNED = 'reassigned/';

/** The last part of an id: the transaction, number, payment method or gift. */
export const namedIn = (id: string): string => id.slice(id.lastIndexOf('/') + 1);

const NO_FIELDS = {};

/**
 * `bought/{user}/{time}/{transaction}`, `ordered/{user}/{reference}/{time}/{transaction}`, `number/{user}/{phoneId}`,
 * `method/{user}/{reference}`, `reassigned/{time}/{gift}`.
 */
export const byUserProjection: Projection<object> = {
  name: 'by_user',
  version: 1,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: typesOf<Folded['type']>({
    GiftsPurchased: true,
    GiftReassigned: true,
    PhoneTaken: true,
    PaymentMethodAdded: true,
    PaymentMethodChanged: true,
  }),
  creates: ['GiftsPurchased', 'GiftReassigned', 'PhoneTaken', 'PaymentMethodAdded', 'PaymentMethodChanged'],
  documentIds(event: RecordedEvent): readonly string[] {
    const folded = event as Recorded<Folded>;
    switch (folded.type) {
      case 'GiftsPurchased': {
        const { buyer_id, transaction_id, reference_id } = folded.data;
        const bought = `${timeKey(folded.at)}/${transaction_id}`;
        const all = boughtBy(buyer_id) + bought;
        return reference_id === undefined ? [all] : [all, orderedBy(buyer_id, reference_id) + bought];
      }
      case 'GiftReassigned':
        return [`${REASSIGNED}${timeKey(event.at)}/${idOf(event.stream)}`];
      case 'PhoneTaken':
        return [numbersOf(folded.data.user_id) + idOf(event.stream)];
      case 'PaymentMethodAdded':
      case 'PaymentMethodChanged': {
        const { users = [] } = folded.data as Partial<PaymentMethod>;
        return [...new Set(users)].map((user) => methodsOf(user) + idOf(event.stream));
      }
      default:
        throw new Error(`${(folded satisfies never as { type: string }).type} is in no list of a user`);
    }
  },
  evolve: () => NO_FIELDS,
};
