/**
 * When the gifts of a purchase are sent to their receivers (docs/api/purchases.md#scheduled-sending). The events are in
 * the transaction's stream.
 */
import { timeWithZone } from '../../lib/writtenTime.js';
import type { DomainEvent } from '../decider.js';
import { Refusal } from '../refusal.js';

// Events

/** The buyer names another time (ISO 8601, UTC); null: nothing is sent until one is named. */
type SendRescheduled = DomainEvent<'SendRescheduled', { readonly send_at: string | null }>;

/** The time of sending has come: it is fixed from now on, and the gifts are released one by one. */
type SendStarted = DomainEvent<'SendStarted', { readonly send_at: string }>;

/** Every gift that could be released is released. */
type SendFinished = DomainEvent<'SendFinished', Readonly<Record<never, never>>>;

export type SendingEvent = SendRescheduled | SendStarted | SendFinished;

// State

/**
 * State of sending, for a purchase whose buyer named a time. `sendAt`: ISO 8601, UTC; null: nothing is sent before a
 * time is named.
 */
export interface Sending {
  readonly status: 'scheduled' | 'started' | 'finished';
  readonly sendAt: string | null;
}

export function evolveSending(sending: Sending | undefined, event: SendingEvent): Sending {
  switch (event.type) {
    case 'SendRescheduled':
      return { status: 'scheduled', sendAt: event.data.send_at };
    case 'SendStarted':
      return { status: 'started', sendAt: event.data.send_at };
    case 'SendFinished':
      return { status: 'finished', sendAt: sending?.sendAt ?? null };
    default:
      return event satisfies never;
  }
}

// Decisions

/** Number of days ahead at most: a leap year, so that the same day of the next year can be named. */
const MOST_DAYS = 366;
const DAY_MS = 86_400_000;

/** A purchase, as far as its sending depends on it. */
interface Sendable {
  readonly status: 'none' | 'pending' | 'charged' | 'declined';
  readonly sending?: Sending;
}

export interface SendingFacts {
  /** Time of the decision (ISO 8601, UTC). */
  readonly now: string;
  /** The last valid day of the gifts (UTC). */
  readonly expires_on: string;
}

/** @returns the time of sending, ISO 8601, UTC. @throws Refusal `invalid_send_at` */
export function sendTime(text: string, { now, expires_on }: SendingFacts): string {
  const time = timeWithZone(text) ?? Number.NEGATIVE_INFINITY;
  const ahead = time - Date.parse(now);
  if (ahead <= 0 || ahead > MOST_DAYS * DAY_MS) throw new Refusal('invalid_send_at', 'send_at');
  const sendAt = new Date(time).toISOString();
  if (sendAt.slice(0, 10) > expires_on) throw new Refusal('invalid_send_at', 'send_at');
  return sendAt;
}

/** @returns the time of sending, ISO 8601, UTC. @throws Refusal `invalid_send_at` where the gifts are expired */
export function atOnce({ now, expires_on }: SendingFacts): string {
  if (now.slice(0, 10) > expires_on) throw new Refusal('invalid_send_at', 'send_at');
  return now;
}

/** @throws Refusal `nothing_to_send`: the gifts were sent at once or already, or the purchase was declined */
export function reschedule(state: Sendable, sendAt: string | null): SendRescheduled[] {
  if (state.status === 'declined' || state.sending?.status !== 'scheduled') throw new Refusal('nothing_to_send');
  return state.sending.sendAt === sendAt ? [] : [{ type: 'SendRescheduled', data: { send_at: sendAt } }];
}

/** Starts the sending only of a purchase that is paid for. */
export function startSend({ status, sending }: Sendable, now: string): SendStarted[] {
  if (status !== 'charged' || sending?.status !== 'scheduled') return [];
  if (sending.sendAt === null || sending.sendAt > now) return [];
  return [{ type: 'SendStarted', data: { send_at: sending.sendAt } }];
}

export function finishSend({ sending }: Sendable): SendFinished[] {
  return sending?.status === 'started' ? [{ type: 'SendFinished', data: {} }] : [];
}
