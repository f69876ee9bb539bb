import { deriveGiftIds } from '../../../domain/giftIds.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { readTraces, type Whose } from '../personTraces.js';

/** Of a person, what must go with them. */
export interface Traces {
  /** Transactions that the person paid for. */
  readonly bought: ReadonlySet<string>;
  /** Transactions whose message is from or to the person. */
  readonly written: ReadonlySet<string>;
  /** Gifts that the person bought or got. */
  readonly gifts: ReadonlySet<string>;
  /** References of payment methods that no other user has who is not erased. */
  readonly ownMethods: () => readonly string[];
  /** Reads on, up to the log's present end. @throws UnavailableError */
  readOn(): Promise<void>;
}

export function tracesOf(events: Pick<EventStore, 'read' | 'readAll'>, whose: Whose): Traces {
  const bought = new Set<string>();
  const written = new Set<string>();
  const gifts = new Set<string>();
  const { methods, readOn } = readTraces(events, whose, {
    bought({ transaction_id, seed, receivers }) {
      bought.add(transaction_id);
      written.add(transaction_id);
      for (const { gift_id } of deriveGiftIds(seed, receivers.length)) gifts.add(gift_id);
    },
    got({ transaction_id, giftIds }) {
      written.add(transaction_id);
      for (const id of giftIds()) gifts.add(id);
    },
  });
  return {
    bought,
    written,
    gifts,
    ownMethods: () => methods().flatMap(({ reference, others }) => (others.length === 0 ? [reference] : [])),
    readOn,
  };
}
