/** A person's end in the log (docs/decisions.md#erasure). Stream `user-{id}` or `phone-{phone_id}`. */
import type { DomainEvent } from './decider.js';
import { idOf, kindOf } from './streamName.js';

/**
 * What opened the personal data of the stream's person was destroyed before. `purchases`: how many lost their data key,
 * and so their message, with it.
 */
export type PersonErased = DomainEvent<
  'PersonErased',
  { readonly erasure_id: string; readonly purchases: number; readonly reason: string }
>;

/** Of the end of an erased user's entry. */
export const ERASURE_REASON = 'erasure';

/** A user, or a phone number that is no user's. */
export type Person =
  { readonly kind: 'user'; readonly userId: string } | { readonly kind: 'number'; readonly phoneId: string };

const NUMBER = 'phone:';

/** In paths and on the command line: a user's id, or `phone:{phone_id}`. */
export const personId = (person: Person): string =>
  person.kind === 'user' ? person.userId : `${NUMBER}${person.phoneId}`;

export const personOf = (id: string): Person =>
  id.startsWith(NUMBER) ? { kind: 'number', phoneId: id.slice(NUMBER.length) } : { kind: 'user', userId: id };

export const personOfStream = (stream: string): Person =>
  kindOf(stream) === 'user' ? { kind: 'user', userId: idOf(stream) } : { kind: 'number', phoneId: idOf(stream) };

export const personStream = (person: Person): string =>
  person.kind === 'user' ? `user-${person.userId}` : `phone-${person.phoneId}`;
