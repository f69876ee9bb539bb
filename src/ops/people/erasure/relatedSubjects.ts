/**
 * Key store rows that are related to a person: those of messages that the person wrote or got, of payment methods that
 * no other user who is not erased may use, and of support's texts about the person. The log names them.
 */
import { type CommandContext, partOf, transact } from '../../../commands/transact.js';
import { accountStream, evolvePaymentMethod, type PaymentMethod } from '../../../domain/account.js';
import type { Aggregate, DomainEvent } from '../../../domain/decider.js';
import type { Entry } from '../../../domain/entry.js';
import { personStream } from '../../../domain/erasure.js';
import { deriveGiftIds } from '../../../domain/giftIds.js';
import {
  paymentMethodSubject,
  type PersonName,
  purchaseSubject,
  supportTextSubject,
} from '../../../domain/personalFields.js';
import { inParallel } from '../../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../../ports/eventStore.js';
import { readableFields } from '../../../runtime/personal/index.js';
import { type Identity, readTraces } from '../personTraces.js';
import { CALLS, DECIDED_WORK, isWorkOf, namesOfWork, peopleOf, searchFor } from '../supportTexts.js';
import type { ErasureLog } from './erasureRecord.js';

const AT_ONCE = 1_000;
const STREAMS_AT_ONCE = 16;

/** All methods throw UnavailableError. */
export interface RelatedSubjects {
  /** Transactions that the person paid for. */
  readonly bought: ReadonlySet<string>;
  /** Search keys of support's texts about the person. */
  texts(): ReadonlySet<string>;
  /** Reads the log further, up to its present end. */
  readOn(): Promise<void>;
  fence(): Promise<void>;
  /** Ends the fences that `fence` set. */
  unfence(): Promise<void>;
  /** Ends the payment methods and removes all rows. @returns the number of purchases whose data key was removed */
  remove(erasureId: string, context: CommandContext): Promise<number>;
}

export function relatedSubjects({ events, keys, subjects }: ErasureLog, identity: Identity): RelatedSubjects {
  const bought = new Set<string>();
  /** Transactions whose message is from or to the person. */
  const written = new Set<string>();
  /** Gifts that the person bought or got. */
  const gifts = new Set<string>();
  const people = peopleOf(identity.userId, identity.phoneIds);
  const calls = new Set(people.map(personStream));
  const works: RecordedEvent[] = [];
  const traces = readTraces(events, identity, {
    others: [...CALLS, ...DECIDED_WORK],
    see(event) {
      // Work is judged at the end, since the person may get a gift of it later.
      if (DECIDED_WORK.includes(event.type)) works.push(event);
      else {
        const search = searchFor(event, people);
        if (search !== undefined) calls.add(search);
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

  function texts(): ReadonlySet<string> {
    const named = works.filter((work) => isWorkOf(work, gifts, written)).flatMap(namesOfWork);
    return new Set([...calls, ...written, ...gifts, ...named]);
  }

  /** References of payment methods that no other user who is not erased may use. */
  const ownMethods = (): readonly string[] =>
    traces.methods().flatMap(({ reference, others }) => (others.length === 0 ? [reference] : []));
  const messages = (): PersonName[] => [...written].map(purchaseSubject);
  const methodsAndTexts = (): PersonName[] => [
    ...ownMethods().map(paymentMethodSubject),
    ...[...texts()].map(supportTextSubject),
  ];

  /** Ids of the existing rows with these names, in batches. */
  async function rowsOf(names: readonly PersonName[], onlyFenced = false): Promise<string[][]> {
    const batches: string[][] = [];
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const rows = await subjects.rowsForErasure(names.slice(from, from + AT_ONCE));
      batches.push(rows.flatMap((row) => (row === undefined || (onlyFenced && row.fenced !== true) ? [] : [row.id])));
    }
    return batches;
  }

  return {
    bought,
    texts,
    readOn: traces.readOn,
    async fence() {
      for (const ids of await rowsOf([...messages(), ...methodsAndTexts()])) await keys.fence(ids);
    },
    async unfence() {
      for (const ids of await rowsOf([...messages(), ...methodsAndTexts()], true)) await keys.unfence(ids);
    },
    async remove(erasureId, context) {
      await inParallel(ownMethods(), STREAMS_AT_ONCE, async (reference) =>
        erasePaymentMethod(events, reference, erasureId, context),
      );
      for (const ids of await rowsOf(methodsAndTexts())) await keys.remove(ids);
      let purchases = 0;
      for (const ids of await rowsOf(messages())) {
        await keys.remove(ids);
        purchases += ids.length;
      }
      return purchases;
    },
  };
}

const methodAggregate: Aggregate<Entry<PaymentMethod>, DomainEvent> = {
  initial: { status: 'none' },
  // Altered fields are destroyed with the others, and must not prevent the erasure.
  evolve: (state, { type, data }) => evolvePaymentMethod(state, { type, data: readableFields(data) }),
};

async function erasePaymentMethod(
  events: EventStore,
  reference: string,
  erasureId: string,
  context: CommandContext,
): Promise<void> {
  await transact(events, methodAggregate, accountStream('paymentMethod', reference), partOf(context), (state) =>
    state.status === 'live' || state.status === 'retired'
      ? [{ type: 'PaymentMethodErased', data: { erasure_id: erasureId } }]
      : [],
  );
}
