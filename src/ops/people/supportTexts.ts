/** Reasons and tickets that support wrote about a person: their search keys, whose they are, and their texts. */
import { type AccessRequest, foundBy, subjectOfCall } from '../../domain/access.js';
import { type Person, personId, personStream } from '../../domain/erasure.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { parkedId, parkedNameOf, type WorkRetried } from '../../domain/parked.js';
import { PERSONAL_FIELDS } from '../../domain/personalFields.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import type { RefundRequested } from '../../domain/purchase/refund.js';
import { idOf, kindOf, shownStream } from '../../domain/streamName.js';
import { MASK } from '../../lib/mask.js';
import type { Caller, RecordedEvent } from '../../ports/eventStore.js';
import { AlteredDataError } from '../../runtime/personal/index.js';
import type { Identity, TraceVisitor } from './personTraces.js';

/** Types of calls under /ops, whose reasons are about a person by what the call requested or found. */
export const CALLS: readonly string[] = ['RecordsShown', 'OperationStarted'];
export const DECIDED_WORK: readonly string[] = ['WorkRetried', 'WorkDiscarded'];

/** Names by which a call may have requested parked work. */
export function namesOfWork({ stream, data }: RecordedEvent): readonly string[] {
  const name = parkedNameOf(stream);
  const { entity } = data as WorkRetried['data'];
  return name === undefined ? [entity] : [entity, parkedId(name, entity)];
}

/**
 * Whether parked work is of these gifts or transactions. A message is of one gift; all other work is of its whole
 * purchase.
 */
export function isWorkOf(
  { stream, data }: RecordedEvent,
  gifts: Pick<ReadonlySet<string>, 'has'>,
  transactions: ReadonlySet<string>,
): boolean {
  const { entity, transaction_id } = data as WorkRetried['data'];
  return parkedNameOf(stream) === 'notification' ? gifts.has(entity) : transactions.has(transaction_id);
}

/** Search key of a call's reason; `undefined` where the call found none of these persons. */
export function searchFor({ data }: RecordedEvent, people: readonly Person[]): string | undefined {
  const request = data as AccessRequest;
  const found = foundBy(request.asked);
  return people.some((person) => found.includes(personId(person))) ? subjectOfCall(request) : undefined;
}

export const peopleOf = (userId: string | undefined, phoneIds: Iterable<string>): readonly Person[] => [
  ...(userId === undefined ? [] : [{ kind: 'user', userId } as const]),
  ...[...phoneIds].map((phoneId) => ({ kind: 'number', phoneId }) as const),
];

export interface WrittenText {
  readonly at: string;
  readonly by: Caller;
  readonly type: string;
  /** Name of the stream, with keyed hashes masked. */
  readonly stream: string;
  /** Name of a call under /ops or of the command line. */
  readonly what?: string;
  readonly reason?: string;
  readonly ticket?: string;
  /** True where the text was altered, and is unreadable. */
  readonly altered?: true;
}

interface WrittenTexts extends Required<TraceVisitor> {
  /** Texts about the person; `methods` has the references of the person's payment methods. */
  about(methods: ReadonlySet<string>): readonly WrittenText[];
}

const TYPES = Object.entries(PERSONAL_FIELDS).flatMap(([type, { fields }]) => ('reason' in fields ? [type] : []));

/**
 * Texts that were written while a gift was the person's, or about gifts that they bought; of texts on refunds, those of
 * their gifts. Erased texts are left out.
 */
export function writtenTexts({ userId, phoneIds }: Identity): WrittenTexts {
  const people = peopleOf(userId, phoneIds);
  const bought = new Set<string>();
  const boughtGifts = new Set<string>();
  const gifts = new Set<string>();
  const named = new Set(people.map(personStream));
  const found: RecordedEvent[] = [];
  let lost: string | undefined;

  const isTheirs = (giftId: string): boolean => gifts.has(giftId) || boughtGifts.has(giftId);

  function isAbout(event: RecordedEvent): boolean {
    const { type, stream, data } = event;
    const id = idOf(stream);
    if (CALLS.includes(type)) {
      const about = subjectOfCall(data as AccessRequest);
      if (about === undefined) return false;
      return named.has(about) || bought.has(about) || isTheirs(about) || searchFor(event, people) !== undefined;
    }
    if (DECIDED_WORK.includes(type)) return isWorkOf(event, { has: isTheirs }, bought);
    switch (kindOf(stream)) {
      case 'gift':
      case 'notification':
        return isTheirs(id);
      case 'transaction':
        return bought.has(id) || giftsWith(data).some((giftId) => gifts.has(giftId));
      case 'user':
        return id === userId;
      default:
        return kindOf(stream) === 'paymentMethod';
    }
  }

  return {
    others: TYPES,
    bought({ transaction_id, seed, receivers }) {
      bought.add(transaction_id);
      for (const { gift_id } of deriveGiftIds(seed, receivers.length)) boughtGifts.add(gift_id);
    },
    got({ giftIds }) {
      for (const giftId of giftIds()) gifts.add(giftId);
    },
    lost(giftId) {
      lost = giftId;
    },
    see(event) {
      if (isAbout(event)) {
        if (DECIDED_WORK.includes(event.type)) for (const name of namesOfWork(event)) named.add(name);
        found.push(event);
      }
      // A text written with the loss of a gift is about both receivers, so the gift counts until here.
      if (lost !== undefined) gifts.delete(lost);
      lost = undefined;
    },
    about: (methods) =>
      found
        .filter(({ stream }) => kindOf(stream) !== 'paymentMethod' || methods.has(idOf(stream)))
        .flatMap((event) => textIn(event) ?? []),
  };
}

/** Gifts that support's text in a transaction's stream is about: those of a refund, or a replacement. */
function giftsWith(data: object): readonly string[] {
  const { gift_ids, replaces, seed } = data as Partial<RefundRequested['data'] & GiftsPurchased['data']>;
  if (replaces === undefined || seed === undefined) return gift_ids ?? [];
  return deriveGiftIds(seed, 1).map(({ gift_id }) => gift_id);
}

function textIn({ at, type, stream, data, metadata: { by } }: RecordedEvent): WrittenText | undefined {
  const { what } = data as Partial<AccessRequest>;
  const where = { at, by, type, stream: shownStream(stream, MASK), ...(what === undefined ? {} : { what }) };
  try {
    const { reason, ticket = '' } = data as { readonly reason: string | null; readonly ticket?: string };
    if ((reason ?? '') === '' && ticket === '') return undefined;
    return { ...where, reason: reason ?? '', ...(ticket === '' ? {} : { ticket }) };
  } catch (error) {
    if (error instanceof AlteredDataError) return { ...where, altered: true };
    throw error;
  }
}
