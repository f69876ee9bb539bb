import type { CommandContext } from '../../../commands/context.js';
import { holderOf, type Reservation, type ReservationKind } from '../../../domain/account.js';
import type { Person } from '../../../domain/erasure.js';
import {
  lookupOf,
  type PersonName,
  phoneSubject,
  usernameSubject,
  userSubject,
} from '../../../domain/personalFields.js';
import type { ErasureDeps } from './erasureDeps.js';
import { type Names, namesOf } from './names.js';
import { freeReservation, retireUser } from './retire.js';

/** Whose rows are fenced: no new event of the person, and no login, from now on. */
export interface Fenced {
  readonly userId?: string;
  /** Those that no other user holds now. */
  readonly names: Names;
  /** Of these numbers. */
  readonly phoneIds: readonly string[];
  /** Who held numbers when that another user holds now, by their ids. */
  readonly held: ReadonlyMap<string, Reservation>;
  /** Rows of the names. */
  readonly first: readonly string[];
  /** The row of the user's own fields. */
  readonly last: readonly string[];
}

type Deps = Pick<ErasureDeps, 'events' | 'fencedEvents' | 'keys' | 'subjects' | 'hash'>;

/** @throws UnavailableError, ConflictError */
export async function fencePerson(deps: Deps, person: Person, context: CommandContext): Promise<Fenced> {
  return person.kind === 'user' ? fenceUser(deps, person.userId, context) : fenceNumber(deps, person.phoneId);
}

async function fenceUser(deps: Deps, userId: string, context: CommandContext): Promise<Fenced> {
  const { events, keys, hash, fencedEvents } = deps;
  const last = [...(await keys.byLookup([lookupOf(hash, userSubject(userId))])).values()].map(({ id }) => id);
  await keys.fence(last);
  const names = await namesOf(fencedEvents, userId);
  await retireUser(events, userId, context);
  const { free: usernames } = await freed(deps, 'username', names.usernames.map(usernameSubject), userId, context);
  const { free: numbers, held } = await freed(deps, 'phone', names.numbers.map(phoneSubject), userId, context);
  const first = [...usernames, ...numbers].map(({ id }) => id);
  await keys.fence(first);
  return {
    userId,
    names: { usernames: usernames.map(({ text }) => text), numbers: numbers.map(({ text }) => text) },
    phoneIds: numbers.map(({ id }) => id),
    held,
    first,
    last,
  };
}

interface Freed {
  /** Names that no other user holds now, with the ids of their rows. */
  readonly free: readonly { readonly id: string; readonly text: string }[];
  /** Who held the others when, by the ids of their rows. */
  readonly held: ReadonlyMap<string, Reservation>;
}

async function freed(
  { events, keys, hash }: Deps,
  kind: ReservationKind,
  names: readonly PersonName[],
  userId: string,
  context: CommandContext,
): Promise<Freed> {
  const rows = await keys.byLookup(names.map((name) => lookupOf(hash, name)));
  const free: { id: string; text: string }[] = [];
  const held = new Map<string, Reservation>();
  for (const name of names) {
    const row = rows.get(lookupOf(hash, name));
    if (row === undefined) continue;
    const reservation = await freeReservation(events, kind, row.id, userId, context);
    const holder = holderOf(reservation);
    if (holder === undefined || holder === userId) free.push({ id: row.id, text: name.text });
    else held.set(row.id, reservation);
  }
  return { free, held };
}

async function fenceNumber({ keys, subjects }: Deps, phoneId: string): Promise<Fenced> {
  await keys.fence([phoneId]);
  const number = (await subjects.secretsForErasure([phoneId])).get(phoneId)?.toString();
  return {
    names: { usernames: [], numbers: number === undefined ? [] : [number] },
    phoneIds: [phoneId],
    held: new Map(),
    first: [],
    last: [phoneId],
  };
}
