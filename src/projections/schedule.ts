/**
 * What is due when: one document a purchase, however many gifts it has. It only says where to look; what is done is
 * decided from the streams (docs/decisions.md#scheduled-work).
 */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { timeKey } from './timeKey.js';
import type { Happened } from '../domain/decider.js';
import type { GiftsPurchased, PaymentCharged } from '../domain/purchase/events.js';
import type { SendingEvent } from '../domain/sending.js';
import { idOf } from '../domain/streamName.js';
import { type Projection, typesOf } from '../runtime/readmodels/projection.js';

type Folded = Happened<GiftsPurchased | PaymentCharged | SendingEvent>;

/** `{transactionId}`. */
export interface ScheduleDocument {
  /** ISO 8601, UTC; null: not before the buyer names a time; absent: it was sent at once, or all of it is sent. */
  readonly send_at?: string | null;
  readonly charged?: true;
  /** `timeKey` of `send_at`, once it is paid for and until all is sent. */
  readonly send_due?: string;
}

export const scheduleProjection: Projection<ScheduleDocument> = {
  name: 'schedule',
  version: 1,
  last: true,
  hidden: HIDDEN_FIELDS,
  indexes: [{ fields: ['send_due'] }],
  types: typesOf<Folded['type']>({
    GiftsPurchased: true,
    PaymentCharged: true,
    SendRescheduled: true,
    SendStarted: true,
    SendFinished: true,
  }),
  creates: ['GiftsPurchased'],
  documentIds: (event) => [idOf(event.stream)],
  evolve(document, event) {
    const folded = event as unknown as Folded;
    switch (folded.type) {
      case 'GiftsPurchased':
        return folded.data.send_at === undefined ? {} : { send_at: folded.data.send_at };
      case 'PaymentCharged':
        return due({ ...document, charged: true });
      case 'SendRescheduled':
      case 'SendStarted':
        return due({ ...document, send_at: folded.data.send_at });
      case 'SendFinished':
        return { charged: true };
      default:
        throw new Error(`${(folded satisfies never as { type: string }).type} is not scheduled`);
    }
  },
};

function due({ send_at, charged }: ScheduleDocument): ScheduleDocument {
  if (charged === undefined) return send_at === undefined ? {} : { send_at };
  if (send_at === undefined) return { charged };
  return send_at === null ? { send_at, charged } : { send_at, charged, send_due: timeKey(send_at) };
}
