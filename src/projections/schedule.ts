/**
 * When work is due: one document for each purchase, however many gifts it has, and one for each extended gift. It only
 * tells which streams to read; these decide what is done (docs/design.md#scheduled-work).
 */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { timeKey } from './timeKey.js';
import type { Happened } from '../domain/decider.js';
import { type GiftExtended, giftStream } from '../domain/gift/events.js';
import type { GiftsPurchased, PaymentCharged } from '../domain/purchase/events.js';
import type { SendingEvent } from '../domain/purchase/sending.js';
import { idOf, kindOf } from '../domain/streamName.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';
import type { Recorded } from '../ports/eventStore.js';

type Folded = Happened<GiftsPurchased | PaymentCharged | SendingEvent | GiftExtended>;

/** `{transactionId}`, or `extendedId` of a gift. */
export interface ScheduleDocument {
  /** The last valid day (UTC): of a purchase's gifts when they were bought, of a gift since it was extended. */
  readonly expires_on?: string;
  /** When gifts are to be sent (ISO 8601, UTC); null: the buyer names a time later; absent: at once, or all sent. */
  readonly send_at?: string | null;
  readonly charged?: true;
  /** `timeKey` of `send_at`, once the purchase is paid for and until all its gifts are sent. */
  readonly send_due?: string;
}

const GIFT = kindOf(giftStream('-'));
const EXTENDED = 'gift/';

const extendedId = (giftId: string): string => EXTENDED + giftId;

/** The gift that was extended; `undefined`: the id is a purchase's. */
export const extendedGift = (id: string): string | undefined =>
  id.startsWith(EXTENDED) ? id.slice(EXTENDED.length) : undefined;

export const scheduleProjection: Projection<ScheduleDocument> = {
  name: 'schedule',
  version: 1,
  last: true,
  hidden: HIDDEN_FIELDS,
  indexes: [{ fields: ['send_due'] }, { fields: ['expires_on'] }],
  types: typesOf<Folded['type']>({
    GiftsPurchased: true,
    PaymentCharged: true,
    SendRescheduled: true,
    SendStarted: true,
    SendFinished: true,
    GiftExtended: true,
  }),
  creates: ['GiftsPurchased', 'GiftExtended'],
  documentIds: ({ stream }) => [kindOf(stream) === GIFT ? extendedId(idOf(stream)) : idOf(stream)],
  evolve(document, event) {
    const folded = event as Recorded<Folded>;
    switch (folded.type) {
      case 'GiftsPurchased': {
        const { expires_on, send_at } = folded.data;
        return send_at === undefined ? { expires_on } : { expires_on, send_at };
      }
      case 'PaymentCharged':
        return due({ ...document, charged: true });
      case 'SendRescheduled':
      case 'SendStarted':
        return due({ ...document, send_at: folded.data.send_at });
      case 'SendFinished': {
        const { send_at: _, send_due: __, ...sent } = document ?? {};
        return sent;
      }
      case 'GiftExtended':
        return { expires_on: folded.data.expires_on };
      default:
        throw new Error(`${(folded satisfies never as { type: string }).type} is not scheduled`);
    }
  },
};

function due(known: ScheduleDocument): ScheduleDocument {
  const { send_due: _, ...document } = known;
  const { send_at, charged } = document;
  return charged === undefined || send_at === undefined || send_at === null
    ? document
    : { ...document, send_due: timeKey(send_at) };
}
