import type { CommandContext } from '../../../commands/context.js';
import type { ReservationKind } from '../../../domain/account.js';
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
  readonly phoneIds: readonly string[];
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
  const usernames = await freed(deps, 'username', names.usernames.map(usernameSubject), userId, context);
  const numbers = await freed(deps, 'phone', names.numbers.map(phoneSubject), userId, context);
  const first = [...usernames, ...numbers].map(({ id }) => id);
  await keys.fence(first);
  return {
    userId,
    names: { usernames: usernames.map(({ text }) => text), numbers: numbers.map(({ text }) => text) },
    phoneIds: numbers.map(({ id }) => id),
    first,
    last,
  };
}

/** Names that no other user holds now, with the ids of their rows. */
async function freed(
  { events, keys, hash }: Deps,
  kind: ReservationKind,
  names: readonly PersonName[],
  userId: string,
  context: CommandContext,
): Promise<{ readonly id: string; readonly text: string }[]> {
  const rows = await keys.byLookup(names.map((name) => lookupOf(hash, name)));
  const free: { id: string; text: string }[] = [];
  for (const name of names) {
    const row = rows.get(lookupOf(hash, name));
    if (row === undefined) continue;
    if (!(await freeReservation(events, kind, row.id, userId, context))) free.push({ id: row.id, text: name.text });
  }
  return free;
}

async function fenceNumber({ keys, subjects }: Deps, phoneId: string): Promise<Fenced> {
  await keys.fence([phoneId]);
  const number = (await subjects.secretsForErasure([phoneId])).get(phoneId)?.toString();
  return {
    names: { usernames: [], numbers: number === undefined ? [] : [number] },
    phoneIds: [phoneId],
    first: [],
    last: [phoneId],
  };
}
