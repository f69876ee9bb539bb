/**
 * Replaces references to personal texts in events by the texts, for callers that may see them: receivers' numbers and
 * messages of purchases (docs/support.md#shown-events).
 */
import type { GiftReassigned } from '../../domain/gift/events.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import { MASK } from '../../lib/mask.js';
import type { SealedText } from '../../lib/seal.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { openText, type Subjects } from '../../runtime/personal/index.js';
import type { Sight } from './eventView.js';

type Keys = Pick<Subjects, 'secrets'>;

/**
 * The same events with `receivers[].phone_number` in purchases, `phone_number` in reassignments (null where the
 * receiver is no number) and messages in the clear. Without `personal`, all of these are masked. Erased texts are
 * empty.
 * @throws UnavailableError
 */
export async function withPersonalTexts(
  keys: Keys,
  events: readonly RecordedEvent[],
  { personal }: Sight,
): Promise<readonly RecordedEvent[]> {
  if (!personal) return events.map(withMaskedTexts);
  const ids = events.flatMap(phoneIdsOf);
  const numbers = ids.length === 0 ? new Map<string, Buffer>() : await keys.secrets(ids);
  const numberOf = (id: string): string => numbers.get(id)?.toString() ?? '';
  return Promise.all(
    events.map(async (event) =>
      withTexts(event, numberOf, event.type === 'GiftsPurchased' ? await openText(keys, messageOf(event)) : ''),
    ),
  );
}

/** The event with masked texts, for callers that may not see personal fields. */
export const withMaskedTexts = (event: RecordedEvent): RecordedEvent => withTexts(event, () => MASK, MASK);

function withTexts(event: RecordedEvent, numberOf: (phoneId: string) => string, message: string): RecordedEvent {
  if (event.type === 'GiftReassigned') {
    const { reason, ...data } = event.data as GiftReassigned['data'];
    const { phone_id } = data.receiver;
    const phone_number = phone_id === undefined ? null : numberOf(phone_id);
    return { ...event, data: { ...data, phone_number, reason } };
  }
  if (event.type !== 'GiftsPurchased') return event;
  const data = event.data as GiftsPurchased['data'];
  const receivers = data.receivers.map((receiver) =>
    receiver.phone_id === undefined ? receiver : { ...receiver, phone_number: numberOf(receiver.phone_id) },
  );
  return { ...event, data: { ...data, receivers, message } };
}

const messageOf = ({ data }: RecordedEvent): SealedText => (data as GiftsPurchased['data']).message;

function phoneIdsOf({ type, data }: RecordedEvent): string[] {
  if (type === 'GiftsPurchased')
    return (data as GiftsPurchased['data']).receivers.flatMap(({ phone_id }) => phone_id ?? []);
  return type === 'GiftReassigned' ? [(data as GiftReassigned['data']).receiver.phone_id ?? []].flat() : [];
}
