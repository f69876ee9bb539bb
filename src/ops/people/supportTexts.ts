/** Texts that support wrote about a person: their search keys, and whether a text is about the person. */
import { type AccessRequest, foundBy, subjectOfCall } from '../../domain/access.js';
import { type Person, personId } from '../../domain/erasure.js';
import { parkedId, parkedNameOf, type WorkRetried } from '../../domain/parked.js';
import type { RecordedEvent } from '../../ports/eventStore.js';

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
