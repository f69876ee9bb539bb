/** Parked work: a process manager abandoned it, and support retries or discards it. Stream `parked-{name}`. */
import { createHash } from 'node:crypto';
import type { DomainEvent } from './decider.js';
import { Refusal } from './refusal.js';

export const PARKED_NAMES = ['purchase', 'notification', 'refund', 'dispute'] as const;

export type ParkedName = (typeof PARKED_NAMES)[number];

/** The step of a purchase that takes the money. */
export const CHARGE_STEP = 'charge';

export const parkedStream = (name: ParkedName): string => `parked-${name}`;

export function parkedNameOf(stream: string): ParkedName | undefined {
  return PARKED_NAMES.find((name) => parkedStream(name) === stream);
}

/**
 * One id for each entity of a process manager: 32 hexadecimal digits. They hide the entity's id, since a gift's id may
 * be enough to use the gift.
 */
export function parkedId(name: ParkedName, entity: string): string {
  return createHash('sha256').update(`parked\0${name}\0${entity}`).digest('hex').slice(0, 32);
}

// Events

/**
 * `entity` is the id of the transaction (`purchase`), the gift (`notification`), the refund (`refund`; for external
 * refunds the transaction) or the dispute (`dispute`).
 */
interface Work {
  readonly entity: string;
  readonly transaction_id: string;
  readonly step: string;
}

/**
 * `event_id`: id of the event that requested the work. `times`: how often it was parked in a row, including this time.
 */
export type WorkParked = DomainEvent<
  'WorkParked',
  Work & { readonly cause: string; readonly event_id: string; readonly times: number }
>;

/**
 * A UUID (RFC 9562, version 8) made from the event's contents, so that an append that is stored late does not park the
 * work twice.
 */
export function parkingId(
  name: ParkedName,
  { entity, step, event_id, times }: Omit<WorkParked['data'], 'cause'>,
): string {
  const hash = createHash('sha256').update(['parking', name, entity, step, event_id, times].join('\0')).digest('hex');
  const variant = ((Number.parseInt(hash.charAt(16), 16) & 3) | 8).toString(16);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}

/** Support requests that the work is done again. `times`: how often it had been parked. */
export type WorkRetried = DomainEvent<'WorkRetried', Work & { readonly times: number; readonly reason: string }>;

type WorkDiscarded = DomainEvent<'WorkDiscarded', Work & { readonly times: number; readonly reason: string }>;

export type ParkedEvent = WorkParked | WorkRetried | WorkDiscarded;

// State

/** `parked`: the work waits for a person; `retried`: the process manager has the work again. */
export type ParkedState = 'parked' | 'retried' | 'discarded';

export interface ParkedWork extends Work {
  readonly state: ParkedState;
  readonly cause: string;
  readonly times: number;
}

/** @throws Error for work that was never parked */
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
 * A discarded notification or charge can't be retried. The notification is recorded as failed (support can resend it),
 * the charge as declined (the buyer can buy again).
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

/** @throws Refusal `work_retried`: the process manager has the work again */
export function discardWork(
  { state, entity, transaction_id, step, times }: ParkedWork,
  reason: string,
): WorkDiscarded[] {
  if (state === 'discarded') return [];
  if (state === 'retried') throw new Refusal('work_retried');
  return [{ type: 'WorkDiscarded', data: { entity, transaction_id, step, times, reason } }];
}
