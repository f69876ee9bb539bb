/** Erasure of a person in the log (docs/personal-data.md#erasure). Stream `user-{id}` or `phone-{phone_id}`. */
import type { Aggregate, DomainEvent, Happened } from './decider.js';
import { idOf, kindOf } from './streamName.js';

/**
 * Everything that opened the personal data of the stream's person was destroyed before this event. `purchases`: number
 * of purchases that lost their data key, and so their message, with it.
 */
export type PersonErased = DomainEvent<
  'PersonErased',
  { readonly erasure_id: string; readonly purchases: number; readonly reason: string }
>;

/** Support requests an erasure. It is due at `due_at` (ISO 8601, UTC), or once another user of support approves it. */
export type ErasureRequested = DomainEvent<
  'ErasureRequested',
  { readonly erasure_id: string; readonly reason: string; readonly due_at: string }
>;

/** A requested erasure is carried out: from now on it can't be withdrawn. */
type ErasureStarted = DomainEvent<'ErasureStarted', { readonly erasure_id: string }>;

export type ErasureWithdrawn = DomainEvent<
  'ErasureWithdrawn',
  { readonly erasure_id: string; readonly reason: string }
>;

export type ErasureEvent = ErasureRequested | ErasureStarted | ErasureWithdrawn | PersonErased;

/** The latest request to erase a person. Times are ISO 8601, UTC. */
type ErasureRequest =
  | { readonly status: 'none' }
  | {
      readonly status: 'requested' | 'started' | 'withdrawn';
      readonly id: string;
      readonly at: string;
      readonly due_at: string;
    };

export const erasureRequestAggregate: Aggregate<ErasureRequest, ErasureEvent> = {
  initial: { status: 'none' },
  evolve(state: ErasureRequest, event: Happened<ErasureEvent>): ErasureRequest {
    switch (event.type) {
      case 'ErasureRequested':
        return { status: 'requested', id: event.data.erasure_id, at: event.at, due_at: event.data.due_at };
      case 'ErasureStarted':
        return state.status === 'none' ? state : { ...state, status: 'started' };
      case 'ErasureWithdrawn':
        return state.status === 'none' ? state : { ...state, status: 'withdrawn' };
      case 'PersonErased':
        return { status: 'none' };
      default:
        return state;
    }
  },
};

/** Whether a person is erased: an import that raced with the erasure may have added them again. */
export const erasedAggregate: Aggregate<boolean, DomainEvent> = {
  initial: false,
  evolve: (erased, { type }) => type === 'PersonErased' || (erased && type !== 'UserAdded'),
};

/** Reason in the event that retires the entry of an erased user. */
export const ERASURE_REASON = 'erasure';

/** A user, or a phone number that is no user's. */
export type Person =
  { readonly kind: 'user'; readonly userId: string } | { readonly kind: 'number'; readonly phoneId: string };

const NUMBER = 'phone:';

/** Id of a person in paths and on the command line: a user's id, or `phone:{phone_id}`. */
export const personId = (person: Person): string =>
  person.kind === 'user' ? person.userId : `${NUMBER}${person.phoneId}`;

export const personOf = (id: string): Person =>
  id.startsWith(NUMBER) ? { kind: 'number', phoneId: id.slice(NUMBER.length) } : { kind: 'user', userId: id };

export const personOfStream = (stream: string): Person =>
  kindOf(stream) === 'user' ? { kind: 'user', userId: idOf(stream) } : { kind: 'number', phoneId: idOf(stream) };

export const personStream = (person: Person): string =>
  person.kind === 'user' ? `user-${person.userId}` : `phone-${person.phoneId}`;
