/**
 * Access records of calls under `/ops` and of exports (docs/support.md#access-records). Stream `access-{yyyy-mm-dd}`
 * (UTC). No decision depends on them.
 */
import type { DomainEvent } from './decider.js';
import { personOf, personStream } from './erasure.js';
import { isGiftId } from './giftIds.js';

export const accessStream = (at: string): string => `access-${at.slice(0, 10)}`;

export interface AccessRequest {
  /** A route (`GET /ops/gifts/:id/history`) or a command (`gift history`). */
  readonly what: string;
  /** Path parameters and query, or options, as the caller spelled them. */
  readonly asked: Readonly<Record<string, unknown>>;
  /** True where personal fields were shown unmasked. */
  readonly personal: boolean;
  readonly reason: string | null;
}

/**
 * Topic of a call, about which its reason may hold personal data: a gift, a transaction, or parked work (by any of its
 * names). It can also be a person (by the stream), or all persons that a search found. `undefined`: none in particular.
 */
export function subjectOfCall({ asked }: Pick<AccessRequest, 'asked'>): string | undefined {
  const text = (...fields: string[]): string | undefined =>
    fields.map((field) => asked[field]).find((value): value is string => typeof value === 'string');
  const named = text('giftId', 'gift', 'parkedId');
  const giftId = named !== undefined && isGiftId(named) ? named : undefined;
  const known = giftId ?? text('transactionId') ?? named;
  if (known !== undefined) return known;
  const person = text('personId', 'person');
  const people = person === undefined ? foundBy(asked) : [person];
  return people.length === 0 ? undefined : people.map((id) => personStream(personOf(id))).join('\0');
}

/** Ids of the persons that a search found, in the form that paths use. */
export const foundBy = ({ found }: AccessRequest['asked']): readonly string[] =>
  Array.isArray(found) ? (found as readonly string[]) : [];

/** Records were shown; the event is appended before the answer goes out. */
type RecordsShown = DomainEvent<'RecordsShown', AccessRequest & { readonly count: number }>;

/** An operation started; the event is appended before it shows its first record or changes anything. */
export type OperationStarted = DomainEvent<'OperationStarted', AccessRequest & { readonly operation_id: string }>;

/**
 * `complete: false`: the operation was interrupted or refused, though a repair may still be carried out. `position`:
 * null for an operation that reports no position.
 */
type OperationEnded = DomainEvent<
  'OperationEnded',
  {
    readonly operation_id: string;
    readonly count: number;
    readonly position: string | null;
    readonly complete: boolean;
  }
>;

export type AccessEvent = RecordsShown | OperationStarted | OperationEnded;

/** Types that only access records have. */
export const ACCESS_TYPES: ReadonlySet<string> = new Set([
  'RecordsShown',
  'OperationStarted',
  'OperationEnded',
] satisfies AccessEvent['type'][]);
