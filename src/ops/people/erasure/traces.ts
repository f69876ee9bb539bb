/** What the log holds of a person besides their own stream, from one reading of it. */
import { evolvePaymentMethod, ownerByPhone, type PaymentMethod, type Reservation } from '../../../domain/account.js';
import type { Entry } from '../../../domain/entry.js';
import type { Person } from '../../../domain/erasure.js';
import { giftStream, type GiftIssued, type GiftReassigned, type Receiver } from '../../../domain/gift/events.js';
import type { GiftsPurchased } from '../../../domain/purchase/events.js';
import { idOf } from '../../../domain/streamName.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';

export interface Whose {
  readonly person: Person;
  /** Ids of numbers that are no other user's. */
  readonly phoneIds: ReadonlySet<string>;
  /** Of numbers that are another user's by now: who held them when. */
  readonly shared: ReadonlyMap<string, Reservation>;
}

export interface Traces {
  /** Transactions that the person paid for. */
  readonly bought: ReadonlySet<string>;
  /** Transactions whose message is from or to the person. */
  readonly written: ReadonlySet<string>;
  /** References of payment methods that are no other user's. */
  readonly ownMethods: () => readonly string[];
  /** Reads on, up to the log's present end. @throws UnavailableError */
  readOn(): Promise<void>;
}

const TYPES = [
  'PaymentMethodAdded',
  'PaymentMethodChanged',
  'PaymentMethodRetired',
  'PaymentMethodErased',
  'GiftsPurchased',
  'GiftClaimed',
  'GiftReassigned',
];

export function tracesOf(events: Pick<EventStore, 'read' | 'readAll'>, { person, phoneIds, shared }: Whose): Traces {
  const userId = person.kind === 'user' ? person.userId : undefined;
  const bought = new Set<string>();
  const written = new Set<string>();
  const methods = new Map<string, Entry<PaymentMethod>>();
  let position: Position | undefined;

  const isTheirs = ({ user_id, phone_id }: Receiver, sentAt: string): boolean => {
    if (user_id !== undefined) return user_id === userId;
    if (phone_id === undefined || phoneIds.has(phone_id)) return phone_id !== undefined;
    const holders = shared.get(phone_id);
    return holders !== undefined && userId !== undefined && ownerByPhone(holders, sentAt) === userId;
  };

  async function note(event: RecordedEvent): Promise<void> {
    switch (event.type) {
      case 'GiftsPurchased': {
        const { transaction_id, buyer_id, receivers } = event.data as GiftsPurchased['data'];
        if (buyer_id === userId) bought.add(transaction_id);
        if (buyer_id === userId || receivers.some((one) => isTheirs(one, event.at))) written.add(transaction_id);
        return;
      }
      case 'GiftClaimed': {
        if ((event.data as { readonly user_id: string }).user_id !== userId) return;
        const [issued] = await events.read(giftStream(idOf(event.stream)), { limit: 1 });
        if (issued !== undefined) written.add((issued.data as GiftIssued['data']).transaction_id);
        return;
      }
      case 'GiftReassigned': {
        const { receiver, transaction_id } = event.data as GiftReassigned['data'];
        if (isTheirs(receiver, event.at)) written.add(transaction_id);
        return;
      }
      default: {
        const reference = idOf(event.stream);
        methods.set(reference, evolvePaymentMethod(methods.get(reference) ?? { status: 'none' }, event));
      }
    }
  }

  return {
    bought,
    written,
    ownMethods: () =>
      [...methods].flatMap(([reference, entry]) =>
        userId !== undefined &&
        entry.status !== 'none' &&
        entry.value.users.length === 1 &&
        entry.value.users[0] === userId
          ? [reference]
          : [],
      ),
    async readOn() {
      for await (const batch of events.readAll(position, { types: TYPES })) {
        for (const event of batch.events) await note(event);
        ({ position } = batch);
      }
    },
  };
}
