import { personStream } from '../../../domain/erasure.js';
import { deriveGiftIds } from '../../../domain/giftIds.js';
import type { EventStore, RecordedEvent } from '../../../ports/eventStore.js';
import { readTraces, type Whose } from '../personTraces.js';
import { CALLS, DECIDED_WORK, isWorkOf, namesOfWork, peopleOf, searchFor } from '../supportTexts.js';

/** Data in the log that must be removed with a person. */
export interface Traces {
  /** Transactions that the person paid for. */
  readonly bought: ReadonlySet<string>;
  /** Transactions whose message is from or to the person. */
  readonly written: ReadonlySet<string>;
  /** Gifts that the person bought or got. */
  readonly gifts: ReadonlySet<string>;
  /** Search keys of support's texts about the person. */
  readonly texts: () => ReadonlySet<string>;
  /** References of payment methods that no other user who is not erased may use. */
  readonly ownMethods: () => readonly string[];
  /** Reads the log further, up to its present end. @throws UnavailableError */
  readOn(): Promise<void>;
}

export function tracesOf(events: Pick<EventStore, 'read' | 'readAll'>, whose: Whose): Traces {
  const bought = new Set<string>();
  const written = new Set<string>();
  const gifts = new Set<string>();
  const people = peopleOf(whose.userId, whose.phoneIds);
  const texts = new Set(people.map(personStream));
  const works: RecordedEvent[] = [];
  const { methods, readOn } = readTraces(events, whose, {
    others: [...CALLS, ...DECIDED_WORK],
    see(event) {
      // Work is judged at the end, since the person may get a gift of it later.
      if (DECIDED_WORK.includes(event.type)) works.push(event);
      else {
        const search = searchFor(event, people);
        if (search !== undefined) texts.add(search);
      }
    },
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
    texts() {
      const named = works.filter((work) => isWorkOf(work, gifts, written)).flatMap(namesOfWork);
      return new Set([...texts, ...written, ...gifts, ...named]);
    },
    ownMethods: () => methods().flatMap(({ reference, others }) => (others.length === 0 ? [reference] : [])),
    readOn,
  };
}
