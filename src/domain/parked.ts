/** Work that a process manager gave up, and what support did about it. Stream `parked-{name}`. */
import { createHash } from 'node:crypto';
import type { DomainEvent } from './decider.js';
import { Refusal } from './refusal.js';

/** The process managers that park. */
export const PARKED_NAMES = ['purchase', 'notification', 'refund', 'dispute'] as const;

export type ParkedName = (typeof PARKED_NAMES)[number];

/** The step of a purchase that takes the money. */
export const CHARGE_STEP = 'charge';

export const parkedStream = (name: ParkedName): string => `parked-${name}`;

/** The process manager of such a stream; `undefined` for any other. */
export function parkedNameOf(stream: string): ParkedName | undefined {
  return PARKED_NAMES.find((name) => parkedStream(name) === stream);
}

/**
 * The id of parked work, one for each entity of a process manager: 32 hexadecimal digits that hide the entity's id,
 * which may be all that it takes to use a gift.
 */
export function parkedId(name: ParkedName, entity: string): string {
  return createHash('sha256').update(`parked\0${name}\0${entity}`).digest('hex').slice(0, 32);
}

// Events

/**
 * What work it is. `entity` is the id of the transaction (`purchase`), the gift (`notification`), the refund (`refund`;
 * for external refunds the transaction) or the dispute (`dispute`); `step` is what was tried.
 */
interface Work {
  readonly entity: string;
  readonly transaction_id: string;
  readonly step: string;
}

/**
 * Given up, with its cause. `event_id` is the event that asked for it, `times` how often it has been parked in a row,
 * this time included.
 */
export type WorkParked = DomainEvent<
  'WorkParked',
  Work & { readonly cause: string; readonly event_id: string; readonly times: number }
>;

/**
 * The id of the event that parks work, a UUID (RFC 9562, version 8): the same for the same work and the same event that
 * asked for it. So an append that is stored late does not stand twice.
 */
export function parkingId(
  name: ParkedName,
  { entity, step, event_id, times }: Omit<WorkParked['data'], 'cause'>,
): string {
  const hash = createHash('sha256').update(['parking', name, entity, step, event_id, times].join('\0')).digest('hex');
  const variant = ((Number.parseInt(hash.charAt(16), 16) & 3) | 8).toString(16);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** To be done again, from what the streams and the provider say. `times`: how often it had been parked. */
export type WorkRetried = DomainEvent<'WorkRetried', Work & { readonly times: number; readonly reason: string }>;

/** Not to be done: a person has seen to it. */
export type WorkDiscarded = DomainEvent<'WorkDiscarded', Work & { readonly times: number; readonly reason: string }>;

export type ParkedEvent = WorkParked | WorkRetried | WorkDiscarded;

// State

/** `parked`: it waits for a person; `retried`: it was handed back to its process manager. */
export type ParkedState = 'parked' | 'retried' | 'discarded';

/** Parked work, as decisions and lists need it. */
export interface ParkedWork extends Work {
  readonly state: ParkedState;
  readonly cause: string;
  readonly times: number;
}

/** The work after one more event of its entity. @throws Error for work that was never parked */
export function evolveParked(work: ParkedWork | undefined, { type, data }: ParkedEvent): ParkedWork {
  if (type === 'WorkParked') {
    const { entity, transaction_id, step, cause, times } = data;
    return { entity, transaction_id, step, cause, times, state: 'parked' };
  }
  if (work === undefined) throw new Error(`${type} of what was never parked`);
  return { ...work, state: type === 'WorkRetried' ? 'retried' : 'discarded' };
}

// Decisions

/**
 * Hands work back; again: no event. A discarded notification has been recorded as failed (a resend sends another), and
 * a charge as declined (the gifts can be bought again).
 * @throws Refusal `work_discarded`
 */
export function retryWork(
  name: ParkedName,
  { state, entity, transaction_id, step, times }: ParkedWork,
  reason: string,
): WorkRetried[] {
  if (state === 'retried') return [];
  if (state === 'discarded' && (name === 'notification' || (name === 'purchase' && step === CHARGE_STEP)))
    throw new Refusal('work_discarded');
  return [{ type: 'WorkRetried', data: { entity, transaction_id, step, times, reason } }];
}

/** Discards work; again: no event. @throws Refusal `work_retried`: its process manager has it */
export function discardWork(
  { state, entity, transaction_id, step, times }: ParkedWork,
  reason: string,
): WorkDiscarded[] {
  if (state === 'discarded') return [];
  if (state === 'retried') throw new Refusal('work_retried');
  return [{ type: 'WorkDiscarded', data: { entity, transaction_id, step, times, reason } }];
}
