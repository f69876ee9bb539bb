/** One document for each purchase; its gifts' ids follow from `seed` and `count`. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { copyWith } from '../lib/copyWith.js';
import type { Happened } from '../domain/decider.js';
import type { PaymentState } from '../domain/gift/decisions.js';
import type {
  GiftsPurchased,
  PaymentAuthenticationRequired,
  PaymentCharged,
  PaymentDeclined,
} from '../domain/purchase/events.js';
import type { SendingEvent } from '../domain/purchase/sending.js';
import type { SealedText } from '../lib/seal.js';
import { idOf } from '../domain/streamName.js';
import type { Recorded, RecordedEvent } from '../ports/eventStore.js';
import { foldDocument, type Projection, typesOf } from '../runtime/readmodels/index.js';

/**
 * `{transactionId}`. Secret: `seed`. Personal: `message`, sealed. Money is in pence; times are ISO 8601, UTC,
 * milliseconds.
 */
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
  /** The buyer's authentication, with the provider's values; absent: the buyer need not authenticate. */
  readonly authentication?: { readonly payment_id: string; readonly action: string };
  readonly settled_at?: string;
  /** The provider's code of a declined payment. */
  readonly decline_code?: string;
  /** When the gifts are to be sent; null: not before the buyer names a time; absent: at once. */
  readonly send_at?: string | null;
  /** When the sending began, for a purchase with `send_at`. */
  readonly sent_at?: string;
  /** The caller's own name for the purchase. */
  readonly reference_id?: string;
  /** The gift that support replaced by this purchase's, at no charge. */
  readonly replaces?: string;
  readonly created_at: string;
  readonly updated_at: string;
}

type Settling = Happened<GiftsPurchased | PaymentAuthenticationRequired | PaymentCharged | PaymentDeclined>;
type Sending = Happened<Exclude<SendingEvent, { type: 'SendFinished' }>>;

function made({ data, at }: Happened<GiftsPurchased>): TransactionDocument {
  const { buyer_id, seed, product_id, brand_id, sale_price, total, message, expires_on, receivers } = data;
  const { send_at, reference_id, replaces } = data;
  const document: TransactionDocument = {
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
    created_at: at,
    updated_at: at,
  };
  const dated = send_at === undefined ? document : copyWith(document, { send_at });
  const ordered = reference_id === undefined ? dated : copyWith(dated, { reference_id });
  return replaces === undefined ? ordered : copyWith(ordered, { replaces: replaces.gift_id });
}

function settled(
  document: TransactionDocument,
  event: Exclude<Settling, { type: 'GiftsPurchased' }>,
): TransactionDocument {
  // The first answer of the provider counts: `settleCharge` lets no other follow.
  if (document.payment !== 'pending') return document;
  if (event.type === 'PaymentAuthenticationRequired') {
    const { payment_id, action } = event.data;
    return copyWith(document, { authentication: { payment_id, action }, updated_at: event.at });
  }
  const settling = { settled_at: event.at, updated_at: event.at };
  return event.type === 'PaymentCharged'
    ? copyWith(document, { payment: 'charged', ...settling })
    : copyWith(document, { payment: 'declined', decline_code: event.data.code, ...settling });
}

function sent(document: TransactionDocument, event: Sending): TransactionDocument {
  const { send_at } = event.data;
  return event.type === 'SendStarted'
    ? copyWith(document, { send_at, sent_at: event.at, updated_at: event.at })
    : copyWith(document, { send_at, updated_at: event.at });
}

/** Whether receivers must not see the purchase's gifts yet (docs/api/purchases.md#scheduled-sending). */
const isUnsent = ({ send_at, sent_at }: Pick<TransactionDocument, 'send_at' | 'sent_at'>): boolean =>
  send_at !== undefined && sent_at === undefined;

export const transactionsProjection: Projection<TransactionDocument> = {
  name: 'transactions',
  version: 1,
  hidden: HIDDEN_FIELDS,
  // New purchases come last in it, so that few of its pages change.
  indexes: [{ fields: ['created_at'] }],
  types: typesOf<(Settling | Sending)['type']>({
    GiftsPurchased: true,
    PaymentAuthenticationRequired: true,
    PaymentCharged: true,
    PaymentDeclined: true,
    SendRescheduled: true,
    SendStarted: true,
  }),
  creates: ['GiftsPurchased'],
  // After the charge's answer only the sending is folded.
  isFinal: (document) => document.payment === 'declined' || (document.payment === 'charged' && !isUnsent(document)),
  documentIds: (event) => [idOf(event.stream)],
  evolve(document, event) {
    const folded = event as Recorded<Settling | Sending>;
    if (folded.type === 'GiftsPurchased') return made(folded);
    if (document === undefined) throw new Error(`${folded.type} of a transaction that was never made`);
    return folded.type === 'SendRescheduled' || folded.type === 'SendStarted'
      ? sent(document, folded)
      : settled(document, folded);
  },
};

/** A transaction folded from the events of its stream; `undefined`: there are none. */
export function transactionIn(history: readonly RecordedEvent[]): TransactionDocument | undefined {
  const [first] = history;
  return first === undefined ? undefined : foldDocument(transactionsProjection, history, idOf(first.stream));
}
