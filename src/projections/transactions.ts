/** One document a purchase; its gifts' ids follow from `seed` and `count`. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { copyWith } from '../domain/copyWith.js';
import type { Happened } from '../domain/decider.js';
import type { PaymentState } from '../domain/gift/decisions.js';
import type {
  GiftsPurchased,
  PaymentAuthenticationRequired,
  PaymentCharged,
  PaymentDeclined,
} from '../domain/purchase/events.js';
import type { SealedText } from '../lib/seal.js';
import { idOf } from '../domain/streamName.js';
import type { RecordedEvent } from '../ports/eventStore.js';
import { foldDocument } from '../runtime/readmodels/foldDocument.js';
import { type Projection, typesOf } from '../runtime/readmodels/projection.js';

/** `{transactionId}`. Secret: `seed`. Personal: `message`, sealed. Money is pence, times are ISO 8601, UTC, milliseconds. */
export interface TransactionDocument {
  readonly buyer_id: string;
  readonly seed: string;
  readonly count: number;
  readonly product_id: string;
  readonly brand_id: string;
  readonly sale_price: number;
  readonly total: number;
  readonly message: SealedText;
  readonly expires_on: string;
  readonly payment: PaymentState;
  /** Absent: the buyer need not authenticate. Both values are the provider's. */
  readonly authentication?: { readonly payment_id: string; readonly action: string };
  readonly settled_at?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

type Folded = Happened<GiftsPurchased | PaymentAuthenticationRequired | PaymentCharged | PaymentDeclined>;

export const transactionsProjection: Projection<TransactionDocument> = {
  name: 'transactions',
  // Tests deploy it over a made-up version 1.
  version: 2,
  hidden: HIDDEN_FIELDS,
  indexes: [],
  types: typesOf<Folded['type']>({
    GiftsPurchased: true,
    PaymentAuthenticationRequired: true,
    PaymentCharged: true,
    PaymentDeclined: true,
  }),
  creates: ['GiftsPurchased'],
  // After the charge's answer no event is folded.
  isFinal: ({ payment }) => payment !== 'pending',
  documentIds: (event: RecordedEvent) => [idOf(event.stream)],
  evolve(document: TransactionDocument | undefined, event: RecordedEvent): TransactionDocument {
    const folded = event as unknown as Folded;
    if (folded.type === 'GiftsPurchased') {
      const { buyer_id, seed, product_id, brand_id, sale_price, total, message, expires_on, receivers } = folded.data;
      const made = { created_at: folded.at, updated_at: folded.at };
      return {
        buyer_id,
        seed,
        count: receivers.length,
        product_id,
        brand_id,
        sale_price,
        total,
        message,
        expires_on,
        payment: 'pending',
        ...made,
      };
    }
    if (document === undefined) throw new Error(`${folded.type} of a transaction that was never made`);
    // The first answer counts, as in `purchaseAggregate`.
    if (document.payment !== 'pending') return document;
    if (folded.type === 'PaymentAuthenticationRequired') {
      const { payment_id, action } = folded.data;
      return copyWith(document, { authentication: { payment_id, action }, updated_at: folded.at });
    }
    return copyWith(document, {
      payment: folded.type === 'PaymentCharged' ? 'charged' : 'declined',
      settled_at: folded.at,
      updated_at: folded.at,
    });
  },
};

/** `undefined`: no purchase. */
export function transactionIn(history: readonly RecordedEvent[]): TransactionDocument | undefined {
  const [first] = history;
  return first === undefined ? undefined : foldDocument(transactionsProjection, history, idOf(first.stream));
}
